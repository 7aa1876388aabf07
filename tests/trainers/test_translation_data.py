"""Every kind of parallel text becomes the same three parts; what is left out is what was asked for."""

import logging
from pathlib import Path

import numpy as np
import pytest

from trainers.engine.data import Feed
from trainers.engine.flags import make_config
from trainers.system.errors import ConfigError, DataError
from trainers.tasks import cache
from trainers.tasks.translation.beam_search import translate_lines
from trainers.tasks.translation.config import EOS, ParallelTextFlags
from trainers.tasks.translation.data import load_translation
from trainers.tasks.translation.number_words import number_pairs
from trainers.tasks.translation.subwords import MODEL, Subwords

REAL = Path(__file__).parents[3] / "shared/data/multi30k"
PAIRS = number_pairs(200, 5, held_out=False)
SIZE = 340


def write(folder, name, pairs):
    """Two files; returns their paths."""
    paths = [folder / name.format(language) for language in ("en", "de")]
    for number, path in enumerate(paths):
        path.write_text("".join(f"{pair[number]}\n" for pair in pairs))
    return [*map(str, paths)]


def write_folder(folder, **splits):
    for split, pairs in splits.items():
        write(folder, "{}." + split + ".txt", pairs)


def load(dataset="text", own=None, validation=None, test=None, folder=None, **options):
    """Loads a text; `own`, `validation` and `test` are two files each."""
    for prefix, files in (("", own), ("validation_", validation), ("test_", test)):
        options |= {f"{prefix}{side}": str(path) for side, path in zip(("source", "target"), files or (), strict=False)}
    return load_translation(ParallelTextFlags(**{"dataset": dataset, "vocabulary_size": SIZE, **options}), folder)


def error(*arguments, **options):
    with pytest.raises(DataError) as caught:
        load(*arguments, **options)
    return str(caught.value)


def read_back(source, subwords):
    """The pairs of a source, from its tokens."""
    sides = []
    for sequences in (source.sources, source.targets):
        rows = np.split(sequences.tokens, sequences.ends[1:-1])
        assert all(row[-1] == EOS for row in rows)
        sides.append(subwords.decode(rows))
    return list(zip(*sides, strict=True))


def assert_same(ours, theirs):
    def contents(data):
        parts = [part.contents() if part else () for part in (data.train, data.validation, data.test)]
        facts = (data.validation_pairs, data.test_pairs, data.filtered, data.subwords.model, data.subwords.text)
        return [[array.tolist() for array in part] for part in parts], facts

    assert contents(ours) == contents(theirs)


# Texts


def test_two_files_without_others_give_their_last_tenth_for_validation(tmp_path):
    data = load(own=write(tmp_path, "all.{}", PAIRS))
    assert data.validation_pairs == PAIRS[180:] == read_back(data.validation, data.subwords)
    assert read_back(data.train, data.subwords) == PAIRS[:180]
    assert (data.test_pairs, data.filtered, data.subwords.size) == (None, 0, SIZE)
    assert not (tmp_path / MODEL).exists()


def test_at_most_two_thousand_pairs_are_held_out(tmp_path):
    data = load(own=write(tmp_path, "all.{}", [("ab", "ba")] * 20_020), vocabulary_size=265)
    assert (data.train.size, data.validation.size) == (18_020, 2000)


def test_files_of_validation_and_test_take_the_place_of_others(tmp_path):
    files = write(tmp_path, "all.{}", PAIRS[:150])
    data = load(own=files, validation=write(tmp_path, "v.{}", PAIRS[150:]), test=write(tmp_path, "t.{}", PAIRS[190:]))
    assert (data.train.size, data.validation_pairs, data.test_pairs) == (150, PAIRS[150:], PAIRS[190:])
    numbers = load("numbers", validation=write(tmp_path, "v.{}", PAIRS[150:]), pairs=200)
    assert (numbers.train.size, numbers.validation_pairs, len(numbers.test_pairs)) == (200, PAIRS[150:], 20)


def test_numbers_are_held_out_for_validation_and_for_the_test():
    data = load("numbers", pairs=300)
    assert (data.train.size, len(data.validation_pairs), len(data.test_pairs)) == (300, 30, 30)
    train = read_back(data.train, data.subwords)
    assert train == number_pairs(300, 0, held_out=False)
    assert len({*train, *data.validation_pairs, *data.test_pairs}) == 360
    assert {*data.validation_pairs, *data.test_pairs} == {*number_pairs(60, 1, held_out=True)}
    assert data.filtered == 0
    back = load("numbers", pairs=300, source_language="de", target_language="en")
    assert back.validation_pairs == [pair[::-1] for pair in data.validation_pairs]
    assert read_back(back.train, back.subwords) == [pair[::-1] for pair in train]


