"""The paper's figure 2: the distribution of Adam's update magnitudes at a simulated local minimum."""

import pathlib

from tfwarmup.analysis.simulation import QUANTILES, Magnitudes
from trainers.figures.look import PLAIN, STYLES, in_one_look, new_figure, save


@in_one_look
def draw_magnitudes(folder: pathlib.Path, magnitudes: Magnitudes, warmup: str) -> None:
    """update_magnitudes.svg, .png, .csv."""
    colour = PLAIN if warmup == "none" else STYLES[warmup].colour
    figure, (axes,) = new_figure()
    bands = ((magnitudes.q05, magnitudes.q95, 0.15, "5 to 95 %"), (magnitudes.q25, magnitudes.q75, 0.3, "25 to 75 %"))
    for low, high, alpha, label in bands:
        axes.fill_between(magnitudes.t, low, high, color=colour, alpha=alpha, linewidth=0, label=label)
    axes.plot(magnitudes.t, magnitudes.median, color=colour, label="median")
    axes.set(xscale="log", xlabel="iteration t", ylabel=r"update magnitude, units of $\alpha$")
    axes.set(xlim=(1, max(2, magnitudes.t[-1])), ylim=(0, None))
    method = "Adam" if warmup == "none" else STYLES[warmup].label
    axes.set_title(f"Updates at a simulated local minimum: {method}")
    axes.legend(loc="best")
    save(folder, "update_magnitudes", figure, {name: getattr(magnitudes, name) for name in ("t", *QUANTILES)})
