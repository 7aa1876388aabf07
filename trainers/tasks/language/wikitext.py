"""WikiText: its files, and a TensorFlow Datasets builder of WikiText-103, which TFDS itself does not include."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import tensorflow_datasets as tfds

from trainers.tasks.files import first_file, read_lines, require_data
from trainers.tasks.tfds_sets import prepare, require_prepared

WIKITEXT_NAMES = ("wiki.{}.tokens", "wiki.{}.tokens.gz", "wiki.{}.raw", "wiki.{}.raw.gz", "{}.txt", "{}.txt.gz")
# The author's own site; the official address has refused requests since 2024.
URL = "https://wikitext.smerity.com/wikitext-103-v1.zip"
ARCHIVE = tfds.download.checksums.UrlInfo(
    size=tfds.core.utils.Size(190_229_076),
    checksum="242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
    filename="wikitext-103-v1.zip",
)
SPLITS = {"train": "train", "validation": "valid", "test": "test"}


def find_wikitext(folder: Path, names: Sequence[str] = WIKITEXT_NAMES) -> dict[str, Path]:
    """The files that exist in a WikiText folder, by split: train, valid, test."""
    found = {split: first_file(folder, [name.format(split) for name in names]) for split in SPLITS.values()}
    return {split: path for split, path in found.items() if path}


def require_wikitext(folder: Path) -> dict[str, Path]:
    files = find_wikitext(folder)
    missing = [split for split in ("train", "valid") if split not in files]
    rule = "`data_dir` must hold wiki.train.tokens and wiki.valid.tokens, or such files named .raw, .txt or .gz"
    require_data(not missing, rule, f"{folder} without {' and '.join(missing)}")
    return files


class Wikitext103(tfds.core.GeneratorBasedBuilder):
    """WikiText-103 (Merity et al., 2016), one line per example, in the order of the text.

    Read from the files of `folder`, or else from the archive: 1,801,350, 3,760 and 4,358 lines, 103,227,021, 217,646
    and 245,569 tokens including one at the end of each line, and 267,735 different tokens.
    """

    VERSION = tfds.core.Version("1.0.0")
    url_infos: ClassVar = {URL: ARCHIVE}  # otherwise, TFDS would read it from a file next to this one

    def __init__(self, *, folder: Path | None = None, **options: Any) -> None:
        self.folder = folder
        super().__init__(**options)

    def _info(self) -> Any:
        features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
        return self.dataset_info_from_configs(
            features=features, homepage="https://arxiv.org/abs/1609.07843", disable_shuffling=True
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
        files = token_files(self.folder or Path(dl_manager.download_and_extract(URL)) / "wikitext-103")
        return {split: self._generate_examples(files[name]) for split, name in SPLITS.items() if name in files}

    def _generate_examples(self, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
        return ((number, {"text": line.rstrip("\n")}) for number, line in enumerate(read_lines(path)))


def token_files(folder: Path) -> dict[str, Path]:
    """The files of a folder by split; empty unless both training and validation are there."""
    files = find_wikitext(folder, ("wiki.{}.tokens", "wiki.{}.tokens.gz"))
    return files if {"train", "valid"} <= files.keys() else {}


def prepared_wikitext103(data_dir: str | None, download: bool) -> Wikitext103:
    """The set in `data_dir`, which is prepared first if its text files are there or if `download` is true."""
    folder = Path(data_dir or ".").expanduser()
    files = token_files(folder) if data_dir else {}
    builder = Wikitext103(data_dir=data_dir, folder=folder if files else None)
    if builder.info.splits or not files:
        by_hand = f"unpack {URL} and pass its folder as --data_dir"
        require_prepared(builder, "wikitext103", download, by_hand)
        return builder
    for path in files.values():
        for _ in read_lines(path):  # finds a bad file before TFDS creates its folders
            pass
    prepare(builder, "wikitext103", "Try again")
    return builder
