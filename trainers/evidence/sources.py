"""Reads sweeps from their folders, or from a results.csv alone."""

import pathlib
from collections.abc import Iterable

from trainers.evidence.analyses import NEEDED
from trainers.results.folders import SWEEP_OF, Folder, find_folders
from trainers.results.layout import CONFIG, RESULTS
from trainers.results.records import read_series
from trainers.results.results_csv import frame_of, parse_results
from trainers.results.runs import ANALYSIS, DAMAGE, Measured, Sweep, described, read_sweep
from trainers.results.tasks import OBJECTIVES, objective_named
from trainers.system.errors import ConfigError, require
from trainers.system.files import UnreadableError, read_text


def read_sweeps(roots: Iterable[str]) -> tuple[list[Sweep], list[str]]:
    """The sweeps in or below some folders or in some files, each once, and what could not be read."""
    problems: list[str] = []
    sweeps: dict[pathlib.Path, Sweep] = {}
    for root in roots:
        path = pathlib.Path(root)
        require(path.exists(), "RUNS must be folders of sweeps, or results.csv files", root)
        for sweep in _from_file(path, problems) if path.is_file() else _from_folder(path, problems):
            sweeps.setdefault(sweep.folder.path.resolve(), sweep)
    return list(sweeps.values()), problems


def read_analyses(roots: Iterable[str], problems: list[str]) -> list[Measured]:
    """The gradient analyses in or below some folders; what cannot be read is added to the problems."""
    places, found = [root for root in roots if pathlib.Path(root).is_dir()], []
    for folder in find_folders(places) if places else ():
        if folder.task == ANALYSIS:
            try:
                series = read_series(folder.path, problems)
            except DAMAGE as error:
                problems.append(f"{folder.path} ({described(error)})")
                continue
            missing = [name for name in NEEDED if name not in series]
            if not missing:
                found.append(Measured(folder, series))
            elif series:
                problems.append(f"{folder.path} ({missing[0]} is missing)")
    return found


def _from_folder(path: pathlib.Path, problems: list[str]) -> Iterable[Sweep]:
    found = [folder for folder in find_folders([str(path)], problems) if folder.task.startswith(SWEEP_OF)]
    require(found, "RUNS must be folders with sweeps in or below them", str(path))
    for folder in found:
        try:
            yield read_sweep(folder, problems, curves=False)
        except DAMAGE as error:
            problems.append(f"{folder.path} ({described(error)})")


def _from_file(path: pathlib.Path, problems: list[str]) -> Iterable[Sweep]:
    """A file next to a config.json is the sweep of that folder; otherwise, the task follows from its objective."""
    if (path.parent / CONFIG).exists():
        yield from _from_folder(path.parent, problems)
        return
    try:
        results, metric = parse_results(read_text(path))
    except UnreadableError as error:
        raise ConfigError(f"A file of RUNS must be the results.csv of a sweep. Received: {path} ({error})") from error
    task = next((name for name, each in OBJECTIVES.items() if each.metric == metric), metric)
    name = path.resolve().parent.name if path.name == RESULTS else path.stem
    folder = Folder(path, name, f"{SWEEP_OF}{task}", {})
    yield Sweep(folder, objective_named(task, metric, "min"), frame_of(results, metric), None, ())
