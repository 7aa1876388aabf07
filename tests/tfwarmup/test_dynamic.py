"""The warmup that follows the updates: its rule in numpy, its state, and where it is refused."""

import keras
import numpy as np
import pytest
from keras import ops

import tfwarmup
from tests.tfwarmup.helpers import drift, fit, number, numpy, random_gradients, reloaded, small_model, trajectory
from tfwarmup import probes, warmups
from tfwarmup.optimizers import watching

BETA_2 = 0.98
GRADIENTS = random_gradients(200)


def dynamic(rate=1e-3, **options):
    return tfwarmup.Adam(rate, beta_2=BETA_2, warmup="dynamic", **options)


def reference(gradients, alpha=1e-3, beta_1=0.9, beta_2=BETA_2, epsilon=1e-7):
    """Yields theta and omega_t of each update, in float64."""
    theta, m, v, u = (np.zeros(gradients.shape[1]) for _ in range(4))
    progress = slope = 0.0
    for t, g in enumerate(gradients.astype("float64"), start=1):
        omega = min(1.0, (1 + progress) * (1 - beta_2) / 2)
        cosine = g @ u / np.linalg.norm(g) / np.linalg.norm(u) if t > 1 else 0.0
        slope = beta_1 * slope + (1 - beta_1) * cosine
        progress += max(1.0, progress * (1 - beta_1) / 5) if slope > 0 else 1.0
        m, v = beta_1 * m + (1 - beta_1) * g, beta_2 * v + (1 - beta_2) * g**2
        u = (m / (1 - beta_1**t)) / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
        theta = theta - alpha * omega * u
        yield theta, omega


def factors_of(optimizer, gradients):
    """omega_t of each update, asked before it."""
    variable = keras.Variable(np.zeros(gradients.shape[1], "float32"))
    optimizer.build([variable])
    found = []
    for gradient in gradients:
        found.append(number(optimizer.warmup_factor))
        optimizer.apply([ops.convert_to_tensor(gradient)], [variable])
        assert probes.applied_rate(optimizer).warmup_factor == found[-1]
    return found


def test_updates_and_factors_are_those_of_the_formula():
    expected, omegas = map(np.stack, zip(*reference(GRADIENTS), strict=True))
    assert drift(trajectory(dynamic(), GRADIENTS), expected) < 40
    optimizer = dynamic()
    assert optimizer.warmup_done_at is None
    np.testing.assert_allclose(factors_of(optimizer, GRADIENTS), omegas, rtol=1e-6)
    assert optimizer.warmup_done_at == 1 + np.argmax(omegas == 1) < 100  # where the linear one ends
    linear = trajectory(tfwarmup.Adam(1e-3, beta_2=BETA_2, warmup="untuned_linear"), GRADIENTS)
    assert drift(linear, expected) > 1000
    assert tfwarmup.Adam().warmup_done_at is None


def state(optimizer):
    watch = optimizer._watch
    return np.concatenate([np.ravel(numpy(x)) for x in (watch.progress, watch.update, watch.done_at)])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("beta_2", [0.8, 0.9, 0.95])
def test_the_end_is_where_the_factor_is_one_in_any_precision(beta_2, dtype):
    """2 / (1 - 0.9) is 20.000000000000004 in float64: there the 20th factor would not be 1."""
    first, second = (keras.Variable(np.ones(8), dtype=dtype) for _ in range(2))
    optimizer = tfwarmup.Adam(1e-3, beta_2=beta_2, warmup="dynamic")
    optimizer.build([first, second])
    for t in range(45):  # the second variable never has a gradient
        optimizer.apply([ops.cast(np.full(8, 1 if t % 2 else -1), dtype)], [first])
    assert optimizer.warmup_done_at == round(2 / (1 - beta_2))
    assert (number(optimizer.warmup_factor), optimizer.applied_factor) == (1, 1)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_nothing_is_watched_after_the_end(run_eagerly):
    model = small_model(dynamic(1e-2))
    model.run_eagerly = run_eagerly
    fit(model, 30)
    done_at, last = model.optimizer.warmup_done_at, state(model.optimizer)
    assert done_at < number(model.optimizer.iterations)
    fit(model, 1)
    np.testing.assert_array_equal(state(model.optimizer), last)
    assert (model.optimizer.warmup_done_at, number(model.optimizer.warmup_factor)) == (done_at, 1)
    assert model.optimizer.applied_factor == 1


def test_a_skipped_step_moves_nothing():
    bad = np.full((1, 40), np.inf, "float32")
    # A bad step halves the scale.
    mixed = np.concatenate([GRADIENTS[:5], bad, GRADIENTS[5:10] / 2, bad, bad, GRADIENTS[10:20] / 8])
    scaled = keras.optimizers.LossScaleOptimizer(dynamic(), initial_scale=1.0)
    values = trajectory(scaled, mixed)
    finite = np.isfinite(mixed).all(axis=1)
    plain = dynamic()
    np.testing.assert_array_equal(values[finite], trajectory(plain, GRADIENTS[:20]))
    np.testing.assert_array_equal(state(scaled.inner_optimizer), state(plain))


