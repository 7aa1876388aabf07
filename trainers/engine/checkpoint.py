"""Checkpoints that survive a kill at any moment: written aside, then renamed; the newest readable one is used."""

import itertools
import json
import logging
import os
import pathlib
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

KEEP = 2


class Checkpoints:
    """The checkpoints of one run: `step-N.npz`, the newest two, or more if asked."""

    def __init__(self, folder: pathlib.Path, keep: int = KEEP) -> None:
        self.folder, self.keep = folder, max(keep, KEEP)

    def save(self, step: int, variables: Sequence[Any], extra: dict[str, Any]) -> None:
        """Writes every variable and a few plain values, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        arrays = {f"{number:05d}": np.asarray(variable.numpy()) for number, variable in enumerate(variables)}
        header = np.frombuffer(json.dumps({"step": step, **extra}).encode(), np.uint8)
        with atomic_file(self.folder / f"step-{step:012d}.npz") as file:
            np.savez(file, header=header, **arrays)  # type: ignore[arg-type]
        for old in self._newest_first()[self.keep :]:
            old.unlink()

    def restore(self, variables: Sequence[Any]) -> dict[str, Any] | None:
        """Loads the newest checkpoint that is whole, says so of one that is not, and returns its plain values."""
        for path, header, arrays in self._readable():
            if [array.shape for array in arrays] != [tuple(variable.shape) for variable in variables]:
                raise ValueError(f"A checkpoint must fit the model and the optimizer. Received: {path}")
            for variable, array in zip(variables, arrays, strict=True):
                variable.assign(array)
            return header
        return None

    def average(self, count: int, variables: Sequence[Any]) -> None:
        """Loads the mean of the newest `count` checkpoints into variables that every checkpoint begins with."""
        sums = [np.zeros(variable.shape) for variable in variables]
        found = 0
        for _, _, arrays in itertools.islice(self._readable(), count):
            for total, array in zip(sums, arrays, strict=False):
                total += array
            found += 1
        for variable, total in zip(variables, sums, strict=True):
            variable.assign((total / found).astype(variable.dtype))

    def _readable(self) -> Iterator[tuple[pathlib.Path, dict[str, Any], list[Any]]]:
        """The whole checkpoints with what they hold, the newest first; says so of a damaged one."""
        for path in self._newest_first():
            try:
                yield path, *_read(path)
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
                logging.warning("checkpoint %s is damaged (%s): trying the one before it", path, error)

    def _newest_first(self) -> list[pathlib.Path]:
        return sorted(self.folder.glob("step-*.npz"), reverse=True)


class atomic_file:  # noqa: N801 - used as a function
    """`with atomic_file(path) as file`: the path has the old content or the new, never a part of it."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.temporary = path, path.with_name(f".{path.name}.{os.getpid()}.tmp")

    def __enter__(self) -> Any:
        self.file = self.temporary.open("wb")
        return self.file

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        if kind is None:
            os.replace(self.temporary, self.path)
        else:
            self.temporary.unlink()


def _read(path: pathlib.Path) -> tuple[dict[str, Any], list[Any]]:
    with np.load(path) as stored:  # every array has a checksum in its zip entry
        header = json.loads(stored["header"].tobytes())
        return header, [stored[name] for name in sorted(stored.files) if name != "header"]
