"""The flags of language modeling. Needs no TensorFlow."""

import dataclasses

from trainers.engine.config import ExamplesConfig
from trainers.engine.flags import BY_CONTENT, Flags, option
from trainers.layers.sizes import TransformerSizes
from trainers.system.errors import require

DATASETS = ("pydoc", "text", "wikitext", "wikitext103")


@dataclasses.dataclass(frozen=True)
class TextFlags(Flags):
    """The flags that select and prepare the text."""

    subject = "Text"

    dataset: str = option(
        "pydoc", "pydoc is embedded; text (any text files) and wikitext are read from --data_dir.", DATASETS
    )
    data_dir: str | None = option(None, "Folder of text files, or of TFDS data for wikitext103.", identity=BY_CONTENT)
    download: bool = option(False, "Download WikiText-103 if it is not on disk.", identity=False)
    vocabulary_size: int | None = option(None, "Maximum vocabulary size; the most frequent words are kept.", low=3)
    context: int = option(128, "Tokens per block.", low=1)
    eval_context: int = option(0, "Tokens per validation block that serve only as context and are not counted.", low=0)
    cache_dir: str | None = option(
        None, "Folder for cached token ids; .tfwarmup in --data_dir if left out.", identity=False
    )
    baselines: bool = option(True, "Compute unigram and bigram perplexities of the same text.", identity=False)


@dataclasses.dataclass(frozen=True)
class LanguageSizes(TransformerSizes):
    """The sizes of a language model with adaptive layers."""

    subject = "Model"

    cutoffs: tuple[int, ...] = option((), "First word of each narrower band of the adaptive layers.")
    factor: int = option(4, "How much narrower each band is than the one before.", low=1)
    softmax_dropout: float = option(0.0, "Dropout rate before the adaptive softmax.", low=0, below=1)
    normalize_first: bool = option(
        True, "Normalise the input of each part of a block; otherwise its output, as the first Transformers did."
    )


@dataclasses.dataclass(frozen=True)
class LanguageConfig(TextFlags, LanguageSizes, ExamplesConfig):
    """The flags of every run, and those of a language model."""

    subject = "Sampling"

    sample: str | None = option(None, "Continue this text with the model in --output_dir.", identity=False)
    sample_words: int = option(100, "Words that --sample adds.", low=1, identity=False)
    temperature: float = option(0.8, "Temperature of --sample; 0 takes the likeliest word.", low=0, identity=False)

    def validate(self) -> None:
        super().validate()
        if self.dataset == "pydoc":
            self.require_default("data_dir", "data on disk", "--dataset=pydoc")
        # Shapes in the adaptive softmax depend on the words of each batch, so XLA would compile every batch anew.
        require(not self.xla, "--xla is not for this task, whose shapes change with every batch", self.xla)
        require(self.eval_context < self.context, "--eval_context must be in [0, --context)", self.eval_context)
