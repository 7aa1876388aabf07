"""Judges sweeps: prints every difference between methods with its intervals and the verdict, and draws them.

python -m trainers.evidence runs --output_dir=evidence
"""

import dataclasses
import math

from trainers.engine.flags import Flags, option
from trainers.engine.program import imported_late, run_program
from trainers.results.tasks import Margin
from trainers.system.errors import ConfigError, require

RULE = "--margins must be a task, or a task and a data set, and a number > 0, as my_task=0.5 or my_task/my_data=0.5"


@dataclasses.dataclass(frozen=True)
class EvidenceConfig(Flags):
    """The flags of the program: what to judge, by which margins, and where to write files."""

    subject = "Evidence"

    runs: tuple[str, ...] = option((), "Folders that contain sweeps, or results.csv files of sweeps.", positional=True)
    output_dir: str = option(
        "",
        "Folder for the figures and their numbers: differences.csv, .svg, .png, .pdf. Without it nothing is written.",
    )
    page: tuple[str, ...] = option(
        (),
        "Markdown file whose parts, such as <!-- verdicts --> to <!-- end of verdicts -->, are replaced; repeatable.",
        repeated=True,
    )
    margins: tuple[str, ...] = option(
        (),
        "A margin for a task, as my_task=0.5 or my_task/my_data=0.5, in the unit of the objective; may be repeated.",
        repeated=True,
    )
    paper: bool = option(True, "Also judge the paper's tables.")

    def validate(self) -> None:
        super().validate()
        require(self.runs or self.paper, "RUNS must name at least one folder or file with --nopaper", "none")
        self.own_margins()

    def own_margins(self) -> list[Margin]:
        return [_margin(text) for text in self.margins]


def _margin(text: str) -> Margin:
    where, equals, size = text.rpartition("=")
    task, _, data = where.partition("/")
    try:
        number = float(size)
    except ValueError as error:
        raise ConfigError(f"{RULE}. Received: {text!r}") from error
    require(equals and task and 0 < number < math.inf, RULE, text)
    return Margin(task, data or "*", number, "")


if __name__ == "__main__":
    run_program(EvidenceConfig, imported_late("trainers.evidence.program", "judge_sweeps"))
