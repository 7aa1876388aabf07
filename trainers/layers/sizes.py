"""The sizes of a Transformer, as flags of a task and arguments of its model. Needs no TensorFlow."""

import dataclasses
from typing import Any

from trainers.engine.flags import Flags, option


@dataclasses.dataclass(frozen=True)
class TransformerSizes(Flags):
    """Layers, widths and dropout rates."""

    subject = "Model"

    layers: int = option(2, "Transformer blocks.", low=1)
    width: int = option(128, "Width of the model.", low=1)
    heads: int = option(4, "Attention heads.", low=1)
    inner: int = option(512, "Width of the hidden layer in each block's feed-forward part.", low=1)
    dropout: float = option(0.1, "Dropout rate of the embeddings and of each residual branch.", low=0, below=1)
    attention_dropout: float = option(0.0, "Dropout rate of the attention weights.", low=0, below=1)
    activation_dropout: float = option(0.0, "Dropout rate after the ReLU.", low=0, below=1)

    def of_block(self) -> dict[str, Any]:
        """The arguments of one Transformer block."""
        names = ("width", "heads", "inner", "dropout", "attention_dropout", "activation_dropout")
        return {name: getattr(self, name) for name in names}
