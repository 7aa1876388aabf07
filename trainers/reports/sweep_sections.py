"""The section of a sweep: its size, its table, the paper's beside it, learning curves, and what they say."""

from collections.abc import Iterable

from trainers.figures.look import VARIANTS
from trainers.reports.blocks import Block, Charts, Points, Section, TableBlock, Text
from trainers.reports.curves import best_cell, sweep_charts
from trainers.reports.paper import TABLES
from trainers.reports.reading import Sweep
from trainers.reports.tables import labelled, paper_table, sweep_table
from trainers.reports.words import capitalised, duration
from trainers.sweeps.cells import METHODS
from trainers.sweeps.comparison import compare
from trainers.sweeps.findings import NOTE, findings
from trainers.sweeps.formats import counted
from trainers.sweeps.results import place
from trainers.sweeps.summary import notes

KNOWN = {"image_classification": "images", "language_modeling": "language", "machine_translation": "translation"}
# What tells the size of a run, where its config has it, and how to say it.
SIZES = {
    "steps": "{} updates",
    "epochs": "{} epochs",
    "batch_size": "batches of {}",
    "max_tokens": "batches of {} tokens",
    "layers": "{} layers",
    "width": "width {}",
    "vocabulary_size": "a vocabulary of {}",
    "pairs": "{} pairs of sentences",
}
HOW_TO_READ = (
    "Bold: the mean over the seeds that are done. Thin: each seed. A click in the legend switches a method off and on, "
    "in all charts of this sweep."
)


PURPOSES = ("the methods compared", "first steps of RAdam", "with and without warmup")


def purpose(sweep: Sweep) -> str:
    """What a sweep is for, by the methods that it compares."""
    methods = sweep.table().methods
    if any(method in VARIANTS for method in methods):
        return PURPOSES[1]
    return PURPOSES[2] if "none" in methods else PURPOSES[0]


def in_order(sweeps: Iterable[Sweep]) -> list[Sweep]:
    """By what they are for, then by their tasks: first what the paper has tables of."""
    tasks = list(TABLES)
    return sorted(sweeps, key=lambda sweep: (PURPOSES.index(purpose(sweep)), place(sweep.task, tasks)))


def sweep_section(number: int, sweep: Sweep) -> Section:
    name = f"sweep-{number}"
    table = sweep.table()
    blocks: list[Block] = [Text(scale(sweep)), *_unfinished(sweep)]
    caption = f"{capitalised(sweep.objective.label)}, measured here"
    blocks.append(TableBlock(sweep_table(f"sweep_{number}", caption, table)))
    shown = labelled(table)
    blocks.append(Points(notes(shown)))
    blocks += _paper(number, sweep)
    charts = sweep_charts(name, sweep)
    if charts:
        blocks.append(Charts(name, charts, HOW_TO_READ, best_cell(sweep)))
    if len(table.methods) > 1:
        blocks += [Points(findings(shown, compare(shown))), Text(NOTE)]
    title = f"{KNOWN.get(sweep.task, sweep.task)}, {purpose(sweep)}: {sweep.folder.name}"
    return Section(name, f"Sweep of {title}", blocks)


def scale(sweep: Sweep) -> str:
    """How large this is, and how large what the paper did."""
    config = sweep.folder.config
    what = ", ".join(str(config[name]) for name in ("dataset", "model") if config.get(name))
    left_out = "epochs" if config.get("steps") else ""  # which then does not count
    sizes = ", ".join(SIZES[name].format(config[name]) for name in SIZES if config.get(name) and name != left_out)
    table = sweep.table()
    sides = {"cell": table.rows, "method": table.methods, "seed": table.seeds}
    grid = " x ".join(counted(len(values), name) for name, values in sides.items())
    here = f"Here: {what or sweep.task}; {sizes or 'sizes not known'}; {grid}, {counted(len(sweep.results), 'run')}"
    text = f"{here} in {duration(sweep.seconds)} of training."
    if sweep.task in TABLES:
        text += f" The paper: {TABLES[sweep.task].scale}. What is compared is the question, not the numbers."
    return text


def _unfinished(sweep: Sweep) -> list[Block]:
    """Says plainly what is not there yet, or will never be."""
    said = []
    planned = sweep.planned
    if planned and len(sweep.results) < planned:
        said.append(f"{len(sweep.results)} of {counted(planned, 'run')} are there")
    if not sweep.folder.finished:
        said.append(f"the sweep's status is: {sweep.folder.state}")
    for status in ("diverged", "failed"):
        count = sum(result.status == status for result in sweep.results)
        if count:
            said.append(f"{counted(count, 'run')} {status}")
    return [Text(f"Not all of it: {'; '.join(said)}.", warns=True)] if said else []


def _paper(number: int, sweep: Sweep) -> list[Block]:
    """The paper's table, beside a sweep that asks what it asks."""
    compared = [method for method in sweep.table().methods if method in METHODS]
    if sweep.task not in TABLES or len(compared) < 2:
        return []
    return [TableBlock(paper_table(f"paper_{sweep.task}_{number}", TABLES[sweep.task]))]
