"""The flags of the gradient analysis. Needs no TensorFlow."""

import dataclasses
from typing import ClassVar

from trainers.engine.config import BATCH_AT_MOST
from trainers.engine.flags import option
from trainers.results.methods import WARMUPS
from trainers.system.errors import require
from trainers.tasks.images.config import ImageConfig

SAMPLES_AT_MOST = 10**6
OPTIMIZERS = ("adam", "radam", "keras_adam")  # whose updates follow from their moments


@dataclasses.dataclass(frozen=True)
class AnalysisConfig(ImageConfig):
    """The flags of an image classifier, with the paper's values, and those of the measurements."""

    subject = "Measurements"
    fixed_length: ClassVar[str] = "the measured updates are spread over the whole run"

    steps: int | None = option(10_000, "Total number of updates.", low=1)
    batch_size: int = option(
        256, "Examples per update, and per batch that gradients are sampled from.", low=1, high=BATCH_AT_MOST
    )
    weight_decay: float = option(1e-4, "Decoupled weight decay.", low=0)
    warmup: str | None = option("none", "Warmup; radam is RAdam itself.", WARMUPS)
    gradient_samples: int = option(
        256, "Batches whose gradients are compared at each measurement.", low=2, high=SAMPLES_AT_MOST
    )
    sampled_parameters: int | None = option(None, "Parameters sampled per weight matrix; 500, or all if fewer.")
    measure_every: int = option(0, "Updates between two measurements; 0: log-spaced.", low=0)

    def validate(self) -> None:
        super().validate()
        require(self.steps is not None, "--steps must be an integer >= 1", self.steps)
        require(self.model == "mlp", "--model must be mlp here; for other models use tfwarmup.probes", self.model)
        require(
            self.optimizer in OPTIMIZERS, f"--optimizer must be one of {', '.join(OPTIMIZERS)} here", self.optimizer
        )
        require(self.precision == "float32", "--precision must be float32 here", self.precision)
        require(self.strategy in ("auto", "one"), "--strategy must be auto or one here", self.strategy)
        require(self.logical_devices == 1, "--logical_devices must be 1 here", self.logical_devices)
        require(self.accumulate == 1, "--accumulate must be 1 here", self.accumulate)
