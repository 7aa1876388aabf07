"""What the data sets of all tasks share: their splits, the folder that a user names, and the lines of a text."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from trainers.system.errors import DataError
from trainers.system.files import shown

TEXT_SUFFIXES = (".txt", ".txt.gz")

PartT = TypeVar("PartT", covariant=True)
OtherT = TypeVar("OtherT")


class Splits(NamedTuple, Generic[PartT]):
    """The splits of a data set, in any form. `notes` are remarks to show to the user."""

    train: PartT
    validation: PartT
    test: PartT | None = None
    notes: tuple[str, ...] = ()

    def parts(self) -> list[PartT]:
        return [self.train, self.validation] + ([] if self.test is None else [self.test])

    def map(self, function: Callable[[PartT], OtherT]) -> "Splits[OtherT]":
        """The same splits in another form."""
        test = None if self.test is None else function(self.test)
        return Splits(function(self.train), function(self.validation), test, self.notes)


def require_data(holds: object, rule: str, received: object) -> None:
    """Raises `DataError` with the rule and what was received unless the rule holds."""
    if not holds:
        raise DataError(f"{rule}. Received: {received}")


def existing_path(data_dir: str | None, dataset: str, may_be_file: bool = False) -> Path:
    """Where the data are; raises `DataError` unless this is a folder that can be read, or a file if it may be one."""
    require_data(data_dir, f"dataset={dataset!r} needs `data_dir`, where the data are", f"data_dir={data_dir!r}")
    path = Path(data_dir or "").expanduser()
    try:
        if not (may_be_file and path.is_file()):
            next(path.iterdir(), None)
    except OSError as error:
        rule = "`data_dir` must be a folder that can be read"
        raise DataError(f"{rule}. Received: {path} ({error.strerror})") from error
    return path


def first_file(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that exists."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text file, compressed or not; raises `DataError` if it is not one."""
    # A device or a pipe may never end, or never begin.
    require_data(path.is_file() or not path.exists(), "A text must be a regular file", shown(path))
    empty = True
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if b"\0" in line:
                    raise DataError(
                        f"A text must not be a binary file. Received: {shown(path)}, a zero byte in line {number}"
                    )
                empty = empty and not line.strip()
                yield line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"A text must be UTF-8. Received: {shown(path)}, line {number}, byte {error.object[error.start]:#04x} "
            f"at position {error.start + 1}"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"A text must be readable and complete. Received: {shown(path)} ({error})") from error
    require_data(not empty, "A text must not be empty", shown(path))
