"""One frozen object holds everything a run depends on; its fields are the flags."""

import dataclasses
import json
import math
import pathlib
import typing
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from absl import flags

from tfwarmup import FIRST_STEPS, WARMUPS
from tfwarmup.warmups import takes_period

STRATEGIES = ("auto", "one", "mirrored", "multiworker")
PRECISIONS = ("float32", "mixed_float16", "mixed_bfloat16")
OPTIMIZERS = ("adam", "radam", "keras_adam", "keras_nadam", "keras_lamb")
DECAYS = ("constant", "step", "cosine", "inverse_sqrt")
AT_LEAST_ONE = ("accumulate", "average", "logical_devices", "log_every", "evaluate_every", "epochs")


FlagsT = TypeVar("FlagsT", bound="Flags")

# Whether a run with another value of a field is another run: True, or False, or a function that tells, given the
# config, why it is one ("" if it is not). BY_CONTENT is for places of data: what is there counts, not where it is.
Identity = bool | str | Callable[[Any], str]
BY_CONTENT = "content"


class ConfigError(ValueError):
    """A value that no run can start with: the rule, then the value received."""


def option(
    default: Any,
    help: str,
    choices: tuple[str, ...] | None = None,
    *,
    identity: Identity = True,
    positional: bool = False,
) -> Any:
    """A field that is a flag too. Its `identity` is the one place that says whether it changes a run's result.

    Args:
        default: The value of the flag where it is not given.
        help: What `--help` says.
        choices: The values it may have.
        identity: Whether a run can be resumed with another value, see `Identity`.
        positional: True for the one field that is no flag, but takes what stands beside the flags.
    """
    metadata = {"help": help, "choices": choices, "identity": identity, "positional": positional}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True)
