"""The program: reads sweeps, returns verdicts, and draws the figure of all differences."""

import os
import pathlib

from trainers.engine.flags import ConfigError
from trainers.evidence.config import EvidenceConfig
from trainers.evidence.pages import write_verdicts
from trainers.evidence.questions import Answer, answers, published_answers
from trainers.evidence.reading import read_sweeps
from trainers.evidence.tables import answer_text, evidence_table
from trainers.evidence.tuned import tuned_texts
from trainers.sweeps.formats import aligned


def judge_sweeps(config: EvidenceConfig) -> str:
    """Returns every verdict as text; writes the figure and its numbers if there is a folder for them."""
    sweeps, problems = read_sweeps(config.runs)
    found = [*answers(sweeps, config.own_margins()), *(published_answers() if config.paper else [])]
    tuned = tuned_texts(sweeps, config.own_margins())
    parts = [aligned(evidence_table(found)), "\n".join([*map(answer_text, found), *tuned])]
    parts += [f"left out: {problem}" for problem in problems]
    if config.output_dir:
        parts.append(_write(pathlib.Path(config.output_dir), found))
    if config.page:
        parts.append(write_verdicts(pathlib.Path(config.page), found, tuned))
    return "\n\n".join(parts)


def _write(folder: pathlib.Path, found: list[Answer]) -> str:
    from trainers.figures.differences import draw_differences  # matplotlib takes a while to import

    try:
        draw_differences(folder, found)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        rule = "--output_dir must be a folder that can be written to"
        raise ConfigError(f"{rule}. Received: {str(folder)!r} ({reason})") from error
    return f"written: {folder}/differences.csv, .svg, .png, .pdf"
