"""The step on torch: its fused Adam kernel for lists of variables, `torch._foreach_*` where the kernel does not apply.

The scalars of an update are computed on the host, after one transfer, whatever the number of variables.
"""

import functools
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from tfwarmup.compat import ops, tensors_of
from tfwarmup.steps.clipping import SMALLEST
from tfwarmup.steps.plain import Betas, Scalars

# The types that the kernel takes. Half-precision variables have moments in float32, which it does not take.
_KERNEL_TYPES = (torch.float32, torch.float64)


class _Tensors(NamedTuple):
    """A variable, its moments, its gradient as the kernels want it, and whether it decays."""

    variable: torch.Tensor
    m: torch.Tensor
    v: torch.Tensor
    gradient: torch.Tensor
    is_decayed: bool


# `torch.compile` would gain nothing: the kernel is as fast as compiled code, and the numbers of an update are computed
# on the host.
not_compiled = torch.compiler.disable


def step(optimizer: Any, variable: Any, m: Any, v: Any, gradient: Any, betas: Betas, scalars: Scalars) -> None:
    """The update of one variable."""
    step_together([variable], [m], [v], [gradient], [scalars.decay is not None], betas, scalars)


@torch.no_grad()
def step_together(
    variables: Sequence[Any],
    ms: Sequence[Any],
    vs: Sequence[Any],
    gradients: Sequence[Any],
    are_decayed: Sequence[bool],
    betas: Betas,
    scalars: Scalars,
) -> None:
    """The update of a list of variables, of any types and on any devices."""
    groups: dict[tuple[torch.device, torch.dtype, bool], list[_Tensors]] = defaultdict(list)
    values = tensors_of(variables), tensors_of(ms), tensors_of(vs)
    for variable, m, v, gradient, is_decayed in zip(*values, gradients, are_decayed, strict=True):
        # The kernel ignores strides, so tensors must be contiguous.
        tensors = _Tensors(variable, m, v, gradient.to(m).contiguous(), is_decayed)
        has_kernel = betas.fused and _can_be_fused(tensors) and _has_kernel(m.device.type)
        groups[m.device, variable.dtype, has_kernel].append(tensors)
    for (_, _, has_kernel), group in groups.items():
        (_fused if has_kernel else _foreach)(group, betas, scalars)


@torch.no_grad()
def update_excess(gradient: Any, v: Any, betas: Betas, unbiased: float, epsilon: float) -> float:
    """As in `steps.clipping`, with two temporary arrays: allocating more takes longer than the arithmetic."""
    (before,) = tensors_of([v])
    square = gradient.to(before).square()
    after = torch.lerp(before, square, 1 - betas.second).clamp_(min=max(epsilon**2, SMALLEST))
    return max(math.sqrt(square.div_(after).mean().item() * unbiased), 1.0)


def dense(gradient: Any, variable: Any) -> Any:
    """A sparse gradient (of an embedding) as a dense one."""
    if gradient is None or (isinstance(gradient, torch.Tensor) and gradient.layout is torch.strided):
        return gradient
    return ops.convert_to_tensor(gradient, sparse=False)


def on_host(*numbers: Any) -> list[float]:
    """Variables, tensors and numbers as floats, in one transfer: scalar arithmetic is faster on the host."""
    found: list[float] = torch.stack([ops.convert_to_tensor(number, "float32") for number in numbers]).tolist()
    return found


def _can_be_fused(tensors: _Tensors) -> bool:
    variable, m, v, *_ = tensors
    has_type = variable.dtype in _KERNEL_TYPES and m.dtype == variable.dtype
    return has_type and variable.is_contiguous() and m.is_contiguous() and v.is_contiguous()


@functools.cache
def _has_kernel(device: str) -> bool:
    """Whether this version of torch has the kernel on this kind of device: tried once."""
    variable, m, v = (torch.zeros(1, device=device) for _ in range(3))
    try:
        _call_kernel([variable], [torch.ones_like(m)], [m], [v], Betas(0.0, 0.0, fused=True), Scalars(1.0, 1.0, None))
    except (AttributeError, NotImplementedError, RuntimeError):
        return False
    return variable.item() == -0.5


def _fused(group: list[_Tensors], betas: Betas, numbers: Scalars) -> None:
    variables, ms, vs, gradients, _ = map(list, zip(*group, strict=True))
    if numbers.decay is not None:
        # theta - decay * theta, not (1 - decay) * theta as in torch's AdamW: a decay of 1e-6 per update would lose 3 %
        # to the rounding of 1 - decay.
        _decay([tensors.variable for tensors in group if tensors.is_decayed], numbers.decay)
    _call_kernel(variables, gradients, ms, vs, betas, numbers)


def _call_kernel(
    variables: list[torch.Tensor],
    gradients: list[torch.Tensor],
    ms: list[torch.Tensor],
    vs: list[torch.Tensor],
    betas: Betas,
    numbers: Scalars,
) -> None:
    # After infinitely many updates there is no bias to correct: the corrections are in the rate and in epsilon already.
    count = torch.full((), math.inf, device=variables[0].device)
    torch._fused_adam_(
        variables,
        gradients,
        ms,
        vs,
        [],
        [count] * len(variables),
        lr=numbers.rate,
        beta1=betas.first,
        beta2=betas.second,
        weight_decay=0.0,
        eps=numbers.epsilon,
        amsgrad=False,
        maximize=False,
    )


def _foreach(group: list[_Tensors], betas: Betas, numbers: Scalars) -> None:
    variables, ms, vs, gradients, _ = map(list, zip(*group, strict=True))
    torch._foreach_lerp_(ms, gradients, 1 - betas.first)
    temporary = torch._foreach_mul(gradients, gradients)
    torch._foreach_lerp_(vs, temporary, 1 - betas.second)
    del temporary  # before the next temporaries are allocated
    values = [variable.to(m.dtype) for variable, m in zip(variables, ms, strict=True)]
    if numbers.decay is not None:
        _decay([value for value, tensors in zip(values, group, strict=True) if tensors.is_decayed], numbers.decay)
    denominators = torch._foreach_sqrt(vs)
    torch._foreach_add_(denominators, numbers.epsilon)
    # Multiply first: a momentum step divides by 2^64, which would underflow for a small m alone.
    steps = torch._foreach_mul(ms, numbers.rate)
    torch._foreach_div_(steps, denominators)
    torch._foreach_sub_(values, steps)
    if values[0].dtype != variables[0].dtype:
        torch._foreach_copy_(variables, values)


def _decay(values: list[torch.Tensor], decay: float) -> None:
    if values:
        torch._foreach_add_(values, values, alpha=-decay)
