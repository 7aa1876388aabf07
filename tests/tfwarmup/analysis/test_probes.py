import csv
import itertools
import math
import threading

import keras
import numpy as np
import pytest
from keras import layers

import tfwarmup
from tests.tfwarmup.helpers import (
    BACKEND,
    KERAS,
    Batches,
    _update_function,
    all_state,
    gradient_by_hand,
    noisy_model,
    numpy,
    of_keras,
    random_gradients,
    replica_loss,
    small_data,
    small_model,
    squared_error,
    trajectory,
    weights,
)
from tfwarmup import probes
from tfwarmup.analysis.applied import check_moments, moments, second_moments
from tfwarmup.analysis.gradients import fresh_batches, sampled_gradients
from tfwarmup.compat import step_counter, unwrapped, updates_made

RATE = 1e-3
GRADIENTS = random_gradients(60)
# Where it does not matter how a step runs: to trace one takes TensorFlow a second.
QUICK = {"run_eagerly": BACKEND == "tensorflow"}
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(RATE, epsilon=1e-3),
    "adamw": lambda: keras.optimizers.AdamW(RATE, weight_decay=0.0, beta_2=0.98),
    "amsgrad": lambda: keras.optimizers.Adam(RATE, beta_2=0.5, amsgrad=True),
    "nadam": lambda: keras.optimizers.Nadam(RATE, epsilon=1e-3),
    "schedule": lambda: keras.optimizers.Adam(tfwarmup.UntunedLinearWarmup(RATE, 0.999)),
    "paper": lambda: tfwarmup.Adam(RATE, epsilon=1e-3),
    "warmup": lambda: tfwarmup.Adam(RATE, beta_1=0.0, warmup="untuned_exponential"),
    "our schedule": lambda: tfwarmup.Adam(tfwarmup.LinearWarmup(RATE, 20)),
    "radam": lambda: tfwarmup.RAdam(RATE, epsilon=1e-3),
    "ablation": lambda: tfwarmup.RAdam(RATE, first_steps="linear_adam"),
    "loss scale": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(RATE), initial_scale=1.0),
    "accumulation": lambda: tfwarmup.Adam(RATE, warmup="untuned_linear", gradient_accumulation_steps=3),
    "accumulated schedule": lambda: tfwarmup.warm_up(keras.optimizers.Adam(RATE, gradient_accumulation_steps=3)),
}


def first_moment(optimizer):
    return numpy(moments(optimizer)[0][0])


def magnitudes(optimizer, m_before=None):
    return probes.update_magnitudes(optimizer, first_moment(optimizer), numpy(second_moments(optimizer)[0]), m_before)


def updated(optimizer, updates):
    """The optimizer after `updates` updates, what the weights did in the last, in units of alpha, and its rounding."""
    *_, last = history_of(optimizer, updates)
    return optimizer, *last[:2]


def history_of(optimizer, updates):
    """After each update: what the weights did, how exactly float32 tells, and the first moments before it."""
    variable = keras.Variable(np.zeros(40, "float32"))
    optimizer.build([variable])
    update = _update_function(optimizer, variable)
    steps = unwrapped(optimizer).gradient_accumulation_steps or 1
    for gradients in GRADIENTS[: updates * steps].reshape(updates, steps, -1):
        theta, m_before = numpy(variable).astype("float64"), first_moment(optimizer)
        for gradient in gradients:
            update(keras.ops.convert_to_tensor(gradient))
        ulp = np.spacing(np.abs(numpy(variable)).max())
        yield np.abs(numpy(variable) - theta) / RATE, ulp / RATE, m_before


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_update_magnitudes_are_what_the_weights_did(name):
    optimizer = OPTIMIZERS[name]()
    for t, (moved, error, m_before) in enumerate(history_of(optimizer, 12), 1):
        assert updates_made(optimizer) == t
        before = m_before if name == "nadam" else None
        np.testing.assert_allclose(magnitudes(optimizer, before), moved, rtol=3e-6, atol=error)


WRONG = [("adam", "paper"), ("paper", "adam"), ("paper", "radam"), ("amsgrad", "adam")]


