"""The summary of a study: which runs fail, what every method reaches, and whether the conditions are met."""

import itertools
import json
import math
import re
import shutil

import pytest

from tests.trainers.helpers import ROOT
from tests.trainers.reports import change_config, keep, write_run, write_sweep, write_trial
from tests.trainers.sweeps import csv_rows
from trainers.reports.sweep_sections import study_blocks
from trainers.reports.tables import PageTable
from trainers.results.methods import Point
from trainers.results.runs import read_runs, read_sweeps
from trainers.results.trials import read_result
from trainers.study.__main__ import StudyConfig
from trainers.study.checks import score
from trainers.study.conditions import failure_table
from trainers.study.failures import Trained, has_losses
from trainers.study.program import sum_up
from trainers.system.errors import ConfigError

METHODS = ["none", "untuned_linear", "root", "dynamic", "gi_adam"]
PARTS = ["conditions", "failures"]
GRID = {"learning_rate": [1e-3, 1e-2, 1e-1], "beta_2": [0.9, 0.999], "warmup": METHODS, "seed": [1, 2, 3, 4, 5]}


def make_study(folder, losses, better=0.0, grid=GRID):
    """A sweep whose validation losses are `losses(method, rate, beta_2, seed)`; None is a run that diverged.

    Errors follow the losses; those of `gi_adam` are lower by `better`.
    """

    def loss(learning_rate, beta_2, warmup, seed):
        return {"val_loss": losses(warmup, learning_rate, beta_2, seed)}

    def error(learning_rate, beta_2, warmup, seed):
        if losses(warmup, learning_rate, beta_2, seed) is None:
            return math.nan
        noise = 1e-5 * math.sin(7 * seed + 3 * len(warmup) + 1e3 * learning_rate)
        return losses(warmup, learning_rate, beta_2, seed) / 10 + noise - (better if warmup == "gi_adam" else 0)

    return write_sweep(folder, error, grid, metrics=loss)


