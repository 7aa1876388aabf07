import itertools
import subprocess
import sys

import keras
import keras_tuner
import numpy as np
import pytest
from keras.optimizers.schedules import CosineDecay

import tfwarmup
from tests.tfwarmup.helpers import BACKEND, random_gradients, small_data, small_model, trajectory, weights
from tfwarmup.tuning import LogRange, warmup_space

RATES, BETAS = (1e-4, 1e-3, 1e-2), (0.99, 0.997, 0.999)
WARMUPS = ("untuned_exponential", "untuned_linear", "radam")


def drawn(values, *args, **kwargs):
    """The optimizer when a tuner has drawn these values."""
    hp = keras_tuner.HyperParameters()
    hp.values.update(values)
    return warmup_space(hp, *args, **kwargs)


def space(*args, **kwargs):
    """The declared hyperparameters, by name."""
    hp = keras_tuner.HyperParameters()
    warmup_space(hp, *args, **kwargs)
    return {parameter.name: parameter for parameter in hp.space}


def hand_made(rate, beta_2, warmup, **options):
    if warmup == "radam":
        return tfwarmup.RAdam(rate, beta_2=beta_2, **options)
    return tfwarmup.Adam(rate, beta_2=beta_2, warmup=warmup, **options)


def test_space_is_the_papers_grid_for_imagenet():
    declared = space()
    assert list(declared) == ["learning_rate", "beta_2", "warmup"]
    assert [tuple(parameter.values) for parameter in declared.values()] == [RATES, BETAS, WARMUPS]
    assert [parameter.ordered for parameter in declared.values()] == [True, True, False]


def test_points_of_the_grid_are_the_hand_made_optimizers_and_differ():
    gradients, theta, ends = random_gradients(updates=7, size=5), np.ones(5), set()
    for rate, beta_2, warmup in itertools.product(RATES[:2], BETAS[1:], WARMUPS):
        optimizer = drawn({"learning_rate": rate, "beta_2": beta_2, "warmup": warmup}, epsilon=1e-8, weight_decay=0.01)
        expected = hand_made(rate, beta_2, warmup, epsilon=1e-8, weight_decay=0.01)
        assert {**optimizer.get_config(), "name": expected.name} == expected.get_config()
        ends.add(trajectory(optimizer, gradients, theta)[-1].tobytes())
    assert len(ends) == 12


def test_a_single_value_is_fixed_and_choices_may_be_of_any_kind():
    declared = space(1e-3, 0.98, "radam")
    assert [type(parameter).__name__ for parameter in declared.values()] == ["Fixed"] * 3
    assert [parameter.value for parameter in declared.values()] == [1e-3, 0.98, "radam"]
    rules = (tfwarmup.warmups.Linear(10, initial=0.1), "untuned_linear")
    declared = space([1, 0.1], np.array([0.9, 0.99], "float64"), iter(rules))
    assert [declared[name].values for name in ("learning_rate", "beta_2")] == [[1.0, 0.1], [0.9, 0.99]]
    assert {type(value) for value in declared["learning_rate"].values + declared["beta_2"].values} == {float}
    assert declared["warmup"].values == ["Linear(period=10.0, initial=0.1)", "untuned_linear"]
    assert drawn({"warmup": "Linear(period=10.0, initial=0.1)"}, warmup=rules).warmup == rules[0]


def test_a_prefix_keeps_two_optimizers_of_one_search_apart():
    hp = keras_tuner.HyperParameters()
    warmup_space(hp, prefix="generator_")
    warmup_space(hp, beta_2=LogRange(0.9, 0.99), prefix="critic_")
    assert [parameter.name for parameter in hp.space] == [
        *("generator_learning_rate", "generator_beta_2", "generator_warmup"),
        *("critic_learning_rate", "critic_one_minus_beta_2", "critic_warmup"),
    ]


def test_ranges_are_even_in_the_logarithm():
    parameter = space(learning_rate=LogRange(1e-4, 1e-2))["learning_rate"]
    assert [parameter.prob_to_value(p) for p in (0, 0.5, 1)] == pytest.approx([1e-4, 1e-3, 1e-2], rel=1e-12)
    assert space(warmup="linear", period=LogRange(10, 1000))["period"].prob_to_value(0.5) == pytest.approx(100)


def test_a_range_of_beta_2_is_even_in_the_logarithm_of_its_distance_from_1():
    parameter = space(beta_2=LogRange(0.9, 0.9999))["one_minus_beta_2"]
    betas = [
        drawn({"one_minus_beta_2": parameter.prob_to_value(p)}, beta_2=LogRange(0.9, 0.9999)).beta_2
        for p in (0, 1 / 3, 1)
    ]
    assert betas == pytest.approx([0.9999, 0.999, 0.9], rel=1e-12)
    # keras-tuner's own "reverse_log" is another thing: half of its draws lie below 0.95.
    reverse = keras_tuner.HyperParameters()
    reverse.Float("beta_2", 0.9, 0.9999, sampling="reverse_log")
    assert reverse.space[0].prob_to_value(0.5) == pytest.approx(0.9513, abs=1e-4)


