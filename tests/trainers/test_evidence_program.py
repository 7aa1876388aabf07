"""The program: folders of sweeps and files of results in, verdicts and a figure out."""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests.trainers import reports
from tests.trainers.sweeps import csv_rows, results_csv, tuned_sweep
from trainers.evidence.__main__ import EvidenceConfig
from trainers.evidence.program import judge_sweeps
from trainers.system.errors import ConfigError

ROOT = pathlib.Path(__file__).parents[2]
GRID = {**reports.GRID, "seed": [1, 2, 3, 4, 5]}


def objective(effects, noise=2e-4, level=0.05):
    """Runs of a seed share much; methods differ by their effects and a little noise."""
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 0.01, 20)
    return lambda learning_rate, beta_2, warmup, seed: (
        level + shared[seed] + effects.get(warmup, 0.0) + rng.normal(0, noise)
    )


def judged(*runs, **options):
    return judge_sweeps(EvidenceConfig(tuple(map(str, runs)), **options))


def rows_of(folder):
    return csv_rows((folder / "differences.csv").read_text())


@pytest.fixture(name="digits")
def whole_sweep(tmp_path):
    """A sweep in which the methods do not differ."""
    return reports.write_sweep(tmp_path / "digits", objective({}), GRID)


@pytest.mark.parametrize(("effect", "verdict"), [(0.0, "equivalent"), (0.01, "different")])
def test_a_sweep_is_judged_and_the_figure_written(tmp_path, effect, verdict):
    sweep = reports.write_sweep(tmp_path / "digits", objective({"radam": effect}), GRID)
    said = judged(sweep, output_dir=str(tmp_path / "out"))
    where = "image_classification, digits, mlp (digits): Verdict on untuned_exponential, untuned_linear and radam"
    assert f"{where}: {verdict} (margin ±0.2 points)." in said
    assert "machine_translation, WMT16 English-German (the paper): Verdict on" in said
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 3 + 9
    assert {row["question"] for row in rows} == {"warmups"}
    assert {row["verdict"] for row in rows if row["source"] == "digits"} == {verdict}
    assert (float(rows[1]["mean"]), rows[1]["unit"]) == (pytest.approx(100 * effect, abs=0.05), "points")
    for kind in ("svg", "png", "pdf"):
        assert (tmp_path / "out" / f"differences.{kind}").stat().st_size > 5000
    assert f"written: {tmp_path}/out/differences.csv, .svg, .png, .pdf" in said


def test_the_same_files_come_from_the_same_runs(tmp_path, digits):
    for name in ("a", "b"):
        judged(digits, output_dir=str(tmp_path / name))
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


def test_a_file_alone_is_known_by_its_objective(tmp_path, digits):
    store = reports.keep(digits, tmp_path / "mine")
    (store / "config.json").unlink()
    said = judged(store / "results.csv", paper=False)
    assert "image_classification, mine: Verdict on radam" in said
    assert "(margin ±0.5 points)" in said  # of data that nobody knows


def test_an_open_question_names_the_command(tmp_path):
    sweep = reports.write_sweep(tmp_path / "digits", objective({}, noise=3e-3), {**GRID, "learning_rate": [1e-3]})
    said = judged(sweep, paper=False)
    command = f"python -m trainers.sweep --task=image_classification --config={sweep}/config.json --seeds=1-"
    assert command in said
    said = judged(reports.keep(sweep, tmp_path / "kept"), paper=False)  # elsewhere it cannot be gone on with
    assert "seeds would decide with a probability of 80 % if there is no difference." in said


def test_a_margin_of_ones_own_counts(tmp_path):
    sweep = reports.write_sweep(tmp_path / "wine", objective({}), GRID, task="wine")
    assert "inconclusive, as no margin is fixed for this task." in judged(sweep, paper=False)
    assert "equivalent (margin ±0.01)." in judged(sweep, paper=False, margins=("wine=0.01",))
    assert "inconclusive" in judged(sweep, paper=False, margins=("wine/other=0.01",))


@pytest.mark.parametrize("margin", ["wine", "=1", "wine=none", "wine=0", "wine=-1", "wine=inf"])
def test_a_margin_must_be_a_number(margin):
    with pytest.raises(ConfigError, match="--margins must be a task.*Received"):
        EvidenceConfig(margins=(margin,)).validate()


