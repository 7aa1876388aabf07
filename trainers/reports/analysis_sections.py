"""The sections of the paper's analyses: warmup factors, the simulation, the gradient analysis."""

from typing import Any

import numpy as np

from trainers.analysis.findings import findings
from trainers.figures.look import METHODS, style_of
from trainers.reports import paper
from trainers.reports.blocks import Charts, Factors, Points, Section, TableBlock, Text
from trainers.reports.charts import Chart, Trace, axis, band, line, plain_line, updates_axis
from trainers.reports.claims_warmups import PERIOD_BETAS, period
from trainers.reports.reading import Measured
from trainers.reports.tables import Shown, plain_table
from trainers.reports.words import number_text

BETAS = (0.9, 0.95, 0.98, 0.99, 0.997, 0.998, 0.999, 0.9999)
PANELS = (
    ("gradient_cv_", "Coefficient of variation of the gradients", "standard deviation / |mean|"),
    ("moment_correlation", "Correlation of |m| and √v", "correlation"),
    ("update_", "Update sizes", "|update| / α"),
)
# Plotly itself would write 5 for 0.5.
NOISE_TICKS = {"tickvals": [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50], "tickformat": "~g"}


def factors_section() -> Section:
    return Section(
        "factors",
        "Warmup factors",
        [
            Text(
                "A warmup multiplies the learning rate of update t by a factor ω that rises from 0 to 1. Adam's β₂ "
                "alone decides the three factors below. RAdam takes four steps of momentum first; from the fifth "
                "update on it is Adam with its own ω. The numbers are computed in this page, in double precision."
            ),
            Factors(),
            Charts(
                "periods",
                [_periods_chart()],
                "The effective warmup period is the sum of 1 − ω over all updates: how many updates' worth of learning "
                "the warmup takes away. This is the paper's figure 3.",
            ),
            TableBlock(_periods_table()),
        ],
    )


def _periods_chart() -> Chart:
    traces = [line(name, PERIOD_BETAS, [period(name, beta_2) for beta_2 in PERIOD_BETAS]) for name in METHODS]
    for trace in traces:
        # Plotly has no axis that is logarithmic in 1 - beta_2: the axis is of that, reversed, and labelled with beta_2.
        trace |= {"x": [1 - beta_2 for beta_2 in PERIOD_BETAS], "customdata": PERIOD_BETAS}
        trace["hovertemplate"] = "%{y:.5~g} at β₂ = %{customdata:.6~g}"
    ticks = {"tickvals": [0.1, 0.01, 0.001, 0.0001], "ticktext": ["0.9", "0.99", "0.999", "0.9999"]}
    layout = {
        "xaxis": axis("β₂", log=True, range=[-1, -4], **ticks),
        "yaxis": axis("effective period, updates", log=True, tickformat=",d"),
        "hovermode": "closest",
    }
    return Chart("periods", "Effective warmup periods over β₂", layout, {"": traces})


def _periods_table() -> Shown:
    rows = [[beta_2, *(period(name, beta_2) for name in METHODS)] for beta_2 in BETAS]
    headings = ["β₂", *(style_of(name).label for name in METHODS)]
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
                "Quantiles of the size of an update over all parameters, in units of the learning rate α: the paper's "
                "figure 2.",
            ),
            TableBlock(_quantiles_table(f"simulation_{number}", run)),
        ],
    )


def _simulation_chart(name: str, run: Measured) -> Chart:
    s = {column: [values[i] for i in _log_places(len(values))] for column, values in run.series.items()}
    traces = [
        *band("5 to 95 %", s["t"], s["q05"], s["q95"], 0.15),
        *band("25 to 75 %", s["t"], s["q25"], s["q75"], 0.3),
    ]
    layout = {
        "xaxis": updates_axis("iteration", log=True),
        "yaxis": axis("|update| / α", rangemode="tozero"),
    }
    return Chart(
        name, "Update sizes over the iterations", layout, {"": [*traces, plain_line("median", s["t"], s["median"])]}
    )


def _quantiles_table(name: str, run: Measured) -> Shown:
    series = run.series
    places = [i for i, t in enumerate(series["t"]) if t in (1, 2, 5, 10, 20, 40, 100, 200, 500, 1000, 10_000)]
    rows = [[int(series["t"][i]), *(series[q][i] for q in series if q != "t")] for i in places]
    headings = ["iteration", *(q.replace("q0", "q") for q in series if q != "t")]
    return plain_table(name, "Quantiles of |update| / α at some iterations", headings, rows)


def analysis_section(number: int, run: Measured) -> Section:
    config, name = run.folder.config, f"analysis-{number}"
    return Section(
        name,
        f"A training run, looked into: {run.folder.name}",
        [
            Text(
                f"A small network on {config.get('dataset')}, in batches of {config.get('batch_size')} under "
                f"{config.get('optimizer')} with warmup {config.get('warmup')}, to iteration "
                f"{number_text(run.series['t'][-1])}. The paper: {paper.ANALYSIS}."
            ),
            Charts(
                name,
                [_panel(f"{name}-{place}", run, *panel) for place, panel in enumerate(PANELS)],
                "The medians over the sampled parameters, and the middle half of them: the paper's figure 1.",
            ),
            Points(findings(run.series)),
        ],
    )


def _panel(name: str, run: Measured, prefix: str, title: str, label: str) -> Chart:
    series = run.series
    t, traces = series["t"], list[Trace]()
    if f"{prefix}q25" in series:
        traces += band("25 to 75 %", t, series[f"{prefix}q25"], series[f"{prefix}q75"], 0.2)
    traces.append(plain_line("median", t, series[prefix if prefix in series else f"{prefix}median"]))
    noise = prefix == PANELS[0][0]
    scale = {"log": True, "tickmode": "array", **NOISE_TICKS} if noise else {"rangemode": "tozero"}
    layout: dict[str, Any] = {"xaxis": updates_axis("iteration", log=True), "yaxis": axis(label, **scale)}
    if noise:  # where mean and standard deviation are equal
        layout["shapes"] = [
            {
                "type": "line",
                "xref": "paper",
                "x0": 0,
                "x1": 1,
                "y0": 1,
                "y1": 1,
                "line": {"dash": "dot", "width": 1, "color": "#888888"},
            }
        ]
    if len(traces) == 1:
        layout["showlegend"] = False
    return Chart(name, title, layout, {"": traces})


def _log_places(count: int, most: int = 300) -> list[int]:
    """Places of a long column that lie evenly on a logarithmic axis."""
    return sorted({round(place) - 1 for place in np.geomspace(1, count, min(count, most))})
