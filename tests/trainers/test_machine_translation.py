"""The translator as a task: BLEU, replicas and micro-batches, resume, translations, and what is refused."""

import io
import json
import math

import keras
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf

from tests.trainers.helpers import finish, program, records, snapshot
from trainers.engine.data import Feed
from trainers.engine.flags import make_config
from trainers.engine.run import train
from trainers.system.errors import ConfigError, DataError
from trainers.tasks import load_task
from trainers.tasks.translation.beam_search import translate_lines
from trainers.tasks.translation.config import TranslationConfig
from trainers.tasks.translation.models import smoothed_cross_entropy
from trainers.tasks.translation.task import compound_split_bleu, train_or_translate

MODULE = "trainers.machine_translation"
TASK = load_task("machine_translation")
SMALL = {
    "dataset": "text",
    "vocabulary_size": 300,
    "max_tokens": 256,
    "epochs": 2,
    "width": 32,
    "heads": 2,
    "inner": 64,
    "layers": 1,
    "dropout": 0.1,
    "beta_2": 0.9,
    "learning_rate": 1e-2,
    "log_every": 5,
    "checkpoint_every": 5,
    "progress": False,
}
ENGLISH = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
GERMAN = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Files in which every word has one translation and the order stays."""
    folder = tmp_path_factory.mktemp("corpus")
    generator = np.random.default_rng(0)
    for name, lines in (("train", 600), ("val", 20), ("test", 30)):
        sentences = [generator.integers(0, 10, generator.integers(1, 8)) for _ in range(lines)]
        for language, words in (("en", ENGLISH), ("de", GERMAN)):
            text = "".join(" ".join(words[number] for number in sentence) + "\n" for sentence in sentences)
            (folder / f"{name}.{language}").write_text(text)
    return folder


def files(corpus):
    names = {"": "train", "validation_": "val", "test_": "test"}
    sides = {"source": "en", "target": "de"}
    return {f"{k}{side}": str(corpus / f"{v}.{end}") for k, v in names.items() for side, end in sides.items()}


def config(folder, corpus, **options):
    return make_config(TranslationConfig, {**SMALL, **files(corpus), "output_dir": str(folder), **options})


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translation") / "run"
    options = {"epochs": 30, "dropout": 0.0, "decay": "cosine", "evaluate_every": 10, "average": 2, "log_every": 50}
    return folder, train_or_translate(config(folder, corpus, **options, checkpoint_every=50))


def test_a_blank_line_of_a_test_file_keeps_its_place(corpus, tmp_path):
    texts = {"test_source": "one two\n\n \nthree\nfour\n", "test_target": "eins zwei\n\nfünf\ndrei\n\n"}
    places = {name: tmp_path / name for name in texts}
    for name, text in texts.items():
        places[name].write_text(text)
    train(TASK, config(tmp_path / "run", corpus, steps=5, epochs=1, **{k: str(v) for k, v in places.items()}))
    lines = (tmp_path / "run/test.translations.txt").read_text().split("\n")
    assert [bool(line) for line in lines[:3]] == [bool(lines[0]), False, False]
    assert len(lines) == 6  # five lines, each with its end
    results = json.loads((tmp_path / "run/results.json").read_text())
    judged = sacrebleu.corpus_bleu([lines[0], lines[3]], [["eins zwei", "drei"]])  # where both sides are there
    assert results["test_bleu"] == judged.score


def test_a_run_learns_to_translate_and_says_so_with_the_signature_of_bleu(trained, corpus):
    folder, said = trained
    results = json.loads((folder / "results.json").read_text())
    translations = (folder / "test.translations.txt").read_text().splitlines()
    references = (corpus / "test.de").read_text().splitlines()
    assert len(translations) == len(references) == 30
    assert results["test_bleu"] == sacrebleu.corpus_bleu(translations, [references]).score
    assert results["test_bleu"] > 80
    assert f"test_bleu {results['test_bleu']:.4g}, " in said
    assert "bleu_signature nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp" in said
    assert results["test_perplexity"] < 2
    assert [line["epoch"] for line in records(folder) if "val_bleu" in line] == [10, 20, 30]


def test_the_loss_of_word_frequencies_is_that_of_a_model_which_predicts_them(trained, corpus):
    folder, _ = trained
    options = config(folder, corpus)
    data = TASK.load(options)
    size, smoothing = data.subwords.size, options.label_smoothing
    counts = np.bincount(data.train.targets.tokens, minlength=size) + 0.1
    logits = np.log((1 - smoothing) * counts / counts.sum() + smoothing / size)
    targets = data.validation.targets.tokens[None]
    losses = smoothed_cross_entropy(targets, np.broadcast_to(logits, (*targets.shape, size)), smoothing)
    results = json.loads((folder / "results.json").read_text())
    assert results["unigram_loss"] == pytest.approx(np.mean(losses), rel=1e-6)
    assert results["val_loss"] < results["unigram_loss"] / 2


def test_the_perplexity_is_that_of_every_subword_once(trained, corpus):
    folder, _ = trained
    data = TASK.load(config(folder, corpus))
    model = keras.models.load_model(folder / "last.keras")
    losses = []
    for inputs, targets, weights in data.validation.evaluation(Feed(batch_size=64)):
        log_p = tf.nn.log_softmax(model(inputs)).numpy()
        for row, target in enumerate(targets.numpy()):
            losses += [-log_p[row, place, word] for place, word in enumerate(target) if word]
        np.testing.assert_array_equal(weights, np.sum(targets.numpy() > 0, axis=1))
    subwords = data.subwords.encode([german for _, german in data.validation_pairs])
    assert len(losses) == sum(len(numbers) + 1 for numbers in subwords)
    assert records(folder)[-1]["val_perplexity"] == pytest.approx(math.exp(np.mean(losses)), rel=1e-5)


def first_loss(folder, corpus, **options):
    train(TASK, config(folder, corpus, dropout=0.0, steps=1, log_every=1, checkpoint_every=0, **options))
    return records(folder)[0]["loss"]


def test_the_loss_of_micro_batches_is_the_mean_over_all_their_subwords(corpus, tmp_path):
    options = {"max_tokens": 512, "accumulate": 4}
    loss = first_loss(tmp_path / "run", corpus, **options)
    by_hand = config(tmp_path / "run", corpus, dropout=0.0)
    data = TASK.load(by_hand)
    keras.utils.set_random_seed(1)
    model = TASK.build(by_hand, data)
    total = weight = 0.0
    means = []
    for inputs, targets, weights in data.train.training(Feed(512, seed=1, micro_batches=4)).take(4):
        losses = TASK.loss(by_hand, targets, model(inputs)).numpy()
        total, weight = total + np.sum(losses * weights), weight + np.sum(weights)
        means.append(np.sum(losses * weights) / np.sum(weights))
    assert loss == pytest.approx(total / weight, rel=1e-6)
    assert abs(np.mean(means) / loss - 1) > 1e-5  # a mean of means would be another number


@pytest.mark.slow
def test_two_replicas_equal_two_micro_batches(corpus, tmp_path):
    def final(name, **options):
        values = {"dropout": 0.0, "epochs": 1, "global_clipnorm": 0.5, "max_tokens": 512, "logical_devices": 2}
        train(TASK, config(tmp_path / name, corpus, **values, **options))
        return records(tmp_path / name)[-1]

    ours, theirs = final("two", strategy="mirrored"), final("one", strategy="one", accumulate=2)
    assert ours["step"] == theirs["step"]
    assert ours["val_loss"] == pytest.approx(theirs["val_loss"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("options", "searches"), [({}, 2), ({"average": 2}, 3)])
def test_without_a_test_the_validation_set_is_translated_once_for_the_same_weights(
    options, searches, corpus, tmp_path, monkeypatch
):
    translated = []

    def count(lines, *arguments):
        translated.append(translate_lines(lines, *arguments))
        return translated[-1]

    monkeypatch.setattr("trainers.tasks.translation.task.translate_lines", count)
    untested = {"test_source": None, "test_target": None}
    train(TASK, config(tmp_path / "run", corpus, **untested, **options))
    assert len(translated) == searches  # two epochs, and the averaged model if there is one
    assert (tmp_path / "run/validation.translations.txt").read_text().splitlines() == translated[-1]
    assert json.loads((tmp_path / "run/results.json").read_text())["bleu_signature"].startswith("nrefs:1")
    train(TASK, config(tmp_path / "run", corpus, **untested, **options))  # a run that has ended already
    assert translated[-1] == translated[searches - 1]


def translate(folder, text):
    return train_or_translate(make_config(TranslationConfig, {"output_dir": str(folder), "translate": text}))


def test_a_trained_model_translates_lines_and_standard_input(trained, monkeypatch):
    folder, _ = trained
    assert translate(folder, "two three seven") == "zwei drei sieben"
    monkeypatch.setattr("sys.stdin", io.StringIO("one two\n\nsix\n"))
    assert translate(folder, "-") == "eins zwei\n\nsechs"
    assert translate(folder, " ") == ""


def test_translating_needs_a_trained_model(tmp_path):
    with pytest.raises(ConfigError, match="--translate needs a trained model in --output_dir. Received: no "):
        translate(tmp_path, "two")


def test_another_training_text_is_refused(trained, corpus, tmp_path):
    folder, _ = trained
    other = tmp_path / "train.en"
    other.write_text((corpus / "train.en").read_text().replace("ten", "eleven"))
    before = snapshot(folder)
    with pytest.raises(DataError, match="A model needs the subwords that it was trained with"):
        TASK.load(config(folder, corpus, source=str(other)))
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"heads": 3}, ConfigError, "`heads` must divide width=32. Received: 3"),
        ({"label_smoothing": 1.0}, ConfigError, r"--label_smoothing must be in \[0, 1\). Received: 1.0"),
        ({"beam": 0}, ConfigError, "--beam must be an integer between 1 and 1024. Received: 0"),
        ({"beam": 10**9}, ConfigError, "--beam must be an integer between 1 and 1024. Received: 1000000000"),
        ({"pairs": 10**12}, ConfigError, "--pairs must be an integer between 1 and 10000000. Received: 1000000000000"),
        ({"max_tokens": 0}, ConfigError, "--max_tokens must be an integer between 1 and .*Received: 0"),
        (
            {"max_tokens": 257, "accumulate": 2},
            ConfigError,
            "--max_tokens must be a multiple of replicas x --accumulate",
        ),
        ({"max_tokens": 4}, DataError, "must be at least the length of the longest pair"),
        ({"average": 99}, ConfigError, "--average must be at most the run's"),
        ({"vocabulary_size": 5000}, DataError, "must be one that sentencepiece can learn from .* vocabulary_size=5000"),
        ({"source": "/nowhere/train.en"}, DataError, "/nowhere/train.en"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(options, error, message, corpus, tmp_path):
    with pytest.raises(error, match=message):
        train_or_translate(config(tmp_path / "run", corpus, **options))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_the_embedded_model_says_unseen_numbers(tmp_path):
    flags = ["--flagfile=configs/embedded/machine_translation.flags", f"--output_dir={tmp_path}/run"]
    finish(program(MODULE, *flags), seconds=900)
    results = json.loads((tmp_path / "run/results.json").read_text())
    assert results["test_bleu"] > 90
    text, _ = finish(program(MODULE, f"--output_dir={tmp_path}/run", "--translate=two hundred and forty-one"))
    assert text == "zweihunderteinundvierzig\n"


FULL_SIZE_FILES = {
    "source": "train.en",
    "target": "train.de",
    "validation_source": "val.en",
    "validation_target": "val.de",
}


def write_many_words(folder, words=60_000):
    """A parallel text that has 32,768 subwords."""
    generator = np.random.default_rng(0)
    syllables = [a + b for a in "bcdfghjklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "er", "il", "os", "un")]
    made = ["".join(generator.choice(syllables, generator.integers(2, 5))) for _ in range(words)]
    for name, text in (("train.en", made), ("train.de", made[::-1]), ("val.en", made[:2]), ("val.de", made[:2])):
        (folder / name).write_text("\n".join(text) + "\n")


@pytest.mark.slow
@pytest.mark.xdist_group("large")
def test_the_papers_translation_experiment_builds_at_full_size_and_takes_updates(tmp_path):
    write_many_words(tmp_path)
    files = [f"--{name}={tmp_path}/{file}" for name, file in FULL_SIZE_FILES.items()]
    devices = ["--strategy=mirrored", "--logical_devices=2", f"--output_dir={tmp_path}/run"]
    small = ["--dataset=text", "--max_tokens=64", "--accumulate=4", "--steps=3", "--log_every=1"]
    small += ["--checkpoint_every=0", "--beam=1", "--extra_length=2", "--nosave_models"]
    finish(program(MODULE, "--flagfile=configs/paper/wmt16.flags", *files, *devices, *small), seconds=900)
    last = records(tmp_path / "run")[-1]
    assert last["updates"] >= 2
    assert np.isfinite(last["loss"])
    stored = json.loads((tmp_path / "run/config.json").read_text())["config"]
    sizes = [stored[name] for name in ("layers", "width", "heads", "inner", "vocabulary_size")]
    assert sizes == [6, 1024, 16, 4096, 32_768]


def test_split_compounds_count_as_words_of_their_own():
    translations, references = ["ein rot-grünes Haus steht da"], ["ein rot-blaues Haus steht da"]
    tokens = "ein rot ##AT##-##AT## {} Haus steht da"
    expected = sacrebleu.corpus_bleu(
        [tokens.format("grünes")], [[tokens.format("blaues")]], tokenize="none", force=True
    ).score
    assert compound_split_bleu(translations, references) == pytest.approx(expected, rel=1e-12)
    assert compound_split_bleu(translations, references) != sacrebleu.corpus_bleu(translations, [references]).score
