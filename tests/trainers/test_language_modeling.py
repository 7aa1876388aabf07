"""The language model as a task: perplexity, baselines, resume, samples, and what is refused."""

import json
import math
import shutil

import keras
import numpy as np
import pytest

from tests.trainers.helpers import finish, program, records
from trainers.engine.data import Feed
from trainers.engine.flags import make_config
from trainers.engine.measurement import evaluate
from trainers.engine.run import train
from trainers.system.errors import ConfigError, DataError
from trainers.tasks import load_task
from trainers.tasks.language.config import LanguageConfig
from trainers.tasks.language.task import train_or_sample

MODULE = "trainers.language_modeling"
TASK = load_task("language_modeling")
SMALL = {
    "dataset": "text",
    "context": 8,
    "eval_context": 4,
    "batch_size": 8,
    "epochs": 3,
    "width": 8,
    "heads": 2,
    "inner": 16,
    "layers": 1,
    "cutoffs": (4, 8),
    "factor": 2,
    "dropout": 0.2,
    "beta_2": 0.9,
    "learning_rate": 1e-2,
    "log_every": 10,
    "checkpoint_every": 10,
    "progress": False,
}
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A text in which most words are followed by the next number."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = np.random.default_rng(0)
    for name, lines in (("train.txt", 150), ("valid.txt", 20)):
        starts = generator.integers(0, 10, lines)
        text = [" ".join(WORDS[(start + i) % 10] for i in range(generator.integers(4, 12))) for start in starts]
        (folder / name).write_text("\n".join(text) + "\n")
    return folder


def config(folder, corpus, **options):
    return make_config(LanguageConfig, {**SMALL, "data_dir": str(corpus), "output_dir": str(folder), **options})


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("language") / "run"
    return folder, train_or_sample(config(folder, corpus, epochs=12))


def test_a_run_learns_its_text_and_says_so_beside_the_baselines(trained):
    folder, said = trained
    baselines = json.loads((folder / "baselines.json").read_text())
    last = records(folder)[-1]
    assert last["val_perplexity"] == pytest.approx(math.exp(last["val_loss"]), rel=1e-12)
    assert last["val_perplexity"] < baselines["unigram"] / 2
    assert 1 < baselines["bigram"] < baselines["unigram"] < 13
    results = json.loads((folder / "results.json").read_text())
    assert results["unigram_loss"] == pytest.approx(math.log(baselines["unigram"]), rel=1e-12)
    assert said.startswith(f"baselines: unigram {baselines['unigram']:.4g}, bigram {baselines['bigram']:.4g}\n")