def test_bad_input_is_told(tmp_path):
    (tmp_path / "results.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="must be the results.csv of a sweep. Received: .*without trial"):
        judged(tmp_path / "results.csv")
    with pytest.raises(ConfigError, match="RUNS must be folders of sweeps, or results.csv files. Received"):
        judged(tmp_path / "nowhere")
    run = reports.write_run(tmp_path / "run", records=reports.training_records())
    with pytest.raises(ConfigError, match="RUNS must be folders with sweeps"):
        judged(run)
    with pytest.raises(ConfigError, match="at least one"):
        EvidenceConfig(paper=False).validate()
    with pytest.raises(ConfigError, match="--output_dir must be a folder that can be written to. Received"):
        judged(output_dir=str(tmp_path / "results.csv"))


def test_damaged_trials_are_named_and_make_runs_missing(tmp_path, digits):
    trial = next(iter(sorted((digits / "trials").iterdir())))
    (trial / "result.json").write_text("{")
    said = judged(digits, paper=False)
    assert f"left out: {trial}/result.json" in said
    assert "inconclusive, as 1 planned run has no result" in said


def test_a_sweep_that_no_table_can_hold_is_left_out_and_named(tmp_path, digits):
    large = reports.write_sweep(tmp_path / "runs/large", lambda **_: 1e308)  # infinite in per cent
    config = reports.change_config(reports.write_sweep(tmp_path / "runs/config", lambda **_: 0.1), learning_rates=3)
    shutil.copytree(digits, tmp_path / "runs/digits")
    said = judged(tmp_path / "runs", paper=False)
    assert "radam: equivalent" in said
    for folder in (large, config):
        assert f"left out: {folder} (" in said


def test_a_trial_that_a_second_worker_finished_counts_once(tmp_path, digits):
    trial = next(iter(sorted((digits / "trials").iterdir())))
    again = trial.with_name(f"{trial.name}@2")
    shutil.copytree(trial, again)
    document = json.loads((trial / "result.json").read_text())
    (trial / "result.json").write_text(json.dumps({**document, "status": "failed", "objective": None}))
    (again / "result.json").write_text(json.dumps({**document, "trial": again.name}))
    assert "radam: equivalent" in judged(digits, paper=False)


def test_the_program_runs_without_tensorflow(tmp_path):
    modules = "trainers.evidence.program, trainers.evidence.differences_figure"
    code = f"import sys, {modules}; sys.exit('tensorflow' in sys.modules)"
    environment = {**os.environ, "KERAS_BACKEND": "numpy"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    command = [sys.executable, "-m", "trainers.evidence", f"--output_dir={tmp_path}/out"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("question")
    assert len(rows_of(tmp_path / "out")) == 9


def test_the_verdicts_of_a_page_are_written_anew(tmp_path, digits):
    page = tmp_path / "page.md"
    page.write_text("# Results\n\n<!-- verdicts -->\nold\n<!-- end of verdicts -->\n\nMore.\n")
    assert judged(digits, page=(str(page),), paper=False).endswith(f"written: {page}")
    text = page.read_text()
    assert text.startswith("# Results\n\n<!-- verdicts -->\n\n| task | data | from | difference | mean | 90 % inter")
    assert "old" not in text
    assert "- image_classification, digits, mlp (digits): Verdict on" in text
    assert text.endswith("<!-- end of verdicts -->\n\nMore.\n")
    judged(digits, page=(str(page),), paper=False)
    assert page.read_text() == text


def test_a_tuned_period_is_judged_beside_the_untuned_warmups(tmp_path):
    def error(rate, warmup, period, seed):
        gain = 0.01 if period == 10 else 0.0
        return 0.05 + 0.001 * seed - gain + 1e-4 * math.sin(7 * seed + (period or 0))

    results = tuned_sweep(error, seeds=6, rules=("radam", "untuned_linear"))
    file, page = tmp_path / "results.csv", tmp_path / "page.md"
    file.write_text(results_csv(results, "val_error"))
    page.write_text("<!-- verdicts --><!-- end of verdicts -->")
    said = judged(file, page=(str(page),), paper=False)
    sentence = next(line for line in said.splitlines() if "linear with the best period - untuned_linear: -1.0" in line)
    assert "the tuned one is better by more than the margin. The tuning took 12 runs, untuned_linear 6." in sentence
    assert f"- {sentence}\n" in page.read_text()


def test_the_tables_of_a_page_are_those_of_its_sweeps_and_analyses(tmp_path):
    errors = {"untuned_exponential": 0.04, "untuned_linear": 0.05, "radam": 0.06, "none": 0.07}
    grid = {**GRID, "learning_rate": [1e-3, 1e-2], "beta_2": [0.99, 0.999], "warmup": list(errors)}

    def error(learning_rate, beta_2, warmup, seed):
        return errors[warmup] + (0.01 if beta_2 == 0.999 else 0.0) + (0.02 if learning_rate == 1e-2 else 0) + seed / 1e4

    runs = tmp_path / "kept/runs"
    (reports.write_sweep(runs / "digits", error, grid) / "summary.md").write_text("")
    reports.write_analysis(runs / "gradients")
    reports.write_analysis(tmp_path / "more/gradients")  # another one of the same name
    pages = [tmp_path / "kept/a.md", tmp_path / "b.md"]
    marks = [f"<!-- {part} --><!-- end of {part} -->\n" for part in ("summary", "means", "cells", "analyses")]
    for page in pages:
        page.write_text("".join(marks))
    more = tmp_path / "more"
    reports.write_sweep(more / "one_seed", error, {**grid, "seed": [1]})
    said = judged(runs, more, page=tuple(map(str, pages)), output_dir=str(tmp_path / "out"))
    text, other = (page.read_text() for page in pages)
    what, metric = "200-100-50 network, 4,000 digits", "validation error, %"
    assert f"\n- **Different**: {what} (4 cells, 5 seeds).\n- **Inconclusive**: {what} (4 cells, 1 seed).\n" in text
    assert f"\n- **No warmup is worse than at least one of them**: {what} (4 cells, 5 seeds).\n" in text
    assert "\n- **The paper's tables, equivalent**: Machine translation, WMT16 English-German (12 cells, 3 s" in text
    row = f"{what} | 4 | 5 | {metric} | 5.530 ± 0.016 | 6.530 ± 0.016 | 7.530 ± 0.016 | 8.530 ± 0.016 | different |\n"
    assert f"| [digits](runs/digits/summary.md) | {row}" in text
    assert f"| [digits](kept/runs/digits/summary.md) | {row}" in other
    assert f"| one_seed | {what} | 4 | 1 | {metric} | 5.5 | 6.5 | 7.5 | 8.5 | inconclusive |\n" in text
    cells = "4.030 ± 0.016 | 5.030 ± 0.016 | 6.030 ± 0.016 | 7.030 ± 0.016"
    assert f"| {what}, best cell | {metric} | 1e-3, 0.99 | 5 | {cells} |\n" in text
    assert f"| {what}, Adam's default beta_2 | {metric} | 1e-3, 0.999 | 5 | 5.030 ± 0.016 |" in text
    assert "| the paper, EMNIST | 4,000 digits (gradients) | 4,000 digits (more/gradients) |\n" in text
    assert "| it stays above 1 from iteration | about 50 | 51 | 51 |\n" in text
    assert "it stays above 1 from iteration" in said
    for name in ("gradients", "more_gradients"):
        assert f"written: {tmp_path}/out/{name}.csv, .svg, .png, .pdf" in said
        assert (tmp_path / "out" / f"{name}.svg").exists()


def test_sweeps_on_the_same_data_are_told_apart_in_the_figure(tmp_path):
    for name in ("first", "second"):
        reports.write_sweep(tmp_path / "runs" / name, objective({}), GRID)
    judged(tmp_path / "runs", output_dir=str(tmp_path / "out"))
    svg = (tmp_path / "out/differences.svg").read_text()
    for name in ("first", "second"):
        assert svg.count(f"200-100-50 network, 4,000 digits, {name} (2 cells, 5 seeds,") == 1
    assert "Image classification, ImageNet (the paper's table:" in svg


def test_a_page_that_cannot_be_written_is_told_and_stays_as_it_was(tmp_path):
    page = tmp_path / ("p" * 252 + ".md")  # there is no room for the longer name of a temporary file
    page.write_text("<!-- verdicts --><!-- end of verdicts -->")
    with pytest.raises(ConfigError, match=r"--page must be a file that can be written to. .* \(File name too long\)"):
        judged(page=(str(page),))
    assert page.read_text() == "<!-- verdicts --><!-- end of verdicts -->"


def test_an_analysis_without_its_measurements_is_left_out_and_named(tmp_path):
    reports.write_sweep(tmp_path / "runs/digits", objective({}), GRID)
    damaged = reports.write_run(tmp_path / "runs/gradients", "gradient_analysis")
    (damaged / "gradient_analysis.csv").write_text("t,moment_correlation\n1,0.9\n")
    assert f"left out: {damaged} (gradient_cv_median is missing)" in judged(tmp_path / "runs")


def test_no_page_is_written_unless_all_can_be(tmp_path, digits):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("<!-- means --><!-- end of means -->")
    bad.write_text("<!-- cells --> and no end")
    with pytest.raises(ConfigError, match="--page must have <!-- end of cells --> after <!-- cells -->"):
        judged(digits, page=(str(good), str(bad)))
    assert good.read_text() == "<!-- means --><!-- end of means -->"


@pytest.mark.parametrize("text", [None, "no marks", "<!-- end of verdicts --> <!-- verdicts -->"])
def test_a_page_without_a_place_for_verdicts_is_refused(tmp_path, text):
    page = tmp_path / "page.md"
    if text is not None:
        page.write_text(text)
    with pytest.raises(ConfigError, match="--page must"):
        judged(page=(str(page),))
    assert not page.exists() if text is None else page.read_text() == text
