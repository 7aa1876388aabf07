"""The flags of the programs that only compute and draw. Needs no TensorFlow."""

import dataclasses

from trainers.engine.config import SEED_AT_MOST
from trainers.engine.flags import Settings, option
from trainers.results.methods import FIRST_STEPS, WARMUPS

AT_MOST = 10**7  # so that everything fits into memory


@dataclasses.dataclass(frozen=True)
class SimulationConfig(Settings):
    """Flags of the simulation; the defaults are the paper's."""

    subject = "Simulation"
    trains = False

    parameters: int = option(25_000, "Number of parameters, each with its own gradients.", low=1, high=AT_MOST)
    iterations: int = option(1000, "Number of updates.", low=1, high=AT_MOST)
    variance: float = option(1e-9, "Variance of the gradients.")
    beta_1: float = option(0.9, "Discount of the first moment.")
    beta_2: float = option(0.999, "Discount of the second moment.")
    epsilon: float = option(0.0, "Adam's epsilon.")
    warmup: str = option("none", "Warmup; radam is RAdam itself.", WARMUPS)
    warmup_period: float | None = option(None, "Period of --warmup=linear and exponential, in updates.")
    first_steps: str = option("momentum", "What RAdam does while rho_t <= 4.", FIRST_STEPS)
    seed: int = option(1, "Seed of the gradients.", low=0, high=SEED_AT_MOST)

    def validate(self) -> None:
        super().validate()
        if self.warmup != "radam":
            self.require_default("first_steps", "--warmup=radam", self.warmup)


@dataclasses.dataclass(frozen=True)
class WarmupConfig(Settings):
    """Flags of the warmup figures; the defaults are the paper's."""

    subject = "Figures"
    trains = False

    beta_2: float = option(0.999, "Discount of the second moment, for the figure of the factors.")
    updates: int = option(5000, "Number of updates in the figure of the factors.", low=2, high=AT_MOST)
