"""A TensorFlow Datasets builder of WikiText-103, which TFDS itself does not include."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from trainers.engine.data import serving
from trainers.system.errors import DataError
from trainers.tasks.language.files import find_wikitext, read_lines
from trainers.tasks.tfds_sets import NETWORK_SECONDS, check_files, prepare

# The official address has refused requests since 2024; the author's own site has the same file.
URLS = (
    "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-103-v1.zip",
    "https://wikitext.smerity.com/wikitext-103-v1.zip",
)
ARCHIVE = tfds.download.checksums.UrlInfo(
    size=tfds.core.utils.Size(190_229_076),
    checksum="242ba0f20b329cfdf1ccc61e9e9e5b59becf189db7f7a81cd2a0e2fc31539590",
    filename="wikitext-103-v1.zip",
)
SPLITS = {"train": "train", "validation": "valid", "test": "test"}


class Wikitext103(tfds.core.GeneratorBasedBuilder):
    """WikiText-103 (Merity et al., 2016), one line per example, in the order of the text.

    Read from the files of `folder`, or else from the archive: 1,801,350, 3,760 and 4,358 lines, 103,227,021, 217,646
    and 245,569 tokens including one at the end of each line, and 267,735 different tokens.
    """

    VERSION = tfds.core.Version("1.0.0")
    url_infos = dict.fromkeys(URLS, ARCHIVE)  # otherwise, TFDS would read them from a file next to this one

    def __init__(self, *, folder: Path | None = None, **options: Any) -> None:
        self.folder = folder
        super().__init__(**options)

    def _info(self) -> Any:
        features = tfds.features.FeaturesDict({"text": tfds.features.Text()})
        return self.dataset_info_from_configs(
            features=features, homepage="https://arxiv.org/abs/1609.07843", disable_shuffling=True
        )

    def _split_generators(self, dl_manager: Any) -> dict[str, Any]:
        folder = self.folder or Path(dl_manager.download_and_extract(_answering_url())) / "wikitext-103"
        files = token_files(folder)
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
    if builder.info.splits:
        return builder
    by_hand = f"or unpack {URLS[1]} and pass its folder as --data_dir, or copy the prepared set to {builder.data_dir}"
    if not files and not download:
        raise DataError(f"WikiText-103 must be on disk: pass --download, {by_hand}. Received: nothing there")
    if not files and not _answering_url():
        raise DataError(f"Downloading WikiText-103 needs a network, {by_hand}. Received: no archive at {URLS}")
    for path in files.values():
        for _ in read_lines(path):  # finds a bad file before TFDS creates its folders
            pass
    prepare(builder, "WikiText-103", f"Try again, {by_hand}")
    return builder


def read_prepared(builder: Any, split: str) -> Iterator[str]:
    """The lines of a prepared split, in order."""
    check_files(builder, split)
    files = [str(path) for path in builder.info.splits[split].filepaths]
    spec = builder.info.features.tf_example_spec
    # Parsing whole batches, which TFDS does not do, is several times as fast.
    batches = tf.data.TFRecordDataset(files).batch(4096).map(lambda records: tf.io.parse_example(records, spec)["text"])
    count = 0
    try:
        for batch in serving(batches, ahead=2).as_numpy_iterator():
            count += len(batch)
            yield from (line.decode() for line in batch)
    except tf.errors.OpError as error:
        raise DataError(
            f"The files of a TFDS set must be complete; prepare {builder.data_dir} again. Received: {error.message}"
        ) from error
    expected = builder.info.splits[split].num_examples
    if count != expected:
        raise DataError(f"Split {split} of {builder.data_dir} must have {expected} lines. Received: {count}")


def _answering_url() -> str | None:
    return next((url for url in URLS if _answers(url)), None)


def _answers(url: str) -> bool:
    # The user agent that TFDS sends; the second address refuses that of urllib.
    request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "python-requests"})
    try:
        with urllib.request.urlopen(request, timeout=NETWORK_SECONDS):
            return True
    except OSError:  # includes HTTPError
        return False
