"""The flags of machine translation. Needs no TensorFlow."""

import dataclasses
import math
from typing import ClassVar

from trainers.engine.config import BATCH_AT_MOST, Config
from trainers.engine.flags import BY_CONTENT, Flags, option
from trainers.layers.sizes import TransformerSizes
from trainers.system.errors import require

PAD, UNK, BOS, EOS = range(4)
LEAST_SUBWORDS = 4 + 256 + 1  # more than the four special ones and every byte
BEAM_AT_MOST, PAIRS_AT_MOST = 1024, 10_000_000  # no search needs more, and more pairs exceed memory


@dataclasses.dataclass(frozen=True)
class ParallelTextFlags(Flags):
    """The flags that select and prepare the sentences."""

    subject = "Text"

    dataset: str = option(
        "numbers", "numbers (embedded), text (two files), folder (TFDS TranslateFolder), or a TFDS name."
    )
    data_dir: str | None = option(None, "Folder of TFDS data, or of a TranslateFolder.", identity=BY_CONTENT)
    download: bool = option(False, "Download a TFDS set that is not on disk.", identity=False)
    source: str | None = option(None, "File of --dataset=text: one sentence per line.", identity=BY_CONTENT)
    target: str | None = option(None, "File of --dataset=text: their translations.", identity=BY_CONTENT)
    validation_source: str | None = option(
        None, "File of sentences for validation, for any dataset.", identity=BY_CONTENT
    )
    validation_target: str | None = option(None, "File of their translations.", identity=BY_CONTENT)
    test_source: str | None = option(
        None, "File of sentences to translate at the end, for any dataset.", identity=BY_CONTENT
    )
    test_target: str | None = option(None, "File of their translations.", identity=BY_CONTENT)
    source_language: str = option("en", "Language of the sentences in a TFDS set.")
    target_language: str = option("de", "Language of their translations.")
    pairs: int = option(30_000, "Pairs of --dataset=numbers to train on.", low=1, high=PAIRS_AT_MOST)
    vocabulary_size: int = option(400, "Number of subwords, shared by both languages.", low=LEAST_SUBWORDS)
    max_length: int = option(250, "Longest sentence to train on, in subwords.", low=2)
    cache_dir: str | None = option(
        None, "Folder for cached token ids; .tfwarmup next to the data if left out.", identity=False
    )
    max_ratio: float = option(2.5, "Largest ratio between the lengths of a pair to train on.", low=1, high=math.inf)

    def validate(self) -> None:
        super().validate()
        languages = (self.source_language, self.target_language)
        require(len({*languages}) == 2, "--source_language and --target_language must differ", languages)
        numbers = self.dataset == "numbers"
        rule = "--source_language and --target_language must be en and de for --dataset=numbers"
        require(not numbers or {*languages} == {"en", "de"}, rule, languages)
        if self.dataset in ("numbers", "text"):
            self.require_default("data_dir", "a TranslateFolder and TFDS sets", f"--dataset={self.dataset}")
        if self.dataset == "text":
            for name in ("source_language", "target_language"):
                self.require_default(name, "data that come in several languages", "--dataset=text")
        own = (self.source, self.target)
        rule = "--source and --target are the files of --dataset=text"
        require(self.dataset == "text" or not any(own), rule, own)
        require(self.dataset != "text" or all(own), "--source and --target must be two files", own)
        for kind in ("validation", "test"):
            files = (getattr(self, f"{kind}_source"), getattr(self, f"{kind}_target"))
            require(all(files) or not any(files), f"--{kind}_source and --{kind}_target must be two files", files)


@dataclasses.dataclass(frozen=True)
class SearchFlags(Flags):
    """The flags of translating."""

    subject = "Translating"

    beam: int = option(4, "Beam size: hypotheses per sentence.", low=1, high=BEAM_AT_MOST)
    length_penalty: float = option(
        0.6, "Exponent of the length by which a hypothesis' log probability is divided.", low=0
    )
    extra_length: int = option(50, "Number of subwords by which a translation may be longer than its source.", low=1)
    translate: str | None = option(
        None, "Translate this text with the model in --output_dir; - is standard input.", identity=False
    )


@dataclasses.dataclass(frozen=True)
class TranslatorSizes(TransformerSizes):
    """The sizes of an encoder and of its decoder."""

    layers: int = option(3, "Blocks of the encoder, and as many of the decoder.", low=1)
    width: int = option(256, "Width of the model.", low=1)
    inner: int = option(1024, "Width of the hidden layer in each block's feed-forward part.", low=1)


@dataclasses.dataclass(frozen=True)
class TranslationConfig(ParallelTextFlags, TranslatorSizes, SearchFlags, Config):
    """The flags of machine translation: those of every run, of the text, of the model and of translating."""

    subject = "Training"
    batch_flag: ClassVar[str] = "max_tokens"

    max_tokens: int = option(
        4096, "Global batch: tokens per update in the longer language, including padding.", low=1, high=BATCH_AT_MOST
    )
    label_smoothing: float = option(0.1, "Probability mass that the loss spreads over all subwords.", low=0, below=1)

    def validate(self) -> None:
        super().validate()
        # Each batch has sentences of similar length, so XLA would compile every length anew.
        require(not self.xla, "--xla is not for this task, whose shapes change with every batch", self.xla)
