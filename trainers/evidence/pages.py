"""Writes tables and verdicts into pages of documentation, so that they always match the runs."""

import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

from trainers.analysis.findings import EARLY, LATER, correlations, early_correlation, first_lasting, settling
from trainers.evidence.comparison import Verdict
from trainers.evidence.questions import NO_WARMUP, QUESTIONS, WARMUPS, Answer
from trainers.evidence.tables import answer_text, chosen_cells, evidence_table, overall_means
from trainers.results.folders import Series
from trainers.results.formats import NOTHING, counted, markdown_table
from trainers.results.runs import Measured, Sweep
from trainers.results.tasks import data_title
from trainers.system.errors import ConfigError, require
from trainers.system.files import UnreadableError, atomic_file, read_text


def begin(part: str) -> str:
    return f"<!-- {part} -->"


def end(part: str) -> str:
    return f"<!-- end of {part} -->"


def with_parts(page: pathlib.Path, parts: Mapping[str, str]) -> str:
    """The text of a page, with those of the given parts that it has made anew; it must have at least one."""
    try:
        text = read_text(page)
    except UnreadableError as error:
        raise ConfigError(f"--page must be a Markdown file. Received: {str(page)!r} ({error})") from error
    present = [part for part in parts if begin(part) in text]
    require(present, f"--page must have one of {', '.join(map(begin, parts))}", str(page))
    for part in present:
        before, _, rest = text.partition(begin(part))
        _, found, after = rest.partition(end(part))
        require(found, f"--page must have {end(part)} after {begin(part)}", str(page))
        text = f"{before}{begin(part)}\n\n{parts[part]}\n\n{end(part)}{after}"
    return text


def write_pages(pages: Mapping[pathlib.Path, str]) -> list[str]:
    """Writes texts to their pages, and returns a line for each."""
    for page, text in pages.items():
        try:
            with atomic_file(page) as file:
                file.write(text.encode())
        except OSError as error:
            rule = "--page must be a file that can be written to"
            raise ConfigError(f"{rule}. Received: {str(page)!r} ({error.strerror or error})") from error
    return [f"written: {page}" for page in pages]


# Of a sentence with verdicts, as <!-- warmups: equivalent: digits mnist paper/machine_translation -->.
SAID = re.compile(rf"<!-- ({'|'.join(QUESTIONS)}): (\w+): ([^>]+) -->")


def unfounded(text: str, answers: Sequence[Answer]) -> list[str]:
    """A line for every verdict that the sentences of a page are marked with, and that the runs do not give."""
    lines = []
    for question, verdict, names in SAID.findall(text):
        for name in names.split():
            asked = [answer for answer in answers if answer.question == question and name in _names(answer)]
            found = {answer.comparison.verdict.value for answer in asked}
            if found != {verdict}:
                here = ", ".join(sorted(found)) or "no verdict"
                lines.append(f"{question}, {name}: {verdict} in a sentence, {here} here")
    return lines


def _names(answer: Answer) -> Iterable[str]:
    """A sweep by its folder, one of its methods with that of no warmup, or the paper's table by its task."""
    if answer.published:
        return [f"paper/{answer.task}"]
    return [answer.source, *(f"{answer.source}/{method}" for method in answer.comparison.methods)]


LEFT_OUT = ("question", "95 % interval")  # a page is narrower than a file


def new_page(
    page: pathlib.Path,
    sweeps: Sequence[Sweep],
    analyses: Sequence[Measured],
    answers: Sequence[Answer],
    tuned: Sequence[str] = (),
) -> str:
    """The text of a page, with those of its parts that the runs determine made anew."""
    parts = {
        "summary": summary_markdown(answers),
        "verdicts": verdicts_markdown(answers, tuned),
        "means": overall_means(sweeps, answers, page),
        "cells": chosen_cells(sweeps),
        "analyses": markdown_table(analysis_table(analyses)),
    }
    return with_parts(page, parts)


