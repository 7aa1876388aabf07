import pytest

from trainers.results.paper import TABLES
from trainers.results.tasks import data_name, margin_of


@pytest.mark.parametrize(
    ("task", "data", "size", "relative"),
    [
        ("image_classification", "digits", 0.2, False),
        ("image_classification", "mnist", 0.1, False),
        ("image_classification", "emnist/digits", 0.1, False),
        ("image_classification", "imagenet2012", 0.3, False),
        ("image_classification", "my_photographs", 0.5, False),
        ("language_modeling", "pydoc", 1.0, True),
        ("language_modeling", "wikitext-2", 1.0, True),
        ("machine_translation", "numbers", 1.0, False),
        ("machine_translation", "multi30k", 0.5, False),
        ("machine_translation", "wmt16_translate/de-en", 0.5, False),
    ],
)
def test_the_table_of_margins_is_what_changelog_would_have_to_tell_a_change_of(task, data, size, relative):
    margin = margin_of(task, data)
    assert (margin.size, margin.relative) == (size, relative)


def test_every_task_of_the_paper_has_a_margin_for_any_data():
    assert all(margin_of(task, "") is not None for task in TABLES)


def test_data_are_named_by_the_set_or_by_the_folder_of_their_files():
    assert data_name({"dataset": "digits", "data_dir": None}) == "digits"
    assert data_name({"dataset": "folder", "data_dir": "/data/mnist"}) == "mnist"
    assert data_name({"dataset": "emnist/digits", "data_dir": "/data/tensorflow_datasets"}) == "emnist/digits"
    assert data_name({}) == ""