def no_warmup_fails(method, rate, beta_2, seed):
    """At the largest rate nothing trains without a warmup: one run diverges, others stay at the loss of chance."""
    if method != "none" or rate < 0.1:
        return 0.3
    return None if seed == 1 else 2.3 if beta_2 == 0.999 else 0.3


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study that no test changes."""
    return make_study(tmp_path_factory.mktemp("study") / "a", no_warmup_fails)


def summed_up(*folders, **options):
    return sum_up(StudyConfig(tuple(map(str, folders)), **options))


def row_of(text, method):
    [line] = [line for line in text.splitlines() if line.startswith(f"{method}  ")]
    return re.split(r"  +", line)


def test_a_run_fails_above_the_mean_of_the_best_loss_and_that_of_chance(study):
    [sweep], _ = read_sweeps([str(study)])
    trained = Trained(sweep)
    assert trained.limit == pytest.approx((0.3 + math.log(10)) / 2)
    assert trained.failed("none", (0.1, 0.999)) == 5
    assert trained.failed("none", (0.1, 0.9)) == 1
    assert trained.failed("untuned_linear", (0.1, 0.999)) == 0
    assert trained.failed("none", (1.0, 0.999)) is None


@pytest.mark.parametrize(("recorded", "limit", "failed"), [({"unigram_loss": 4.7}, 4.35, 5), ({}, 5.8, 0)])
def test_a_language_model_that_knows_only_the_frequencies_of_words_has_failed(tmp_path, recorded, limit, failed):
    def metrics(learning_rate, warmup, **_):
        return {"val_loss": 4.72 if (warmup, learning_rate) == ("none", 0.1) else 4.0, **recorded}

    grid, options = GRID | {"warmup": ["none", "dynamic"]}, {"metrics": metrics, "vocabulary_size": 2000}
    folder = write_sweep(tmp_path / "a", lambda **_: 60.0, grid, "language_modeling", **options)
    [sweep], _ = read_sweeps([str(folder)])
    trained = Trained(sweep)
    assert trained.limit == pytest.approx(limit, abs=1e-3)
    assert trained.failed("none", (0.1, 0.9)) == failed


def test_every_method_has_its_best_cell_boundary_and_failures(study):
    said = summed_up(study)
    _, best, default, boundary, failed, loss = row_of(said, "none")
    assert best.startswith("3.00 ± 0.00 at ")
    assert default == "3.00 ± 0.00"
    assert boundary == "1e-2 (0.9); 1e-2 (0.999)"
    assert failed == "6 of 30"
    assert float(loss) == pytest.approx((24 * 0.3 + 2 * math.log(10) + 4 * 2.3) / 30, abs=6e-4)
    assert row_of(said, "dynamic")[3:5] == ["0.1 (0.9); 0.1 (0.999)", "0 of 30"]


def test_conditions_are_met_by_equal_methods(study):
    said = summed_up(study)
    assert "dynamic fails in no cell where untuned_linear trains with all seeds (6 cells): condition met." in said
    assert re.search(r"dynamic - untuned_linear: .* there, margin ±0.2 points: condition met\.", said)
    assert "over all cells in which both are done: gi_adam counts as a schedule." in said


def test_a_dynamic_warmup_that_fails_or_is_worse_is_told(tmp_path):
    def losses(method, rate, beta_2, seed):
        if method != "dynamic":
            return 0.3
        return 2.3 if (rate, beta_2, seed) == (0.1, 0.9, 2) else 0.35

    said = summed_up(make_study(tmp_path / "a", losses))
    where = "where untuned_linear trains with all seeds (6 cells)"
    assert f"dynamic fails {where} at rate 0.1, beta_2 0.9: condition not met." in said
    assert re.search(r"dynamic - untuned_linear: \+\d.* margin ±0.2 points: condition not met\.", said)


@pytest.mark.parametrize(("perplexity", "met"), [(60.4, "condition met"), (60.8, "condition not met")])
def test_a_translator_with_hardly_any_bleu_is_also_judged_by_its_perplexity(tmp_path, perplexity, met):
    def metrics(warmup, seed, **_):
        return {"val_perplexity": (perplexity if warmup == "dynamic" else 60.0) + 0.01 * seed**2, "val_loss": 4.0}

    grid, options = GRID | {"warmup": ["untuned_linear", "dynamic"]}, {"metrics": metrics, "vocabulary_size": 2000}
    folder = write_sweep(tmp_path / "a", lambda **_: 2.0, grid, "machine_translation", **options)
    said = summed_up(folder)
    assert re.search(r"dynamic - untuned_linear: [+-]?0\.00 BLEU, .* margin ±0.5 BLEU: condition met\.", said)
    assert re.search(rf"dynamic - untuned_linear: \+0\.\d0 perplexity, .* margin ±1 % of the mean: {met}\.", said)


def test_gi_adam_must_beat_its_control(tmp_path):
    assert "gi_adam beats its control." in summed_up(make_study(tmp_path / "a", no_warmup_fails, better=1e-3))
    assert "counts as a schedule" in summed_up(make_study(tmp_path / "b", no_warmup_fails, better=-1e-3))


def test_the_figure_has_the_numbers_of_every_square(study, tmp_path):
    said = summed_up(study, output_dir=str(tmp_path / "out"))
    assert said.endswith(f"written: {tmp_path}/out/failures_a.csv, .svg, .png, .pdf")
    rows = csv_rows((tmp_path / "out/failures_a.csv").read_text())
    assert len(rows) == 30
    assert sum(int(row["failed"]) for row in rows) == 6
    assert {row["runs"] for row in rows} == {"5"}


def test_the_table_of_a_page_is_that_of_its_sweep(study, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- study a -->old<!-- end of study a -->\nMore.\n")
    assert summed_up(study, page=(str(page),)).endswith(f"written: {page}")
    text = page.read_text()
    assert text.startswith("<!-- study a -->\n\n| method | best cell | default cell | largest rate without failures |")
    assert "| no warmup | 3.00 ± 0.00 at " in text
    assert "| GI-Adam | " in text
    assert text.endswith("<!-- end of study a -->\nMore.\n")
    with pytest.raises(ConfigError, match="--page must have one of <!-- study b -->"):
        summed_up(make_study(tmp_path / "b", no_warmup_fails), page=(str(page),))


def test_all_sweeps_of_a_study_stand_side_by_side_but_those_that_a_method_was_designed_on(tmp_path):
    def dynamic_fails(method, rate, beta_2, seed):
        return 2.3 if (method, rate, beta_2, seed) == ("dynamic", 0.1, 0.9, 2) else 0.3

    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name} of the study --><!-- end of {name} of the study -->" for name in PARTS))
    make_study(tmp_path / "runs/development_a", no_warmup_fails)
    change_config(make_study(tmp_path / "runs/a_clipped", dynamic_fails), global_clipnorm=1.0)
    make_study(tmp_path / "runs/b", no_warmup_fails)
    said = summed_up(tmp_path / "runs", page=(str(page),))
    text = page.read_text()
    [row, clipped_row] = re.findall(r"^\| 4,000 digits.* \d of \d .*", text, re.MULTILINE)
    assert re.match(r"\| 4,000 digits \| 6 of 6 \| 0 \| [+-]0\.0\d points \(.* to .*\) \| ±0.2 points \| met \|", row)
    assert re.match(r"\| 4,000 digits, clipped \| 6 of 6 \| 1 \| .* \| \*\*not met\*\* \|", clipped_row)
    assert "| failed runs | 4,000 digits | 4,000 digits, clipped |" in text
    assert "| no warmup | 6 of 30 | 0 of 30 |" in text
    assert "| dynamic | 0 of 30 | 1 of 30 |" in text
    assert re.search(r"^dynamic +0 of 30 +1 of 30$", said, re.MULTILINE)


def condition_row_of_one_seed(tmp_path, losses):
    folder, page = make_study(tmp_path / "a", losses, grid=GRID | {"seed": [1]}), tmp_path / "page.md"
    page.write_text("<!-- conditions of the study --><!-- end of conditions of the study -->")
    summed_up(folder, page=(str(page),))
    [row] = re.findall(r"^\| 4,000 digits.*", page.read_text(), re.MULTILINE)
    return row


def test_one_seed_is_not_enough_to_judge_but_enough_to_fail(tmp_path):
    def dynamic_fails(method, rate, beta_2, seed):
        return 2.3 if (method, rate) == ("dynamic", 0.1) else 0.3

    trained = condition_row_of_one_seed(tmp_path / "trained", no_warmup_fails)
    assert trained == "| 4,000 digits | 6 of 6 | 0 | – | – | not judged |"
    failed = condition_row_of_one_seed(tmp_path / "failed", dynamic_fails)
    assert failed == "| 4,000 digits | 6 of 6 | 2 | – | – | **not met** |"


def test_runs_without_a_study_are_refused(tmp_path):
    folder = write_sweep(tmp_path / "plain", lambda **point: 0.1)
    with pytest.raises(ConfigError, match="RUNS must have sweeps with dynamic, or with untuned_linear and several"):
        summed_up(folder)
    with pytest.raises(ConfigError, match="RUNS must name at least one folder"):
        StudyConfig(()).validate()


PERIODS = [5.0, 20.0, 40.0, 100.0]


def make_periods(folder, losses):
    """A sweep of one rate and beta_2 = 0.9, whose rule lasts 20 updates; `losses(period or None, seed)`."""
    lists = {"learning_rates": [0.1], "beta_2s": [0.9], "warmups": ["untuned_linear", "linear"], "seeds": [1, 2, 3, 4]}
    write_run(folder, "sweep of image_classification", search="grid", warmup_periods=PERIODS, **lists)
    for period, seed in itertools.product([None, *PERIODS], lists["seeds"]):
        others = () if period is None else (("warmup_period", period),)
        write_tuned(
            folder, Point(0.1, 0.9, "linear" if others else "untuned_linear", seed, others), losses(period, seed)
        )
    return folder


def write_tuned(folder, point, loss):
    write_trial(folder, point, loss / 10 + 1e-5 * point.seed % 3, {"val_loss": loss})


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        (lambda period, seed: 0.3, "long enough"),
        (lambda period, seed: 0.2 if period == 100 else 0.3, "too short"),
        (lambda period, seed: 0.2 if period == 5 else 0.3, "long enough"),  # a shorter one is better
        (lambda period, seed: 0.3 - 0.02 * seed * (period == 100), "open"),
        (lambda period, seed: 2.3 if period is None and seed == 2 else 0.3, "too short"),
        (lambda period, seed: 2.3 if period != 5 and seed == 2 else 0.3, "long enough"),  # no longer one is safer
        (lambda period, seed: 0.2 if period == 20 else 0.3, "long enough"),  # as long as the rule, and by luck better
    ],
)
def test_the_rule_is_too_short_if_a_longer_period_gains_more_than_the_margin_or_fails_less(tmp_path, losses, verdict):
    said = summed_up(make_periods(tmp_path / "low", losses))
    assert said.splitlines()[2].endswith(f"  {verdict}")
    assert said.splitlines()[2].split()[:3] == ["0.1", "0.9", "20"]


def test_a_share_of_the_run_is_another_method_and_no_period(tmp_path):
    folder = make_periods(tmp_path / "low", lambda period, seed: 0.3)
    before = summed_up(folder)
    for seed, share in itertools.product((1, 2, 3, 4), (0.1, 0.05)):
        point = Point(0.1, 0.9, "linear", seed, (("warmup_share", share),))
        write_tuned(folder, point, 2.3 if share == 0.1 and seed == 1 else 0.3)
    assert summed_up(folder) == before
    [sweep], _ = read_sweeps([str(folder)])
    failed = dict(failure_table([Trained(sweep)])[1:])
    assert list(failed) == ["untuned linear", *TUNED_TITLES, "linear 5 %", "linear 10 %"]
    assert (failed["linear 10 %"], failed["linear 5 %"]) == ("1 of 4", "0 of 4")


TUNED_TITLES = [f"linear {period:g}" for period in PERIODS]


def with_records(folder, sizes):
    """Adds to every trial 40 records whose updates have a size of `sizes(period or None)` times that of noise."""
    change_config(folder, log_every=1)
    for trial in (folder / "trials").iterdir():
        size = math.sqrt(0.1 / 1.9) * sizes(read_result(trial).values.get("warmup_period"))
        lines = [
            {"step": t, "updates": t, "update_rms": size, "warmup_factor": 1.0, "gradient_norm": 1.0, "loss": 2.0}
            for t in range(1, 41)
        ]
        (trial / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def only_the_longest_is_good(period, seed):
    return 0.2 if period == 100 else 0.3


def test_the_verdicts_of_warmup_checks_are_compared_with_longer_warmups(tmp_path):
    folder = make_periods(tmp_path / "low", only_the_longest_is_good)
    assert "WarmupCheck" not in summed_up(folder)
    said = summed_up(with_records(folder, lambda period: 0.4 if period in (5.0, 20.0) else 0.5))
    yes, no, text = said.splitlines()[-3:]
    assert yes.split() == ["yes", "8", "4"]
    assert no.split() == ["no", "0", "0"]
    assert text.startswith('"too short" is right in 8 of 8 runs (100 %), and is said of 8 of 12 runs (67 %) whose')
    assert "counts as long enough, 8 of 12 runs (67 %) are right, and 8 of 12 runs (67 %)" in text
    said = summed_up(with_records(folder, lambda period: 0.4))
    assert '"too short" is right in 12 of 12 runs (100 %), and is said of 12 of 12 runs (100 %)' in said


def test_kept_files_give_the_same_verdicts(tmp_path):
    folder = with_records(make_periods(tmp_path / "low", only_the_longest_is_good), lambda period: (period or 0) / 50)
    said, kept = summed_up(folder), tmp_path / "kept/low"
    assert f"written: {kept}/warmup_checks.csv" in summed_up(folder, output_dir=str(tmp_path / "kept"))
    keep(folder, kept)
    assert summed_up(kept) == said
    tables = [block for block in blocks_of(kept) if isinstance(block, PageTable)]
    assert tables[-1].caption == "Is the verdict of a warmup check right?"
    assert tables[-1].rows == [["yes", "8", "4"], ["no", "0", "0"]]
    lines = (kept / "warmup_checks.csv").read_text().splitlines(keepends=True)
    (kept / "warmup_checks.csv").write_text("".join(lines[:2]))
    assert summed_up(kept) != said
    shutil.copytree(folder / "trials", kept / "trials")  # what the file lacks is in the records
    assert summed_up(kept) == said


@pytest.mark.parametrize("text", ["trial\na\n", "trial,smallest_rms\na,much\n", "trial,smallest_rms\na\n"])
def test_damaged_checks_are_refused_with_their_file(text, tmp_path):
    folder = make_periods(tmp_path / "low", only_the_longest_is_good)
    (folder / "warmup_checks.csv").write_text(text)
    with pytest.raises(ConfigError, match=r"warmup_checks.csv must have a number for each trial\. Received: .*low"):
        summed_up(folder)


def test_the_page_has_the_verdicts_of_the_kept_runs():
    text = (ROOT / "docs/dynamic_warmup.md").read_text()
    checked = [score(Trained(sweep)) for sweep in read_sweeps([str(ROOT / "docs/study")])[0] if has_losses(sweep)]
    scores = [found for found in checked if found]
    assert len(scores) == 4
    for found in scores:
        (_, *short), (_, *others) = found.table()[1:]
        right, total = int(short[0]) + int(others[1]), sum(map(int, short + others))
        shares = f"{right} of {total} ({100 * right / total:.0f} %)"
        assert f"| {' | '.join(short + others)} | {shares} |" in text.replace("*", "")


def blocks_of(folder):
    [sweep] = read_runs([str(folder)]).sweeps
    return [*study_blocks(1, sweep)]


def test_the_page_has_tables_conditions_and_the_figure_of_a_study(study):
    table, points, figure = blocks_of(study)
    assert table.rows[0][:1] == ["No warmup"]
    assert "condition met." in points.items[0]
    assert "above 1.301" in figure.note
    assert [chart.title for chart in figure.charts] == ["β₂ = 0.9", "β₂ = 0.999"]
    for chart, failing in zip(figure.charts, ("beta_2 0.9: 1 of 5", "beta_2 0.999: 5 of 5"), strict=True):
        assert f'aria-label="Runs that fail to train. No warmup at learning rate 0.1 and {failing}."' in chart.svg
        assert f"<title>No warmup at learning rate 0.1 and {failing}</title>" in chart.svg


def test_the_page_judges_the_rule_where_a_sweep_has_several_periods(tmp_path):
    table, figure = blocks_of(make_periods(tmp_path / "low", lambda period, seed: 0.3))
    assert table.rows[0][-1] == "long enough"
    assert all('aria-label="Runs that fail to train. None at beta_2 ' in chart.svg for chart in figure.charts)


def test_a_sweep_whose_losses_say_nothing_has_no_such_blocks(tmp_path):
    assert not blocks_of(write_sweep(tmp_path / "no_loss", lambda **point: 0.1, GRID))
    folder = make_study(tmp_path / "a", no_warmup_fails)
    birds = {"dataset": "folder", "data_dir": "/data/birds"}  # nobody knows how many classes these have
    assert not blocks_of(change_config(folder, **birds))
