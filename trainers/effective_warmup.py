"""Draws the paper's warmup factors, and their effective periods over beta_2.

python -m trainers.effective_warmup --output_dir=runs/warmups
"""

import dataclasses

from tfwarmup import effective_warmup_period
from trainers.engine.config import ConfigError, Settings, option, require
from trainers.engine.program import run_program
from trainers.engine.records import RunFolder
from trainers.figures.look import METHODS, STYLES
from trainers.figures.warmups import draw_effective_periods, draw_factors


@dataclasses.dataclass(frozen=True)
class WarmupConfig(Settings):
    """The defaults are the paper's."""

    beta_2: float = option(0.999, "Discount of the second moment, for the figure of the factors.")
    updates: int = option(5000, "Updates that the figure of the factors shows.")

    def validate(self) -> None:
        super().validate()
        require(self.updates >= 2, "--updates must be an integer >= 2", self.updates)


def draw_warmups(config: WarmupConfig) -> str:
    """Writes factors and effective_warmup, each as .csv, .svg and .png, and returns the effective periods."""
    try:
        periods = {name: effective_warmup_period(name, beta_2=config.beta_2) for name in METHODS}
    except ValueError as error:  # the library's own words
        raise ConfigError(str(error)) from error
    folder = RunFolder(config, "effective_warmup")
    with folder.working():
        draw_factors(folder.path, config.beta_2, config.updates)
        draw_effective_periods(folder.path)
    lines = [f"{STYLES[name].label:<22}{period:12.4f} updates" for name, period in periods.items()]
    written = f"written: {folder.path}/factors and effective_warmup, .csv, .svg, .png"
    return "\n".join([f"effective warmup at beta_2 = {config.beta_2:g}", *lines, written])


if __name__ == "__main__":
    run_program(WarmupConfig, draw_warmups)
