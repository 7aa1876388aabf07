"""The sections of the paper's analyses: warmup factors, the simulation, the gradient analysis."""

from collections.abc import Mapping
from typing import Any

from trainers.analysis.findings import findings
from trainers.figures.paper import factors_chart, gradient_charts, magnitudes_chart, period, periods_chart
from trainers.reports.page import BETA_2, Charts, Factors, Points, Section, Text
from trainers.reports.tables import PageTable, cell_text, plain_table
from trainers.results import paper
from trainers.results.methods import DRAWN, label_of
from trainers.results.runs import Measured

BETAS = (0.9, 0.95, 0.98, 0.99, 0.997, 0.998, 0.999, 0.9999)
ADVICE = (
    'By default, untuned linear warmup: tfwarmup.Adam(rate, warmup="untuned_linear").',
    "For an optimizer that you already have: tfwarmup.warm_up(optimizer).",
    "For a run shorter than about 4 / (1 − β₂) updates: a smaller β₂, or LinearWarmup with a shorter period.",
)


def factors_section() -> Section:
    periods = [[beta_2, *(period(name, beta_2) for name in DRAWN)] for beta_2 in BETAS]
    headings = ["β₂", *(label_of(name) for name in DRAWN)]
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
            Factors(factors_chart(BETA_2)),
            Charts(
                [periods_chart()],
                "The effective warmup period is the sum of 1 − ω over all updates: the number of full updates that the "
                "warmup costs. This is the paper's figure 3.",
            ),
            plain_table("effective_warmup_periods", "Effective warmup periods, in updates", headings, periods),
        ],
    )


def simulation_section(number: int, run: Measured) -> Section:
    config, series = run.folder.config, run.series
    warmup = str(config.get("warmup", "none"))
    what = "without warmup" if warmup == "none" else f"with {label_of(warmup)}"
    return Section(
        f"simulation-{number}",
        f"Updates at a simulated minimum: {run.folder.name}",
        [
            Text(
                f"Adam {what} on gradients that are pure noise, as at a minimum of the loss. Here: "
                f"{cell_text(config.get('parameters'))} parameters, {len(series['t']):,} iterations, "
                f"β₁ = {config.get('beta_1')}, β₂ = {config.get('beta_2')}, ε = {config.get('epsilon')}. "
                f"The paper: {paper.SIMULATION}."
            ),
            Charts(
                [magnitudes_chart(f"simulation-{number}", series, warmup)],
                "Percentiles of the size of an update over all parameters, in units of the learning rate α. This is "
                "the paper's figure 2.",
            ),
            _quantiles_table(f"simulation_{number}", run),
        ],
    )


def _quantiles_table(name: str, run: Measured) -> PageTable:
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
                f"Here: {_network(config)}, {cell_text(run.series['t'][-1])} iterations, {len(run.series['t']):,} of "
                f"them measured. The paper: {paper.ANALYSIS}."
            ),
            Charts(
                gradient_charts(name, run.series),
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
