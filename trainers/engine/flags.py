"""Flags as the fields of a frozen object, checked as a whole; `--help` by subject. Needs no TensorFlow."""

import dataclasses
import decimal
import json
import math
import re
import typing
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple, TypeVar

from trainers.system.errors import ConfigError, require
from trainers.system.files import UnreadableError, read_object

FlagsT = TypeVar("FlagsT", bound="Flags")

# Whether another value of a field makes a different run: True, False, or a function of the config that returns the
# reason ("" if it is the same run). BY_CONTENT is for paths of data: their content counts, not the path.
Identity = bool | str | Callable[[Any], str]
BY_CONTENT = "content"
# The integers that TensorFlow, NumPy and JSON files can hold.
INTEGERS = range(-(2**63), 2**63)
POWERS: dict[Any, str] = {2**31 - 1: "2^31 - 1", 2**32 - 1: "2^32 - 1"}  # bounds in words
RANGE_AT_MOST = 10_000  # integers in a range such as `1-10`


class Bounds(NamedTuple):
    """The numbers that a flag allows: a lower and an upper bound, each inclusive or exclusive, see `option`."""

    low: float | None
    above: float | None
    high: float | None
    below: float | None

    def allow(self, number: Any) -> bool:
        over = number > self.above if self.low is None else number >= self.low
        return bool(over and (number < self.below if self.high is None else number <= self.high))

    def rule(self, kind: str) -> str:
        """What a number must be.

        >>> Bounds(1, None, None, math.inf).rule("an integer"), Bounds(0, None, 2**32 - 1, None).rule("an integer")
        ('an integer >= 1', 'an integer between 0 and 2^32 - 1')
        >>> Bounds(None, 0, None, math.inf).rule("a number"), Bounds(0, None, None, 1).rule("a number")
        ('a number > 0', 'in [0, 1)')
        """
        if math.inf in (self.high, self.below):
            return f"{kind} > {self.above}" if self.low is None else f"{kind} >= {self.low}"
        if kind == "an integer":
            return f"{kind} between {self.low} and {POWERS.get(self.high, self.high)}"
        begin = f"({self.above}" if self.low is None else f"[{self.low}"
        return f"in {begin}, {self.below})" if self.high is None else f"in {begin}, {self.high}]"


