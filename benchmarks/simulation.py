"""Time of the simulation of the paper's figure 2, and of a straightforward numpy loop.

Command: `python -m benchmarks.simulation`.
"""

import numpy as np

from benchmarks.timing import interleaved, milliseconds, print_goals, print_medians, ratio
from tfwarmup.analysis.simulation import simulate_updates

PARAMETERS, QUANTILES = 25_000, (0.05, 0.25, 0.5, 0.75, 0.95)


def plain_loop(iterations, beta_1=0.9, beta_2=0.999):
    """Adam and the quantiles of its updates, written in the obvious way."""
    generator = np.random.default_rng(0)
    m = v = np.zeros(PARAMETERS)
    rows = []
    for t in range(1, iterations + 1):
        gradient = generator.normal(0, np.sqrt(1e-9), PARAMETERS)
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        update = m / (1 - beta_1**t) / np.sqrt(v / (1 - beta_2**t))
        rows.append(np.quantile(np.abs(update), QUANTILES))
    return np.array(rows)


def main():
    ours = {
        count: lambda count=count: milliseconds(lambda: simulate_updates(PARAMETERS, count), 1)
        for count in (1000, 10_000)
    }
    contenders = {
        "plain numpy loop, 1000 iterations": lambda: milliseconds(lambda: plain_loop(1000), 1),
        "simulate_updates, 1000 iterations": ours[1000],
        "simulate_updates, 10,000 iterations": ours[10_000],
    }
    times = interleaved(contenders, rounds=5)
    print_medians(times)
    loop, short, long = contenders
    print(f"  speedup over the loop: {ratio(times, loop, short):.2f}")
    print_goals(
        [
            ("seconds, 25,000 parameters, 1000 iterations", np.median(times[short]) / 1e3, 1.0),
            ("seconds, 25,000 parameters, 10,000 iterations", np.median(times[long]) / 1e3, 8.0),
        ]
    )


if __name__ == "__main__":
    main()
