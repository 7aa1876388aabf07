"""Checkpoints that survive a kill at any moment: written aside, then renamed; the newest readable one is used.

`step-N.npz` are written at the steps that the config names. `interim-N.npz` is written where a run is stopped, or after
--checkpoint_minutes: only the newest is kept, and no average contains it.
"""

import itertools
import json
import logging
import pathlib
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from trainers.system.errors import ConfigError, DataError, require
from trainers.system.files import atomic_file

KEEP = 2
PLANNED, INTERIM = "step", "interim"
DAMAGES = (ValueError, KeyError, EOFError, NotImplementedError, zipfile.BadZipFile)  # what a damaged file raises

Stored = tuple[pathlib.Path, dict[str, Any], list[Any]]  # path, plain values, arrays


class Checkpoints:
    """The checkpoints of one run: the newest two, or `keep` if more, and the newest interim one if it is newer.

    `run` identifies the run: checkpoints that name another are refused.
    """

    def __init__(self, folder: pathlib.Path, keep: int = KEEP, run: str = "") -> None:
        self.folder, self.keep, self.run = folder, max(keep, KEEP), run

    def save(self, step: int, variables: Sequence[Any], extra: dict[str, Any], interim: bool = False) -> None:
        """Writes every variable and a few plain values, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {f"{number:05d}": np.asarray(variable.numpy()) for number, variable in enumerate(variables)}
        header = json.dumps({"step": step, "run": self.run, "names": variable_names(variables), **extra}).encode()
        with atomic_file(self.folder / f"{INTERIM if interim else PLANNED}-{step:012d}.npz") as file:
            np.savez(file, header=np.frombuffer(header, np.uint8), **arrays)  # type: ignore[arg-type]
        outdated = self._newest_first(PLANNED)[self.keep :]
        for old in [*outdated, *self._newest_first(INTERIM)[1 if interim else 0 :]]:
            old.unlink()

    def restore(self, variables: Sequence[Any]) -> dict[str, Any] | None:
        """Loads the newest checkpoint that can be read, warns of those that cannot, and returns its plain values.

        Raises:
            DataError: if there are checkpoints but none can be read, or if they are those of another model or run.
        """
        problems: list[str] = []
        for path, header, arrays in self._readable(problems, PLANNED, INTERIM):
            _check_fit(path, header, arrays, variables)
            for variable, array in zip(variables, arrays, strict=True):
                variable.assign(array)
            return header
        if problems:
            raise DataError(
                "A run with checkpoints must have one that can be read; to start over, remove its folder. Received: "
                + "; ".join(problems)
            )
        return None

    def newest_header(self) -> dict[str, Any]:
        """The plain values of the newest checkpoint that can be read; empty if there is none."""
        return next((header for _, header, _ in self._readable([], PLANNED, INTERIM)), {})

    def average(self, count: int, variables: Sequence[Any]) -> None:
        """Loads the mean of the newest `count` checkpoints into `variables`, the first ones of every checkpoint."""
        sums = [np.zeros(variable.shape) for variable in variables]
        found = 0
        problems: list[str] = []
        for path, header, arrays in itertools.islice(self._readable(problems, PLANNED), count):
            _check_fit(path, header, arrays[: len(variables)], variables)
            for total, array in zip(sums, arrays, strict=False):
                total += array
            found += 1
        if not found:
            raise DataError(
                f"An average needs a checkpoint that can be read. Received: {'; '.join(problems) or 'none'}"
            )
        for variable, total in zip(variables, sums, strict=True):
            variable.assign((total / found).astype(variable.dtype))

    def has(self, step: int) -> bool:
        """Whether a planned checkpoint of this step exists."""
        return (self.folder / f"{PLANNED}-{step:012d}.npz").exists()

    def _readable(self, problems: list[str], *kinds: str) -> Iterator[Stored]:
        """The checkpoints that can be read, the newest first; what is wrong with the others goes to `problems`."""
        for path in self._newest_first(*kinds):
            try:
                stored = path, *_read(path)
            except OSError as error:  # the disk, the network or permissions, not the content
                problem = f"{path} cannot be read ({error.strerror or error})"
            except DAMAGES as error:
                problem = f"{path} is damaged ({error})"
            else:
                _, header, _ = stored
                if self.run and header.get("run", self.run) != self.run:
                    raise DataError(
                        f"A checkpoint must be of the run in whose folder it is. Received: {path} of another run"
                    )
                yield stored
                continue
            problems.append(problem)
            logging.warning("checkpoint %s: trying the one before it", problem)

    def _newest_first(self, *kinds: str) -> list[pathlib.Path]:
        """Sorted by step; at the same step, the planned one comes first, because it is written later."""
        found = itertools.chain.from_iterable(self.folder.glob(f"{kind}-*.npz") for kind in kinds)
        return sorted(found, key=lambda path: (path.stem.partition("-")[2], path.name), reverse=True)


def variable_names(variables: Iterable[Any]) -> list[str]:
    """The paths of variables without the numbers that Keras adds to count the models of a process.

    >>> import keras
    >>> variable_names([keras.Variable(0.0, name="dense_3")])
    ['dense']
    """
    return [re.sub(r"_\d+(?=[_/]|$)", "", variable.path) for variable in variables]


def _check_fit(path: pathlib.Path, header: dict[str, Any], arrays: Sequence[Any], variables: Sequence[Any]) -> None:
    """Raises a `DataError` unless names, shapes and dtypes are those of the variables, in this order."""
    names = variable_names(variables)
    theirs = [(name, array.shape, array.dtype.name) for name, array in zip(header["names"], arrays, strict=False)]
    ours = [(name, tuple(v.shape), str(v.dtype)) for name, v in zip(names, variables, strict=True)]
    for stored, expected in itertools.zip_longest(theirs, ours):
        if stored != expected:
            raise DataError(
                "A checkpoint must fit the model and the optimizer. "
                f"Received: {path} with {_variable_text(stored)} instead of {_variable_text(expected)}"
            )


def _variable_text(variable: tuple[str, Any, str] | None) -> str:
    return "nothing" if variable is None else f"{variable[0]} {list(variable[1])} {variable[2]}"


def _read(path: pathlib.Path) -> tuple[dict[str, Any], list[Any]]:
    with np.load(path) as stored:  # every array has a checksum in its zip entry
        header = json.loads(stored["header"].tobytes())
        return header, [stored[name] for name in sorted(stored.files) if name != "header"]


# In a run's folder, the first of these that exists is used.
MODELS = ("average.keras", "best.keras", "last.keras")


def model_file(place: str, flag: str) -> pathlib.Path:
    """The .keras file that a flag names, or the best model in the folder that it names."""
    path = pathlib.Path(place)
    found = next((path / name for name in MODELS if (path / name).is_file()), path)
    require(found.is_file(), f"{flag} must be a .keras file or the folder of a run that has one", place)
    return found


def load_weights(model: keras.Model, path: pathlib.Path, flag: str) -> None:
    """Loads the weights of a saved model, which must have the same shapes."""
    try:
        stored: Any = keras.models.load_model(path, compile=False)
    except (OSError, ValueError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{flag} must be a model that Keras can load. Received: {path} ({reason})") from error
    theirs, ours = stored.weights, model.weights
    if len(theirs) != len(ours):
        raise ConfigError(f"{flag} must have the model's {len(ours)} weights. Received: {path} with {len(theirs)}")
    for given, own in zip(theirs, ours, strict=True):
        if given.shape != own.shape:
            raise ConfigError(
                f"{flag} must have weights of the model's shapes, {own.path} of {tuple(own.shape)}. "
                f"Received: {path} with {given.path} of {tuple(given.shape)}"
            )
    for given, own in zip(theirs, ours, strict=True):
        own.assign(given.numpy())
