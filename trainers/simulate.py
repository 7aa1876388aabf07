"""Simulates Adam's updates at a local minimum, where gradients are pure noise, and draws how large they are.

python -m trainers.simulate --output_dir=runs/simulation
"""

import dataclasses

from tfwarmup import FIRST_STEPS, WARMUPS
from tfwarmup.analysis.simulation import Magnitudes, simulate_updates
from trainers.engine.config import ConfigError, Settings, option
from trainers.engine.program import run_program
from trainers.engine.records import RunFolder
from trainers.engine.warmups import WARMUP_FLAGS, flags_warmup
from trainers.figures.magnitudes import draw_magnitudes


@dataclasses.dataclass(frozen=True)
class SimulationConfig(Settings):
    """The defaults are the paper's."""

    parameters: int = option(25_000, "Parameters, each with gradients of its own.")
    iterations: int = option(1000, "Updates of each parameter.")
    variance: float = option(1e-9, "Variance of the gradients.")
    beta_1: float = option(0.9, "Discount of the first moment.")
    beta_2: float = option(0.999, "Discount of the second moment.")
    epsilon: float = option(0.0, "Epsilon of Adam.")
    warmup: str = option("none", "Warmup; radam is RAdam itself.", tuple(WARMUPS))
    warmup_period: float | None = option(None, "Period of --warmup=linear and exponential, in updates.")
    first_steps: str = option("momentum", "What RAdam does while rho_t <= 4.", FIRST_STEPS)
    seed: int = option(1, "Seed of the gradients.")


def simulate(config: SimulationConfig) -> str:
    """Writes update_magnitudes.csv, .svg and .png, and returns the paper's findings beside these."""
    folder = RunFolder(config, "simulate")
    try:
        rule = flags_warmup(config.warmup, config.warmup_period, config.first_steps)
        numbers = {name: value for name, value in config.identity().items() if name not in WARMUP_FLAGS}
        magnitudes = simulate_updates(**numbers, warmup=rule)
    except ValueError as error:  # the library's own words
        raise ConfigError(str(error)) from error
    with folder.working():
        draw_magnitudes(folder.path, magnitudes, config.warmup)
    return "\n".join([*_findings(magnitudes), f"written: {folder.path}/update_magnitudes.csv, .svg, .png"])


def _findings(magnitudes: Magnitudes) -> list[str]:
    """This simulation's numbers, then those of the paper's, which has no warmup."""
    median, second_half = magnitudes.median, magnitudes.median[len(magnitudes.t) // 2 :]
    lines = [f"first update: {magnitudes.q05[0]:.4g} to {magnitudes.q95[0]:.4g} alpha (paper: 1 for every parameter)"]
    if len(median) >= 40:
        lines.append(f"iteration 40: median {median[39]:.4f} alpha (paper: about 0.16 from here on)")
    return [*lines, f"second half: median {second_half.mean():.4f} alpha (paper: 0.153 in the long run)"]


if __name__ == "__main__":
    run_program(SimulationConfig, simulate)