def option(
    default: Any,
    help: str,
    choices: tuple[str, ...] | None = None,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = None,
    below: float | None = None,
    identity: Identity = True,
    positional: bool = False,
    repeated: bool = False,
) -> Any:
    """A field that is also a flag. Its `identity` is the only place that says whether it changes a run's result.

    Args:
        default: The value if the flag is not given.
        help: The text in `--help`.
        choices: The allowed values.
        low: The lowest allowed number.
        above: Instead of `low`, a number that is itself too low.
        high: The highest allowed number.
        below: Instead of `high`, a number that is itself too high; by default infinity, if there is a lower bound.
        identity: Whether another value makes a different run, see `Identity`.
        positional: True for the one field that is not a flag, but takes the positional arguments.
        repeated: True for a tuple whose flag is given once per item, so that items may contain commas.
    """
    bounds = Bounds(low, above, high, math.inf if high is None and below is None else below)
    metadata = {
        "help": help,
        "choices": choices,
        "bounds": None if low is None and above is None else bounds,
        "identity": identity,
        "positional": positional,
        "repeated": repeated,
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of a program, one per field. A class groups the flags that it declares under its `subject`."""

    subject: ClassVar[str] = "Other"
    trains: ClassVar[bool] = False  # on TensorFlow, which programs that only compute and draw do not need

    def validate(self) -> None:
        """Raises a `ConfigError` for the first invalid value."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            for item in value if isinstance(value, tuple) else (value,):
                if item is not None:
                    self._check_item(field.name, item, field.metadata["choices"], field.metadata["bounds"])

    def _check_item(self, name: str, item: Any, choices: tuple[str, ...] | None, bounds: Bounds | None) -> None:
        if choices:
            require(item in choices, f"--{name} must be one of {', '.join(choices)}", item)
        if bounds and not bounds.allow(item):
            kind = "an integer" if "int" in str(typing.get_type_hints(type(self))[name]) else "a number"
            raise ConfigError(f"--{name} must be {bounds.rule(kind)}. Received: {item!r}")

    def require_default(self, name: str, owner: str, instead: str) -> None:
        """Refuses a value that would have no effect, and says how to undo it: a flagfile may have set it."""
        default = self.__dataclass_fields__[name].default
        written = ",".join(f"{item:g}" for item in default) if isinstance(default, tuple) else default
        undo = f"--{name}={'' if written is None else written}"
        rule = f"--{name} is for {owner}, not for {instead} ({undo} takes it back)"
        require(getattr(self, name) == default, rule, getattr(self, name))

    def plain(self) -> dict[str, Any]:
        """All values as plain JSON values."""
        return dict(json.loads(json.dumps(dataclasses.asdict(self))))

    def identity(self) -> dict[str, Any]:
        """The values that the result of a run depends on, apart from its data, as plain JSON values."""
        return {name: value for name, value in self.plain().items() if self._identity_of(name) is True}

    def data_places(self) -> dict[str, Any]:
        """The paths of the data, which matter only if their content is not known."""
        return {name: value for name, value in self.plain().items() if self._identity_of(name) == BY_CONTENT}

    def reason(self, name: str) -> str:
        """Why another value of a field makes a different run; empty if it needs no explanation."""
        field = self.__dataclass_fields__.get(name)
        told = field.metadata["identity"] if field else True
        return str(told(self)) if callable(told) else ""

    def _identity_of(self, name: str) -> bool | str:
        told: Identity = self.__dataclass_fields__[name].metadata["identity"]
        return bool(told(self)) if callable(told) else told


@dataclasses.dataclass(frozen=True)
class Settings(Flags):
    """The flags of every program that keeps its results in a folder."""

    subject = "Results"
    trains = True

    output_dir: str = option("", "Folder that the run writes to.", identity=False)

    def validate(self) -> None:
        super().validate()
        require(self.output_dir, "--output_dir must name a folder", self.output_dir)


def make_config(config_class: type[FlagsT], values: dict[str, Any]) -> FlagsT:
    """A checked config from plain values, such as a flag's or a JSON file's."""
    types = typing.get_type_hints(config_class)
    config = config_class(**{name: _value(name, types[name], value) for name, value in values.items()})
    config.validate()
    return config


def stored_config(config_class: type[FlagsT], values: dict[str, Any]) -> FlagsT:
    """The config of an existing run, not checked again; flags that its version did not have get their defaults."""
    types = typing.get_type_hints(config_class)
    known = {field.name for field in dataclasses.fields(config_class)}
    return config_class(**{name: _value(name, types[name], value) for name, value in values.items() if name in known})


def _value(name: str, kind: Any, value: Any) -> Any:
    """Converts a value to the type of its field, or raises a `ConfigError`. Lists become tuples."""
    if typing.get_origin(kind) is tuple:
        items = value if isinstance(value, list | tuple) else None
        require(items is not None, f"--{name} must be a list", value)
        kinds = typing.get_args(kind)[:1]
        listed = [one for item in value for one in _range(name, item)] if int in kinds else value
        return tuple(_single(name, kinds, item) for item in listed)
    return _single(name, typing.get_args(kind) or (kind,), value)


def _range(name: str, item: Any) -> Iterable[Any]:
    """The integers that an item of a list stands for: itself, or all integers of a range.

    >>> list(_range("seeds", "7")), list(_range("seeds", "1-3")), list(_range("seeds", "-2"))
    (['7'], [1, 2, 3], ['-2'])
    """
    found = re.fullmatch(r"(\d+)-(\d+)", item) if isinstance(item, str) else None
    if not found:
        return [item]
    numbers = range(int(found[1]), int(found[2]) + 1)
    require(numbers, f"--{name} must have ranges whose first integer is not above the last", item)
    # Not len(), which has its own limit.
    short = numbers[-1] - numbers[0] < RANGE_AT_MOST
    require(short, f"--{name} must have ranges of at most {RANGE_AT_MOST} integers", item)
    return numbers


def _single(name: str, kinds: tuple[Any, ...], value: Any) -> Any:
    if value in (None, "") and type(None) in kinds:  # `--name=` undoes the value of a flagfile
        return None
    if bool in kinds:
        require(isinstance(value, bool), f"--{name} must be true or false", value)
    elif int in kinds:
        return _integer(name, value)
    elif float in kinds:
        return _number(name, value)
    elif str in kinds:
        require(isinstance(value, str), f"--{name} must be text", value)
    return value


def _converted(kind: Any, value: Any) -> Any:
    """The value as a number; `None` if it is none."""
    try:
        return None if isinstance(value, bool) else kind(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _integer(name: str, value: Any) -> int:
    number = _converted(int, value)
    whole = number is not None and (isinstance(value, str) or number == value)
    require(whole, f"--{name} must be an integer", value)
    require(number in INTEGERS, f"--{name} must be an integer between -2^63 and 2^63 - 1", value)
    return typing.cast(int, number)


def _number(name: str, value: Any) -> float:
    number = _converted(float, value)
    require(number is not None and not math.isnan(number), f"--{name} must be a number", value)
    lost = number == 0 and isinstance(value, str) and decimal.Decimal(value) != 0
    require(not lost, f"--{name} must be 0 or a number that is not rounded to it", value)
    return typing.cast(float, number)


def read_config(path: Any) -> dict[str, Any]:
    """The flags in a run's config.json."""
    rule = "--config must be the config.json of a run"
    try:
        stored = read_object(path).get("config")
    except UnreadableError as error:
        raise ConfigError(f"{rule}. Received: {str(path)!r} ({error})") from error
    require(isinstance(stored, dict), rule, str(path))
    return typing.cast(dict[str, Any], stored)
