"""Keeps the small files behind every verdict: only the numbers of all runs and their configuration."""

import dataclasses
import json
import pathlib
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.analysis.config import AnalysisConfig
from trainers.engine.flags import stored_config
from trainers.evidence.summary import summary_markdown
from trainers.reproduction.config import KeepConfig
from trainers.results.folders import CONFIG, STATUS, SWEEP_OF, Folder, find_folders
from trainers.results.runs import ANALYSIS, Sweep, read_sweep
from trainers.results.trials import ENVIRONMENTS, RESULTS, Result, environments_json, read_kept, results_csv
from trainers.study.checks import CHECKS, checks_csv, read_checks
from trainers.sweeps.space import LISTS, sweep_config_class
from trainers.sweeps.sweep import check_same, sweep_identity
from trainers.system.errors import require
from trainers.system.files import atomic_file, read_object, read_text
from trainers.tasks import CONFIGS

MEASUREMENTS, SUMMARY = "gradient_analysis.csv", "summary.md"
LARGEST = 1_500_000  # bytes per file, enough for 10,000 measured iterations: they go into a repository
OTHER_CONFIG = "RUNS must have the configuration of the results that are kept under the same name"
PATH = re.compile(r"(?<![\w./])[~/](?:[\w.@%+-]*/)*([\w.@%+-]+)")  # an absolute path, or one below a home folder


def keep(config: KeepConfig) -> str:
    """Adds runs to the kept results, and returns a message that lists them."""
    output = pathlib.Path(config.output)
    require(not output.exists() or output.is_dir(), "--output must be a folder", config.output)
    said = []
    for folder in find_folders(config.runs):
        files = _files(folder, output / folder.name)
        if files:
            _write(output / folder.name, files)
            said.append(f"kept: {output / folder.name}{_count(files)}")
    require(said, "RUNS must include finished runs of a sweep, or a gradient analysis", " ".join(config.runs))
    return "\n".join(said)


def _files(folder: Folder, place: pathlib.Path) -> dict[str, str]:
    """The files to keep of a run, by name; none for a run that takes seconds to repeat."""
    document = read_object(folder.path / CONFIG)
    if folder.task.startswith(SWEEP_OF):
        return _sweep_files(folder, document, place)
    if folder.task == ANALYSIS and folder.finished:
        return _analysis_files(folder, document, place)
    return {}


def _analysis_files(folder: Folder, document: Mapping[str, Any], place: pathlib.Path) -> dict[str, str]:
    measured = (folder.path / MEASUREMENTS).read_text()
    if (place / CONFIG).exists():
        ours, kept = (stored_config(AnalysisConfig, each["config"]) for each in (document, read_object(place / CONFIG)))
        check_same(ours.identity(), kept.identity(), OTHER_CONFIG, place)
        rule = f"Measurements that are kept already must be the same; {place} has others"
        require(read_text(place / MEASUREMENTS) == measured, rule, str(folder.path))
    return _config_and_status(folder, document) | {MEASUREMENTS: measured}


def _sweep_files(folder: Folder, document: Mapping[str, Any], place: pathlib.Path) -> dict[str, str]:
    problems: list[str] = []
    sweep = read_sweep(folder, problems, curves=False)
    require(not problems, "Results must be readable", "; ".join(problems))
    if not sweep.results:
        return {}
    metric, before = sweep.objective.metric, []
    if (place / CONFIG).exists():
        kept = read_object(place / CONFIG)
        check_same(_identity(document), _identity(kept), OTHER_CONFIG, place)
        before = read_kept(place)
        document = {**document, "config": _merged_config(kept["config"], document["config"])}
        sweep = read_sweep(dataclasses.replace(folder, config=document["config"]), problems, curves=False)
    results = _merged_results(before, sweep.results, place)
    clean = [dataclasses.replace(result, error=without_places(result.error)) for result in results]
    checks = {**_kept_checks(sweep, place), **read_checks(sweep)}
    return {
        **_config_and_status(folder, document),
        **({CHECKS: checks_csv(checks)} if checks else {}),
        RESULTS: results_csv(clean, metric, sweep.grid),
        ENVIRONMENTS: environments_json(clean),
        SUMMARY: kept_summary(dataclasses.replace(sweep, results=tuple(clean), kept=True)),
    }


