"""Made-up runs for the tests of the report, in the format of real ones."""

import json
import math
import shutil

import numpy as np

from tests.trainers.sweeps import points, results_csv
from trainers.analysis.findings import EARLY
from trainers.figures.config import SimulationConfig
from trainers.figures.programs import simulate
from trainers.results.folders import Folder
from trainers.results.methods import METHODS, Point, method_flags
from trainers.results.results_csv import frame_of, read_results
from trainers.results.runs import Measured, Sweep
from trainers.results.tasks import OBJECTIVES, Objective
from trainers.results.trials import Result

GRID = {"learning_rate": [1e-3, 1e-2], "beta_2": [0.999], "warmup": list(METHODS), "seed": [1, 2, 3]}


def write_run(folder, task="image_classification", status="done", records=(), results=None, **config):
    """Writes the folder of a run."""
    folder.mkdir(parents=True)
    document = {
        "task": task,
        "config": {"dataset": "digits", "model": "mlp", "epochs": 2, "output_dir": str(folder), **config},
        "versions": {"keras": "3.15.1"},
        "git_revision": "0123456789abcdef",
        "machine": {"cores": 2, "processor": "a processor", "python": "3.11.7"},
        "started": "2026-11-15T10:00:00+00:00",
    }
    (folder / "config.json").write_text(json.dumps(document))
    (folder / "status").write_text(status + "\n")
    if records:
        (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    if results:
        (folder / "results.json").write_text(json.dumps(results))
    return folder


def training_records(level=0.1, metric="val_error", count=10):
    """A loss that falls, a rate that warms up, and a metric every second record."""
    records = []
    for number in range(1, count + 1):
        step = 10 * number
        record = {"step": step, "updates": step, "epoch": number / 5, "loss": 2 * math.exp(-number / 4) + level}
        record |= {"learning_rate": 1e-3 * min(1, number / 5), "warmup_factor": min(1, number / 5)}
        records.append(record | ({metric: level + 1 / step} if number % 2 == 0 else {}))
    return records


def write_sweep(folder, value, grid=GRID, task="image_classification", status="done", metrics=None, **config):
    """Writes the folder of a sweep.

    `value(**point)` is a run's objective, or None for one that is still running; `metrics(**point)` are others.
    """
    metric = OBJECTIVES[task].metric if task in OBJECTIVES else "val_error"
    lists = {f"{name}s": values for name, values in grid.items()}
    write_run(folder, f"sweep of {task}", status, search="grid", **lists, **config)
    for point in points(grid):
        objective = value(**point)
        records = training_records(objective or 0.5, metric)
        measured = {metric: objective, **(metrics(**point) if metrics else {})}
        write_trial(folder, Point(**point), objective, measured, task, records, **flags_of(point))
    return folder


def write_trial(sweep, point, objective, metrics, task="image_classification", records=(), **config):
    """Adds a trial to the folder of a sweep."""
    folder = write_run(sweep / "trials" / point.name, task, records=records, **config)
    if objective is not None:
        result = Result.measured(point.name, point.values, objective, metrics, 2.0)
        (folder / "result.json").write_text(result.to_json())


def keep(folder, target):
    """Keeps the table and the config of a sweep without its trials, as docs/results does."""
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "config.json", target)
    (target / "results.csv").write_text(results_csv(read_results(folder), "val_error"))
    return target


def change_config(folder, **changes):
    """Changes what is recorded of a run."""
    document = json.loads((folder / "config.json").read_text())
    document["config"] |= changes
    (folder / "config.json").write_text(json.dumps(document))
    return folder


def flags_of(point):
    """A point of a grid as in the config of its run, where RAdam with other first steps is two flags."""
    return point | {"first_steps": "momentum"} | method_flags(point["warmup"])


def same(learning_rate, beta_2, warmup, seed):
    """An objective in which methods differ by less than seeds do."""
    return 0.1 + learning_rate + 0.01 * math.sin(seed) + 1e-3 * math.sin(17 * seed + 5 * len(warmup))


def write_simulation(folder, **options):
    """Runs a real simulation with few parameters."""
    simulate(SimulationConfig(output_dir=str(folder), **{"parameters": 500, "iterations": 450, **options}))
    return folder


def folder_of(task, path=None, **config):
    return Folder(path, "a run", task, config, status="done")


def made_sweep(results, grid=None, task="image_classification"):
    """A sweep from results alone."""
    objective = OBJECTIVES.get(task, Objective("val_error", "validation error", "min"))
    return Sweep(
        folder_of(f"sweep of {task}", dataset="digits"), objective, frame_of(results, objective.metric, grid), grid, ()
    )


def series(**changes):
    """The measurements of a gradient analysis that agrees with the paper."""
    t = list(range(1, 400, 2))
    median = [max(0.15, 1 - moment / 110) for moment in t]
    return {
        "t": t,
        **{f"gradient_cv_{name}": [0.5 if moment < 50 else 2.0 for moment in t] for name in ("q25", "median", "q75")},
        "moment_correlation": [0.98 if moment <= EARLY else 0.8 for moment in t],
        **{f"update_{name}": median for name in ("q25", "median", "q75")},
        **changes,
    }


def analysis(**changes):
    return Measured(folder_of("gradient_analysis"), series(**changes))


def simulation(first=1.0, level=0.155, settles=30, count=1000, warmup="none"):
    """Quantiles that fall from the first value to the level."""
    t = np.arange(1.0, count + 1)
    median = np.maximum(level, first - (first - level) * (t - 1) / settles)
    columns = {name: median.tolist() for name in ("q05", "q25", "median", "q75", "q95")}
    return Measured(folder_of("simulate", warmup=warmup), {"t": t.tolist(), **columns})


def write_analysis(folder, **config):
    """Writes the folder of a gradient analysis."""
    columns = series()
    records = [
        {"step": t, "updates": t, "loss": 1.0, **{name: columns[name][i] for name in columns if name != "t"}}
        for i, t in enumerate(columns["t"])
    ]
    options = {"optimizer": "adam", "warmup": "none", "batch_size": 256, **config}
    return write_run(folder, "gradient_analysis", records=records, **options)