def test_a_variable_without_a_gradient_is_left_out():
    optimizer, alone = dynamic(), dynamic()
    used, unused = keras.Variable(np.zeros(40, "float32")), keras.Variable(np.ones(7, "float32"))
    optimizer.build([used, unused])
    for gradient in GRADIENTS[:30]:
        optimizer.apply([ops.convert_to_tensor(gradient)], [used])
    np.testing.assert_allclose(numpy(used), trajectory(alone, GRADIENTS[:30])[-1], rtol=1e-5)
    assert number(optimizer.warmup_factor) == number(alone.warmup_factor)


def test_a_sample_of_many_parameters_sees_what_all_do(monkeypatch):
    """The cosine of the sampled gradient and update is that of all to about 1 / sqrt(sample)."""
    generator = np.random.default_rng(0)
    gradients = generator.normal(0.1, 1, (2, 300, 500)).astype("float32")
    cosines = []
    for parameters in (watching.PARAMETERS, gradients[0].size):
        monkeypatch.setattr(watching, "PARAMETERS", parameters)
        optimizer, variable = dynamic(), keras.Variable(np.zeros((300, 500), "float32"))
        optimizer.build([variable])
        optimizer.apply([ops.convert_to_tensor(gradients[0])], [variable])
        update = numpy(optimizer._watch.update)
        seen = gradients[1].ravel()[:: next(iter(optimizer._watch.strides.values()))]
        assert len(seen) == len(update) <= parameters
        cosines.append(seen @ update / np.linalg.norm(seen) / np.linalg.norm(update))
    assert cosines[0] == pytest.approx(cosines[1], abs=3 / np.sqrt(len(update)) + 0.02)


def test_the_sampled_variables_are_spread_evenly_over_all_parameters():
    strides = watching.sampled_strides([100] * 160)
    assert list(strides) == list(range(5, 160, 10))
    assert list(watching.sampled_strides([5, 0, 7])) == [0, 2]
    half = watching.sampled_strides([1000, *[10] * 100])
    assert 0 in half  # a variable with half of the parameters is sampled, and is not all that is
    assert len(half) == 1 + watching.VARIABLES // 2


@pytest.mark.parametrize("epochs", [2, 12])
def test_a_saved_model_goes_on_with_its_state_and_a_restart_forgets_it(epochs, tmp_path):
    model = small_model(dynamic(1e-2))
    fit(model, epochs)
    saved = reloaded(model, tmp_path).optimizer
    np.testing.assert_array_equal(state(saved), state(model.optimizer))
    assert saved.warmup_done_at == model.optimizer.warmup_done_at
    assert number(saved.warmup_factor) == number(model.optimizer.warmup_factor) > 0.05
    tfwarmup.restart_warmup(model)
    assert number(model.optimizer.warmup_factor) == pytest.approx(0.01)
    assert not state(model.optimizer).any()


@pytest.mark.parametrize("options", [{"warmup": "dynamic"}, {"gradient_init": True}, {"clip_update_rms": True}])
def test_accumulated_steps_are_those_of_the_big_batch(options):
    big, accumulated = (
        tfwarmup.Adam(1e-2, beta_2=BETA_2, gradient_accumulation_steps=steps, **options) for steps in (None, 4)
    )
    means = GRADIENTS[:80].reshape(20, 4, -1).mean(axis=1)
    assert drift(trajectory(accumulated, GRADIENTS[:80])[3::4], trajectory(big, means)) < 16
    if "warmup" in options:
        np.testing.assert_allclose(state(accumulated), state(big), atol=1e-4)


@pytest.mark.once
@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda: tfwarmup.warm_up(keras.optimizers.Adam(), "dynamic"), "It is no function of t"),
        (lambda: tfwarmup.effective_warmup_period("dynamic", beta_2=0.9), "Its effective period is not known"),
        (
            lambda: tfwarmup.schedule(1e-3, 10, "dynamic", beta_2=0.9),
            "Its length is not known in advance, so that no decay can wait for it",
        ),
    ],
)
def test_where_updates_are_not_known_it_is_refused_with_what_to_use(call, what):
    message = rf"follows the updates of `tfwarmup.Adam\(rate, warmup='dynamic'\)`. {what}.*: use 'untuned_linear' here"
    with pytest.raises(ValueError, match=message):
        call()


def test_it_can_neither_come_nor_go_in_the_middle_of_training():
    for first, second in (("dynamic", "untuned_linear"), ("untuned_linear", "dynamic")):
        optimizer = tfwarmup.Adam(warmup=first)
        optimizer.build([keras.Variable([0.0])])
        with pytest.raises(ValueError, match="A dynamic warmup must be given before the first update"):
            optimizer.restart_warmup(second)
    with pytest.raises(ValueError, match="has no initial factor. Received: initial=0.5"):
        warmups.Dynamic(initial=0.5)


@pytest.mark.parametrize("warmup", ["dynamic", "untuned_linear"])
def test_an_optimizer_without_variables_can_be_built(warmup):
    optimizer = tfwarmup.Adam(1e-3, warmup=warmup)
    optimizer.build([])
    optimizer.apply([], [])
    assert float(optimizer.warmup_factor) == pytest.approx(1 / 2000, rel=1e-6)
    assert tfwarmup.Adam.from_config(optimizer.get_config()).get_config() == optimizer.get_config()