def summary_markdown(answers: Sequence[Answer]) -> str:
    """Which sweeps and tables have which verdict, and which of them can tell warmups apart at all."""
    here = [each for each in answers if each.question == WARMUPS and not each.published]
    judged = {each.source for each in here}
    controls = [each for each in answers if each.question == NO_WARMUP and each.source in judged]
    telling = {each.source for each in controls if each.comparison.verdict is Verdict.DIFFERENT}
    equivalent = _with_verdict(here, Verdict.EQUIVALENT)
    better, worse = ([each for each in controls if _beyond(each) is gain] for gain in (True, False))
    lines = {
        "Equivalent, and no warmup differs": [each for each in equivalent if each.source in telling],
        "Equivalent, but no warmup is not shown to differ, so the task may not tell warmups apart": [
            each for each in equivalent if each.source not in telling
        ],
        "Different": _with_verdict(here, Verdict.DIFFERENT),
        "Inconclusive": _with_verdict(here, Verdict.INCONCLUSIVE),
        "No warmup is better than at least one of them": better,
        "No warmup is worse than at least one of them": worse,
    }
    for verdict in Verdict:
        lines[f"The paper's tables, {verdict.value}"] = _with_verdict([a for a in answers if a.published], verdict)
    return "\n".join(f"- **{what}**: {_places(found)}." for what, found in lines.items() if found)


def _with_verdict(answers: Iterable[Answer], verdict: Verdict) -> list[Answer]:
    return [each for each in answers if each.comparison.verdict is verdict]


def _beyond(control: Answer) -> bool | None:
    """Whether no warmup is better than a warmup by more than the margin; None if neither is."""
    if control.comparison.verdict is not Verdict.DIFFERENT:
        return None
    [difference] = control.comparison.differences
    gain = difference.mean if difference.pair[0] == "none" else -difference.mean
    return (gain > 0) == (control.comparison.direction == "min")


def _places(answers: Iterable[Answer]) -> str:
    """Each title once, with the numbers behind it."""
    sizes = {each.title: each.comparison.differences[0] for each in answers}
    return "; ".join(
        f"{title} ({counted(size.cells, 'cell')}, {counted(size.seeds, 'seed')})" for title, size in sizes.items()
    )


def verdicts_markdown(answers: Sequence[Answer], tuned: Sequence[str] = ()) -> str:
    """A table of all differences, and a sentence for each verdict; then those about tuned and untuned warmups."""
    lines = evidence_table(answers)
    shown = [index for index, heading in enumerate(lines[0]) if heading not in LEFT_OUT]
    table = markdown_table([[line[index] for index in shown] for line in lines])
    return f"{table}\n\n" + "\n".join(f"- {text}" for text in [*map(answer_text, answers), *tuned])


# What gradient analyses measured, beside the paper's numbers.
QUANTITIES = (
    ("measured iterations", ""),
    ("median coefficient of variation of the gradients at iteration 1", "below 1"),
    ("it stays above 1 from iteration", "about 50"),
    (f"correlation of abs(m) and sqrt(v), mean to iteration {EARLY}", '"extremely correlated"'),
    (f"the same at iteration {LATER}", ""),
    ("the same at the end", ""),
    ("update magnitude settles after iteration", "about 100"),
    ("around, in units of alpha", "0.15"),
)


def analysis_table(analyses: Sequence[Measured]) -> list[list[str]]:
    """Headings, then a row for each quantity of the paper's figure 1 and a column for each analysis."""
    columns = [_numbers(each.series) for each in analyses]
    rows = [[what, paper, *found] for (what, paper), *found in zip(QUANTITIES, *columns, strict=True)]
    titles = [f"{data_title(each.folder.config)} ({each.folder.name})" for each in analyses]
    return [["quantity", "the paper, EMNIST", *titles], *rows]


def caption(analysis: Measured) -> str:
    """The words below the figure."""
    config, (measured, *_) = analysis.folder.config, _numbers(analysis.series)
    return f"One run on {data_title(config)}, seed {config.get('seed')}; {measured} iterations measured."


def _numbers(series: Series) -> list[str]:
    t, variation = series["t"], series["gradient_cv_median"]
    lasting = first_lasting(t, [value > 1 for value in variation])
    at = correlations(series, moments=(LATER,))
    settled, level = settling(t, series["update_median"])
    return [
        f"{len(t):,} of {t[-1]:,.0f}",
        f"{variation[0]:.2f}",
        NOTHING if lasting is None else f"{lasting:.0f}",
        f"{early_correlation(series):.2f}",
        f"{next(iter(at.values())):.2f}" if t[-1] >= LATER else NOTHING,
        f"{at[t[-1]]:.2f}",
        f"{settled:.0f}",
        f"{level:.2f}",
    ]
