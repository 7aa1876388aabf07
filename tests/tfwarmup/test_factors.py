import itertools
import math
from decimal import Decimal
from fractions import Fraction

import keras
import mpmath
import numpy as np
import pytest
from keras import ops

from tests.tfwarmup.helpers import numpy
from tfwarmup import factors

BETAS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.997, 0.998, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999)
TIMES = np.unique(np.concatenate([np.arange(1, 41), np.round(np.logspace(1.6, 9, 120))])).astype("int32")
mpmath.mp.dps = 60


def exact_radam(t, beta_2):
    t, beta_2 = mpmath.mpf(int(t)), mpmath.mpf(beta_2)
    limit = 2 / (1 - beta_2) - 1
    rho = limit - 2 * t * beta_2**t / (1 - beta_2**t)
    if rho <= 4:
        return mpmath.mpf(0)
    return mpmath.sqrt((rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho))


@pytest.fixture(scope="module")
def exact():
    return {beta_2: [exact_radam(t, beta_2) for t in TIMES] for beta_2 in BETAS}


def relative_error(values, exact_values):
    """The largest relative error; a value where the exact one is 0 must be 0."""
    pairs = [(mpmath.mpf(float(value)), truth) for value, truth in zip(values, exact_values, strict=True)]
    if any(truth == 0 and value != 0 for value, truth in pairs):
        return math.inf
    return max(float(abs(value / truth - 1)) for value, truth in pairs if truth)


def textbook_radam_in_float32(t, beta_2):
    t, beta_2 = ops.cast(t, "float32"), ops.convert_to_tensor(beta_2, dtype="float32")
    limit = 2 / (1 - beta_2) - 1
    rho = limit - 2 * t * beta_2**t / (1 - beta_2**t)
    squared = (rho - 4) * (rho - 2) * limit / ((limit - 4) * (limit - 2) * rho)
    return ops.where(rho > 4, ops.sqrt(ops.maximum(squared, 0.0)), 0.0)


@pytest.mark.once
@pytest.mark.parametrize("beta_2", BETAS)
def test_radam_is_exact_in_float64(beta_2, exact):
    assert relative_error(factors.radam(TIMES, beta_2), exact[beta_2]) < 2e-15


@pytest.mark.parametrize("beta_2", BETAS)
def test_radam_is_exact_in_float32_on_this_backend(beta_2, exact):
    omega = factors.radam(ops.convert_to_tensor(TIMES), beta_2)
    assert keras.backend.standardize_dtype(omega.dtype) == "float32"
    assert relative_error(numpy(omega), exact[beta_2]) < 3e-7


def test_textbook_formula_fails_in_float32(exact):
    errors = [relative_error(numpy(textbook_radam_in_float32(TIMES, beta)), exact[beta]) for beta in BETAS]
    assert min(errors) > 1e-6
    assert errors[BETAS.index(0.9999)] > 0.5


@pytest.mark.parametrize("beta_2", BETAS)
def test_momentum_phase_is_the_first_four_updates(beta_2):
    assert factors.momentum_steps(beta_2) == 4
    assert factors.momentum_steps(beta_2, rho_threshold=5.0) == (5 if beta_2 > 0.8 else 6)
    for omega in (factors.radam(TIMES, beta_2), numpy(factors.radam(ops.convert_to_tensor(TIMES), beta_2))):
        assert np.all((omega > 0) == (TIMES > 4))


@pytest.mark.parametrize("beta_2", BETAS)
def test_linear_exponential_and_root_are_exact(beta_2):
    b = mpmath.mpf(beta_2)
    linear = [min(mpmath.mpf(1), (1 - b) / 2 * int(t)) for t in TIMES]
    exponential = [-mpmath.expm1(-(1 - b) * int(t)) for t in TIMES]
    root = [mpmath.sqrt(1 - b ** int(t)) for t in TIMES]
    t = ops.convert_to_tensor(TIMES)
    formulas = ((factors.untuned_linear, linear), (factors.untuned_exponential, exponential), (factors.root, root))
    for factor, truth in formulas:
        assert relative_error(factor(TIMES, beta_2), truth) < 1e-15
        assert relative_error(numpy(factor(t, beta_2)), truth) < 3e-7


@pytest.mark.once
def test_first_steps_are_the_three_rules_of_the_ablation():
    after = factors.radam(5, 0.999)
    t = np.arange(1, 7)
    for rule, before in {
        "nothing": np.zeros(4),
        "momentum": np.zeros(4),
        "constant_adam": np.full(4, after),
        "linear_adam": after * np.arange(1, 5) / 5,
    }.items():
        expected = np.concatenate([before, factors.radam(np.array([5, 6]), 0.999)])
        np.testing.assert_allclose(factors.radam(t, 0.999, first_steps=rule), expected, rtol=1e-15)