@pytest.mark.parametrize(("right", "wrong"), WRONG)
def test_update_magnitudes_of_a_wrong_formula_or_second_moment_are_not(right, wrong):
    optimizer, moved, _ = updated(OPTIMIZERS[right](), 12)
    m, v = (numpy(x[0]) for x in moments(optimizer))  # not the largest v, which AMSGrad needs
    other = OPTIMIZERS[wrong]()
    other.build([keras.Variable(np.zeros(40, "float32"))])
    assert np.abs(probes.update_magnitudes(other, m, v, t=12) / moved - 1).max() > 0.1


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 0.02), ("bfloat16", 0.02)])
def test_update_magnitudes_of_keras_adam_in_half_precision_are_as_wrong_as_it_is(dtype, tolerance):
    optimizer = keras.optimizers.Adam(0.125)
    values = trajectory(optimizer, np.ones((1, 3), "float32"), dtype=dtype)
    m, v = (numpy(keras.ops.cast(x[0], "float32")) for x in moments(optimizer))
    # 0.999 is 1 in bfloat16: no update at all.
    np.testing.assert_allclose(probes.update_magnitudes(optimizer, m, v), -values[0] / 0.125, rtol=tolerance)


def test_a_schedule_of_another_beta_2_than_its_optimizers_is_noticed():
    model = small_model(keras.optimizers.AdamW(tfwarmup.UntunedLinearWarmup(RATE, 0.999), beta_2=0.9), **QUICK)
    with pytest.warns(UserWarning, match=r"must have the `beta_2` of its optimizer, 0.9. Received: UntunedLinear"):
        model.fit(*small_data(), callbacks=[probes.RateProbe()], verbose=0)


def test_applied_rate_is_zero_before_the_first_update():
    assert probes.applied_rate(tfwarmup.RAdam(RATE)) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "updates", "rate", "factor"),
    [
        ("adam", 3, RATE, 1.0),
        ("schedule", 3, RATE * 3 / 2000, 3 / 2000),
        ("warmup", 3, -math.expm1(-3e-3) * RATE, -math.expm1(-3e-3)),
        ("our schedule", 3, RATE * 3 / 20, 3 / 20),
        ("radam", 3, RATE, 0.0),
        ("radam", 12, RATE * tfwarmup.factors.radam(12, 0.999), tfwarmup.factors.radam(12, 0.999)),
        ("loss scale", 3, RATE, 1.0),
        ("accumulation", 3, RATE * 3 / 2000, 3 / 2000),
        ("accumulated schedule", 3, RATE * 3 / 2000, 3 / 2000),
    ],
)
def test_applied_rate_is_that_of_the_last_update(name, updates, rate, factor):
    optimizer = OPTIMIZERS[name]()
    inner = unwrapped(optimizer)
    step_counter(inner).assign(updates * (inner.gradient_accumulation_steps or 1))
    assert probes.applied_rate(optimizer) == pytest.approx((updates, rate, factor), rel=1e-6)


@pytest.mark.parametrize("steps", [None, 2])
def test_applied_rate_of_a_decay_is_that_of_kerass_own_step(steps):
    decay = keras.optimizers.schedules.PiecewiseConstantDecay([3], [1.0, 0.1])
    optimizer = keras.optimizers.SGD(decay, gradient_accumulation_steps=steps)
    rates = []
    for _ in range(6):
        optimizer.apply([keras.ops.ones(1)], [optimizer_variable(optimizer)])
        rates.append(round(probes.applied_rate(optimizer).rate, 6))
    assert rates == ([0.0, 1.0, 1.0, 1.0, 1.0, 0.1] if steps else [1.0, 1.0, 1.0, 1.0, 0.1, 0.1])


def optimizer_variable(optimizer):
    return optimizer._trainable_variables[0] if optimizer.built else keras.Variable([0.0])


