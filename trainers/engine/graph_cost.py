"""The cost of a traced function: floating-point operations of its matrix products and convolutions, and peak memory.

Both follow from the shapes in the graph. Where a shape depends on data, such as the number of words in a band, it is
taken from a batch.
"""

import collections
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainers.engine.graph_shapes import Shapes, traced_shapes

# Operations whose output shares the memory of their first input.
VIEWS = ("Identity", "Reshape", "ExpandDims", "Squeeze", "StopGradient", "PreventGradient", "IdentityN")
# Operations without their own memory: what they return is counted elsewhere, or is a few numbers.
FREE = ("Placeholder", "Const", "ReadVariableOp", "Shape", "NoOp", "VarHandleOp")
# Elementwise operations, which overwrite an input that is no longer needed.
IN_PLACE = (
    *("Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum", "Neg", "Relu", "ReluGrad", "Tanh", "TanhGrad"),
    *("BiasAdd", "Softmax", "Exp", "Log", "Sqrt", "Rsqrt", "Square", "SelectV2", "AddN", "Cast", "LogSoftmax"),
)


@dataclasses.dataclass(frozen=True)
class Cost:
    """The cost of one call: floating-point operations, and bytes besides inputs and variables."""

    flops: float
    peak_bytes: int


def cost_of(function: Callable[..., Any], arguments: Sequence[Any]) -> Cost:
    """The cost of a function of nested tensors, for arguments like these."""
    flat = tf.nest.flatten(list(arguments))

    def flattened(*tensors: Any) -> Any:
        packed = tf.nest.pack_sequence_as(list(arguments), tensors)
        return [tensor for tensor in tf.nest.flatten(function(*packed)) if tensor is not None]

    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in flat]
    wrapped = tf.compat.v1.wrap_function(flattened, specs)
    sizes = _Sizes(traced_shapes(wrapped, flat))
    operations = wrapped.graph.get_operations()
    return Cost(sum(_flops(operation, sizes) for operation in operations), _peak_bytes(operations, sizes))


class _Sizes:
    """Numbers of elements and bytes of the tensors of a graph."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes

    def shape(self, tensor: Any) -> tuple[int, ...]:
        # What stays unknown is small: everything large has been inferred.
        return self.shapes.get(tensor.name, ())

    def elements(self, tensor: Any) -> int:
        return math.prod(self.shape(tensor))

    def bytes(self, tensor: Any) -> int:
        plain = tensor.dtype not in (tf.resource, tf.variant, tf.string)
        return self.elements(tensor) * tensor.dtype.size if plain else 0


def _flops(operation: Any, sizes: _Sizes) -> float:
    """Of matrix products and convolutions; all other operations take little in comparison."""
    kind = operation.type
    if kind in ("MatMul", "BatchMatMulV2", "BatchMatMulV3", "BatchMatMul"):
        transposed = operation.get_attr("transpose_a" if kind == "MatMul" else "adj_x")
        inner = sizes.shape(operation.inputs[0])[-2 if transposed else -1]
        return 2.0 * sizes.elements(operation.outputs[0]) * inner
    if kind == "Einsum":
        labels = operation.get_attr("equation").decode().partition("->")[0].split(",")
        axes: dict[str, int] = {}
        for names, tensor in zip(labels, operation.inputs, strict=True):
            letters, shape = names.replace("...", ""), sizes.shape(tensor)
            axes |= dict(zip(letters, shape[-len(letters) :], strict=True))
            if "..." in names:
                axes["..."] = math.prod(shape[: -len(letters)])
        return 2.0 * math.prod(axes.values())
    if kind == "Conv2D":
        height, width, channels, _ = sizes.shape(operation.inputs[1])
        return 2.0 * sizes.elements(operation.outputs[0]) * height * width * channels
    if kind in ("Conv2DBackpropInput", "Conv2DBackpropFilter"):
        kernel = operation.inputs[1] if kind == "Conv2DBackpropInput" else operation.outputs[0]
        height, width, channels, _ = sizes.shape(kernel)
        return 2.0 * sizes.elements(operation.inputs[2]) * height * width * channels
    return 0.0


def _peak_bytes(operations: Sequence[Any], sizes: _Sizes) -> int:
    """The largest sum of all tensors that exist at one time, if operations run as soon as they can."""
    operations = _as_executed(operations)
    owner: dict[str, str] = {}
    for operation in operations:
        for tensor in operation.outputs:
            view = operation.type in VIEWS and operation.inputs
            owner[tensor.name] = owner[operation.inputs[0].name] if view else tensor.name
    taken = {
        tensor.name: 0 if operation.type in FREE else sizes.bytes(tensor)
        for operation in operations
        for tensor in operation.outputs
        if owner[tensor.name] == tensor.name
    }
    last_use = {
        owner[tensor.name]: number for number, operation in enumerate(operations) for tensor in operation.inputs
    }
    live = peak = 0
    for number, operation in enumerate(operations):
        created = sum(taken[tensor.name] for tensor in operation.outputs if owner[tensor.name] == tensor.name)
        names = {owner[tensor.name] for tensor in operation.inputs}
        freed = sum(taken[name] for name in names if last_use[name] == number)
        if operation.type in IN_PLACE:
            live += created - freed
            peak = max(peak, live)
        else:
            live += created
            peak = max(peak, live)
            live -= freed
    return peak


def _as_executed(operations: Sequence[Any]) -> list[Any]:
    """The order of TensorFlow's executor: first ready, first run."""
    missing = {
        operation.name: len({t.op.name for t in operation.inputs} | {c.name for c in operation.control_inputs})
        for operation in operations
    }
    followers: dict[str, list[Any]] = {operation.name: [] for operation in operations}
    for operation in operations:
        for name in {t.op.name for t in operation.inputs} | {c.name for c in operation.control_inputs}:
            followers[name].append(operation)
    ready = collections.deque(operation for operation in operations if not missing[operation.name])
    order = []
    while ready:
        operation = ready.popleft()
        order.append(operation)
        for follower in followers[operation.name]:
            missing[follower.name] -= 1
            if not missing[follower.name]:
                ready.append(follower)
    return order
