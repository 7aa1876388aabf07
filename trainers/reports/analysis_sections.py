"""The sections of the paper's analyses: warmup factors, the simulation, the gradient analysis."""

from collections.abc import Mapping
from typing import Any

from trainers.analysis.findings import findings
from trainers.figures.look import log_spaced
from trainers.reports.blocks import Charts, Factors, Points, Section, TableBlock, Text
from trainers.reports.charts import Chart, Curve, axis, band, line, plain_line
from trainers.reports.claims_updates import LONG_RUN, SETTLED_LEVEL
from trainers.reports.claims_warmups import PERIOD_BETAS, period
from trainers.reports.tables import Shown, plain_table
from trainers.reports.words import number_text
from trainers.results import paper
from trainers.results.methods import DRAWN, style_of
from trainers.results.runs import Measured

BETAS = (0.9, 0.95, 0.98, 0.99, 0.997, 0.998, 0.999, 0.9999)
PANELS = (
    ("gradient_cv_", "Coefficient of variation of the gradients", "standard deviation / |mean|"),
    ("moment_correlation", "Correlation of |m| and √v", "correlation"),
    ("update_", "Update sizes", "|update| / α"),
)
# The paper's values, drawn as reference lines.
LONG_RUN_LINE = {"y": LONG_RUN, "label": f"the paper, in the long run: {LONG_RUN} α"}
REFERENCES = {
    PANELS[0][0]: ({"y": 1, "label": "standard deviation = |mean|"},),
    PANELS[2][0]: ({"y": SETTLED_LEVEL, "label": f"the paper: around {SETTLED_LEVEL} α"},),
}
ADVICE = (
    'By default, untuned linear warmup: tfwarmup.Adam(rate, warmup="untuned_linear").',
    "For an optimizer that you already have: tfwarmup.warm_up(optimizer).",
    "For a run shorter than about 4 / (1 − β₂) updates: a smaller β₂, or LinearWarmup with a shorter period.",
)


def factors_section() -> Section:
    return Section(
        "factors",
        "Which warmup should I use?",
        [
            Points(ADVICE),
            Text(
                "A warmup multiplies the learning rate α of update t by a factor ω that rises from 0 to 1. The three "
                "factors below depend on Adam's β₂ alone. RAdam takes four momentum steps first; from the fifth update "
                "on it is Adam with its own ω. The numbers are computed in this page, in double precision."
            ),
            Factors(),
            Charts(
                "periods",
                [_periods_chart()],
                "The effective warmup period is the sum of 1 − ω over all updates: the number of full updates that the "
                "warmup costs. This is the paper's figure 3.",
            ),
            TableBlock(_periods_table()),
        ],
    )


def _periods_chart() -> Chart:
    # The axis shows 1 - beta_2 on a reversed logarithmic scale, labelled with beta_2.
    x = [1 - beta_2 for beta_2 in PERIOD_BETAS]
    curves = [line(name, x, [period(name, beta_2) for beta_2 in PERIOD_BETAS]) for name in DRAWN]
    ticks = [[0.1, "0.9"], [0.01, "0.99"], [0.001, "0.999"], [0.0001, "0.9999"]]
    across = axis("1 − β₂, labelled with β₂", log=True, range=[0.1, 1e-4], ticks=ticks)
    return Chart(
        "periods",
        "Effective warmup periods over β₂",
        across,
        axis("effective period, updates", log=True),
        {"": curves},
    )


def _periods_table() -> Shown:
    rows = [[beta_2, *(period(name, beta_2) for name in DRAWN)] for beta_2 in BETAS]
    headings = ["β₂", *(style_of(name).label for name in DRAWN)]
    return plain_table("effective_warmup_periods", "Effective warmup periods, in updates", headings, rows)