def test_sample_is_random_without_replacement_and_seeded():
    variables = [keras.Variable(np.zeros((40, 50))), keras.Variable(np.zeros(30)), keras.Variable(np.zeros((2, 3)))]
    sample = probes.ParameterSample(variables)
    assert [v.shape for v in sample.variables] == [(40, 50), (2, 3)]
    assert [len(np.unique(index)) for index in sample.indices] == [500, 6]
    without_matrices = probes.ParameterSample([keras.Variable(np.zeros(7)), keras.Variable(0.0)])
    assert [len(index) for index in without_matrices.indices] == [7, 1]
    same, other = probes.ParameterSample(variables, seed=0), probes.ParameterSample(variables, seed=1)
    np.testing.assert_array_equal(same.indices[0], sample.indices[0])
    assert len(np.intersect1d(other.indices[0], sample.indices[0])) < 200
    values = [np.random.default_rng(0).normal(size=v.shape).astype("float32") for v in sample.variables]
    expected = np.concatenate([value.ravel()[index] for value, index in zip(values, sample.indices, strict=True)])
    np.testing.assert_array_equal(sample.gather(values), expected)
    np.testing.assert_array_equal(sample.reader([keras.Variable(value) for value in values])(), [expected])


@pytest.mark.once
def test_statistics_of_nothing_and_of_constants_are_nan():
    assert math.isnan(probes.quantiles([np.nan])["median"])
    assert math.isnan(probes.correlation([1.0, 1.0], [1.0, 4.0]))
    assert probes.quantiles([np.nan, 1.0, 3.0])["median"] == 2.0
    np.testing.assert_array_equal(probes.coefficient_of_variation([[1.0, -1.0], [1.0, 1.0]]), [0.0, np.inf])
    assert probes.quantiles([0.0, np.inf, np.inf, np.inf])["q05"] == np.inf


def fit(optimizer, callbacks, batches=6, **kwargs):
    model = small_model(optimizer, **kwargs)
    x, y = small_data(8 * batches)
    return model, model.fit(x, y, batch_size=8, callbacks=callbacks, shuffle=False, verbose=0).history


class WeightRecorder(keras.callbacks.Callback):
    """The entries of the two weight matrices after every batch."""

    def on_train_begin(self, logs=None):
        self.values = [self.now()]

    def on_train_batch_end(self, batch, logs=None):
        self.values.append(self.now())

    def now(self):
        return np.concatenate([np.ravel(w) for w in self.model.get_weights() if w.ndim == 2])


@pytest.mark.parametrize("name", ["nadam", "radam"])
def test_update_probe_in_fit_sees_what_the_weights_did(name):
    probe, recorder = probes.UpdateProbe(), WeightRecorder()
    fit(OPTIMIZERS[name](), [probe, recorder])
    moved = np.abs(np.diff(recorder.values, axis=0)) / RATE
    assert probe.history["t"] == [1, 2, 3, 4, 5, 6]
    for name, quantile in probes.QUANTILES.items():
        expected = np.quantile(moved, quantile, axis=1)
        np.testing.assert_allclose(probe.history[f"update_{name}"], expected, rtol=1e-3, atol=2e-4)


def test_an_execution_of_several_steps_is_measured_at_the_last_and_accumulated_batches_are_not():
    if BACKEND != "torch":  # Keras on torch has no steps_per_execution
        alone, together = probes.all_probes(), probes.all_probes()
        fit(tfwarmup.RAdam(RATE), alone)
        fit(tfwarmup.RAdam(RATE), together, steps_per_execution=3)
        assert together[0].history["t"] == [3, 6]
        for one, other in zip(alone, together, strict=True):
            for name in other.history:
                np.testing.assert_allclose(other.history[name], one.history[name][2::3], rtol=1e-4)
        with pytest.raises(ValueError, match="`steps_per_execution` must be 1. Received: steps_per_execution=2"):
            fit(keras.optimizers.Nadam(RATE), [probes.UpdateProbe()], steps_per_execution=2)
    probe = probes.UpdateProbe()
    fit(tfwarmup.Adam(RATE, epsilon=0.0, gradient_accumulation_steps=3), [probe], **QUICK)
    assert probe.history["t"] == [1, 2]
    assert probe.history["update_q95"][0] == pytest.approx(1, rel=1e-5)


