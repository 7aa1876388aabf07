"""Keeps the small files behind every verdict: the numbers of all runs and their configuration, nothing else.

What is kept has the names and the formats of the folder it comes from, so that whatever reads that folder reads this.
"""

import dataclasses
import json
import pathlib
import re
import socket
from collections.abc import Mapping, Sequence
from typing import Any

from trainers.engine.files import atomic_file, read_object
from trainers.engine.flags import require, stored_config
from trainers.reports.folders import CONFIG, STATUS, SWEEP_OF, Folder, find_folders
from trainers.reports.reading import ANALYSIS, Sweep, read_sweep
from trainers.reproduction.config import KeepConfig
from trainers.sweeps.kept import ENVIRONMENTS, RESULTS, check_same, environments_json, read_kept, sweep_identity
from trainers.sweeps.results import Result, results_csv
from trainers.sweeps.space import LISTS, sweep_config_class
from trainers.sweeps.summary import summary_markdown
from trainers.tasks import CONFIGS

MEASUREMENTS, SUMMARY = "gradient_analysis.csv", "summary.md"
LARGEST = 500_000  # bytes of a file: these are for a repository
PATH = re.compile(r"(?<![\w./])[~/](?:[\w.@%+-]*/)*([\w.@%+-]+)")  # one that begins at the root or at home


def keep(config: KeepConfig) -> str:
    """Adds runs to what is kept, and says what there is then."""
    output = pathlib.Path(config.output)
    require(not output.exists() or output.is_dir(), "--output must be a folder", config.output)
    said = []
    for folder in find_folders(config.runs):
        files = _files(folder, output / folder.name)
        if files:
            _write(output / folder.name, files)
            said.append(f"kept: {output / folder.name}{_count(files)}")
    require(said, "RUNS must have finished runs of a sweep, or a gradient analysis, among them", " ".join(config.runs))
    return "\n".join(said)


def _files(folder: Folder, place: pathlib.Path) -> dict[str, str]:
    """What is kept of a run, by the names of the files; nothing of one that takes seconds to repeat."""
    document = read_object(folder.path / CONFIG)
    if folder.task.startswith(SWEEP_OF):
        return _sweep_files(folder, document, place)
    if folder.task == ANALYSIS and folder.finished:
        return _described(folder, document) | {MEASUREMENTS: (folder.path / MEASUREMENTS).read_text()}
    return {}


def _sweep_files(folder: Folder, document: Mapping[str, Any], place: pathlib.Path) -> dict[str, str]:
    problems: list[str] = []
    sweep = read_sweep(folder, problems, curves=False)
    require(not problems, "Results must be readable", "; ".join(problems))
    if not sweep.results:
        return {}
    metric, before = sweep.objective.metric, []
    if (place / CONFIG).exists():
        kept = read_object(place / CONFIG)
        rule = "RUNS must be of the configuration that is kept under the same name"
        check_same(_identity(document), _identity(kept), rule, place)
        before = read_kept(place)
        document = {**document, "config": _grown(kept["config"], document["config"])}
        sweep = read_sweep(dataclasses.replace(folder, config=document["config"]), problems, curves=False)
    results = _together(before, sweep.results, place)
    clean = [dataclasses.replace(result, error=without_places(result.error)) for result in results]
    return {
        **_described(folder, document),
        RESULTS: results_csv(clean, metric, sweep.grid),
        ENVIRONMENTS: environments_json(clean),
        SUMMARY: kept_summary(dataclasses.replace(sweep, results=tuple(clean), kept=True)),
    }


def kept_summary(sweep: Sweep) -> str:
    """Tables and verdicts of what is kept, to read: they follow from the other files."""
    return summary_markdown(sweep.table(), f"{sweep.task}, {sweep.subject}", sweep.results, sweep.terms)


def _described(folder: Folder, document: Mapping[str, Any]) -> dict[str, str]:
    clean = _cleaned({name: value for name, value in document.items() if name != "data"})
    return {CONFIG: json.dumps(clean, indent=2) + "\n", STATUS: without_places(folder.status) + "\n"}


def _identity(document: Mapping[str, Any]) -> dict[str, Any]:
    task = str(document["task"]).removeprefix(SWEEP_OF)
    if task not in CONFIGS:  # one of somebody's own
        return {"task": task}
    return sweep_identity(document["task"], stored_config(sweep_config_class(task), document["config"]))


def _together(kept: Sequence[Result], results: Sequence[Result], place: pathlib.Path) -> tuple[Result, ...]:
    """All runs, each once. What is kept stays, unless it failed."""
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


def _grown(kept: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """A config that asks for the runs of both."""
    lists = {}
    for name in (name for name in LISTS if name in kept or name in config):
        values = list(dict.fromkeys([*kept.get(name, ()), *config.get(name, ())]))
        lists[name] = values if any(isinstance(value, str) for value in values) else sorted(values)
    return {**config, **lists}


def _cleaned(value: Any) -> Any:
    """A value of JSON without the places of anybody's machine."""
    if isinstance(value, dict):
        return {name: _cleaned(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return _last_names(value) if isinstance(value, str) and value.startswith(("/", "~")) else value


def _last_names(path: str) -> str:
    """The last name of a folder's path; of a file's, the folder's too, which tells what the data are.

    >>> _last_names("/home/me/mnist"), _last_names("/home/me/multi30k/train.en.gz")
    ('.../mnist', '.../multi30k/train.en.gz')
    """
    parts = pathlib.PurePath(path).parts
    return "/".join(["...", *(parts[-2:] if pathlib.PurePath(path).suffix else parts[-1:])])


def without_places(text: str) -> str:
    """A message without paths and the name of this machine.

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
