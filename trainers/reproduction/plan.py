"""The two reproductions: every experiment of the paper in minutes, and with enough runs for a verdict."""

from typing import NamedTuple

from trainers.analysis.config import AnalysisConfig
from trainers.figures.config import SimulationConfig, WarmupConfig
from trainers.reproduction.steps import CONFIGS, Step, sweep_step, updates_done

IMAGES, LANGUAGE, TRANSLATION = "image_classification", "language_modeling", "machine_translation"
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


def analysis_step(
    name: str, title: str, seconds: float, arguments: tuple[str, ...], data: dict[str, str] | None = None
) -> Step:
    """A gradient analysis: the paper's figure 1."""
    return Step(
        name,
        title,
        program="trainers.gradient_analysis",
        task="gradient_analysis",
        config_class=AnalysisConfig,
        arguments=(*arguments, "--noprogress"),
        seconds=seconds,
        done=updates_done,
        data=data or {},
    )


COMPUTED = (
    Step(
        name="warmups",
        title="warmup factors and their effective periods",
        program="trainers.effective_warmup",
        task="effective_warmup",
        config_class=WarmupConfig,
        arguments=(),
        seconds=2,
    ),
    Step(
        name="simulation",
        title="Adam's updates at a simulated minimum",
        program="trainers.simulate",
        task="simulate",
        config_class=SimulationConfig,
        arguments=("--iterations=10000",),
        seconds=7,
    ),
    analysis_step(
        "gradients",
        "gradients and updates of a training run",
        12,
        (f"--flagfile={CONFIGS}/embedded/gradient_analysis.flags",),
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
    analysis_step(
        "gradients_emnist",
        "gradients and updates of a training run on EMNIST",
        170,
        (f"--flagfile={CONFIGS}/measured/emnist_analysis.flags", "--measure_every=0"),
        {"data_dir": "emnist"},
    ),
    sweep_step("translation", "a Transformer translator", TRANSLATION, 960, "full/translation"),
    sweep_step(
        "translation_first_steps", "the translator's first steps", TRANSLATION, 600, "full/translation_first_steps"
    ),
    sweep_step("mnist", "beta_2 on MNIST", IMAGES, 800, "full/mnist", data={"data_dir": "mnist"}),
    sweep_step("emnist", "beta_2 on EMNIST", IMAGES, 960, "full/emnist", data={"data_dir": "emnist"}),
    sweep_step("resnet", "a residual network", IMAGES, 760, "full/resnet"),
    sweep_step("digits_tuned", "tuned warmup on digits", IMAGES, 970, "full/digits_tuned", "digits"),
    sweep_step("language_tuned", "tuned warmup, language model", LANGUAGE, 320, "full/language_tuned", "language"),
    sweep_step(
        "translation_tuned", "tuned warmup, translator", TRANSLATION, 1200, "full/translation_tuned", "translation"
    ),
    sweep_step(
        "wikitext2", "a language model of WikiText-2", LANGUAGE, 3500, "full/wikitext2", data={"data_dir": "wikitext-2"}
    ),
    sweep_step("multi30k", "a translator of Multi30k", TRANSLATION, 6300, "full/multi30k", data=MULTI30K),
    sweep_step("imagenette", "photographs", IMAGES, 1600, "full/imagenette", data={"data_dir": "imagenette"}),
)
PLANS = Plans(QUICK, FULL)