def test_skipped_steps_are_not_measured():
    rates = [probes.RateProbe(), probes.MomentProbe()]
    optimizer = keras.optimizers.LossScaleOptimizer(tfwarmup.Adam(RATE), initial_scale=2.0**127)
    model, history = fit(optimizer, rates, batches=12, loss=squared_error(64.0), **QUICK)
    updates = updates_made(model.optimizer)
    assert 0 < updates < 12
    assert rates[0].history["t"] == rates[1].history["t"] == list(range(1, updates + 1))
    assert history["learning_rate_applied"] == [pytest.approx(RATE)]


def test_updates_are_measured_when_they_are_due_and_a_second_fit_starts_a_new_history():
    watching = [probes.RateProbe(every=every) for every in (1, 3, "log")]
    model, _ = fit(keras.optimizers.SGD(RATE), watching, batches=7, **QUICK)
    assert [probe.history["t"] for probe in watching] == [[1, 2, 3, 4, 5, 6, 7], [1, 3, 6], [1, 2, 3, 4, 5, 6]]
    history = model.fit(*small_data(24), batch_size=8, epochs=2, callbacks=watching[1:], verbose=0).history
    assert [probe.history["t"] for probe in watching[1:]] == [[9, 12], [8, 10, 13]]
    assert history["rate_t"] == [10, 13]
    late = probes.RateProbe(every=17)
    history = model.fit(*small_data(24), batch_size=8, epochs=2, callbacks=[late], verbose=0).history
    np.testing.assert_array_equal(history["rate_t"], [math.nan, 17])  # before the first measurement


@pytest.mark.once
def test_log_spaced_is_ten_a_decade():
    t, due = 0, []
    while t < 1000:
        t = probes.due_after(t, "log")
        due.append(t)
    assert due[:12] == [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25]
    assert due[-11:] == [100, 126, 158, 200, 251, 316, 398, 501, 631, 794, 1000]


def test_model_that_is_built_by_its_first_step_is_measured():
    model = keras.Sequential([layers.Dense(3), layers.Dense(1)])
    model.compile(keras.optimizers.Nadam(RATE), "mse")
    watching = probes.all_probes(small_data(), 2, batch_size=8)
    model.fit(*small_data(16), batch_size=8, callbacks=watching, verbose=0)
    assert [probe.history["t"] for probe in watching] == [[1, 2]] * 4


def test_epochs_tell_which_update_their_values_were_measured_at(tmp_path):
    watching = probes.all_probes(small_data(), 2, batch_size=8, every="log")
    model = small_model(tfwarmup.RAdam(RATE))
    logger = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    history = model.fit(*small_data(40), batch_size=8, epochs=5, callbacks=[*watching, logger], verbose=0).history
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    for probe, name in zip(watching, ("rate_t", "update_t", "moment_t", "gradient_cv_t"), strict=True):
        assert history[name] == [5, 10, 13, 20, 25]  # epochs end at 5, 10, 15, ...; 13, 16, 20 and 25 are measured
        assert [int(row[name]) for row in rows] == history[name]
        for value in probe.names:
            measured = dict(zip(probe.history["t"], probe.history[value], strict=True))
            assert history[value] == [measured[t] for t in history[name]]