class Flags:
    """The flags of a program, one a field."""

    def validate(self) -> None:
        """Raises `ConfigError` for the first value that cannot be."""
        for field in dataclasses.fields(self):
            choices, value = field.metadata["choices"], getattr(self, field.name)
            for item in value if isinstance(value, tuple) else (value,):
                if choices and item is not None and item not in choices:
                    raise ConfigError(f"--{field.name} must be one of {', '.join(choices)}. Received: {item!r}")

    def plain(self) -> dict[str, Any]:
        """Every value as JSON has it."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def identity(self) -> dict[str, Any]:
        """What the result of a run depends on, as plain JSON values, apart from its data."""
        return {name: value for name, value in self.plain().items() if self._identity_of(name) is True}

    def data_places(self) -> dict[str, Any]:
        """Where the data are, which matters only where it is not known what they are."""
        return {name: value for name, value in self.plain().items() if self._identity_of(name) == BY_CONTENT}

    def reason(self, name: str) -> str:
        """Why a run with another value of a field is another run, where that needs saying."""
        field = self.__dataclass_fields__.get(name)
        told = field.metadata["identity"] if field else True
        return str(told(self)) if callable(told) else ""

    def _identity_of(self, name: str) -> bool | str:
        told: Identity = self.__dataclass_fields__[name].metadata["identity"]
        return bool(told(self)) if callable(told) else told


@dataclasses.dataclass(frozen=True)
class Settings(Flags):
    """What every program has that keeps its results in a folder."""

    output_dir: str = option("", "Folder of the run, for all that it writes.", identity=False)

    def validate(self) -> None:
        super().validate()
        require(self.output_dir, "--output_dir must name a folder", self.output_dir)


def _why_length_matters(config: "Config") -> str:
    """A longer run goes on from a shorter one, unless what the shorter one did depends on its length."""
    if config.decay == "cosine":
        return "--decay=cosine spans the whole run"
    if config.average > 1:
        return "--average takes the last checkpoints of the run"
    return config.fixed_length


def _why_checkpoints_matter(config: "Config") -> str:
    return "--average takes the mean of checkpoints" if config.average > 1 else ""


@dataclasses.dataclass(frozen=True)
class Config(Settings):
    """What every training task has; a task's own config adds its fields."""

    batch_flag: ClassVar[str]  # the field that holds the global batch, in whatever the task counts
    fixed_length: ClassVar[str] = ""  # why a run cannot be extended, for programs where none can

    seed: int = option(1, "Seed of everything random.")
    epochs: int = option(10, "Passes over the training data.", identity=_why_length_matters)
    steps: int | None = option(None, "Updates in all, instead of --epochs.", identity=_why_length_matters)
    accumulate: int = option(1, "Micro-batches that a replica's batch is split into; memory follows the micro-batch.")
    average: int = option(1, "Average the weights of this many last checkpoints at the end: average.keras.")
    strategy: str = option("auto", "Devices; auto is every visible GPU, or one device.", STRATEGIES)
    logical_devices: int = option(1, "Split the CPU into this many devices, to try replicas without GPUs.")
    precision: str = option("float32", "Precision of the layers.", PRECISIONS)
    xla: bool = option(False, "Compile the forward and backward pass with XLA.")
    optimizer: str = option("adam", "adam and radam are tfwarmup's, the others Keras'.", OPTIMIZERS)
    learning_rate: float = option(1e-3, "Learning rate after the warmup and before the decay.")
    beta_1: float = option(0.9, "Discount of the first moment.")
    beta_2: float = option(0.999, "Discount of the second moment; the untuned warmups follow from it.")
    epsilon: float = option(1e-8, "Epsilon of the optimizer.")
    weight_decay: float = option(0.0, "Decoupled weight decay.")
    global_clipnorm: float | None = option(None, "Clip the gradient of the whole batch to this norm.")
    warmup: str | None = option(
        None,
        "Warmup; radam is RAdam itself. Default: radam for --optimizer=radam, else untuned_linear.",
        tuple(WARMUPS),
    )
    warmup_period: float | None = option(None, "Period of --warmup=linear and exponential, in updates.")
    first_steps: str = option("momentum", "What RAdam does while rho_t <= 4.", FIRST_STEPS)
    decay: str = option("constant", "Decay of the learning rate.", DECAYS)
    decay_epochs: tuple[float, ...] = option((30.0, 60.0), "Epochs after which --decay=step multiplies the rate.")
    decay_factor: float = option(0.1, "What --decay=step multiplies by.")
    decay_period: float = option(4000.0, "Updates after which --decay=inverse_sqrt begins.")
    log_every: int = option(50, "Updates between two records.", identity=False)
    checkpoint_every: int = option(
        500,
        "Updates between two checkpoints, a multiple of --log_every; 0: every epoch.",
        identity=_why_checkpoints_matter,
    )
    checkpoint_minutes: float = option(
        15.0, "Minutes after which there is a checkpoint in any case; 0: never.", identity=False
    )
    evaluate_every: int = option(1, "Epochs between two validations; the last epoch always has one.")
    save_models: bool = option(True, "Save best.keras and last.keras.", identity=False)
    progress: bool = option(True, "Show a progress bar.", identity=False)

    def validate(self) -> None:
        super().validate()
        for name in (self.batch_flag, *AT_LEAST_ONE):
            require(getattr(self, name) >= 1, f"--{name} must be an integer >= 1", getattr(self, name))
        require(self.steps is None or self.steps >= 1, "--steps must be an integer >= 1", self.steps)
        require(0 <= self.learning_rate < math.inf, "--learning_rate must be a number >= 0", self.learning_rate)
        require(0 <= self.beta_1 < 1, "--beta_1 must be in [0, 1)", self.beta_1)
        require(0 < self.beta_2 < 1, "--beta_2 must be in (0, 1)", self.beta_2)
        for name in ("epsilon", "weight_decay", "checkpoint_every", "checkpoint_minutes"):
            require(getattr(self, name) >= 0, f"--{name} must be >= 0", getattr(self, name))
        require(
            self.checkpoint_every % self.log_every == 0,
            f"--checkpoint_every must be a multiple of --log_every={self.log_every}",
            self.checkpoint_every,
        )
        if takes_period(self.resolved_warmup):
            period = self.warmup_period
            require((period or 0) > 0, f"--warmup={self.warmup} needs --warmup_period > 0", period)
        else:
            rule = f"--warmup_period is for --warmup=linear and exponential, not for {self.resolved_warmup}"
            require(self.warmup_period is None, rule, self.warmup_period)
        require(
            self.optimizer != "radam" or self.warmup in (None, "radam"),
            "--optimizer=radam has its own warmup: --warmup must be radam or left out",
            self.warmup,
        )

    def plain(self) -> dict[str, Any]:
        return super().plain() | {"warmup": self.resolved_warmup}

    @property
    def resolved_warmup(self) -> str:
        return self.warmup or ("radam" if self.optimizer == "radam" else "untuned_linear")

    @property
    def global_batch(self) -> int:
        size: int = getattr(self, self.batch_flag)
        return size


@dataclasses.dataclass(frozen=True)
class ExamplesConfig(Config):
    """What every task has whose batches are counted in examples."""

    batch_flag: ClassVar[str] = "batch_size"

    batch_size: int = option(128, "Global batch: examples an update, over all replicas and micro-batches.")


