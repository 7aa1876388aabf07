"""The figure of a warmup check. Needs matplotlib, which the library itself does not."""

from collections.abc import Mapping, Sequence
from typing import Any

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
