"""The methods that are compared: their names, their flags, and how each is drawn. Needs no TensorFlow."""

import dataclasses
import urllib.parse
from collections.abc import Mapping
from typing import Any

# The names of `tfwarmup.WARMUPS` and `FIRST_STEPS`, repeated because importing them takes seconds and slows `--help`.
TUNED_WARMUPS = ("linear", "exponential")  # those with a period to tune
WARMUPS = ("none", *TUNED_WARMUPS, "untuned_linear", "untuned_exponential", "radam", "root", "dynamic")
FIRST_STEPS = ("momentum", "nothing", "constant_adam", "linear_adam")


METHODS = ("untuned_exponential", "untuned_linear", "radam")  # the columns of the paper's tables
UNTUNED = tuple(name for name in WARMUPS if name not in TUNED_WARMUPS)
# The paper's ablation: RAdam with something else in place of its momentum steps.
FIRST_STEPS_OF = {f"radam_{rule}": rule for rule in FIRST_STEPS if rule != "momentum"}
# Other ways to hold back the first updates, instead of a warmup.
RIVALS = {"gi_adam": "gradient_init", "stable_adam": "clip_update_rms"}
FIELDS = ("learning_rate", "beta_2", "warmup", "seed")  # the paper's axes
PERIOD, SHARE = TUNED_FLAGS = ("warmup_period", "warmup_share")  # what a tuned warmup is tuned by


@dataclasses.dataclass(frozen=True)
class Point:
    """The hyperparameters of one run: those of the paper's axes, and others by the names of their flags."""

    learning_rate: float
    beta_2: float
    warmup: str
    seed: int
    others: tuple[tuple[str, Any], ...] = ()
    base: tuple[str, ...] = ()  # names in `others` whose value is the one that runs have without the axis

    @property
    def values(self) -> dict[str, Any]:
        """All hyperparameters, in order."""
        return {**{name: getattr(self, name) for name in FIELDS}, **dict(self.others)}

    @property
    def name(self) -> str:
        """The name of its folder, which is unique and stays the same when an axis is added.

        >>> Point(1e-3, 0.99, "radam", 2).name
        'rate-0.001_beta-0.99_radam_seed-2'
        >>> Point(1e-3, 0.99, "linear", 2, (("warmup_period", 30.0), ("model", "a/b"))).name
        'rate-0.001_beta-0.99_linear_seed-2_warmup_period-30.0_model-a%2Fb'
        """
        parts = [f"rate-{self.learning_rate!r}", f"beta-{self.beta_2!r}", self.warmup, f"seed-{self.seed}"]
        for name, value in self.others:
            if name not in self.base:
                parts.append(f"{name}-{urllib.parse.quote(value, safe='') if isinstance(value, str) else repr(value)}")
        return "_".join(parts)


def method_flags(method: str) -> dict[str, Any]:
    """The flags of a run with a method of a sweep.

    >>> method_flags("none"), method_flags("radam_nothing")
    ({'warmup': 'none'}, {'warmup': 'radam', 'first_steps': 'nothing'})
    >>> method_flags("gi_adam")
    {'warmup': 'none', 'gradient_init': True}
    """
    if method in RIVALS:
        return {"warmup": "none", RIVALS[method]: True}
    if method in FIRST_STEPS_OF:
        return {"warmup": "radam", "first_steps": FIRST_STEPS_OF[method]}
    return {"warmup": method}


def method_label(values: Mapping[str, Any]) -> str:
    """The method of a run, with the period of a tuned warmup, or its share: the column of the run in the tables.

    >>> method_label({"warmup": "radam"}), method_label({"warmup": "linear", "warmup_period": 30.0})
    ('radam', 'linear 30')
    >>> method_label({"warmup": "linear", "warmup_share": 0.07})
    'linear 7 %'
    """
    tuned = [tuned_text(name, values[name]) for name in TUNED_FLAGS if values.get(name) is not None]
    return " ".join([str(values["warmup"]), *tuned])


def tuned_text(name: str, value: float) -> str:
    """A period, or a share in %, with all digits: two of them must not share a column."""
    return f"{value:.15g}" if name == PERIOD else f"{100 * value:.15g} %"


@dataclasses.dataclass(frozen=True)
class Style:
    """How a warmup is drawn in every figure. Colours also differ in lightness, and lines in their dashes."""

    label: str
    colour: str
    dash: str


STYLES = {
    "none": Style("No warmup", "#8A8A8A", "-."),
    "linear": Style("Linear", "#56B4E9", "-"),
    "exponential": Style("Exponential", "#E69F00", "--"),
    "untuned_linear": Style("Untuned linear", "#0072B2", "-"),
    "untuned_exponential": Style("Untuned exponential", "#D55E00", "--"),
    "radam": Style("RAdam", "#1B1B1B", ":"),
    "root": Style("Root", "#009E73", "-"),
    "dynamic": Style("Dynamic", "#CC79A7", "-"),
}
# RAdam with other rules for its first four steps, by their names in a sweep.
VARIANTS = {
    "radam_nothing": Style("RAdam (nothing first)", "#CC79A7", "-."),
    "radam_constant_adam": Style("RAdam (constant Adam first)", "#009E73", "--"),
    "radam_linear_adam": Style("RAdam (linear Adam first)", "#56B4E9", "-"),
}
# Other methods that limit the first updates, by their names in a sweep.
RIVAL_STYLES = {
    "gi_adam": Style("GI-Adam", "#009E73", ":"),
    "stable_adam": Style("StableAdamW", "#E69F00", ":"),
}
# The methods that the paper compares, in the order of legends.
DRAWN = ("untuned_linear", "untuned_exponential", "radam")

# A method that is in none of these tables.
UNKNOWN_STYLE = Style("", "#7A4FA3", "-")


def style_of(method: str) -> Style:
    """The style of any method that a sweep may compare, including unknown ones."""
    return {**STYLES, **VARIANTS, **RIVAL_STYLES}.get(method, dataclasses.replace(UNKNOWN_STYLE, label=method))


def label_of(name: str) -> str:
    """What a page calls an axis of a sweep, or a method.

    >>> label_of("beta_2"), label_of("radam"), label_of("mine")
    ('β₂', 'RAdam', 'mine')
    """
    return {"learning_rate": "learning rate", "beta_2": "β₂"}.get(name) or style_of(name).label


def method_title(method: str) -> str:
    """
    >>> method_title("untuned_linear"), method_title("gi_adam")
    ('untuned linear', 'GI-Adam')
    """
    label = style_of(method).label
    return label if "Adam" in label else label[0].lower() + label[1:]
