"""The program: reads the sweeps of a study, reports what every method reached, and draws the failures."""

import pathlib
from collections.abc import Sequence

from trainers.evidence.pages import with_parts, write_pages
from trainers.results.formats import aligned, markdown_table, value_text
from trainers.results.layout import CHECKS
from trainers.results.methods import method_title
from trainers.results.runs import Sweep, read_sweeps
from trainers.study.__main__ import StudyConfig
from trainers.study.checks import checks_csv, score
from trainers.study.conditions import DYNAMIC, condition_table, conditions, failure_table, judging
from trainers.study.failures import Trained, default_place, has_losses, method_table
from trainers.study.periods import RULE, TUNED, can_judge, period_table
from trainers.system.errors import require
from trainers.system.files import atomic_file

# Parts of a page that concern the whole study.
CONDITIONS, FAILURES = "conditions of the study", "failures of the study"


def sum_up(config: StudyConfig) -> str:
    """A table and the conditions for every sweep; writes the figures if there is a folder for them, and pages."""
    sweeps, problems = read_sweeps(config.runs)
    found = [Trained(sweep) for sweep in sweeps if has_losses(sweep)]
    compared = [trained for trained in found if DYNAMIC in trained.methods]
    judged = [trained for trained in found if can_judge(trained)]
    checked = [(trained, found_score) for trained in found if (found_score := score(trained))]
    rule = (
        f"RUNS must have sweeps with {DYNAMIC}, or with {RULE} and several periods of {TUNED}, among their warmups, or "
        "with several periods and --log_every=1"
    )
    require(compared or judged or checked, rule, " ".join(config.runs))
    parts = [*(_methods_text(trained) for trained in compared), *(_periods_text(trained) for trained in judged)]
    parts += [_told(trained, found_score.table(), found_score.text()) for trained, found_score in checked]
    tables = study_tables(compared)
    if len(judging(compared)) > 1:
        parts += [aligned(tables[part]) for part in (CONDITIONS, FAILURES) if len(tables[part]) > 1]
    parts += [f"left out: {problem}" for problem in problems]
    marked = {part: markdown_table(table) for part, table in tables.items()}
    pages = {page: with_parts(page, marked) for page in map(pathlib.Path, config.page)}
    if config.output_dir:
        shown = [trained for trained in found if DYNAMIC in trained.methods or can_judge(trained)]
        parts.append(_write(pathlib.Path(config.output_dir), shown, [trained.sweep for trained, _ in checked]))
    parts += write_pages(pages)
    return "\n\n".join(parts)


def study_tables(compared: Sequence[Trained]) -> dict[str, list[list[str]]]:
    """The parts of a page: what every method reached in each sweep, and all sweeps of the study side by side."""
    studied = judging(compared)
    together = {CONDITIONS: condition_table(studied), FAILURES: failure_table(studied)} if studied else {}
    tables = {}
    for trained in compared:
        headings, *rows = method_table(trained)
        titled = [[method_title(method), *others] for method, *others in rows]
        tables[f"study {trained.sweep.folder.name}"] = [headings, *titled]
    return tables | together


def _methods_text(trained: Trained) -> str:
    """What every method reached, and the conditions."""
    rate, beta_2 = map(value_text, default_place(trained))
    where = f"; default cell: rate {rate}, beta_2 {beta_2}"
    return _told(trained, method_table(trained), _limit(trained), *conditions(trained), where=where)


def _periods_text(trained: Trained) -> str:
    """Whether the period of the rule is long enough."""
    margin = trained.sweep.terms.margin
    gain = f"Gain: how much better the best longer period is, 90 % interval, margin {margin.text if margin else ''}."
    return _told(trained, period_table(trained), _limit(trained), gain)


def _told(trained: Trained, table: list[list[str]], *sentences: str, where: str = "") -> str:
    title = f"{trained.sweep.folder.name}: {trained.sweep.objective.label}{where}"
    return "\n".join([title, aligned(table), *sentences])


def _limit(trained: Trained) -> str:
    return f"A run fails if its validation loss ends above {trained.limit:.3f}, or if it diverges."


def _write(folder: pathlib.Path, found: list[Trained], checked: list[Sweep]) -> str:
    from trainers.study.failures_figure import draw_failures  # matplotlib takes a while to import

    said = [f"written: {folder / draw_failures(folder, trained)}.csv, .svg, .png, .pdf" for trained in found]
    for sweep in checked:
        path = folder / sweep.folder.name / CHECKS
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            file.write(checks_csv(sweep).encode())
        said.append(f"written: {path}")
    return "\n".join(said)
