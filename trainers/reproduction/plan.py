"""The two reproductions: every experiment of the paper in minutes, and with enough runs for a verdict."""

from typing import NamedTuple

from trainers.analysis.config import AnalysisConfig
from trainers.figures.config import SimulationConfig, WarmupConfig
from trainers.reproduction.steps import CONFIGS, Step, sweep_step
from trainers.results.tasks import IMAGES, LANGUAGE, TRANSLATION

MULTI30K = {
    "source": "multi30k/train.en.gz",
    "target": "multi30k/train.de.gz",
    "validation_source": "multi30k/val.en.gz",
    "validation_target": "multi30k/val.de.gz",
}


class Plans(NamedTuple):
    """Steps in the order in which they run. A step in both plans has one folder, to which the full plan adds runs."""

    quick: tuple[Step, ...]
    full: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.name for step in (*self.quick, *self.full)))

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.place for step in (*self.quick, *self.full)))


COMPUTED = (
    Step("warmups", "warmup factors and their effective periods", "effective_warmup", WarmupConfig, 2),
    Step(
        "simulation",
        "Adam's updates at a simulated minimum",
        "simulate",
        SimulationConfig,
        7,
        ("--iterations=10000",),
    ),
    Step(
        "gradients",
        "gradients and updates of a training run",
        "gradient_analysis",
        AnalysisConfig,
        12,
        (f"--flagfile={CONFIGS}/embedded/gradient_analysis.flags", "--noprogress"),
    ),
)
QUICK = (
    *COMPUTED,
    sweep_step("digits", "rates and beta_2 on digits", IMAGES, 233, "digits"),
    sweep_step("resnet", "a residual network", IMAGES, 53, "resnet"),
    sweep_step("language", "a Transformer language model", LANGUAGE, 127, "language"),
    sweep_step("translation", "a Transformer translator", TRANSLATION, 287, "translation"),
    sweep_step("first_steps", "RAdam with other first steps", IMAGES, 33, "first_steps"),
)
# The steps that decide most per minute come first.
FULL = (
    *COMPUTED,
    sweep_step("first_steps", "RAdam with other first steps", IMAGES, 345, "full/first_steps"),
    sweep_step("language", "a Transformer language model", LANGUAGE, 255, "full/language"),
    sweep_step("digits", "rates and beta_2 on digits", IMAGES, 775, "full/digits"),
    Step(
        "gradients_emnist",
        "gradients and updates of a training run on EMNIST",
        "gradient_analysis",
        AnalysisConfig,
        170,
        (f"--flagfile={CONFIGS}/measured/emnist_analysis.flags", "--measure_every=0", "--noprogress"),
        data={"data_dir": "emnist"},
    ),
    sweep_step("translation", "a Transformer translator", TRANSLATION, 960, "full/translation"),
    sweep_step(
        "translation_first_steps", "the translator's first steps", TRANSLATION, 600, "full/translation_first_steps"
    ),
    sweep_step("mnist", "beta_2 on MNIST", IMAGES, 800, "full/mnist", data_dir="mnist"),
    sweep_step("emnist", "beta_2 on EMNIST", IMAGES, 960, "full/emnist", data_dir="emnist"),
    sweep_step("resnet", "a residual network", IMAGES, 760, "full/resnet"),
    sweep_step("digits_tuned", "tuned warmup on digits", IMAGES, 970, "full/digits_tuned", "digits"),
    sweep_step("language_tuned", "tuned warmup, language model", LANGUAGE, 320, "full/language_tuned", "language"),
    sweep_step(
        "translation_tuned", "tuned warmup, translator", TRANSLATION, 1200, "full/translation_tuned", "translation"
    ),
    sweep_step("wikitext2", "a language model of WikiText-2", LANGUAGE, 3500, "full/wikitext2", data_dir="wikitext-2"),
    sweep_step("multi30k", "a translator of Multi30k", TRANSLATION, 6300, "full/multi30k", **MULTI30K),
    sweep_step("imagenette", "photographs", IMAGES, 1600, "full/imagenette", data_dir="imagenette"),
)
PLANS = Plans(QUICK, FULL)
