"""Writes the verdicts into a page of documentation, so that they always match the runs."""

import pathlib
from collections.abc import Sequence

from trainers.engine.files import UnreadableError, atomic_file, read_text
from trainers.engine.flags import ConfigError, require
from trainers.evidence.questions import Answer
from trainers.evidence.tables import answer_text, evidence_table
from trainers.sweeps.formats import markdown_table

BEGIN, END = "<!-- verdicts -->", "<!-- end of verdicts -->"
LEFT_OUT = ("question", "95 % interval")  # a page is narrower than a file


def verdicts_markdown(answers: Sequence[Answer], tuned: Sequence[str] = ()) -> str:
    """A table of all differences, and a sentence for each verdict; then those about tuned and untuned warmups."""
    lines = evidence_table(answers)
    shown = [index for index, heading in enumerate(lines[0]) if heading not in LEFT_OUT]
    table = markdown_table([[line[index] for index in shown] for line in lines])
    return f"{table}\n\n" + "\n".join(f"- {text}" for text in [*map(answer_text, answers), *tuned])


def write_verdicts(page: pathlib.Path, answers: Sequence[Answer], tuned: Sequence[str] = ()) -> str:
    """Replaces the verdicts in a page with those given."""
    try:
        text = read_text(page)
    except UnreadableError as error:
        raise ConfigError(f"--page must be a Markdown file. Received: {str(page)!r} ({error})") from error
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    require(begin and end, f"--page must have {BEGIN} and, after it, {END}", str(page))
    with atomic_file(page) as file:
        file.write(f"{before}{BEGIN}\n\n{verdicts_markdown(answers, tuned)}\n\n{END}{after}".encode())
    return f"written: {page}"
