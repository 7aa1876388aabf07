"""Text in files: which ones belong to which split, and their lines."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainers.engine.errors import DataError

TEXT_SUFFIXES = (".txt", ".txt.gz")
SPLIT_NAMES = ("train", "val", "test")  # what names begin with; `valid` and `validation` do so too
WIKITEXT_NAMES = ("wiki.{}.tokens", "wiki.{}.tokens.gz", "wiki.{}.raw", "wiki.{}.raw.gz", "{}.txt", "{}.txt.gz")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a file of UTF-8 text, compressed or not; a `DataError` if it is none."""
    empty = True
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if b"\0" in line:
                    raise DataError(f"A text must not be a binary file. Received: {path}, a zero byte in line {number}")
                empty = empty and not line.strip()
                yield line.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"A text must be UTF-8. Received: {path}, line {number}, byte {error.object[error.start]:#04x} "
            f"at position {error.start + 1}"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"A text must be readable and complete. Received: {path} ({error})") from error
    if empty:
        raise DataError(f"A text must not be empty. Received: {path}")


def existing_path(data_dir: str | None, dataset: str) -> Path:
    if not data_dir:
        raise DataError(f"dataset={dataset!r} needs `data_dir`, where the text is. Received: data_dir={data_dir!r}")
    path = Path(data_dir).expanduser()
    if not path.exists():
        raise DataError(f"`data_dir` must exist. Received: {path}")
    return path


def find_wikitext(folder: Path, names: Sequence[str] = WIKITEXT_NAMES) -> dict[str, Path]:
    """The files of a WikiText folder by split: train, valid, test, as far as they are there."""
    found = {}
    for split in ("train", "valid", "test"):
        paths = [folder / name.format(split) for name in names]
        present = [path for path in paths if path.is_file()]
        if present:
            found[split] = present[0]
    return found


def require_wikitext(folder: Path) -> dict[str, Path]:
    files = find_wikitext(folder)
    missing = [split for split in ("train", "valid") if split not in files]
    if missing:
        raise DataError(
            f"`data_dir` must hold wiki.train.tokens and wiki.valid.tokens, or such files named .raw, .txt or .gz. "
            f"Received: {folder} without {' and '.join(missing)}"
        )
    return files


def find_text(path: Path) -> tuple[list[Path], list[Path] | None]:
    """The training and the validation files of a folder, in order of their names.

    A file belongs to the split that its path below the folder begins with: `train`, and `val` or else `test`; others
    are left out. If no path begins with `train`, these are all files of the folder, or the one file given, and None.
    """
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if _is_text(file, path))
    if not files:
        raise DataError(f"`data_dir` must hold at least one {' or '.join(TEXT_SUFFIXES)} file. Received: {path}")
    train, validation, test = ([file for file in files if _begins(file, path, name)] for name in SPLIT_NAMES)
    if not train:
        return files, None
    if not validation and not test:
        raise DataError(
            "A folder with train*.txt must hold val*.txt or test*.txt too. "
            f"Received: {path} with {[file.name for file in files][:10]}"
        )
    return train, validation or test


def _is_text(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return file.name.lower().endswith(TEXT_SUFFIXES) and not hidden and file.is_file()


def _begins(file: Path, folder: Path, name: str) -> bool:
    return file != folder and file.relative_to(folder).parts[0].lower().startswith(name)
