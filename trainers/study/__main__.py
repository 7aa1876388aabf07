"""Sums up a study of warmups and their rivals: what each method reaches, and where it fails to train.

python -m trainers.study docs/results --output_dir=study
"""

import dataclasses

from trainers.engine.flags import Flags, option
from trainers.engine.program import imported_late, run_program
from trainers.system.errors import require


@dataclasses.dataclass(frozen=True)
class StudyConfig(Flags):
    """The sweeps of a study, and where the figure goes."""

    subject = "Study"

    runs: tuple[str, ...] = option(
        (),
        "Folders of sweeps with a dynamic warmup or with several periods, or folders of such folders.",
        positional=True,
    )
    output_dir: str = option(
        "",
        "Folder for the figures, their numbers, and NAME/warmup_checks.csv of sweeps with --log_every=1. Without it "
        "nothing is written.",
    )
    page: tuple[str, ...] = option(
        (),
        "Markdown file whose tables, from <!-- study NAME --> to <!-- end of study NAME -->, are replaced; repeatable.",
        repeated=True,
    )

    def validate(self) -> None:
        super().validate()
        require(self.runs, "RUNS must name at least one folder", "none")


if __name__ == "__main__":
    run_program(StudyConfig, imported_late("trainers.study.program", "sum_up"))
