"""The figures of learning rates and of a warmup check. They need matplotlib, which the library itself does not."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from keras.optimizers.schedules import LearningRateSchedule

from tfwarmup import checks, compat
from tfwarmup.analysis.applied import applied_rate
from tfwarmup.analysis.warmup_report import WarmupReport

_PANELS = {
    "update_rms": "RMS of update / ($\\omega_t$ $\\alpha$)",
    "warmup_factor": "warmup factor $\\omega_t$",
    "batch_loss": "loss of the batch",
}


def draw(history: Mapping[str, Sequence[float]], report: WarmupReport) -> Any:
    """Three panels over the updates: size of the updates, warmup factor, loss."""
    from matplotlib.figure import Figure  # an extra: the module can be imported without it

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    panels = dict(zip(_PANELS, figure.subplots(1, len(_PANELS)), strict=True))
    for name, axes in panels.items():
        axes.plot(history["t"], history[name], color="#0072B2")
        axes.set(title=_PANELS[name], xlabel="update t", xscale="log")
    sizes = panels["update_rms"]
    sizes.axhline(report.later_rms, color="#8A8A8A", linestyle="--", label="final level")
    if report.settled is not None:
        sizes.axvline(report.settled, color="#D55E00", linestyle=":", label=f"settled: update {report.settled:,}")
    sizes.legend(frameon=False)
    for spike in report.loss_spikes:
        panels["batch_loss"].axvline(spike, color="#D55E00", linewidth=0.5)
    panels["warmup_factor"].set_ylim(0, 1.05)
    return figure


def plot(rates: Any, updates: int) -> Any:
    """Returns a matplotlib `Figure` of the learning rates of the next updates, warmup included.

    Args:
        rates: An optimizer or a `LearningRateSchedule`, or a dictionary of several with their labels.
        updates: The number of updates to draw, see `updates_of`.
    """
    from matplotlib.figure import Figure

    steps = np.unique(np.linspace(1, checks.integer("updates", updates, least=1), 500).round().astype(int)).tolist()
    axes = (figure := Figure(figsize=(6, 3.6), layout="constrained")).subplots()
    for label, rate in (rates if isinstance(rates, dict) else {checks.text(rates): rates}).items():
        if compat.is_optimizer(rate):
            made = compat.updates_made(rate)
            values = [applied_rate(rate, made + t).rate for t in steps]
        elif isinstance(rate, LearningRateSchedule):
            values = [compat.number(rate(t - 1)) for t in steps]
        else:
            raise ValueError(f"`rates` must be an optimizer, schedule or dict of these. Received: {checks.shown(rate)}")
        axes.plot(steps, values, label=textwrap.fill(str(label), 70))
    axes.set(xlabel="update t", ylabel="learning rate", ylim=(0, None))
    figure.legend(frameon=False, loc="outside upper left")  # beside the lines, not on them
    return figure
