"""Further axes of a sweep: any flag of its task, as `--sweep=weight_decay=0,1e-4`. Needs no TensorFlow."""

import dataclasses
import types
import typing
from collections.abc import Iterable
from typing import Any

from trainers.engine.config import Config
from trainers.engine.flags import ConfigError, require
from trainers.sweeps.cells import FIELDS, PERIOD

RULE = "--sweep must be a flag of the task and its values, as --sweep=weight_decay=0,1e-4"
OWN = {**{name: f"--{name}s" for name in FIELDS}, PERIOD: f"--{PERIOD}s", "first_steps": "--warmups=radam_nothing"}
TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}

Axes = dict[str, tuple[Any, ...]]


def parse_axes(texts: Iterable[str], config_class: type[Config]) -> Axes:
    """The axes by name, in the order given, with values of the types in the task's config.

    >>> from trainers.engine.config import ExamplesConfig
    >>> parse_axes(["weight_decay=0,1e-4", "batch_size=64"], ExamplesConfig)
    {'weight_decay': (0.0, 0.0001), 'batch_size': (64,)}
    """
    axes: Axes = {}
    for text in texts:
        name, equals, listed = text.partition("=")
        require(equals and listed, RULE, text)
        require(name not in axes, "--sweep must name a flag once", text)
        axes[name] = _values(name, listed.split(","), config_class)
        require(len(set(axes[name])) == len(axes[name]), "--sweep must have no value twice", text)
    return axes


def _values(name: str, texts: list[str], config_class: type[Config]) -> tuple[Any, ...]:
    field = {field.name: field for field in dataclasses.fields(config_class)}.get(name)
    require(name not in OWN, f"--sweep must be another flag; use {OWN.get(name)} for this one", name)
    if field is None:
        raise ConfigError(f"{RULE}. Received: {name!r}")
    require(field.metadata["identity"] is not False, "--sweep must be a flag that changes the result of a run", name)
    kind = _kind(typing.get_type_hints(config_class)[name])
    require(kind is not None, "--sweep must be a flag with one value", name)
    try:
        return tuple(TRUTHS[text.lower()] if kind is bool else kind(text) for text in texts)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"--sweep={name} must have values as --{name} takes them. Received: {texts}") from error


def _kind(hint: Any) -> Any:
    """The type of a flag's value, None for one that holds several."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        hint = next(each for each in typing.get_args(hint) if each is not type(None))
    return hint if hint in (bool, int, float, str) else None