def test_a_folder_has_its_own_splits(tmp_path):
    write_folder(tmp_path, train=PAIRS[:150], dev=PAIRS[150:180], test=PAIRS[180:])
    data = load("folder", data_dir=str(tmp_path))
    assert read_back(data.train, data.subwords) == PAIRS[:150]
    assert (data.validation_pairs, data.test_pairs) == (PAIRS[150:180], PAIRS[180:])


def test_a_text_is_encoded_in_parts(tmp_path, monkeypatch):
    whole = load(own=write(tmp_path, "all.{}", PAIRS))
    monkeypatch.setattr("trainers.tasks.translation.data.CHUNK", 7)
    parts = load(own=write(tmp_path, "all.{}", PAIRS))
    assert_same(parts, whole)


@pytest.mark.skipif(not REAL.is_dir(), reason="no Multi30k here")
def test_multi30k_has_its_published_sizes_and_little_padding():
    train, test = (
        [str(REAL / f"{name}.{language}.gz") for language in ("en", "de")] for name in ("val", "test_2016_flickr")
    )
    data = load(own=train, validation=test, test=test, vocabulary_size=3000, max_ratio=2.5)
    assert (data.train.size + data.filtered, data.validation.size, len(data.test_pairs)) == (1014, 1000, 1000)
    assert data.filtered < 5
    # Padding is 11 % of all cells; with pairs in the order of the text it would be 46 %.
    steps = data.train.steps_per_epoch(Feed(1024))
    cells = [side.numpy() for inputs, *_ in data.train.training(Feed(1024)).take(steps) for side in inputs.values()]
    assert 1 - sum(map(np.count_nonzero, cells)) / sum(side.size for side in cells) < 0.15


# Filters


