"""Runs every experiment of the paper at the size of a laptop, and shows the results on one page.

python -m trainers.reproduce
python -m trainers.reproduce --only=simulation,digits
python -m trainers.reproduce --full --data=/data
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainers.engine.flags import Settings, option, read_config
from trainers.engine.folder import RunFolder
from trainers.engine.program import run_program
from trainers.reproduction.progress import StepProgress, outlook
from trainers.reproduction.steps import PLANS, Plans, Step, default_workers
from trainers.results.layout import CONFIG, STATUS
from trainers.sweeps.cluster import ADDRESS, started
from trainers.sweeps.space import GROWING, WORKERS_AT_MOST
from trainers.system import signals
from trainers.system.access import check_unlocked, locked
from trainers.system.errors import ConfigError, require
from trainers.system.streams import quiet

LOOK_EVERY = 0.5  # seconds
LOGS, PAGE = "logs", "report.html"


@dataclasses.dataclass(frozen=True)
class ReproductionConfig(Settings):
    """The experiments have their own configs; these flags are about running them."""

    output_dir: str = option("runs/reproduce", "Folder for all output; the page is report.html in it.", identity=False)
    full: bool = option(
        False, "Continue until there are enough runs to decide every claim: about five and a half hours on two cores."
    )
    data: str | None = option(
        None, "Folder with mnist, emnist, imagenette, wikitext-2 and multi30k, or some of them, for --full."
    )
    only: tuple[str, ...] = option((), "The steps to run; by default, all.", PLANS.names)
    workers: int | None = option(
        None, "Runs of a sweep in parallel; by default one per core, at most 4.", low=1, high=WORKERS_AT_MOST
    )
    dry_run: bool = option(False, "Run nothing; print the time that each step takes and how much of it is done.")

    def validate(self) -> None:
        super().validate()
        require(self.data is None or self.full, "--data is for --full", self.data)


def reproduce(config: ReproductionConfig, plans: Plans = PLANS) -> str:
    """Runs the steps that are not done yet, writes the page of all results, and returns the answer and its path."""
    folder = pathlib.Path(config.output_dir)
    chosen, without_data = _chosen(config, plans.full if config.full else plans.quick)
    workers = config.workers or default_workers()
    configs = {step.name: step.config(folder, workers, config.data) for step in chosen}
    if not config.dry_run:
        check_unlocked(folder)
    runs = {step.name: RunFolder(configs[step.name], step.task, chief=not config.dry_run) for step in chosen}
    shares = {step.name: _share_done(step, runs[step.name]) for step in chosen}
    said = outlook(chosen, shares, without_data)
    if config.dry_run:
        return said
    print(said, flush=True)
    with quiet():  # imports TensorFlow, which takes seconds: --help need not wait for it
        from trainers.reports.program import checked_output, write_page

    page = folder / PAGE
    if folder.exists():
        checked_output(str(page))
    left = [step for step in chosen if shares[step.name] < 1]
    failed: list[str] = []
    with locked(folder), _ray_for(left, workers) as environment:
        with StepProgress(chosen, shares) as progress:
            for step in left:
                flags, log = step.flags(folder, workers, config.data), folder / LOGS / f"{step.name}.log"
                progress.begin(step)
                if _run(step, configs[step.name], flags, environment, log, progress):
                    progress.end(step)
                else:
                    failed.append(step.name)
                    progress.end(step, f"FAILED: {_last_line(log)} (see {log})")
        shown = write_page([str(folder / place) for place in plans.places if (folder / place).exists()], str(page))
    if failed:
        sys.exit(
            f"failed: {', '.join(failed)}; run the same command again to retry. The page of the other steps: {page}"
        )
    return "\n".join([*shown.answer, str(page)])


def _chosen(config: ReproductionConfig, steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """The steps to run, and those that cannot run for lack of data."""
    require(config.data is None or os.path.isdir(config.data), "--data must be a folder", config.data)
    names = [step.name for step in steps]
    rule = f"--only must be one of {', '.join(names)} {'with' if config.full else 'without'} --full"
    for name in config.only:
        require(name in names, rule, name)
    wanted = [step for step in steps if not config.only or step.name in config.only]
    without_data = [step for step in wanted if step.missing_data(config.data)]
    if config.only and without_data:
        step = without_data[0]
        rule = f"--data must be a folder with {', '.join(step.missing_data(config.data))} for --only={step.name}"
        raise ConfigError(f"{rule}. Received: {config.data!r}")
    return [step for step in wanted if step not in without_data], without_data


def _share_done(step: Step, run: RunFolder) -> float:
    """The share of a step that is done, 0 to 1; it is 1 only if the step ended successfully."""
    if _is_done(run):
        return 1.0
    done = step.done(run.config)
    return min(done[0] / done[1], 0.99) if done else 0.0


def _is_done(run: RunFolder) -> bool:
    """Whether all that is asked for exists: a sweep may have been done with fewer runs, or with more."""
    status = run.path / STATUS
    if not status.exists() or status.read_text() != "done\n":
        return False
    asked, stored = run.config.plain(), read_config(run.path / CONFIG)
    pairs = [(stored.get(name, asked[name]), asked[name]) for name in GROWING if name in asked]
    return all({*new} <= {*old} if isinstance(new, list) else old == new for old, new in pairs)


@contextlib.contextmanager
def _ray_for(steps: Sequence[Step], workers: int) -> Iterator[Mapping[str, str]]:
    """Starts Ray once for all sweeps; yields the environment by which they find it."""
    if workers == 1 or os.environ.get(ADDRESS) or not any(step.is_sweep for step in steps):
        yield {}
        return
    with started(workers) as ray:
        yield ray.environment


def _run(
    step: Step,
    config: Any,
    flags: Sequence[str],
    environment: Mapping[str, str],
    log: pathlib.Path,
    progress: StepProgress,
) -> bool:
    """Runs a step in a process of its own, and returns whether it has succeeded. What it prints is written to its log.

    Args:
        step: The step.
        config: Its config.
        flags: The same on the command line.
        environment: By which its sweep finds Ray.
        log: Where its output goes.
        progress: Shows how much of it is done.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        print(time.strftime("-- %Y-%m-%d %H:%M:%S"), file=file, flush=True)
        # In a session of its own: Ctrl-C reaches every process of a terminal, and this process passes it on.
        process = subprocess.Popen(
            [sys.executable, "-m", f"trainers.{step.program}", *flags],
            env={**os.environ, **environment, signals.PARENT: str(os.getpid())},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        while process.poll() is None:
            progress.show(step, step.done(config))
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LOOK_EVERY)
    except BaseException:
        process.terminate()  # it saves what it has done
        process.wait()
        raise
    return process.returncode == 0


def _last_line(log: pathlib.Path) -> str:
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


if __name__ == "__main__":
    run_program(ReproductionConfig, reproduce)
