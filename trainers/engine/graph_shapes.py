"""The shape of every tensor of a traced function. Sizes that depend on data are those of a given batch.

TensorFlow infers shapes while it traces. What it cannot know, such as how many words of a batch are in a band, is
computed from the batch, without running the network, and TensorFlow infers the others from there.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

Shapes = dict[str, tuple[int, ...]]
PASSES_AT_MOST = 10
SHAPE_SIZED = 16  # most elements of an integer tensor that may be a shape


def traced_shapes(wrapped: Any, values: Sequence[Any]) -> Shapes:
    """Shapes by tensor name; `wrapped` comes from `wrap_function`, and `values` are a batch of its arguments."""
    operations = wrapped.graph.get_operations()
    known: Shapes = {
        tensor.name: tuple(tensor.shape.as_list())
        for operation in operations
        for tensor in operation.outputs
        if tensor.shape.is_fully_defined()
    }
    # Lists of a few axes; there are many of them, and nothing large depends on them.
    known |= {name: (0,) for op in operations if op.type == "BroadcastGradientArgs" for name in _names(op)}
    for _ in range(PASSES_AT_MOST):
        unknown = [operation for operation in operations if any(name not in known for name in _names(operation))]
        ready = [operation for operation in unknown if all(tensor.name in known for tensor in _numbers(operation))]
        if not ready:
            break
        before = len(known)
        for operation in ready:
            known |= _from_batch(wrapped, operation, values, known)
        known |= _inferred(wrapped.graph, known)
        if len(known) == before:
            for operation in ready:
                known |= _at_most(operation, known)
    return known


def _names(operation: Any) -> list[str]:
    return [tensor.name for tensor in operation.outputs if tensor.dtype not in (tf.resource, tf.variant)]


def _numbers(operation: Any) -> list[Any]:
    return [tensor for tensor in operation.inputs if tensor.dtype not in (tf.resource, tf.variant)]


def _from_batch(wrapped: Any, operation: Any, values: Sequence[Any], known: Shapes) -> Shapes:
    """The shapes of an operation's outputs, from integers of the batch; empty if they do not follow from it."""

    def computed(tensor: Any) -> np.ndarray:
        result: np.ndarray = wrapped.prune(wrapped.inputs[: len(values)], [tensor])(*values)[0].numpy()
        return result

    outputs, inputs = operation.outputs, operation.inputs
    if operation.type == "DynamicPartition":
        counts = np.bincount(computed(inputs[1]).ravel(), minlength=len(outputs))
        rest = known[inputs[0].name][len(known[inputs[1].name]) :]
        return {tensor.name: (int(count), *rest) for tensor, count in zip(outputs, counts, strict=True)}
    if operation.type in ("DynamicStitch", "ParallelDynamicStitch"):
        places, parts = inputs[: len(inputs) // 2], inputs[len(inputs) // 2 :]
        rest = known[parts[0].name][len(known[places[0].name]) :]
        return {outputs[0].name: (sum(math.prod(known[place.name]) for place in places), *rest)}
    if operation.type == "ResourceGather":
        rows = known[inputs[1].name]
        return {outputs[0].name: (*rows, *outputs[0].shape.as_list()[len(rows) :])}
    if operation.type in ("Range", "Where", "Unique"):
        return {tensor.name: computed(tensor).shape for tensor in outputs}
    return {}


def _at_most(operation: Any, known: Shapes) -> Shapes:
    """An upper bound for shapes that cannot be inferred: a sum over unknown axes is at most as large as its input."""
    largest = max((known[tensor.name] for tensor in _numbers(operation)), key=math.prod, default=())
    return {name: largest for name in _names(operation) if name not in known}


def _inferred(graph: Any, known: Mapping[str, tuple[int, ...]]) -> Shapes:
    """The shapes that TensorFlow infers if the known tensors are given to it as placeholders."""
    definition = tf.compat.v1.GraphDef(versions=graph.as_graph_def().versions)
    given: set[str] = set()
    for operation in graph.get_operations():
        if _may_be_a_shape(operation, known) or not all(name in known for name in _names(operation)):
            continue
        for tensor in operation.outputs:
            node = definition.node.add(name=_placeholder(tensor.name), op="Placeholder")
            node.attr["dtype"].type = tensor.dtype.as_datatype_enum
            if tensor.name in known:
                node.attr["shape"].shape.CopyFrom(tf.TensorShape(known[tensor.name]).as_proto())
            given.add(tensor.name)
    for operation in graph.get_operations():
        if operation.outputs and operation.outputs[0].name not in given:
            copy = definition.node.add()
            copy.CopyFrom(operation.node_def)
            del copy.input[:]  # shapes depend neither on control inputs nor on devices
            copy.attr.pop("_class", None)
            copy.input.extend(_placeholder(t.name) if t.name in given else t.name for t in operation.inputs)
    with tf.Graph().as_default() as other:
        tf.graph_util.import_graph_def(definition, name="")
    tensors = [tensor for operation in other.get_operations() for tensor in operation.outputs]
    return {tensor.name: tuple(tensor.shape.as_list()) for tensor in tensors if tensor.shape.is_fully_defined()}


def _may_be_a_shape(operation: Any, known: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the values of an operation's outputs, not only their shapes, may decide other shapes."""
    integers = all(tensor.dtype in (tf.int32, tf.int64) for tensor in operation.outputs)
    small = all(math.prod(known.get(name, (0,))) <= SHAPE_SIZED for name in _names(operation))
    return operation.type == "Const" or (
        bool(operation.outputs) and integers and small and operation.type != "Placeholder"
    )


def _placeholder(name: str) -> str:
    return name.replace(":", "_output_")
