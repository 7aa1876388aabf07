"""The simulation at a local minimum: the paper's numbers, and Adam's equations to float32's last digits."""

import dataclasses
import math

import numpy as np
import pytest

import tfwarmup
from tfwarmup import factors, warmups
from tfwarmup.analysis.simulation import QUANTILES, simulate_updates

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def paper():
    """The paper's own set-up, ten times as long."""
    return simulate_updates(iterations=10_000)


def fields(magnitudes):
    return dataclasses.asdict(magnitudes)


def assert_same(one, other):
    for name, values in fields(one).items():
        np.testing.assert_array_equal(values, fields(other)[name])


def test_every_magnitude_is_one_at_first(paper):
    assert (paper.t[0], paper.q05[0], paper.q95[0], paper.rms[0]) == pytest.approx((1, 1, 1, 1), rel=2e-7)


def test_the_median_is_about_016_from_iteration_40_on(paper):
    settled = paper.median[39:1000]
    assert 0.15 < settled.min() < settled.max() < 0.165
    assert paper.median[:20].min() > 0.165  # and not before


def test_the_stationary_median_is_the_papers(paper):
    stationary = paper.median[5000:].mean()
    assert abs(stationary - 0.153) <= 0.002
    # What it tends to as beta_2 -> 1: the median of |N(0, (1 - beta_1) / (1 + beta_1))|.
    assert abs(stationary - 0.6744898 * math.sqrt(0.1 / 1.9)) < 2e-4


@pytest.mark.parametrize("beta_1", [0.0, 0.9, 0.99])
def test_the_stationary_rms_has_its_limit_as_beta_2_goes_to_one(beta_1):
    limit = math.sqrt((1 - beta_1) / (1 + beta_1))
    distance = []
    for beta_2 in (0.9, 0.99, 0.9999):
        magnitudes = simulate_updates(4000, 3000, beta_1=beta_1, beta_2=beta_2)
        distance.append(abs(magnitudes.rms[1500:].mean() / limit - 1))
    assert distance[2] < 5e-3
    assert beta_1 == 0 or distance[0] > 10 * distance[2]


def adam(gradients, beta_1, beta_2, epsilon, omega, momentum_steps=0):
    """|update| / alpha by equations 2 to 4, in float64."""
    m = v = 0
    for t, gradient in enumerate(gradients.astype("float64"), start=1):
        m = beta_1 * m + (1 - beta_1) * gradient
        v = beta_2 * v + (1 - beta_2) * gradient**2
        update = m / (1 - beta_1**t)
        if t > momentum_steps:
            update = omega(t) * update / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
        yield np.abs(update)


def error_against_adam(magnitudes, gradients, *arguments, **options):
    expected = np.array(list(adam(gradients, *arguments, **options)))
    quantiles = np.quantile(expected, list(QUANTILES.values()), axis=1)
    simulated = np.array([getattr(magnitudes, name) for name in QUANTILES])
    return np.abs(simulated - quantiles).max() / quantiles.max()


CASES = {
    "none": ({}, lambda t: 1.0, 0),
    "linear": ({"warmup": "linear", "period": 7}, lambda t: min(1, t / 7), 0),
    "untuned_exponential": ({"warmup": "untuned_exponential"}, lambda t: 1 - math.exp(-0.01 * t), 0),
    **{
        f"radam, {rule}": (
            {"warmup": warmups.Rectified(first_steps=rule)},
            lambda t, rule=rule: factors.radam(t, 0.99, first_steps=rule),
            4 if rule == "momentum" else 0,
        )
        for rule in tfwarmup.FIRST_STEPS
    },
}


@pytest.mark.parametrize("name", CASES)
def test_the_updates_are_those_of_adams_equations(name):
    options, omega, momentum_steps = CASES[name]
    # What the generator of a small simulation draws, scaled to the variance.
    stream = np.random.default_rng(np.random.SeedSequence(3).spawn(1)[0])
    gradients = 0.5 * stream.standard_normal((60, 500), np.float32)
    magnitudes = simulate_updates(500, 60, variance=0.25, beta_2=0.99, epsilon=0.01, seed=3, **options)
    arguments = (gradients, 0.9, 0.99)
    assert error_against_adam(magnitudes, *arguments, 0.01, omega, momentum_steps=momentum_steps) < 1e-6
    # Epsilon inside the bias correction is another optimizer, and one update more or less another t.
    assert error_against_adam(magnitudes, *arguments, 0.1, omega, momentum_steps=momentum_steps) > 1e-3
    if name != "none":
        assert error_against_adam(magnitudes, *arguments, 0.01, lambda t: omega(t + 1)) > 1e-3


def test_the_variance_does_not_matter():
    ours = simulate_updates(3000, 100)
    for variance in (1.0, 1e-30):
        assert_same(ours, simulate_updates(3000, 100, variance=variance))
    first = warmups.Rectified(first_steps="momentum")
    momentum = [simulate_updates(3000, 4, warmup=first, variance=variance).median for variance in (1.0, 4.0)]
    np.testing.assert_allclose(momentum[1], 2 * momentum[0], rtol=1e-6)  # momentum steps are no Adam


def test_a_seed_gives_the_same_result_whatever_the_threads(monkeypatch):
    ours = simulate_updates(20_000, 70, seed=5)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert_same(ours, simulate_updates(20_000, 70, seed=5))
    assert not np.array_equal(ours.median, simulate_updates(20_000, 70, seed=6).median)


def test_a_longer_simulation_begins_as_a_shorter_one(paper):
    np.testing.assert_array_equal(simulate_updates(iterations=100).median, paper.median[:100])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": 0}, "`parameters` must be an integer >= 1. Received: parameters=0"),
        ({"variance": 0.0}, "`variance` must be a finite number > 0. Received: variance=0.0"),
        ({"beta_2": 1.0}, "`beta_2` must be a number in \\(0, 1\\). Received: beta_2=1.0"),
        ({"epsilon": -1.0}, "`epsilon` must be a finite number >= 0. Received: epsilon=-1.0"),
        ({"period": 10}, "Warmup 'none' takes no `period`"),
        ({"warmup": warmups.UntunedLinear(0.9)}, "must have the `beta_2` of its optimizer, 0.999"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate_updates(**{"parameters": 10, "iterations": 2, **options})