@pytest.mark.parametrize("factor", [factors.radam, factors.untuned_linear, factors.untuned_exponential, factors.root])
def test_an_answer_is_of_the_kind_of_the_question(factor):
    number = factor(7, 0.99)
    assert type(number) is float
    array = factor(np.array([[7, 7]]), 0.99)
    assert isinstance(array, np.ndarray)
    assert array.shape == (1, 2)
    for step in (
        ops.convert_to_tensor(7),
        ops.convert_to_tensor(7.0),
        keras.Variable(7, dtype="int32", trainable=False),
    ):
        tensor = factor(step, 0.99)
        assert ops.is_tensor(tensor)
        assert keras.backend.standardize_dtype(tensor.dtype) == "float32"
        np.testing.assert_allclose(numpy(tensor), number, rtol=3e-7)


@pytest.mark.once
def test_rho_is_the_papers():
    assert factors.rho(5, 0.8) == pytest.approx(9 - 10 * 0.8**5 / (1 - 0.8**5), rel=1e-14)
    assert factors.rho(np.array([4, 5]), 0.9999999) == pytest.approx([4, 5], rel=1e-6)
    assert factors.rho(10**9, 0.999) == pytest.approx(factors.rho_inf(0.999), rel=1e-15)
    assert factors.rho(0, 0.999) < 1


@pytest.mark.once
@pytest.mark.parametrize(("beta_2", "rounded"), [(0.999, 1999), (0.98, 99)])
def test_a_rounded_period_is_another_warmup(beta_2, rounded):
    assert int(factors.untuned_linear_period(beta_2)) == rounded
    t = round(factors.untuned_linear_period(beta_2)) // 2
    assert factors.untuned_linear(t, beta_2) == pytest.approx(0.5, rel=1e-14)
    assert abs(factors.linear(t, rounded) - 0.5) > 1e-4


@pytest.mark.once
def test_radam_just_above_the_limit_works():
    steps = factors.momentum_steps(0.61)
    assert factors.rho(steps, 0.61) <= 4 < factors.rho(steps + 1, 0.61)
    assert factors.radam(10**6, 0.61) == pytest.approx(1)


OF_BETA_2 = [factors.untuned_linear, factors.untuned_exponential, factors.radam, factors.rho]
BAD = {  # functions of the argument, what it is not, and the rule
    "beta_2": (
        [lambda x, f=f: f(1, x) for f in OF_BETA_2],
        [0, 1, -0.1, 1.5, math.nan, "0.9", None, True, Decimal("0.999")],
        r"`beta_2` must be a number in \(0, 1\)",
    ),
    "beta_2 of radam": ([lambda x: factors.radam(1, x)], [0.6, 0.1], "never leaves its momentum phase"),
    "period": (
        [lambda x, f=f: f(1, x) for f in (factors.linear, factors.exponential)],
        [0, -1, math.nan, math.inf, "10", None, 10**400, Fraction(1, 10**400), -Fraction(1, 3)],
        "`period` must be a finite number > 0",
    ),
    "rho_threshold": (
        [lambda x: factors.radam(1, 0.999, rho_threshold=x)],
        [3.9, math.nan, None],
        "`rho_threshold` must be a number >= 4",
    ),
    "first_steps": (
        [lambda x: factors.radam(1, 0.999, first_steps=x)],
        ["sgd"],
        "must be one of momentum, nothing, constant_adam, linear_adam",
    ),
    "t": (
        [factors.none, lambda t: factors.linear(t, 10), *(lambda t, f=f: f(t, 0.999) for f in OF_BETA_2)],
        [
            *[-1, -0.5, math.nan, math.inf, 10**400, "5", None, [1, 2], (1,), {}, True, 1j, np.array([1, -1])],
            *[np.array(["1"]), np.array([1, math.nan]), np.float32("inf"), np.array([True])],
        ],
        "`t` must be a finite number >= 0 ",
    ),
}


@pytest.mark.once
@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused(name):
    functions, values, rule = BAD[name]
    for function, value in itertools.product(functions, values):
        with pytest.raises(ValueError, match=f"{rule}.* Received: "):
            function(value)


@pytest.mark.once
def test_real_numbers_of_other_kinds_are_taken():
    for beta_2 in (Fraction(999, 1000), np.float64(0.999)):
        assert factors.untuned_linear(500, beta_2) == factors.untuned_linear(500, 0.999)
