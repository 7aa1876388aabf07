"""Detects divergence: the loss is no longer finite, or float16 skips every update."""

import math
from collections.abc import Mapping
from typing import Any

from tfwarmup.compat import updates_made
from trainers.engine.config import Config
from trainers.engine.errors import DivergedError
from trainers.engine.step import PATIENCE

TRY = "try a smaller --learning_rate, a longer warmup or --global_clipnorm"
TRY_HALF = "--precision=mixed_bfloat16 or float32, and look for infinities in the data"


def check_steps(config: Config, optimizer: Any, step: int, bad_in_a_row: int) -> None:
    """Raises a `DivergedError` after too many bad steps in a row, also across records."""
    if bad_in_a_row < PATIENCE[config.precision]:
        return
    if config.precision != "mixed_float16":
        raise DivergedError(f"the loss was not finite at step {step - bad_in_a_row + 1}; {TRY}")
    raise DivergedError(f"no update since step {step - bad_in_a_row} of {step}{_half(optimizer)}")


def check_result(config: Config, optimizer: Any, final: Mapping[str, Any]) -> None:
    """Raises a `DivergedError` at the end of a run without an update, or without a finite loss."""
    if updates_made(optimizer) == 0:
        raise DivergedError(f"no update in the whole run{_half(optimizer)}")
    loss = final.get("val_loss")
    if loss is not None and not math.isfinite(loss):
        raise DivergedError(f"the loss was not finite in the last validation; {TRY}")


def _half(optimizer: Any) -> str:
    """The part of a message about the loss scale; only float16 skips updates."""
    scale = float(optimizer.dynamic_scale.numpy())
    return f": losses or gradients are not finite, at a loss scale of {scale:g} now; {TRY}, {TRY_HALF}"