def _kept_checks(sweep: Sweep, place: pathlib.Path) -> dict[str, float]:
    kept = dataclasses.replace(sweep, folder=dataclasses.replace(sweep.folder, path=place))
    return read_checks(kept) if (place / CHECKS).exists() else {}


def kept_summary(sweep: Sweep) -> str:
    """Tables and verdicts for reading, which follow from the other kept files."""
    return summary_markdown(sweep.table(), f"{sweep.task}, {sweep.subject}", sweep.results, sweep.terms)


def _config_and_status(folder: Folder, document: Mapping[str, Any]) -> dict[str, str]:
    clean = _cleaned({name: value for name, value in document.items() if name != "data"})
    return {CONFIG: json.dumps(clean, indent=2) + "\n", STATUS: without_places(folder.status) + "\n"}


def _identity(document: Mapping[str, Any]) -> dict[str, Any]:
    task = str(document["task"]).removeprefix(SWEEP_OF)
    if task not in CONFIGS:  # a user's own task
        return {"task": task}
    return sweep_identity(document["task"], stored_config(sweep_config_class(task), document["config"]))


def _merged_results(kept: Sequence[Result], results: Sequence[Result], place: pathlib.Path) -> tuple[Result, ...]:
    """All runs, each once. A kept result stays, unless it failed."""
    found = {result.name: result for result in kept}
    for result in results:
        known = found.get(result.name)
        if known and "failed" not in (known.status, result.status):
            same = (known.status, known.objective) == (result.status, result.objective)
            rule = f"Runs that are kept already must have the same results; {place} has {known.objective}"
            require(same, rule, f"{result.objective} of {result.name}")
        if not known or known.status == "failed":
            found[result.name] = result
    return tuple(found.values())


def _merged_config(kept: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """A config with the runs of both."""
    lists = {}
    for name in (name for name in LISTS if name in kept or name in config):
        values = list(dict.fromkeys([*kept.get(name, ()), *config.get(name, ())]))
        lists[name] = values if any(isinstance(value, str) for value in values) else sorted(values)
    return {**config, **lists}


def _cleaned(value: Any) -> Any:
    """A JSON value without local paths."""
    if isinstance(value, dict):
        return {name: _cleaned(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return _last_names(value) if isinstance(value, str) and value.startswith(("/", "~")) else value


def _last_names(path: str) -> str:
    """The last part of a path; for a file, also its folder, which says what the data are.

    >>> _last_names("/home/me/mnist"), _last_names("/home/me/multi30k/train.en.gz")
    ('.../mnist', '.../multi30k/train.en.gz')
    """
    parts = pathlib.PurePath(path).parts
    return "/".join(["...", *(parts[-2:] if pathlib.PurePath(path).suffix else parts[-1:])])


def without_places(text: str) -> str:
    """A message without local folders and the name of this machine.

    >>> without_places("OSError: no space left on /home/me/runs/a.npz (1/2 written)")
    'OSError: no space left on .../a.npz (1/2 written)'
    """
    return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "...", PATH.sub(r".../\1", text))


def _write(place: pathlib.Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        size = len(text.encode())
        require(size <= LARGEST, f"A file that is kept must have at most {LARGEST:,} bytes", f"{name} with {size:,}")
    place.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with atomic_file(place / name) as file:
            file.write(text.encode())


def _count(files: Mapping[str, str]) -> str:
    return f" ({files[RESULTS].count(chr(10)) - 1} runs)" if RESULTS in files else ""