@pytest.mark.skipif(BACKEND != "tensorflow", reason="Keras' TensorBoard callback needs TensorFlow")
def test_logs_reach_tensorboard(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    probe = probes.UpdateProbe(every=3)
    board = keras.callbacks.TensorBoard(tmp_path, update_freq="batch", write_graph=False)
    fit(tfwarmup.Adam(RATE), [probe, board], **QUICK)
    events = accumulator.EventAccumulator(str(tmp_path / "train"), {"tensors": 0}).Reload()
    steps = [event.step for event in events.Tensors("batch_update_median")]
    assert steps == ([1, 3, 6] if KERAS >= (3, 7) else [0, 0, 0])  # before, Keras does not count its batches here
    assert "epoch_update_median" in events.Tags()["tensors"]


def test_training_is_bit_identical_with_and_without_probes():
    def trained(callbacks):
        model = noisy_model(tfwarmup.RAdam(1e-2))
        history = model.fit(*small_data(40), batch_size=8, epochs=2, callbacks=callbacks, verbose=0)
        return all_state(model), history.history

    plain, history = trained([])
    probed, probed_history = trained(probes.all_probes(small_data(), 3, batch_size=8))
    for one, other in zip(plain, probed, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {name: probed_history[name] for name in history} == history


def source(kind, batches):
    if kind == "dataset":
        import tensorflow as tf

        return tf.data.Dataset.from_generator(
            lambda: iter(batches), output_signature=(tf.TensorSpec((8, 3)), tf.TensorSpec((8, 1)))
        )
    return {"list": batches, "function": lambda: iter(batches), "py_dataset": Batches(batches)}[kind]


def test_gradient_variation_equals_separate_backward_passes():
    x, y = small_data(48)
    batches = [(x[i : i + 8], y[i : i + 8]) for i in range(0, 48, 8)]
    kinds = ["list", "function", "py_dataset", *(["dataset"] if BACKEND == "tensorflow" else [])]
    watching = [probes.GradientProbe(source(kind, batches), 6, every=4) for kind in kinds]
    model, _ = fit(keras.optimizers.SGD(0.0), watching, batches=4)
    gradients = [gradient_by_hand(model, *batch) for batch in batches]
    expected = probes.quantiles(np.std(gradients, axis=0, ddof=1) / np.abs(np.mean(gradients, axis=0)))
    for probe in watching:
        assert probe.history["t"] == [1, 4]
        for name, value in expected.items():
            np.testing.assert_allclose(probe.history[f"gradient_cv_{name}"], [value] * 2, rtol=1e-5)


def test_rows_of_arrays_are_drawn_anew_for_every_measurement():
    probe = probes.GradientProbe(small_data(64), 4, batch_size=8)
    fit(keras.optimizers.SGD(0.0), [probe], batches=3, **QUICK)
    assert len(set(probe.history["gradient_cv_median"])) == 3


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_dropout_masks_are_drawn_anew_for_every_batch(dropout):
    model = keras.Sequential([keras.Input((3,)), layers.Dropout(dropout), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    gradients = sampled_gradients(model, probes.ParameterSample(model.trainable_variables), seed=0)
    (batch,) = itertools.islice(fresh_batches([small_data(8)], None, seed=0), 1)
    variation = probes.coefficient_of_variation([gradients(batch) for _ in range(4)])
    assert (variation > 0.01).all() == (dropout > 0)


def test_gradients_are_those_of_a_training_step():
    """Embedding, batch normalisation, both kinds of regulariser, sample weights: SGD(1) takes them off the weights."""
    keras.utils.set_random_seed(4)
    tokens = keras.Input((5,), dtype="int32")
    x = layers.Flatten()(layers.Embedding(7, 2, embeddings_regularizer="l2")(tokens))
    x = layers.BatchNormalization()(layers.Dense(4, activity_regularizer="l2")(x))
    model = keras.Model(tokens, layers.Dense(1, name="out")(x))
    model.compile(keras.optimizers.SGD(1.0), "mse")
    generator = np.random.default_rng(0)
    batch = (generator.integers(0, 7, (8, 5)), generator.normal(size=(8, 1)), generator.random(8))
    sample = probes.ParameterSample(model.trainable_variables)
    before = sample.gather(sample.variables)
    gradients = sampled_gradients(model, sample, seed=0)(tuple(map(keras.ops.convert_to_tensor, batch)))
    model.train_on_batch(*batch)
    np.testing.assert_allclose(gradients, before - sample.gather(sample.variables), rtol=1e-4, atol=1e-6)


def test_gradients_in_mixed_precision_do_not_underflow():
    x, y = small_data(32)
    source = [(x[i : i + 8] * 1e-4, y[i : i + 8] * 1e-4) for i in range(0, 32, 8)]

    def variation(policy, optimizer, **kwargs):
        keras.config.set_dtype_policy(policy)
        try:
            model = small_model(optimizer, **kwargs)
            gradients = sampled_gradients(model, probes.ParameterSample(model.trainable_variables), seed=0)
            batches = itertools.islice(fresh_batches(source, None, seed=0), 4)
            return np.median(probes.coefficient_of_variation([gradients(batch) for batch in batches]))
        finally:
            keras.config.set_dtype_policy("float32")

    scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD())
    expected = variation("float32", keras.optimizers.SGD())
    assert variation("mixed_float16", scaled) == pytest.approx(expected, rel=0.02)
    unscaled = variation("mixed_float16", keras.optimizers.SGD(), auto_scale_loss=False)
    assert unscaled != pytest.approx(expected, rel=0.02)


def test_batches_that_overflow_are_left_out():
    x, y = small_data(24)
    batches = [(x[:8], y[:8]), (x[8:16] * np.inf, y[8:16]), (x[16:], y[16:])]
    probe, two = probes.GradientProbe(batches, 3), probes.GradientProbe([batches[0], batches[2]], 2)
    fit(keras.optimizers.SGD(0.0), [probe, two], batches=1, **QUICK)
    assert probe.history == two.history


@pytest.mark.skipif(BACKEND != "tensorflow", reason="TensorFlow's strategies")
def test_probes_under_mirrored_strategy_measure_what_they_do_on_one_device():
    import tensorflow as tf

    def measured(strategy):
        with strategy.scope():
            model = small_model(tfwarmup.reduce_first(tfwarmup.RAdam(RATE)), loss=replica_loss())
        watching = probes.all_probes(small_data(), 3, batch_size=8)
        x, y = small_data(32)
        model.fit(x, y, batch_size=8, callbacks=watching, shuffle=False, verbose=0)
        return {name: values for probe in watching for name, values in probe.history.items()}

    one_device = tf.distribute.ReductionToOneDevice()  # TensorFlow 2.16 has no other way to sum over CPUs in `fit`
    two_replicas = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=one_device)
    one, two = measured(tf.distribute.get_strategy()), measured(two_replicas)
    assert one["t"] == two["t"] == [1, 2, 3, 4]
    for name, values in one.items():
        np.testing.assert_allclose(two[name], values, rtol=1e-3, err_msg=name)


class Thread(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.ident = threading.get_ident()


def test_bare_callback_is_refused_where_keras_would_call_it_from_another_thread():
    thread, probe = Thread(), probes.RateProbe()
    fit(keras.optimizers.SGD(RATE), thread)
    if thread.ident == threading.get_ident():
        fit(keras.optimizers.SGD(RATE), probe)
        assert probe.history["t"] == [1, 2, 3, 4, 5, 6]
    else:
        with pytest.raises(RuntimeError, match="must be a list, .* Received: callbacks=RateProbe"):
            fit(keras.optimizers.SGD(RATE), probe)


@pytest.mark.once
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: probes.UpdateProbe(sample=0), "`sample` must be an integer >= 1. Received: sample=0"),
        (lambda: probes.UpdateProbe(seed=-1), "`seed` must be an integer >= 0. Received: seed=-1"),
        (lambda: probes.RateProbe(every=0), "`every` must be an integer >= 1. Received: every=0"),
        (lambda: probes.RateProbe(every="epoch"), "an integer >= 1 or \"log\". Received: every='epoch'"),
        (lambda: probes.GradientProbe([], k=1), "`k` must be an integer >= 2. Received: k=1"),
        (lambda: probes.GradientProbe(7), "`batches` must be a function .* Received: batches=7"),
        (lambda: probes.GradientProbe(iter([])), "can be started again: .* Received: list_iterator"),
        (lambda: probes.GradientProbe(small_data(9), batch_size=10), "must not exceed the 9 examples. Received: .*10"),
        (
            lambda: probes.GradientProbe((np.zeros(2), np.zeros(3)), batch_size=1),
            r"same length. Received: lengths {2, 3",
        ),
        (lambda: probes.GradientProbe(Batches([]), batch_size=1), "of the same length. Received: Batches"),
        (lambda: probes.ParameterSample([]), "needs a model with trainable weights. Received: none"),
        (lambda: probes.ParameterSample([keras.Variable([0.0])], count=0), "`count` must be an integer >= 1"),
        (lambda: probes.coefficient_of_variation([1.0]), r"\[k, parameters\] with k >= 2. Received: shape=\(1,\)"),
        (lambda: probes.ParameterSample([keras.Variable([0.0])]).gather([np.zeros(2)]), "must be those .* Received:"),
        (lambda: probes.applied_rate(None), "with one learning rate. Received: optimizer=NoneType"),
        (lambda: probes.update_magnitudes(used("adam"), np.zeros(2), np.zeros(3)), "same shape. Received: \\(2,\\)"),
        (lambda: probes.update_magnitudes(tfwarmup.Adam(), 0, 0), "that has made an update. Received: iterations=0"),
        (lambda: magnitudes(used("nadam")), "`m_before` must be given"),
    ],
)
def test_bad_arguments_are_refused_at_once(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def used(name):
    return updated(OPTIMIZERS[name](), 1)[0]


def lamb():
    return keras.optimizers.Lamb(RATE)


def two_optimizers():
    return keras.optimizers.MultiOptimizer(lambda variable: keras.optimizers.Adam())


class OtherAdam(keras.optimizers.Adam):
    def update_step(self, gradient, variable, learning_rate):
        super().update_step(gradient, variable, learning_rate * 2)


@pytest.mark.parametrize(
    ("probe", "optimizer", "message"),
    [
        (
            lambda: probes.UpdateProbe(sample=7),
            keras.optimizers.Adam,
            "must not be larger than any weight matrix, and '.*kernel' has 6 parameters. Received: 7",
        ),
        (
            lambda: probes.GradientProbe([small_data(8)], sample=7),
            keras.optimizers.SGD,
            "and '.*kernel' has 6 parameters. Received: 7",
        ),
        (probes.UpdateProbe, keras.optimizers.SGD, "that of Adam, AdamW or Nadam .* Received: optimizer=SGD"),
        of_keras("Lamb", probes.UpdateProbe, lamb, "that of Adam, AdamW or Nadam .* Received: optimizer=Lamb"),
        of_keras(
            "MultiOptimizer",
            probes.RateProbe,
            two_optimizers,
            "with one learning rate. Received: optimizer=MultiOptimizer",
        ),
        (probes.UpdateProbe, OtherAdam, "that of Adam, AdamW or Nadam .* Received: optimizer=OtherAdam"),
        (
            probes.MomentProbe,
            keras.optimizers.RMSprop,
            "need Adam, AdamW, Nadam or Lamb .* Received: optimizer=RMSprop",
        ),
        (lambda: probes.GradientProbe([]), keras.optimizers.SGD, "at least one batch. Received: list without any"),
        (lambda: probes.GradientProbe(small_data()), keras.optimizers.SGD, "need a `batch_size`. Received: ndarray"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_the_first_step(probe, optimizer, message):
    model = small_model(optimizer())
    before = weights(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*small_data(8), callbacks=[probe()], verbose=0)
    np.testing.assert_array_equal(weights(model), before)


@pytest.mark.parametrize("name", ["inside", "schedule"])
def test_the_rate_that_is_applied_is_in_the_history_the_progress_line_and_later_callbacks(name, capsys):
    schedule = tfwarmup.LinearWarmup(1e-2, 20)
    ours = tfwarmup.Adam(1e-2, warmup="linear", period=20)
    seen = []
    later = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(dict(logs)))
    model = small_model(ours if name == "inside" else keras.optimizers.SGD(schedule))
    options = {"batch_size": 16, "epochs": 2, "verbose": 2}
    history = model.fit(*small_data(), callbacks=[tfwarmup.LogRate(), later], **options).history
    rates = [logs["learning_rate_applied"] for logs in seen]
    assert rates == pytest.approx([1e-2 * t / 20 for t in range(1, 9)], rel=1e-6)
    assert history["learning_rate_applied"] == pytest.approx([2e-3, 4e-3], rel=1e-6)
    assert history["warmup_factor"] == pytest.approx([0.2, 0.4], rel=1e-6)
    assert "learning_rate_applied: 0.0040" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["Nadam", of_keras("Lamb")])
def test_other_optimizers_of_keras_have_moments_too(name):
    check_moments(getattr(keras.optimizers, name)())
