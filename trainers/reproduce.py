"""Runs every experiment of the paper at the size of a laptop, and shows the results on one page.

python -m trainers.reproduce
python -m trainers.reproduce --only=simulation,digits
"""

import dataclasses
import os
import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any

from trainers.engine.config import Settings, option, require
from trainers.engine.lock import check_unlocked, locked
from trainers.engine.processes import fork
from trainers.engine.program import run_program
from trainers.engine.records import RunFolder
from trainers.engine.signals import StopRequested
from trainers.reports.program import write_report
from trainers.reproduction.progress import Progress
from trainers.reproduction.steps import STEPS, Step, default_workers

LOOK_EVERY = 0.5  # seconds
LOGS, PAGE = "logs", "report.html"


@dataclasses.dataclass(frozen=True)
class ReproductionConfig(Settings):
    """The experiments have their own configs; these flags are about running them."""

    output_dir: str = option(
        "runs/reproduce", "Folder for all that is written, the page as report.html.", identity=False
    )
    only: tuple[str, ...] = option((), "The steps to run; without it, all.", tuple(step.name for step in STEPS))
    workers: int | None = option(None, "Runs of a sweep side by side; by default one a core, at most 4.")

    def validate(self) -> None:
        super().validate()
        require(self.workers is None or self.workers >= 1, "--workers must be an integer >= 1", self.workers)


def reproduce(config: ReproductionConfig, steps: Sequence[Step] = STEPS) -> str:
    """Runs what is not done yet, writes the page of all that is there, and returns its path."""
    folder = pathlib.Path(config.output_dir)
    chosen = [step for step in steps if not config.only or step.name in config.only]
    configs = {step.name: step.config(folder, config.workers or default_workers()) for step in chosen}
    check_unlocked(folder)
    finished = [step for step in chosen if _is_done(RunFolder(configs[step.name], step.task))]
    page = folder / PAGE
    with locked(folder):
        failed = _run([step for step in chosen if step not in finished], configs, folder, Progress(chosen, finished))
        write_report([str(folder / step.name) for step in steps if (folder / step.name).exists()], str(page))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the same command tries again. The page of all others: {page}")
    return str(page)


def _is_done(run: RunFolder) -> bool:
    status = run.path / "status"
    return status.exists() and status.read_text() == "done\n"


def _run(steps: Sequence[Step], configs: dict[str, Any], folder: pathlib.Path, progress: Progress) -> list[str]:
    """Runs the steps, each in a process of its own, and returns the names of those that failed."""
    failed = []
    with progress:
        for step in steps:
            log = folder / LOGS / f"{step.name}.log"
            progress.begin(step)
            if _run_one(step, configs[step.name], log, progress):
                progress.end(step)
            else:
                failed.append(step.name)
                progress.end(step, f"FAILED: {_last_line(log)} (all of it: {log})")
    return failed


def _run_one(step: Step, config: Any, log: pathlib.Path, progress: Progress) -> bool:
    log.parent.mkdir(parents=True, exist_ok=True)
    process = fork(_work, step, config, log)
    try:
        while process.exitcode is None:
            progress.show(step, step.done(config))
            process.join(LOOK_EVERY)
    except StopRequested:
        process.terminate()  # it saves what it has done
        process.join()
        raise
    return bool(process.exitcode == 0)


def _work(step: Step, config: Any, log: pathlib.Path) -> None:
    """What a step says and warns of goes to its log."""
    with log.open("a") as file:
        os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())
        print(time.strftime("-- %Y-%m-%d %H:%M:%S"), flush=True)
        print(step.work(config), flush=True)


def _last_line(log: pathlib.Path) -> str:
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was said"


if __name__ == "__main__":
    run_program(ReproductionConfig, reproduce)