def simulation_section(number: int, run: Measured) -> Section:
    config, series = run.folder.config, run.series
    warmup = str(config.get("warmup", "none"))
    what = "without warmup" if warmup == "none" else f"with {style_of(warmup).label}"
    return Section(
        f"simulation-{number}",
        f"Updates at a simulated minimum: {run.folder.name}",
        [
            Text(
                f"Adam {what} on gradients that are pure noise, as at a minimum of the loss. Here: "
                f"{number_text(config.get('parameters'))} parameters, {len(series['t']):,} iterations, "
                f"β₁ = {config.get('beta_1')}, β₂ = {config.get('beta_2')}, ε = {config.get('epsilon')}. "
                f"The paper: {paper.SIMULATION}."
            ),
            Charts(
                f"simulation-{number}",
                [_simulation_chart(f"simulation-{number}", run)],
                "Percentiles of the size of an update over all parameters, in units of the learning rate α. This is "
                "the paper's figure 2.",
            ),
            TableBlock(_quantiles_table(f"simulation_{number}", run)),
        ],
    )


def _simulation_chart(name: str, run: Measured) -> Chart:
    s = _shown(run)
    curves = [
        band("5th to 95th percentile", s["t"], s["q05"], s["q95"], 0.15),
        band("25th to 75th percentile", s["t"], s["q25"], s["q75"], 0.3),
        plain_line("median", s["t"], s["median"]),
    ]
    title, y = "Update sizes over the iterations", axis("|update| / α", zero=True)
    return Chart(name, title, axis("iteration", log=True), y, {"": curves}, (LONG_RUN_LINE,))


def _shown(run: Measured) -> dict[str, list[float]]:
    """The measurements that a chart shows."""
    return {name: values.tolist() for name, values in log_spaced(run.series).items()}


def _quantiles_table(name: str, run: Measured) -> Shown:
    series = run.series
    places = [i for i, t in enumerate(series["t"]) if t in (1, 2, 5, 10, 20, 40, 100, 200, 500, 1000, 10_000)]
    rows = [[int(series["t"][i]), *(series[q][i] for q in series if q != "t")] for i in places]
    headings = ["iteration", *(q.replace("q0", "q") for q in series if q != "t")]
    return plain_table(name, "Percentiles of |update| / α at some iterations", headings, rows)


def analysis_section(number: int, run: Measured) -> Section:
    config, name = run.folder.config, f"analysis-{number}"
    return Section(
        name,
        f"Gradients and updates of a training run: {run.folder.name}",
        [
            Text(
                f"Here: {_network(config)}, {number_text(run.series['t'][-1])} iterations, {len(run.series['t']):,} of "
                f"them measured. The paper: {paper.ANALYSIS}."
            ),
            Charts(
                name,
                [_panel(f"{name}-{place}", run, *panel) for place, panel in enumerate(PANELS)],
                "Medians and quartiles over the sampled parameters: the paper's figure 1.",
            ),
            Points(findings(run.series)),
        ],
    )


def _network(config: Mapping[str, Any]) -> str:
    """
    >>> _network({"dataset": "folder", "batch_size": 256, "optimizer": "adam", "warmup": "none"})
    'a small network on images from a folder, batches of 256, adam without warmup'
    """
    data = "images from a folder" if config.get("dataset") == "folder" else config.get("dataset")
    warmup = "without warmup" if config.get("warmup") == "none" else f"with warmup {config.get('warmup')}"
    return f"a small network on {data}, batches of {config.get('batch_size')}, {config.get('optimizer')} {warmup}"


def _panel(name: str, run: Measured, prefix: str, title: str, label: str) -> Chart:
    series = _shown(run)
    t, curves = series["t"], list[Curve]()
    if f"{prefix}q25" in series:
        curves.append(band("25th to 75th percentile", t, series[f"{prefix}q25"], series[f"{prefix}q75"], 0.2))
    curves.append(plain_line("median", t, series[prefix if prefix in series else f"{prefix}median"]))
    noise = prefix == PANELS[0][0]
    y = axis(label, log=True) if noise else axis(label, zero=True)
    return Chart(name, title, axis("iteration", log=True), y, {"": curves}, REFERENCES.get(prefix, ()))
