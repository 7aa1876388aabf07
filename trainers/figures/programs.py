"""The programs that only compute and draw."""

from tfwarmup import effective_warmup_period
from tfwarmup.analysis.simulation import Magnitudes, simulate_updates
from trainers.engine.folder import RunFolder
from trainers.engine.optimizers import WARMUP_FLAGS, flags_warmup
from trainers.figures.config import SimulationConfig, WarmupConfig
from trainers.figures.paper import draw_effective_periods, draw_factors, draw_magnitudes
from trainers.results.methods import DRAWN, STYLES
from trainers.system.errors import ConfigError


def draw_warmups(config: WarmupConfig) -> str:
    """Writes factors and effective_warmup, each as .csv, .svg, .png and .pdf, and returns the effective periods."""
    try:
        periods = {name: effective_warmup_period(name, beta_2=config.beta_2) for name in DRAWN}
    except ValueError as error:  # with the library's message
        raise ConfigError(str(error)) from error
    folder = RunFolder(config, "effective_warmup")
    with folder.working():
        draw_factors(folder.path, config.beta_2, config.updates)
        draw_effective_periods(folder.path)
    lines = [f"{STYLES[name].label:<22}{period:12.4f} updates" for name, period in periods.items()]
    written = f"written: {folder.path}/factors and effective_warmup, .csv, .svg, .png, .pdf"
    return "\n".join([f"effective warmup at beta_2 = {config.beta_2:g}", *lines, written])


def simulate(config: SimulationConfig) -> str:
    """Writes update_magnitudes.csv, .svg, .png and .pdf, and returns its findings with the paper's."""
    folder = RunFolder(config, "simulate")
    try:
        rule = flags_warmup(config.warmup, config.warmup_period, config.first_steps)
        numbers = {name: value for name, value in config.identity().items() if name not in WARMUP_FLAGS}
        magnitudes = simulate_updates(**numbers, warmup=rule)
    except ValueError as error:  # with the library's message
        raise ConfigError(str(error)) from error
    with folder.working():
        caption = f"One simulation of {config.parameters:,} parameters, seed {config.seed}."
        draw_magnitudes(folder.path, magnitudes, config.warmup, caption)
    return "\n".join([*_findings(magnitudes), f"written: {folder.path}/update_magnitudes.csv, .svg, .png, .pdf"])


def _findings(magnitudes: Magnitudes) -> list[str]:
    """This simulation's numbers, each followed by the paper's, which are without warmup."""
    median, second_half = magnitudes.median, magnitudes.median[len(magnitudes.t) // 2 :]
    lines = [f"first update: {magnitudes.q05[0]:.4g} to {magnitudes.q95[0]:.4g} alpha (paper: 1 for every parameter)"]
    if len(median) >= 40:
        lines.append(f"iteration 40: median {median[39]:.4f} alpha (paper: about 0.16 from here on)")
    return [*lines, f"second half: median {second_half.mean():.4f} alpha (paper: 0.153 in the long run)"]