def test_options_go_to_the_optimizer_and_the_warmup_that_take_them():
    options = {"first_steps": "nothing", "rho_threshold": 5.0, "global_clipnorm": 1.0, "beta_1": 0.8}
    radam, adam = (drawn({"warmup": name}, **options) for name in ("radam", "untuned_linear"))
    assert (radam.first_steps, radam.rho_threshold) == ("nothing", 5.0)
    assert {(each.global_clipnorm, each.beta_1) for each in (radam, adam)} == {(1.0, 0.8)}
    for name in ("linear", "exponential", "none", "radam"):
        optimizer = drawn({"warmup": name}, warmup=("linear", "exponential", "none", "radam"), period=10)
        assert type(optimizer.warmup) is tfwarmup.WARMUPS[name]
    assert drawn({"period": 30.0}, warmup="linear", period=(10, 30)).warmup == tfwarmup.warmups.Linear(30)
    mixed = {"warmup": ("linear", "untuned_linear"), "period": (10, 30)}
    assert drawn({"warmup": "untuned_linear", "period": 30.0}, **mixed).warmup == tfwarmup.warmups.UntunedLinear(0.99)
    assert drawn({}, beta_2=0.5, warmup="untuned_linear").beta_2 == 0.5  # too small for RAdam alone
    optimizer = drawn({"learning_rate": 1e-2}, decay=lambda rate: CosineDecay(rate, 100))
    expected = tfwarmup.Adam(CosineDecay(1e-2, 100), beta_2=0.99, warmup="untuned_exponential")
    assert {**optimizer.get_config(), "name": expected.name} == expected.get_config()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"learning_rate": ()}, "`learning_rate` must have at least one choice. Received: learning_rate=()"),
        ({"learning_rate": (1e-3, 0)}, "`learning_rate` must be a finite number > 0. Received: learning_rate=0"),
        ({"learning_rate": (1, 1.0)}, "`learning_rate` must have choices that differ. Received: learning_rate="),
        ({"beta_2": (0.9, 1.0)}, r"`beta_2` must be a number in \(0, 1\). Received: beta_2=1.0"),
        ({"beta_2": LogRange(0.9, 2)}, r"`beta_2` must be a number in \(0, 1\). Received: beta_2=2"),
        ({"beta_2": LogRange(0.5, 0.9)}, "beta_2 > 0.6: .* Received: beta_2=0.5"),
        ({"beta_2": 0.65, "rho_threshold": 5.0}, "beta_2 > 0.666667: .* Received: beta_2=0.65"),
        ({"warmup": ()}, "`warmup` must have at least one choice. Received: warmup=()"),
        ({"warmup": ("radam", "cosine")}, "`warmup` must be one of .* Received: warmup='cosine'"),
        ({"warmup": ("radam", "radam")}, "`warmup` must have choices that differ. Received: warmup="),
        ({"warmup": "linear"}, "`Linear` needs `period`, or .* Received: period=None"),
        ({"warmup": "exponential", "period": 0}, "`period` must be a finite number > 0. Received: period=0"),
        ({"period": 10}, "`period` is for warmups 'linear' and 'exponential'. Received: period=10"),
        ({"decay": CosineDecay(1e-3, 9)}, "`decay` must be a function that turns a rate into a schedule. Received: "),
    ],
)
def test_bad_choices_are_refused_before_anything_is_declared(arguments, message):
    hp = keras_tuner.HyperParameters()
    with pytest.raises(ValueError, match=message):
        warmup_space(hp, **arguments)
    assert hp.space == []


def test_a_second_warmup_and_a_range_upside_down_are_refused():
    with pytest.raises(ValueError, match="`decay` must be without a warmup: .* Received: UntunedLinearWarmup"):
        drawn({}, decay=lambda rate: tfwarmup.UntunedLinearWarmup(rate, 0.99))
    with pytest.raises(ValueError, match="`low` must be < `high`. Received: low=0.01, high=0.001"):
        LogRange(1e-2, 1e-3)
    with pytest.raises(ValueError, match="`low` must be a finite number > 0. Received: low=0"):
        LogRange(0, 1e-3)


@pytest.mark.once
def test_the_library_imports_neither_keras_tuner_nor_this_module_unasked():
    program = """
import sys, tfwarmup
assert "tfwarmup.tuning" not in sys.modules
import tfwarmup.tuning
assert "keras_tuner" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="keras-tuner's own trials run on TensorFlow")
# keras-tuner 1.4.8 itself
def test_a_search_of_keras_tuner_trains_what_it_drew(tmp_path):
    trained = {}

    class Kept(keras_tuner.HyperModel):
        def build(self, hp):
            return small_model(warmup_space(hp))

        def fit(self, hp, model, *args, **kwargs):
            history = super().fit(hp, model, *args, **kwargs)
            trained[tuple(hp.values.values())] = weights(model)
            return history

    tuner = keras_tuner.RandomSearch(Kept(), "loss", max_trials=2, seed=3, directory=tmp_path, project_name="search")
    x, y = small_data()
    tuner.search(x, y, epochs=1, shuffle=False, verbose=0)
    assert [trial.status for trial in tuner.oracle.trials.values()] == ["COMPLETED"] * 2
    assert len(trained) == 2
    for point, result in trained.items():
        keras.backend.clear_session()
        model = small_model(hand_made(*point))
        model.fit(x, y, epochs=1, shuffle=False, verbose=0)
        np.testing.assert_allclose(result, weights(model), rtol=1e-6)
