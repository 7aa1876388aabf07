"""The paper's figure 1: gradient noise, correlation of the moments, and update magnitudes during training."""

import pathlib

from matplotlib.ticker import LogLocator

from trainers.analysis.findings import Series
from trainers.figures.look import PLAIN, in_one_look, new_figure, save

PANELS = (
    ("gradient_cv_", "Coefficient of variation of the gradients", "standard deviation / |mean|"),
    ("moment_correlation", r"Correlation of $|m_t|$ and $\sqrt{v_t}$", "correlation"),
    ("update_", "Update magnitudes", r"|update|, units of $\alpha$"),
)


@in_one_look
def draw_gradients(folder: pathlib.Path, series: Series) -> None:
    """gradient_analysis.svg, .png, .csv."""
    figure, panels = new_figure(columns=3, width=11.5, height=3.5)
    t = series["t"]
    for axes, (name, title, label) in zip(panels, PANELS, strict=True):
        median = series[name if name in series else f"{name}median"]
        if f"{name}q25" in series:
            axes.fill_between(
                t, series[f"{name}q25"], series[f"{name}q75"], color=PLAIN, alpha=0.2, linewidth=0, label="25 to 75 %"
            )
        axes.plot(t, median, color=PLAIN, label="median")
        axes.set(xscale="log", xlim=(1, max(2, t[-1])), xlabel="iteration t", ylabel=label)
        axes.set_title(title)
    panels[0].set_yscale("log")
    panels[0].yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].yaxis.set_minor_formatter("{x:g}")
    panels[0].axhline(1, color="#1B1B1B", linewidth=1, linestyle=":")
    panels[1].set_ylim(0, 1.05)
    panels[2].set_ylim(0, None)
    panels[0].legend(loc="upper left")
    panels[2].legend(loc="upper right")
    save(folder, "gradient_analysis", figure, series)
