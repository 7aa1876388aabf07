"""Reproductions that take seconds; `python -m tests.trainers.tiny_reproduction` is their program."""

import dataclasses
import functools

from trainers.engine.program import run_program
from trainers.reproduce import ReproductionConfig, reproduce
from trainers.reproduction.steps import PLANS, Plans

SHORT = {
    "simulation": ("--parameters=100", "--iterations=200"),
    "digits": ("--warmups=none,radam", "--learning_rates=1e-3,1e-2", "--beta_2s=0.99", "--seeds=1,2"),
    "first_steps": ("--seeds=1,2",),
    "mnist": ("--beta_2s=0.99", "--seeds=1"),
}
LONGER = {"first_steps": ("--seeds=1-3",)}  # of the full plan
FEW_UPDATES = ("--steps=4", "--log_every=2", "--checkpoint_every=4")


def _short(steps, more):
    return tuple(
        dataclasses.replace(step, arguments=(*step.arguments, *_arguments(step.name, more)))
        for step in steps
        if step.name in SHORT
    )


def _arguments(name, more):
    return (*SHORT[name], *more.get(name, ()), *(() if name == "simulation" else FEW_UPDATES))


TINY = Plans(_short(PLANS.quick, {}), _short(PLANS.full, LONGER))

if __name__ == "__main__":
    run_program(ReproductionConfig, functools.partial(reproduce, plans=TINY))
