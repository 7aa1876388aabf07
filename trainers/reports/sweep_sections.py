"""The section of a sweep: its size, its table and the paper's, learning curves, methods compared, failures."""

from collections.abc import Iterable

from trainers.evidence.findings import NOTE, cell_table, findings
from trainers.evidence.summary import notes
from trainers.figures.curves import best_cell, cell_charts
from trainers.reports.method_claims import JudgedSweep
from trainers.reports.page import Block, Charts, Points, Section, Text
from trainers.reports.tables import labelled, paper_table, plain_table, seed_table, sweep_table
from trainers.results.formats import counted, duration, upper_first, without_places
from trainers.results.methods import METHODS, VARIANTS, label_of
from trainers.results.paper import TABLES
from trainers.results.results_csv import place
from trainers.results.runs import Sweep
from trainers.results.tasks import TASKS, task_title
from trainers.study.checks import score
from trainers.study.conditions import DYNAMIC, conditions
from trainers.study.failures import Trained, has_losses, method_table
from trainers.study.failures_figure import failure_charts
from trainers.study.periods import can_judge, period_table

# Settings that describe the size of a run, and how to phrase them.
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
HOW_TO_READ = "Bold: the mean over the finished seeds. Thin: each seed."
PURPOSES = ("comparison of methods", "RAdam's first steps", "with and without warmup")


def purpose(sweep: Sweep) -> str:
    """The purpose of a sweep, inferred from the methods that it compares."""
    methods = sweep.table().methods
    if any(method in VARIANTS for method in methods):
        return PURPOSES[1]
    return PURPOSES[2] if "none" in methods else PURPOSES[0]


def in_order(sweeps: Iterable[Sweep]) -> list[Sweep]:
    """Sorts sweeps by purpose, then by task, with the tasks of the paper's tables first."""
    tasks = list(TABLES)
    return sorted(sweeps, key=lambda sweep: (PURPOSES.index(purpose(sweep)), place(sweep.task, tasks)))


def sweep_section(number: int, judged: JudgedSweep) -> Section:
    name, sweep, table = f"sweep-{number}", judged.sweep, judged.sweep.table()
    caption, shown = f"{upper_first(sweep.objective.label)}, measured here", labelled(table)
    blocks: list[Block] = [Text(scale(sweep)), *_unfinished(sweep)]
    blocks += [sweep_table(f"sweep_{number}", caption, table), Points(notes(shown)), *_paper(number, sweep)]
    blocks += _curves(name, sweep)
    compared = [answer.comparison.labelled(label_of) for answer in judged.answers]
    if compared:
        blocks += [*(Points(findings(each)) for each in compared), Text(NOTE)]
        headings, *rows = cell_table(shown, compared)
        cell_by_cell = "The methods compared in each cell, with 90 % intervals"
        labels = len(table.row_names)
        blocks.append(plain_table(f"sweep_{number}_cells", cell_by_cell, headings, rows, labels=labels, folded=True))
    blocks += study_blocks(number, sweep)
    blocks.append(seed_table(f"sweep_{number}_seeds", f"{caption}: every seed", table))
    task = task_title(sweep.task).lower() if sweep.task in TASKS else sweep.task
    title = f"{task}, {purpose(sweep)} ({sweep.folder.name})"
    return Section(name, f"Sweep: {title}", blocks)


def _curves(name: str, sweep: Sweep) -> list[Block]:
    """The learning curves of each cell; those of the best one are shown first."""
    cells = {cell: charts for cell, charts in cell_charts(name, sweep).items() if charts}
    first = best_cell(sweep) if best_cell(sweep) in cells else next(iter(cells), "")
    return [
        Charts(charts, HOW_TO_READ if cell == first else "", f"Learning curves at {cell}", unfolded=cell == first)
        for cell, charts in cells.items()
    ]


def scale(sweep: Sweep) -> str:
    """Describes the size of the sweep and that of the paper's experiment."""
    config = sweep.folder.config
    what = ", ".join(str(config[name]) for name in ("dataset", "model") if config.get(name))
    left_out = "epochs" if config.get("steps") else ""  # steps take precedence
    sizes = ", ".join(SIZES[name].format(config[name]) for name in SIZES if config.get(name) and name != left_out)
    table = sweep.table()
    sides = {"cell": table.rows, "method": table.methods, "seed": table.seeds}
    grid = " x ".join(counted(len(values), name) for name, values in sides.items())
    here = f"Here: {what or sweep.task}; {sizes or 'unknown size'}; {grid}, {counted(len(sweep.runs), 'run')}"
    text = f"{here} in {duration(sweep.seconds)} of training."
    if sweep.task in TABLES:
        text += f" The paper: {TABLES[sweep.task].scale}. Same question; the absolute numbers are not comparable."
    return text


def _unfinished(sweep: Sweep) -> list[Block]:
    """A warning about missing and failed runs."""
    said = []
    planned = sweep.planned
    if planned and len(sweep.runs) < planned:
        said.append(f"{len(sweep.runs)} of {counted(planned, 'run')} are finished")
    if not sweep.folder.finished:
        said.append(f"status: {without_places(sweep.folder.state)}")
    for status in ("diverged", "failed"):
        count = int((sweep.runs.status == status).sum())
        if count:
            said.append(f"{counted(count, 'run')} {status}")
    return [Text(f"Incomplete: {'; '.join(said)}.", warns=True)] if said else []


def _paper(number: int, sweep: Sweep) -> list[Block]:
    """The paper's table, for a sweep that asks the same question."""
    compared = [method for method in sweep.table().methods if method in METHODS]
    if sweep.task not in TABLES or len(compared) < 2:
        return []
    return [paper_table(f"paper_{sweep.task}_{number}", TABLES[sweep.task])]


def study_blocks(number: int, sweep: Sweep) -> Iterable[Block]:
    """The numbers of docs/dynamic_warmup.md: where methods fail, and how long a warmup must be.

    Only a sweep with a dynamic warmup or with several periods of a tuned one has them.
    """
    if not has_losses(sweep):
        return
    trained = Trained(sweep)
    if DYNAMIC in trained.methods:
        headings, *rows = method_table(trained)
        named = [[label_of(method), *others] for method, *others in rows]
        yield plain_table(f"sweep_{number}_study", "What each method reached, and where it trains", headings, named)
        yield Points(conditions(trained))
    if can_judge(trained):
        headings, *rows = period_table(trained)
        caption = "Is untuned linear warmup long enough?"
        yield plain_table(f"sweep_{number}_periods", caption, headings, rows, labels=2)
    if found := score(trained):
        headings, *rows = found.table()
        yield plain_table(f"sweep_{number}_checks", "Is the verdict of a warmup check right?", headings, rows)
        yield Text(found.text())
    if DYNAMIC in trained.methods or can_judge(trained):
        note = f"A run fails to train if its validation loss ends above {trained.limit:.3f}, or if it diverges."
        yield Charts(failure_charts(f"failures-{number}", trained), f"The number of runs that fail to train. {note}")
