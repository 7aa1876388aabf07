"""Every private name of TensorFlow and Keras that the trainers use, so that a new version breaks only this module."""

from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.eager import context


def all_layers(model: keras.Model) -> Iterator[Any]:
    """A model and all layers inside it, at any depth."""
    yield from model._flatten_layers()


def untrained_variables(layer: Any) -> list[Any]:
    """The variables that a layer itself, not one inside it, created as non-trainable."""
    return list(layer._non_trainable_variables)


def averages_of(optimizer: Any) -> list[Any]:
    """The moving averages of the trainable variables that an optimizer with `use_ema` keeps."""
    bare = getattr(optimizer, "inner_optimizer", optimizer)
    return list(bare._model_variables_moving_average)


def keep_sums_as_they_are() -> None:
    """Turns off one graph optimization.

    If TensorFlow expects a graph to fill the memory of a device (it assumes 256 MB for a CPU), it rewrites sums of
    several tensors with temporary variables. Inside the loop over micro-batches these fail: "ALREADY_EXISTS: Resource
    .../tmp_var" (tensorflow issue 37740).
    """
    options = context.context().function_call_options
    config = tf.compat.v1.ConfigProto.FromString(options.config_proto_serialized)
    config.graph_options.rewrite_options.memory_optimization = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    options.config_proto_serialized = config
