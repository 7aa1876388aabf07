"""A reproduction that takes seconds; `python -m tests.trainers.tiny_reproduction` is its program."""

import dataclasses
import functools

from trainers.engine.program import run_program
from trainers.reproduce import ReproductionConfig, reproduce
from trainers.reproduction.steps import STEPS

SHORT = {
    "simulation": ("--parameters=100", "--iterations=200"),
    "digits": ("--learning_rates=1e-3,1e-2", "--beta_2s=0.99", "--seeds=1,2", "--steps=4", "--log_every=2"),
    "first_steps": ("--seeds=1,2", "--steps=4", "--log_every=2"),
}
STEPS = tuple(
    dataclasses.replace(step, arguments=(*step.arguments, *SHORT[step.name])) for step in STEPS if step.name in SHORT
)

if __name__ == "__main__":
    run_program(ReproductionConfig, functools.partial(reproduce, steps=STEPS))