def test_the_perplexity_is_that_of_every_token_once(trained, corpus):
    """By hand, token by token, each from the window that the data give it."""
    folder, _ = trained
    data = TASK.load(config(folder, corpus))
    model = keras.models.load_model(folder / "last.keras")
    losses, words = [], []
    for inputs, targets, _ in data.validation.evaluation(Feed(batch_size=1)):
        log_prob = model.softmax.log_prob(model.hidden(inputs["tokens"])).numpy()[0]
        for position, target in enumerate(targets.numpy()[0]):
            if target >= 0:
                losses.append(-float(log_prob[position, target]))
                words.append(target)
    np.testing.assert_array_equal(words, data.validation.tokens)
    assert records(folder)[-1]["val_loss"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_results_have_the_perplexity_without_context_too(trained, corpus):
    folder, _ = trained
    found = json.loads((folder / "results.json").read_text())
    other = config(folder, corpus, eval_context=0, init_from=str(folder / "last.keras"))
    expected = evaluate(TASK, other)
    assert found["val_no_context_perplexity"] == expected["val_perplexity"]
    assert found["val_no_context_perplexity"] != found["val_perplexity"]
    assert "val_no_context_perplexity" not in expected  # where there is no context there is but one


@pytest.mark.parametrize("options", [{"strategy": "mirrored", "logical_devices": 2}, {"accumulate": 4}])
def test_replicas_and_micro_batches_train_the_same_model(options, corpus, tmp_path):
    def final(name, **more):
        train(TASK, config(tmp_path / name, corpus, dropout=0.0, epochs=1, **more))
        return records(tmp_path / name)[-1]["val_loss"]

    assert final("other", **options) == pytest.approx(final("one"), rel=1e-5)


def test_a_trained_model_continues_a_text(trained):
    folder, _ = trained

    def sample(**options):
        values = {"output_dir": str(folder), "sample": "three four", "sample_words": 6, **options}
        return train_or_sample(make_config(LanguageConfig, values))

    assert sample(temperature=0.0).startswith("three four five")
    assert sample() == sample()
    assert len({sample(seed=seed, temperature=2.0) for seed in range(4)}) > 1
    assert len(sample(sample_words=30).split()) > 20  # beyond the context
    unheard = sample(sample="words unheard of", temperature=2.0, sample_words=40)
    assert unheard.startswith("words unheard of ")
    assert "<unk>" not in unheard


def test_sampling_needs_a_trained_model(tmp_path):
    with pytest.raises(ConfigError, match="--sample needs a trained model in --output_dir. Received: no "):
        train_or_sample(make_config(LanguageConfig, {"output_dir": str(tmp_path), "sample": "The"}))


def test_another_vocabulary_is_refused(trained, corpus, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained[0], folder)
    other = tmp_path / "corpus"
    shutil.copytree(corpus, other)
    (other / "train.txt").write_text((corpus / "train.txt").read_text().replace("ten", "zehn"))
    before = (folder / "status").read_text()
    document = json.loads((folder / "config.json").read_text())
    document["config"]["data_dir"] = str(other)
    (folder / "config.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="A model needs the vocabulary that it was trained with"):
        train(TASK, config(folder, other, epochs=12))
    assert (folder / "status").read_text() == before


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cutoffs": (8, 4)}, ConfigError, "increas"),
        ({"heads": 3}, ConfigError, "heads"),
        ({"context": 10_000, "eval_context": 0}, DataError, "`context` must be at most the number of tokens"),
        ({"data_dir": "/nowhere"}, DataError, "/nowhere"),
        ({"temperature": -1.0}, ConfigError, "--temperature must be a number >= 0. Received: -1.0"),
        ({"sample_words": 0}, ConfigError, "--sample_words must be an integer >= 1. Received: 0"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(options, error, message, corpus, tmp_path):
    with pytest.raises(error, match=message):
        train_or_sample(config(tmp_path / "run", corpus, **options))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_embedded_model_beats_counting_words_and_pairs(tmp_path):
    flags = ["--flagfile=configs/embedded/language_modeling.flags", f"--output_dir={tmp_path}/run"]
    output, _ = finish(program(MODULE, *flags))
    baselines = json.loads((tmp_path / "run/baselines.json").read_text())
    assert records(tmp_path / "run")[-1]["val_perplexity"] < 0.85 * baselines["bigram"] < baselines["unigram"]
    assert "bigram" in output
    text, _ = finish(program(MODULE, f"--output_dir={tmp_path}/run", "--sample=The "))
    assert text.startswith("The ")


def write_full_vocabulary(folder, words=267_735):
    """A text with as many words as WikiText-103 has, the most frequent ones first."""
    folder.mkdir()
    frequent = [f"w{number}" for number in range(500)]
    lines = [
        " ".join(f"w{n}" for n in range(first, min(first + 1000, words - 2))) for first in range(0, words - 2, 1000)
    ]
    (folder / "wiki.train.tokens").write_text("\n".join([*lines, " ".join(frequent), "<unk>"]) + "\n")
    for name in ("valid", "test"):
        (folder / f"wiki.{name}.tokens").write_text(" ".join(frequent[:40]) + "\n")
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("large")
def test_the_papers_wikitext_experiment_builds_at_full_size_and_takes_steps(tmp_path):
    text = write_full_vocabulary(tmp_path / "text")
    flags = ["--dataset=wikitext", f"--data_dir={text}", "--strategy=mirrored", "--logical_devices=2"]
    small = ["--context=32", "--eval_context=0", "--batch_size=2", "--accumulate=1", "--steps=8", "--log_every=1"]
    small += ["--checkpoint_every=0", "--decay_start=0", "--nosave_models", f"--output_dir={tmp_path}/run"]
    finish(program(MODULE, "--flagfile=configs/paper/wikitext103.flags", *flags, *small), seconds=900)
    last = records(tmp_path / "run")[-1]
    assert last["updates"] >= 2
    assert np.isfinite(last["loss"])
    stored = json.loads((tmp_path / "run/config.json").read_text())["config"]
    assert (stored["layers"], stored["width"], stored["cutoffs"]) == (16, 1024, [20_000, 60_000])
