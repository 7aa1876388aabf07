"""The files that are kept of a sweep without its trials: config.json, results.csv and environments.json."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from trainers.engine.files import UnreadableError, atomic_file, read_object, read_text
from trainers.engine.flags import ConfigError, require, stored_config
from trainers.sweeps.results import RESULT, TRIALS, Result, newest_folder
from trainers.sweeps.stored import parse_results

CONFIG, RESULTS, ENVIRONMENTS = "config.json", "results.csv", "environments.json"


def environments_json(results: Iterable[Result]) -> str:
    """The environments that the runs were made with, each once, with the names of its runs."""
    groups: dict[str, list[str]] = {}
    for result in results:
        groups.setdefault(json.dumps(result.environment, sort_keys=True), []).append(result.trial)
    listed = [{"environment": json.loads(text), "trials": sorted(trials)} for text, trials in groups.items()]
    return json.dumps(sorted(listed, key=lambda each: each["trials"]), indent=1) + "\n"


def read_kept(folder: pathlib.Path) -> list[Result]:
    """The runs in results.csv, in its order; raises an `UnreadableError` if a file is damaged."""
    results, _ = parse_results(read_text(folder / RESULTS))
    made_with = _environments(folder / ENVIRONMENTS)
    return [dataclasses.replace(result, environment=made_with.get(result.trial, {})) for result in results]


def known_results(settings: Any) -> list[Result]:
    """The runs of `--known_results`, except those that failed.

    Raises:
        ConfigError: They have another configuration, or cannot be read.
    """
    if settings.known_results is None:
        return []
    folder = pathlib.Path(settings.known_results)
    require((folder / RESULTS).is_file(), f"--known_results must be a folder with {CONFIG} and {RESULTS}", str(folder))
    try:
        document, results = read_object(folder / CONFIG), read_kept(folder)
    except UnreadableError as error:
        raise ConfigError(f"--known_results must be the kept files of a sweep. Received: {folder} ({error})") from error
    ours = sweep_identity(f"sweep of {settings.task}", settings)
    theirs = sweep_identity(str(document.get("task")), stored_config(type(settings), document.get("config", {})))
    check_same(ours, theirs, "--known_results must be runs of the same configuration", folder)
    return [result for result in results if result.status != "failed"]


def write_known(folder: pathlib.Path, results: Iterable[Result]) -> None:
    """Writes results of earlier runs into the folder of a sweep, as if they were those of its own trials."""
    for result in results:
        trial = newest_folder(folder / TRIALS, result.name)
        trial.mkdir(parents=True, exist_ok=True)
        with atomic_file(trial / RESULT) as file:
            file.write(dataclasses.replace(result, trial=trial.name).to_json().encode())


def sweep_identity(task: str, settings: Any) -> dict[str, Any]:
    """What the results of a sweep depend on, except where its data are."""
    return {**settings.identity(), "task": task}


def check_same(ours: Mapping[str, Any], theirs: Mapping[str, Any], rule: str, place: pathlib.Path) -> None:
    """Raises a `ConfigError` if anything differs that results depend on."""
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    if differing:
        name = differing[0]
        raise ConfigError(f"{rule}. Received: {name}={ours.get(name)!r}, and {place} has {theirs.get(name)!r}")


def _environments(path: pathlib.Path) -> dict[str, Any]:
    """The environments by the names of the runs; empty if they were not kept."""
    listed = json.loads(read_text(path)) if path.exists() else []
    return {trial: group["environment"] for group in listed for trial in group["trials"]}
