"""The analysis of a training run: gradients computed together equal separate ones; figures, findings, resume."""

import json
import re
import signal
import time

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.trainers.helpers import finish, program, records
from tests.trainers.reports import folder_of, series
from tests.trainers.test_analyses import assert_figure
from tests.trainers.test_image_data import write_idx_folder
from tfwarmup.analysis.samples import ParameterSample, coefficient_of_variation
from trainers.analysis.config import AnalysisConfig
from trainers.analysis.findings import findings, first_lasting, settling
from trainers.analysis.gradient_samples import GradientSamples
from trainers.analysis.measured_run import analyse, measured_updates
from trainers.engine.data import ArraySource, Feed
from trainers.engine.flags import make_config
from trainers.figures.paper import draw_gradients
from trainers.reports.analysis_sections import analysis_section
from trainers.reports.page import Charts
from trainers.results.runs import Measured
from trainers.system.errors import ConfigError, DataError
from trainers.tasks.images.models import Scaling, build_model

MODULE = "trainers.gradient_analysis"
SMALL = {"steps": 30, "gradient_samples": 4, "log_every": 10, "checkpoint_every": 10, "evaluate_every": 100}


@pytest.fixture(scope="module")
def digits():
    generator = np.random.default_rng(0)
    images = generator.random((300, 28, 28, 1), dtype="float32") * generator.integers(0, 2, (300, 28, 28, 1))
    return ArraySource((255 * images).astype("uint8"), generator.integers(0, 10, 300))


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return build_model("mlp", (28, 28, 1), 10)


@pytest.fixture(scope="module")
def standardised():
    return build_model("mlp", (28, 28, 1), 10, Scaling((33.3,), (78.6,)), activation="tanh")


def samples(model, source, share, count=12, batch_size=32, seed=1):
    sample = ParameterSample(model.trainable_variables, 500)
    return GradientSamples(model, sample, source, batch_size, count, seed, share)


def by_hand(model, source, number, count=12, batch_size=32, seed=1):
    """One backward pass a batch, all of the gradient, then the sampled entries."""
    sample = ParameterSample(model.trainable_variables, 500)
    rows = []
    batches = source.training(Feed(batch_size, -1 - seed, start_step=number * count))
    for images, labels, _ in batches.take(count):
        with tf.GradientTape() as tape:
            loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(labels, model(images))
        kernels = [variable.value for variable in sample.variables]
        rows.append(sample.gather(tape.gradient(loss, kernels)))
    return np.array(rows)


@pytest.mark.parametrize("name", ["model", "standardised"])
@pytest.mark.parametrize("share", [True, False])
def test_gradients_computed_together_equal_separate_passes(share, name, request, digits):
    model = request.getfixturevalue(name)
    ours = samples(model, digits, share)
    for number in (2, 3):  # begun in the middle, then on
        separate = by_hand(model, digits, number)
        scale = np.abs(separate).max()
        assert np.abs(ours.draw(number) - separate).max() < 1e-6 * scale
        assert np.abs(by_hand(model, digits, number, seed=2) - separate).max() > 1e-2 * scale


def test_examples_are_shared_where_batches_repeat_them(model, digits):
    assert samples(model, digits, None, count=40).shared
    assert not samples(model, digits, None, count=30).shared


def test_the_coefficient_of_variation_is_that_of_independent_batches(model, digits):
    # Batches four times as large have gradients half as noisy.
    noise = [samples(model, digits, True, 200, size).draw(0).std(axis=0) for size in (8, 32)]
    ratio = np.median(noise[0][noise[1] > 0] / noise[1][noise[1] > 0])
    # Without replacement within 300 examples the larger batches are quieter still.
    assert ratio == pytest.approx(2 * np.sqrt((300 - 8) / (300 - 32)), rel=0.05)
    variation = coefficient_of_variation(samples(model, digits, True, 200, 8).draw(0))
    assert 1 < np.nanmedian(variation) < 20


def test_measurements_are_every_nth_or_log_spaced_and_have_the_first():
    assert measured_updates(10, 1) == list(range(1, 11))
    assert measured_updates(10, 4) == [1, 4, 8]
    log_spaced = measured_updates(10_000, 0)
    assert (log_spaced[0], log_spaced[-1]) == (1, 10_000)
    assert log_spaced[:15] == list(range(1, 16))
    assert max(np.diff(np.log10(log_spaced[60:]))) < 0.03


def run(folder, **options):
    return analyse(make_config(AnalysisConfig, {**SMALL, "output_dir": str(folder), "progress": False, **options}))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("analysis") / "run"
    return folder, run(folder)


def test_a_run_writes_the_figure_and_says_what_it_found(whole):
    folder, said = whole
    columns = assert_figure(folder, "gradient_analysis")
    assert columns["t"].tolist() == measured_updates(30, 0)
    quantiles = ["q05", "q25", "median", "q75", "q95"]
    names = [f"gradient_cv_{q}" for q in quantiles] + ["moment_correlation"] + [f"update_{q}" for q in quantiles]
    assert list(columns) == ["t", *names]
    # At the first update |m_1| = (1 - beta_1) |g| and sqrt(v_1) = sqrt(1 - beta_2) |g|: every update is alpha.
    assert columns["moment_correlation"][0] == pytest.approx(1, abs=1e-6)
    assert columns["update_median"][0] == pytest.approx(1, abs=1e-3)  # epsilon is not quite nothing
    assert columns["update_median"][-1] < 1
    assert said.splitlines() == [
        *findings(columns | {"t": [int(t) for t in columns["t"]]}),
        f"written: {folder}/gradient_analysis.csv, .svg, .png, .pdf",
    ]


