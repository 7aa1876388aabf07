"""Which methods of a sweep are compared with each other, by the questions of the paper."""

from collections.abc import Sequence

from trainers.sweeps.cells import FIRST_STEPS_OF, METHODS, UNTUNED
from trainers.sweeps.table import Table

FIRST_STEPS = ("radam", *FIRST_STEPS_OF)
WARMUPS = tuple(name for name in UNTUNED if name != "none")
# Do the warmups differ? Do RAdam's first steps matter? Is warmup needed? Do any other methods differ?
QUESTIONS = ("warmups", "first steps", "no warmup", "methods")


def ran(table: Table, methods: Sequence[str]) -> list[str]:
    """Those of the given methods that have runs."""
    return [m for m in table.methods if m in methods and any(table.cell(row, m).runs for row in table.rows)]


def method_groups(table: Table) -> list[tuple[str, list[str]]]:
    """The questions, each with the methods that answer it; no warmup is compared with each warmup in turn.

    If no question fits, all methods are compared.
    """
    groups = [(QUESTIONS[0], ran(table, METHODS)), (QUESTIONS[1], ran(table, FIRST_STEPS))]
    if ran(table, ["none"]):
        groups += [(QUESTIONS[2], ["none", warmup]) for warmup in ran(table, WARMUPS)]
    groups = [(question, methods) for question, methods in groups if len(methods) > 1]
    every = ran(table, table.methods)
    return groups or ([(QUESTIONS[3], every)] if len(every) > 1 else [])
