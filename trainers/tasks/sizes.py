"""The sizes of a Transformer, as flags of a task and arguments of its model. Needs no TensorFlow."""

import dataclasses
from typing import Any

from trainers.engine.flags import Flags, option, stored_config


@dataclasses.dataclass(frozen=True)
class TransformerSizes(Flags):
    """Layers, widths and dropout rates."""

    subject = "Model"

    layers: int = option(2, "Transformer blocks.")
    width: int = option(128, "Width of the model.")
    heads: int = option(4, "Attention heads.")
    inner: int = option(512, "Width of the hidden layer in each block's feed-forward part.")
    dropout: float = option(0.1, "Dropout rate of the embeddings and of each residual branch.", low=0, below=1)
    attention_dropout: float = option(0.0, "Dropout rate of the attention weights.", low=0, below=1)
    activation_dropout: float = option(0.0, "Dropout rate after the ReLU.", low=0, below=1)

    def of_block(self) -> dict[str, Any]:
        """The arguments of one Transformer block."""
        names = ("width", "heads", "inner", "dropout", "attention_dropout", "activation_dropout")
        return {name: getattr(self, name) for name in names}


def sizes_of(config: Flags, sizes_class: type[Any]) -> Any:
    """The sizes among the fields of a config."""
    return sizes_class(**{field.name: getattr(config, field.name) for field in dataclasses.fields(sizes_class)})


def with_sizes(config: dict[str, Any], sizes_class: type[Any]) -> dict[str, Any]:
    """Returns the config of a saved model with its single size entries collected in one `sizes` object."""
    names = {field.name for field in dataclasses.fields(sizes_class)}
    sizes = stored_config(sizes_class, {name: value for name, value in config.items() if name in names})
    return {name: value for name, value in config.items() if name not in names} | {"sizes": sizes}