def test_ten_thousand_measured_iterations_make_a_small_figure_and_page_and_a_whole_table(tmp_path):
    t = list(range(1, 10_001))
    noise = np.random.default_rng(0).normal(1, 0.05, len(t))
    long = {"t": t, **{name: noise.tolist() for name in series() if name != "t"}}
    draw_gradients(tmp_path, long)
    np.testing.assert_array_equal(assert_figure(tmp_path, "gradient_analysis")["t"], t)
    section = analysis_section(1, Measured(folder_of("gradient_analysis"), long))
    [charts] = [block for block in section.blocks if isinstance(block, Charts)]
    for chart in charts.charts:
        assert len(chart.svg) < 30_000
        assert max(path.count("L") for path in re.findall(' d="([^"]*)"', chart.svg)) < 2 * 300  # a band has two edges
        assert [chart.rows[0][0], chart.rows[-1][0]] == ["1", "10,000"]


def test_the_training_is_that_of_the_image_trainer(whole, tmp_path):
    from trainers.engine.run import train
    from trainers.tasks.images.config import ImageConfig
    from trainers.tasks.images.task import ImageClassification

    values = {name: value for name, value in SMALL.items() if name != "gradient_samples"}
    values |= {"batch_size": 256, "weight_decay": 1e-4, "warmup": "none", "progress": False}
    train(ImageClassification(), make_config(ImageConfig, {**values, "output_dir": str(tmp_path)}))
    ours, theirs = (keras.models.load_model(folder / "last.keras").get_weights() for folder in (whole[0], tmp_path))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)  # the measurements change nothing


@pytest.mark.slow
def test_stopped_and_killed_it_ends_as_if_nothing_had_happened(whole, tmp_path):
    flags = [f"--{name}={value}" for name, value in SMALL.items()] + [f"--output_dir={tmp_path}/run", "--noprogress"]
    for number, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process = program(MODULE, *flags)
        checkpoints = set((tmp_path / "run/checkpoints").glob("*.npz"))
        while set((tmp_path / "run/checkpoints").glob("*.npz")) == checkpoints and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=100)
        assert process.returncode == code, errors[-2000:]
        assert (tmp_path / "run/metrics.jsonl").exists()
        if number == signal.SIGINT:
            assert errors.splitlines()[-1] == "stopped by SIGINT: run the same command again to resume"
            assert (tmp_path / "run/status").read_text() == "stopped\n"
    output, _ = finish(program(MODULE, *flags))
    assert records(tmp_path / "run") == records(whole[0])
    assert output.splitlines()[:-1] == whole[1].splitlines()[:-1]


def test_the_papers_recipe_for_emnist_is_a_matter_of_flags_with_its_idx_files(tmp_path):
    write_idx_folder(tmp_path / "data")
    options = {"dataset": "folder", "data_dir": str(tmp_path / "data"), "batch_size": 4, "steps": 3}
    run(tmp_path / "run", **options, sampled_parameters=2, standardize=True, activation="tanh")
    stored = json.loads((tmp_path / "run/config.json").read_text())
    assert (stored["config"]["standardize"], stored["config"]["activation"]) == (True, "tanh")
    assert "pixels standardised by mean 0." in stored["resolved"]["data_notes"][0]
    assert len(assert_figure(tmp_path / "run", "gradient_analysis")["t"]) == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sampled_parameters": 501}, ConfigError, "has 500 parameters. Received: 501"),
        ({"sampled_parameters": 0}, ConfigError, "must be an integer >= 1"),
        ({"gradient_samples": 1}, ConfigError, "--gradient_samples must be an integer between 2 and .* Received: 1"),
        ({"measure_every": -1}, ConfigError, "--measure_every must be an integer >= 0. Received: -1"),
        ({"model": "resnet50"}, ConfigError, "--model must be mlp here; for other models use tfwarmup.probes"),
        ({"optimizer": "keras_lamb"}, ConfigError, "--optimizer must be one of adam, radam, keras_adam here"),
        ({"precision": "mixed_float16"}, ConfigError, "--precision must be float32 here"),
        ({"dataset": "folder", "data_dir": "/nowhere"}, DataError, "must be a folder that can be read"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        run(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_findings_are_read_off_the_measurements():
    t = [1, 10, 60, 200, 400]
    series = {
        "t": t,
        "gradient_cv_median": [1.5, 0.5, 2.0, 3.0, 4.0],
        "moment_correlation": [1.0, 0.9, 0.5, 0.5, 0.5],
        "update_median": [1.0, 0.5, 0.2, 0.16, 0.16],
    }
    noise, moments, sizes = findings(series)
    assert "stays above 1 from iteration 60 on (paper: about 50)" in noise
    assert "is 1.00 at first and 0.95 on average up to iteration 20, then 0.90 at 10, 0.50 at 400" in moments
    assert (
        "starts at 1.00 alpha and settles after 200 iterations around 0.16 alpha (paper: 1, about 100, 0.15)" in sizes
    )
    assert "does not stay above 1" in findings(series | {"gradient_cv_median": [0.5] * 5})[0]
    assert first_lasting(t, [True] * 5) == 1
    assert settling([1], [0.5]) == (1, 0.5)
