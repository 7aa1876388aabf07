"""The program: reads sweeps and gradient analyses, returns verdicts, draws the figures and writes parts of pages."""

import os
import pathlib
from collections.abc import Sequence

from trainers.evidence.__main__ import EvidenceConfig
from trainers.evidence.pages import analysis_table, caption, new_page, unfounded, write_pages
from trainers.evidence.questions import Answer, answers, published_answers
from trainers.evidence.tables import answer_text, evidence_table, tuned_texts
from trainers.results.formats import aligned
from trainers.results.runs import Measured, read_analyses, read_sweeps
from trainers.system.errors import ConfigError


def judge_sweeps(config: EvidenceConfig) -> str:
    """Returns every verdict as text; writes the figures and their numbers if there is a folder for them."""
    sweeps, problems = read_sweeps(config.runs)
    analyses = read_analyses(config.runs, problems)
    found = [*answers(sweeps, config.own_margins()), *(published_answers() if config.paper else [])]
    tuned = tuned_texts(sweeps, config.own_margins())
    # All pages are made before the first one is written.
    pages = {page: new_page(page, sweeps, analyses, found, tuned) for page in map(pathlib.Path, config.page)}
    parts = [aligned(evidence_table(found)), "\n".join([*map(answer_text, found), *tuned])]
    parts += [aligned(analysis_table(analyses))] if analyses else []
    parts += [f"left out: {problem}" for problem in problems]
    if config.output_dir:
        parts.append(_write(pathlib.Path(config.output_dir), found, analyses))
    parts += [f"not so: {page}: {line}" for page, text in pages.items() for line in unfounded(text, found)]
    parts += write_pages(pages)
    return "\n\n".join(parts)


def _write(folder: pathlib.Path, found: Sequence[Answer], analyses: Sequence[Measured]) -> str:
    from trainers.evidence.differences_figure import draw_differences
    from trainers.figures.paper import draw_gradients

    try:
        draw_differences(folder, found)
        for each in analyses:
            draw_gradients(folder, each.series, caption(each), _file_name(each))
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        rule = "--output_dir must be a folder that can be written to"
        raise ConfigError(f"{rule}. Received: {str(folder)!r} ({reason})") from error
    names = ["differences", *map(_file_name, analyses)]
    return "\n".join(f"written: {folder}/{name}.csv, .svg, .png, .pdf" for name in names)


def _file_name(analysis: Measured) -> str:
    return analysis.folder.name.replace("/", "_")  # a folder whose name another root has too
