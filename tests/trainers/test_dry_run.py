"""A dry run writes nothing and tells what a run would take: operations and memory follow from the traced graph."""

import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.helpers import BASE
from tests.trainers.tiny import Tiny, TinyConfig
from trainers.engine.dry_run import describe_run, estimate
from trainers.engine.flags import make_config
from trainers.engine.graph_cost import cost_of
from trainers.engine.program import train_task
from trainers.engine.setup import Setup
from trainers.tasks import CONFIGS, load_task


def setup_of(task, **options):
    return Setup(make_config(CONFIGS[task], {"output_dir": "nowhere", **options}), load_task(task))


def test_the_operations_of_the_papers_small_network_are_counted_exactly():
    found = estimate(setup_of("image_classification", batch_size=100))
    layers = [784 * 200, 200 * 100, 100 * 50, 50 * 10]
    # Forward, by the weights, and by the inputs of all but the first layer.
    assert found.flops_per_update == 2 * 100 * (3 * sum(layers) - layers[0])
    assert found.parameters == sum(layers) + 200 + 100 + 50 + 10
    assert found.weight_bytes == 4 * found.parameters
    assert found.optimizer_bytes == pytest.approx(8 * found.parameters, rel=1e-3)


def test_micro_batches_cost_the_same_operations_and_less_memory():
    whole = estimate(setup_of("image_classification", batch_size=512, model="small_resnet"))
    parts = estimate(setup_of("image_classification", batch_size=512, model="small_resnet", accumulate=4))
    assert parts.flops_per_update == whole.flops_per_update
    assert parts.activation_bytes == pytest.approx(whole.activation_bytes / 4, rel=0.1)
    assert parts.gradient_bytes == 2 * whole.gradient_bytes


def test_sizes_that_depend_on_the_words_of_a_batch_are_those_of_the_batch():
    """Every band of the adaptive softmax computes as many words as the batch has there."""
    setup = setup_of(
        "language_modeling",
        batch_size=4,
        context=32,
        layers=1,
        width=16,
        inner=16,
        heads=2,
        cutoffs=(20, 100),
        dropout=0.0,
    )
    batch = next(setup.micro_batches())
    cost = cost_of(lambda inputs, targets, weights: setup.model(inputs), batch)
    words, targets = setup.data.vocabulary.size, batch[1].numpy().ravel()
    inputs = batch[0]["tokens"].numpy().ravel()
    bands = {"head": (0, 20), "first": (20, 100), "second": (100, words)}
    widths = {"head": 16, "first": 4, "second": 1}
    embedding = sum(2 * np.sum((inputs >= a) & (inputs < b)) * widths[name] * 16 for name, (a, b) in bands.items())
    tokens = targets.size
    head = 2 * tokens * 16 * (20 + 2)  # its words, and a class for each further band
    tails = sum(
        2 * np.sum((targets >= a) & (targets < b)) * (16 * widths[name] + widths[name] * (b - a))
        for name, (a, b) in list(bands.items())[1:]
    )
    attention = 4 * 2 * tokens * 16 * 16 + 2 * 2 * tokens * 32 * 16
    dense = 2 * 2 * tokens * 16 * 16
    assert cost.flops == embedding + head + tails + attention + dense


def test_memory_is_what_exists_at_one_time():
    def chain(x):
        for _ in range(10):
            x = tf.linalg.matmul(x, x)  # only two of them are needed at a time
        return x

    def kept(x):
        found = [tf.linalg.matmul(x, x) for _ in range(10)]
        return tf.linalg.matmul(found[0], tf.concat(found, axis=1))

    square = tf.zeros([100, 100])
    assert cost_of(chain, [square]).peak_bytes == 2 * 40_000
    assert cost_of(kept, [square]).peak_bytes == (1 + 10 + 10) * 40_000  # one of them, all side by side, the product
    assert cost_of(chain, [square]).flops == 10 * 2 * 100**3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "warmup"),
    [
        ({}, "warmup that costs 10 full updates"),
        (
            {"strategy": "mirrored", "logical_devices": 2, "precision": "mixed_float16"},
            "warmup that costs 10 full updates",
        ),
        ({"warmup": "dynamic"}, "dynamic warmup"),
    ],
)
def test_a_dry_run_writes_nothing_and_tells_the_plan(tmp_path, options, warmup):
    config = make_config(TinyConfig, {**BASE, "output_dir": str(tmp_path / "run"), "dry_run": True, **options})
    text = train_task(Tiny(), config)
    assert not (tmp_path / "run").exists()
    assert f"length: 20 updates of 40 (batch_size), 4 epochs; {warmup}\n" in text
    for name in ("V100", "A100", "H100"):
        assert f"time on 8 x {name}" in text
    assert "memory per replica: weights 712 B, optimizer " in text
    assert "time here: " in text


@pytest.mark.slow
def test_the_hardware_can_be_named_by_its_peak_and_a_sweep_multiplies():
    options = {"dry_run": True, "tflops": 1e-9, "utilisation": 0.5, "accelerators": 2, "price": 3.0}
    config = make_config(TinyConfig, {**BASE, "output_dir": "x", **options})
    flops = estimate(Setup(config, Tiny())).flops
    hours = flops / (1e3 * 0.5) / 3600 * 10
    text = describe_run(Tiny(), config, runs=10)
    assert f"for 10 runs, {hours:,.1f} accelerator hours, {3 * hours:,.0f} at 3 per hour" in text
