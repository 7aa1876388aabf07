"""Reports whether the runs of a table were made with different versions, revisions, machines or threads."""

from collections.abc import Iterable, Mapping
from typing import Any

from trainers.sweeps.results import Result

UNKNOWN = "not recorded"


def mixtures(results: Iterable[Result]) -> list[str]:
    """A sentence for everything that differs between the runs that are done.

    >>> runs = [Result("a", {}, "done", 1.0, {}, 1.0, "", {"threads": threads}) for threads in (1, 2, 2)]
    >>> mixtures(runs)
    ['Runs differ in threads: 1 (1 run), 2 (2 runs).']
    """
    flat = [_flat(result.environment) for result in results if result.status == "done"]
    sentences = []
    for name in dict.fromkeys(name for each in flat for name in each):
        counts: dict[str, int] = {}
        for each in flat:
            value = str(each.get(name, UNKNOWN))
            counts[value] = counts.get(value, 0) + 1
        if len(counts) > 1:
            kinds = ", ".join(f"{value} ({n} run{'s' if n > 1 else ''})" for value, n in sorted(counts.items()))
            sentences.append(f"Runs differ in {name}: {kinds}.")
    return sentences


def _flat(environment: Mapping[str, Any]) -> dict[str, Any]:
    nested = {name: value for name, value in environment.items() if isinstance(value, Mapping)}
    plain = {name: value for name, value in environment.items() if name not in nested}
    return {**{name: value for group in nested.values() for name, value in group.items()}, **plain}