def test_long_pairs_are_left_out_of_training_alone(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        whole, short = (load(own=write(tmp_path, "all.{}", PAIRS), max_length=length) for length in (250, 12))
    longest = np.maximum(whole.train.sources.lengths, whole.train.targets.lengths)
    assert 10 < short.train.size == (longest <= 12).sum() < 170
    assert short.train.longest == 12
    assert short.filtered == 180 - short.train.size
    assert short.validation.size == whole.validation.size == 20
    assert short.validation.longest > 12
    assert f"{short.filtered} of 180 training pairs are left out for their lengths" in caplog.messages


def test_sides_of_very_different_length_are_left_out_if_they_are_not_short(tmp_path):
    word = "tausend"
    counts = [(1, 4), (4, 1), (20, 20), (20, 30), (30, 20), (20, 45), (45, 20), (5, 30)]
    pairs = [(" ".join([word] * source), " ".join([word] * target)) for source, target in counts]
    files = write(tmp_path, "all.{}", [*PAIRS, *pairs])
    data = load(own=files, validation=write(tmp_path, "v.{}", pairs), max_ratio=2)
    kept = read_back(data.train, data.subwords)
    assert [pair in kept for pair in pairs] == [True] * 5 + [False] * 3
    assert data.validation.size == len(pairs)
    assert data.subwords.text == load(own=files, validation=write(tmp_path, "v.{}", pairs), max_ratio=9).subwords.text


def test_if_no_pair_is_left_it_is_said(tmp_path):
    assert error(own=write(tmp_path, "all.{}", PAIRS), max_length=2) == (
        "A training pair must have at most max_length=2 subwords per side, and at most max_ratio=2.5 times those of "
        "the other. Received: 180 pairs, none of which fits"
    )


@pytest.mark.parametrize("part", ["validation", "test"])
def test_a_sentence_of_two_million_words_is_refused_at_once(tmp_path, part):
    files = write(tmp_path, "all.{}", PAIRS)
    pairs = [*PAIRS[:2], ("eins " * 2_000_000, "eins"), PAIRS[3]]
    said = error(own=files, **{part: write(tmp_path, "v.{}", pairs)})
    assert said.startswith(f"A sentence for {part} must have at most 1024 subwords, which --max_length may raise. ")
    assert said.endswith(f" in pair 3, {('eins ' * 8)!r}...")
    subwords = [(" ".join(["tausendundeins"] * 700), "eins")]  # fewer words, but more subwords
    assert "must have at most 1024 subwords" in error(own=files, **{part: write(tmp_path, "v.{}", subwords)})
    longer = load(own=files, max_length=20_000, **{part: write(tmp_path, "v.{}", subwords)})
    assert getattr(longer, part).longest > 1024


def test_few_long_lines_are_translated_together_and_none_is_lost():
    lengths = [1] * 70 + [300] * 40 + [20_000] * 2
    shapes = []

    class Tokens:
        """A line is its own length."""

        def encode_with_end(self, lines):
            return [[number + 4] * int(line) for number, line in enumerate(lines)]

        def decode(self, rows):
            return [str(row[0]) for row in rows]

    def search(sources):
        shapes.append(sources.shape)
        return sources

    assert translate_lines([*map(str, lengths)], Tokens(), search) == [str(number + 4) for number in range(112)]
    assert shapes[0][0] == 64
    assert all(rows * positions <= 64 * 256 or rows == 1 for rows, positions in shapes)


def test_the_test_is_a_source_of_batches_too(tmp_path):
    test = [*PAIRS[190:], ("one", "")]
    data = load(own=write(tmp_path, "all.{}", PAIRS[:150]), test=write(tmp_path, "t.{}", test))
    assert read_back(data.test, data.subwords) == PAIRS[190:]
    assert load(own=write(tmp_path, "all.{}", PAIRS)).test is None


# What a run has kept


@pytest.fixture
def learned(monkeypatch):
    """All texts are kept; a list of the trainings of subwords."""
    trainings = []
    train = Subwords.train
    monkeypatch.setattr(cache, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(Subwords, "train", lambda *a: trainings.append(a) or train(*a))
    return trainings


@pytest.mark.parametrize("with_test", [False, True])
def test_a_second_start_reads_and_learns_nothing_again(tmp_path, learned, monkeypatch, with_test):
    options = {"own": write(tmp_path, "all.{}", PAIRS), "max_length": 20}
    options |= {"test": write(tmp_path, "t.{}", [*PAIRS[190:], ("one", "")])} if with_test else {}
    first = load(**options)
    with monkeypatch.context() as patch:
        patch.setattr("trainers.tasks.translation.parallel_text.read_pairs", None)
        again = load(**options)
    assert len(learned) == 1
    assert_same(again, first)
    load(**options | {"max_length": 30})
    assert len(learned) == 2  # other options
    write(tmp_path, "all.{}", PAIRS[:-1])
    assert_same(load(**options), load(**options | {"cache_dir": str(tmp_path / "kept")}))
    assert len(learned) == 4  # another text, twice: there was nothing in the other place
    assert len(list((tmp_path / "kept").iterdir())) == 1


def test_what_is_kept_must_fit_the_subwords_of_the_run(tmp_path, learned):
    own = write(tmp_path, "all.{}", PAIRS)
    load(own=own).subwords.save(tmp_path)
    load(own=own, folder=tmp_path)
    assert len(learned) == 1
    assert "Received: vocabulary_size=341" in error(own=own, folder=tmp_path, vocabulary_size=341)
    load(own=write(tmp_path, "other.{}", PAIRS[1:])).subwords.save(tmp_path)
    assert "Received: another training text" in error(own=own, folder=tmp_path)


def test_a_folder_is_kept_by_its_files(tmp_path, learned):
    write_folder(tmp_path, train=PAIRS[:150], dev=PAIRS[150:180])
    first = load("folder", data_dir=str(tmp_path))
    assert_same(load("folder", data_dir=str(tmp_path)), first)
    assert len(learned) == 1
    for language in ("en", "de"):
        (tmp_path / f"{language}.dev.txt").unlink()
    assert load("folder", data_dir=str(tmp_path)).validation_pairs == PAIRS[135:150]


# Bad input


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"eins\n", "Received: 200 in {source} and 1 in {target}"),
        (b"", "must not be empty. Received: {target}"),
        (b"\xff\n" * 200, "must be UTF-8. Received: {target}, line 1, byte 0xff at position 1"),
    ],
)
def test_nothing_is_written_when_something_is_wrong(tmp_path, content, message):
    source, target = write(tmp_path, "all.{}", PAIRS)
    Path(target).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    assert message.format(source=source, target=target) in error(own=(source, target), folder=tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "text", "source": "a"}, "--source and --target must be two files. Received: ('a', None)"),
        ({"validation_source": "a"}, "--validation_source and --validation_target must be two files"),
        ({"test_target": "a"}, "--test_source and --test_target must be two files. Received: (None, 'a')"),
        ({"source": "a", "target": "b"}, "are the files of --dataset=text. Received: ('a', 'b')"),
        ({"pairs": 0}, "--pairs must be an integer between 1 and 10000000. Received: 0"),
        ({"max_length": 1}, "--max_length must be an integer >= 2. Received: 1"),
        ({"max_ratio": 0.9}, "--max_ratio must be a number >= 1. Received: 0.9"),
        ({"vocabulary_size": 260}, "--vocabulary_size must be an integer >= 261. Received: 260"),
        ({"target_language": "en"}, "must differ. Received: ('en', 'en')"),
        ({"target_language": "fr"}, "must be en and de for --dataset=numbers. Received: ('en', 'fr')"),
    ],
)
def test_flags_are_checked(options, message):
    with pytest.raises(ConfigError) as caught:
        make_config(ParallelTextFlags, options)
    assert message in str(caught.value)


def test_one_pair_is_too_few_and_a_set_must_be_known(tmp_path):
    assert "Received: dataset='wikitext2'" in error("wikitext2", data_dir=str(tmp_path))
    assert "must have 2 pairs. Received: 1" in error(own=write(tmp_path, "one.{}", PAIRS[:1]))
