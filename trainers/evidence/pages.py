"""Writes tables and verdicts into pages of documentation, so that they always match the runs."""

import pathlib
from collections.abc import Mapping, Sequence

from trainers.evidence.analyses import analysis_table
from trainers.evidence.questions import Answer
from trainers.evidence.tables import answer_text, chosen_cells, evidence_table, overall_means
from trainers.results.formats import markdown_table
from trainers.results.runs import Measured, Sweep
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
        "verdicts": verdicts_markdown(answers, tuned),
        "means": overall_means(sweeps, answers, page),
        "cells": chosen_cells(sweeps),
        "analyses": markdown_table(analysis_table(analyses)),
    }
    return with_parts(page, parts)


def verdicts_markdown(answers: Sequence[Answer], tuned: Sequence[str] = ()) -> str:
    """A table of all differences, and a sentence for each verdict; then those about tuned and untuned warmups."""
    lines = evidence_table(answers)
    shown = [index for index, heading in enumerate(lines[0]) if heading not in LEFT_OUT]
    table = markdown_table([[line[index] for index in shown] for line in lines])
    return f"{table}\n\n" + "\n".join(f"- {text}" for text in [*map(answer_text, answers), *tuned])
