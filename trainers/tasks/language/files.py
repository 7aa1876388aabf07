"""Text in files: which ones belong to which split, and their lines."""

import codecs
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from trainers.system.errors import DataError
from trainers.system.files import shown

TEXT_SUFFIXES = (".txt", ".txt.gz")
LOOKED_AT = 2**16  # bytes to read to find out whether a file is text
SPLIT_NAMES = ("train", "val", "test")  # prefixes of file names; `val` includes `valid` and `validation`
WIKITEXT_NAMES = ("wiki.{}.tokens", "wiki.{}.tokens.gz", "wiki.{}.raw", "wiki.{}.raw.gz", "{}.txt", "{}.txt.gz")


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a UTF-8 text file, compressed or not; raises `DataError` if it is not one."""
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
    if empty:
        raise DataError(f"A text must not be empty. Received: {shown(path)}")


def existing_path(data_dir: str | None, dataset: str) -> Path:
    if not data_dir:
        raise DataError(f"dataset={dataset!r} needs `data_dir`, where the text is. Received: data_dir={data_dir!r}")
    path = Path(data_dir).expanduser()
    if not path.exists():
        raise DataError(f"`data_dir` must exist. Received: {path}")
    return path


def find_wikitext(folder: Path, names: Sequence[str] = WIKITEXT_NAMES) -> dict[str, Path]:
    """The files that exist in a WikiText folder, by split: train, valid, test."""
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


class TextFiles(NamedTuple):
    """The files of a text by split, in order of their names."""

    train: tuple[Path, ...]
    validation: tuple[Path, ...] = ()
    test: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()  # files that are not text


def find_text(path: Path) -> TextFiles:
    """The text files of a folder: all that are named as such, and all others that begin with UTF-8 text.

    The path of a file below the folder begins with its split: `train`, `val` or `test`; other files are left out. If no
    path begins with `train`, all files of the folder, or the single file given, are for training.
    """
    if path.is_file():
        return TextFiles((path,))
    visible = sorted(file for file in path.rglob("*") if _is_visible_file(file, path))
    files = tuple(file for file in visible if file.name.lower().endswith(TEXT_SUFFIXES) or _begins_with_text(file))
    texts = {*files}
    left_out = tuple(shown(file.relative_to(path)) for file in visible if file not in texts)
    if not files:
        raise DataError(f"`data_dir` must hold at least one file of UTF-8 text. Received: {path}")
    train, validation, test = (tuple(file for file in files if _begins(file, path, name)) for name in SPLIT_NAMES)
    if not train:
        return TextFiles(files, left_out=left_out)
    if not validation and not test:
        raise DataError(
            "A folder with train* must hold val* or test* too. "
            f"Received: {path} with {[shown(file.name) for file in files][:10]}"
        )
    return TextFiles(train, validation, test, left_out)


def _is_visible_file(file: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in file.relative_to(folder).parts) and file.is_file()


def _begins_with_text(file: Path) -> bool:
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            begin = stream.read(LOOKED_AT)
        # The bytes may end in the middle of a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(begin, final=len(begin) < LOOKED_AT)
    except (OSError, EOFError, ValueError, zlib.error):
        return False
    return "\0" not in text and bool(text.strip())


def _begins(file: Path, folder: Path, name: str) -> bool:
    return file != folder and file.relative_to(folder).parts[0].lower().startswith(name)
