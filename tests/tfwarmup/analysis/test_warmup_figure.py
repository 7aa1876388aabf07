"""Pictures of learning rates."""

import keras
import numpy as np
import pytest

import tfwarmup
from tests.tfwarmup.helpers import fit, small_model
from tfwarmup import warmups

pytest.importorskip("matplotlib")
COSINE = keras.optimizers.schedules.CosineDecay(1e-3, 100)
RATES = {
    "our Adam": (lambda: tfwarmup.Adam(1e-3, warmup="linear", period=40), lambda t: 1e-3 * np.minimum(t / 40, 1)),
    "a schedule": (lambda: tfwarmup.LinearWarmup(1e-3, 40), lambda t: 1e-3 * np.minimum(t / 40, 1)),
    "a decay": (lambda: COSINE, lambda t: 0.5e-3 * (1 + np.cos(np.pi * (t - 1) / 100))),
    "Keras' optimizer": (lambda: keras.optimizers.SGD(1e-3), lambda t: np.full(len(t), 1e-3)),
    "micro-batches": (
        lambda: tfwarmup.warm_up(keras.optimizers.Adam(1e-3, gradient_accumulation_steps=4), "linear", period=40),
        lambda t: 1e-3 * np.minimum(t / 40, 1),
    ),
    "loss scale": (
        lambda: keras.optimizers.LossScaleOptimizer(tfwarmup.RAdam(1e-3, first_steps="nothing")),
        lambda t: 1e-3 * warmups.Rectified(0.999)(t),
    ),
}


@pytest.mark.parametrize("name", RATES)
def test_a_line_has_the_rate_of_every_update(name):
    make, expected = RATES[name]
    [axes] = tfwarmup.plot(make(), updates=100).axes
    [line] = axes.lines
    t, values = line.get_data()
    np.testing.assert_array_equal(t, np.arange(1, 101))
    np.testing.assert_allclose(values, expected(t), rtol=1e-6, atol=6e-11)  # a cosine in float32


def test_several_rates_share_a_figure_and_a_long_run_has_500_points(tmp_path):
    figure = tfwarmup.plot({name: make() for name, (make, _) in RATES.items()}, updates=100_000)
    [axes] = figure.axes
    assert [line.get_label() for line in axes.lines] == list(RATES)
    assert {len(line.get_xdata()) for line in axes.lines} == {500}
    assert axes.lines[0].get_xdata()[[0, -1]].tolist() == [1, 100_000]
    figure.savefig(tmp_path / "rates.png")


def test_the_legend_is_beside_the_lines_and_inside_the_figure():
    optimizer = tfwarmup.Adam(1e-3, warmup="untuned_linear", weight_decay=1e-4, global_clipnorm=1.0, beta_2=0.99)
    for rates in (optimizer, {name: make() for name, (make, _) in RATES.items()}):
        figure = tfwarmup.plot(rates, updates=10)
        figure.draw_without_rendering()
        [legend], [axes] = figure.legends, figure.axes
        assert not legend.get_window_extent().overlaps(axes.get_window_extent())
        assert figure.bbox.containsx(legend.get_window_extent().x1)
        assert axes.get_window_extent().height > 0.4 * figure.bbox.height


def test_a_trained_optimizer_is_drawn_from_its_next_update_on():
    model = small_model(tfwarmup.Adam(1e-2, warmup="linear", period=20))
    fit(model, epochs=2)
    [line] = tfwarmup.plot(model.optimizer, updates=4).axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), [1e-2 * t / 20 for t in (9, 10, 11, 12)], rtol=1e-6)


def test_a_rate_that_is_not_known_in_advance_and_a_length_that_is_none_are_refused():
    with pytest.raises(ValueError, match="A dynamic warmup follows the updates of"):
        tfwarmup.plot(tfwarmup.Adam(warmup="dynamic"), updates=10)
    with pytest.raises(ValueError, match="`updates` must be an integer >= 1. Received: updates=0"):
        tfwarmup.plot(COSINE, updates=0)
    for rates, received in (({"constant": 1e-3}, "0.001"), ([tfwarmup.Adam()], r"\[Adam")):
        with pytest.raises(ValueError, match=f"or dict of these. Received: {received}"):
            tfwarmup.plot(rates, updates=10)