def parse_arguments(config_class: type[FlagsT], arguments: Sequence[str]) -> FlagsT:
    """The config of a command line, without a program: its flags are known here alone."""
    values: Any = flags.FlagValues()  # type: ignore[no-untyped-call]
    define_flags(config_class, values)
    try:
        beside = values(["", *arguments])[1:]
    except flags.Error as error:
        raise ConfigError(str(error)) from error
    return read_flags(config_class, beside, values)


def define_flags(config_class: type[Flags], flag_values: Any = flags.FLAGS) -> None:
    """Defines a flag for every field."""
    types = typing.get_type_hints(config_class)
    for field in _flag_fields(config_class):
        text, choices = field.metadata["help"], field.metadata["choices"]
        default: Any = field.default
        if choices:
            text = f"{text} One of: {', '.join(choices)}."
        kind = types[field.name]
        if kind is bool:
            flags.DEFINE_bool(field.name, default, text, flag_values)
        elif typing.get_origin(kind) is tuple:
            flags.DEFINE_list(field.name, [str(value) for value in default], text, flag_values)
        elif int in (kind, *typing.get_args(kind)):
            flags.DEFINE_integer(field.name, default, text, flag_values=flag_values)
        elif float in (kind, *typing.get_args(kind)):
            flags.DEFINE_float(field.name, default, text, flag_values=flag_values)
        else:
            # Not an enum flag: the names are checked with everything else, before anything is written.
            flags.DEFINE_string(field.name, default, text, flag_values)
    if issubclass(config_class, Settings):
        text = "config.json of another run to repeat; flags given beside it take precedence."
        flags.DEFINE_string("config", None, text, flag_values)


def read_flags(config_class: type[FlagsT], beside: Sequence[str], flag_values: Any = flags.FLAGS) -> FlagsT:
    """The config that parsed flags and the arguments beside them describe, checked."""
    values = _repeated(config_class, flag_values)
    for field in _flag_fields(config_class):
        flag = flag_values[field.name]
        if flag.present or field.name not in values:
            values[field.name] = flag.value
    positional = [field.name for field in dataclasses.fields(config_class) if field.metadata["positional"]]
    require(positional or not beside, "Arguments must be flags, --name=value", " ".join(beside))
    return make_config(config_class, values | dict.fromkeys(positional, tuple(beside)))


def _flag_fields(config_class: type[Flags]) -> list[Any]:
    return [field for field in dataclasses.fields(config_class) if not field.metadata["positional"]]


def _repeated(config_class: type[Flags], flag_values: Any) -> dict[str, Any]:
    """The values of the run that `--config` repeats, if it is given."""
    if "config" not in flag_values or flag_values.config is None:
        return {}
    names = {field.name for field in dataclasses.fields(config_class)}
    stored = read_config(pathlib.Path(flag_values.config))
    return {name: value for name, value in stored.items() if name in names}


def make_config(config_class: type[FlagsT], values: dict[str, Any]) -> FlagsT:
    """A checked config from plain values, such as a flag's or a JSON file's."""
    types = typing.get_type_hints(config_class)
    config = config_class(**{name: _value(name, types[name], value) for name, value in values.items()})
    config.validate()
    return config


def stored_config(config_class: type[FlagsT], values: dict[str, Any]) -> FlagsT:
    """The config of a run that is there, not checked again; flags that an older version did not have get defaults."""
    types = typing.get_type_hints(config_class)
    known = {field.name for field in dataclasses.fields(config_class)}
    return config_class(**{name: _value(name, types[name], value) for name, value in values.items() if name in known})


def _value(name: str, kind: Any, value: Any) -> Any:
    """Lists of flags and of JSON are tuples in a config."""
    if typing.get_origin(kind) is not tuple:
        return value
    try:
        return tuple(typing.get_args(kind)[0](item) for item in value)
    except ValueError as error:
        raise ConfigError(f"--{name} must be numbers. Received: {value}") from error


def read_config(path: pathlib.Path) -> dict[str, Any]:
    try:
        stored: dict[str, Any] = json.loads(path.read_text())["config"]
        return stored
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(f"--config must be the config.json of a run. Received: {path} ({error})") from error


def require(holds: Any, rule: str, received: Any) -> None:
    """Raises `ConfigError` with the rule and the value received unless the rule holds."""
    if not holds:
        raise ConfigError(f"{rule}. Received: {received!r}")
