"""What sweeps are judged by, and the paper's tables under the same rule."""

import math

import numpy as np
import pytest
from scipy import stats

from trainers.evidence.comparison import Verdict
from trainers.evidence.pages import unfounded
from trainers.evidence.questions import published_answers, published_comparison, published_difference
from trainers.results.paper import TABLES, PaperTable
from trainers.results.tasks import OBJECTIVES, data_name, margin_of, objective_named

IMAGES, LANGUAGE, TRANSLATION = TABLES


def test_a_difference_of_one_cell_is_welchs_with_what_rounding_hides():
    table = PaperTable("", "", "", 5, ((1e-3, 0.99, ((27.9, 0.1), (28.0, 0.0), (28.4, 0.2))),))
    found = published_difference(table, 1, 2)
    sampling = (0.05**2 + 0.25**2) / 5
    assert found.mean == pytest.approx(0.4)
    assert found.error == pytest.approx(math.sqrt(sampling + 2 * 0.1**2 / 12), rel=1e-12)
    welch = stats.ttest_ind_from_stats(28.4, 0.25, 5, 28.0, 0.05, 5, equal_var=False)
    assert found.mean / math.sqrt(sampling) == pytest.approx(welch.statistic, rel=1e-9)
    assert found.freedom > 4  # never fewer than of one method alone


def test_cells_are_averaged():
    rows = TABLES[IMAGES].rows
    expected = np.mean([cells[2][0] - cells[0][0] for _, _, cells in rows])
    assert published_difference(TABLES[IMAGES], 0, 2).mean == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("task", "verdict"),
    [(IMAGES, Verdict.INCONCLUSIVE), (LANGUAGE, Verdict.INCONCLUSIVE), (TRANSLATION, Verdict.EQUIVALENT)],
)
def test_what_the_paper_shows_at_these_margins(task, verdict):
    assert published_comparison(task).verdict is verdict


def test_radam_is_worse_on_imagenet_though_by_less_than_the_margin_as_far_as_can_be_told():
    comparison = published_comparison(IMAGES)
    pairs = {each.pair: each for each in comparison.differences}
    worse = pairs["untuned_linear", "radam"]
    assert worse.p < 0.001
    assert 0.1 < worse.interval()[0] < worse.mean < comparison.margin < worse.interval()[1]


def test_a_sentence_that_the_numbers_do_not_bear_out_is_told():
    def told(mark):
        return unfounded(f"They are the same. <!-- {mark} -->", published_answers())

    assert not told("warmups: equivalent: paper/machine_translation")
    assert told("warmups: equivalent: paper/machine_translation paper/language_modeling digits") == [
        "warmups, paper/language_modeling: equivalent in a sentence, inconclusive here",
        "warmups, digits: equivalent in a sentence, no verdict here",
    ]
    assert len(told("no warmup: different: paper/machine_translation")) == 1


@pytest.mark.parametrize(
    ("task", "margins"),
    [
        (IMAGES, {"digits": 0.2, "mnist": 0.1, "emnist/digits": 0.1, "imagenet2012": 0.3, "my_photographs": 0.5}),
        (LANGUAGE, {"pydoc": 1.0, "wikitext-2": 1.0}),
        (TRANSLATION, {"numbers": 1.0, "multi30k": 0.5, "wmt16_translate/de-en": 0.5}),
    ],
)
def test_the_table_of_margins_is_what_docs_evidence_would_have_to_tell_a_change_of(task, margins):
    for data, size in margins.items():
        margin = margin_of(task, data)
        assert (margin.size, margin.relative) == (size, task == LANGUAGE), data
    assert margin_of(task, "") is not None  # for any other data


def test_a_task_of_ones_own_is_told_as_it_is_recorded():
    assert objective_named("wine", "val_score", "max").label == "validation score"
    assert objective_named(IMAGES, "val_error", "min") is OBJECTIVES[IMAGES]


def test_data_are_named_by_the_set_or_by_the_folder_of_their_files():
    assert data_name({"dataset": "digits", "data_dir": None}) == "digits"
    assert data_name({"dataset": "folder", "data_dir": "/data/mnist"}) == "mnist"
    assert data_name({"dataset": "emnist/digits", "data_dir": "/data/tensorflow_datasets"}) == "emnist/digits"
    assert data_name({}) == ""
