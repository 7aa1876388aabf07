"""What is kept of runs: enough for every table and claim, and nothing of anybody's machine."""

import dataclasses
import json
import pathlib
import re
import socket

import pytest

from tests.pages import ROOT
from tests.trainers.reports import GRID, same, write_analysis, write_run, write_simulation, write_sweep
from trainers.analysis.findings import findings
from trainers.engine.flags import make_config
from trainers.evidence.config import EvidenceConfig
from trainers.evidence.pages import begin, new_page, with_parts
from trainers.evidence.program import judge_sweeps
from trainers.evidence.questions import answers, published_answers
from trainers.evidence.sources import read_analyses, read_sweeps
from trainers.evidence.summary import summary_csv, summary_markdown
from trainers.evidence.tables import tuned_texts
from trainers.figures.paper import draw_gradients
from trainers.reports.claims_sweeps import sweep_claims
from trainers.reproduction.keeping import LARGEST, KeepConfig, keep, kept_summary, without_places
from trainers.results.records import read_series
from trainers.results.runs import read_runs
from trainers.results.trials import Result, read_result, read_results, results_csv
from trainers.study.checks import CHECKS
from trainers.study.conditions import DYNAMIC
from trainers.study.failures import Trained, has_losses
from trainers.study.program import study_tables
from trainers.system.errors import ConfigError

SWEEP_FILES = {"config.json", "environments.json", "results.csv", "status", "summary.md"}
ANALYSIS_FILES = {"config.json", "gradient_analysis.csv", "status"}
# A path from the root or from somebody's home, of at least two names: "1/2" and ".../mnist" are none.
PATHS = re.compile(r"(?:(?<=^)|(?<=[\s\"'=,(:\[]))[~/]+[\w.@+-]+/[\w.@+-]", re.MULTILINE)


def keeps(*runs, output):
    return keep(make_config(KeepConfig, {"runs": tuple(map(str, runs)), "output": str(output)}))


def change_result(folder, name, **changes):
    trial = folder / "trials" / name
    (trial / "result.json").write_text(dataclasses.replace(read_result(trial), **changes).to_json())


def made_with(folder, threads):
    """Says of every run of a sweep what it was made with; `threads(seed)` of them."""
    for result in read_results(folder):
        environment = {"versions": {"keras": "3.15.1"}, "threads": threads(result.values["seed"])}
        change_result(folder, result.trial, environment=environment)


FAILED = "rate-0.01_beta-0.999_radam_seed-3"


@pytest.fixture
def swept(tmp_path, monkeypatch):
    """A sweep with a run that failed, runs with another number of threads, and a metric of the name of a column."""
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    folder = write_sweep(tmp_path / "runs/digits", same, data_dir="/home/me/data/mnist", source="/x/multi30k/a.en.gz")
    made_with(folder, lambda seed: 1 + seed // 3)
    error = "OSError: node7 has no space left on /home/me/runs/digits/step-10.npz"
    change_result(folder, FAILED, status="failed", objective=None, metrics={}, error=error)
    name = "rate-0.001_beta-0.999_radam_seed-1"
    change_result(folder, name, metrics={"val_error": 0.5, "val_loss": 1 / 3, "seed": 7.0})
    return folder


def tables(folder):
    """All that is told of the sweeps at or below a folder."""
    runs = read_runs([str(folder)])
    assert not runs.problems
    [sweep] = runs.sweeps
    table = sweep.table()
    return summary_csv(table), summary_markdown(table, results=sweep.results), sweep_claims([sweep])


def test_what_is_kept_gives_the_tables_and_claims_of_the_folder_it_is_from(swept, tmp_path):
    assert keeps(tmp_path / "runs", output=tmp_path / "kept") == f"kept: {tmp_path}/kept/digits (18 runs)"
    assert {path.name for path in (tmp_path / "kept/digits").iterdir()} == SWEEP_FILES
    assert tables(tmp_path / "kept") == tables(swept)
    assert "Runs differ in threads: 1 (12 runs), 2 (5 runs)." in tables(tmp_path / "kept")[1]


def test_verdicts_are_the_same_from_what_is_kept(swept, tmp_path):
    keeps(swept, output=tmp_path / "kept")
    ours, kept = (judge_sweeps(EvidenceConfig((str(folder),))) for folder in (swept, tmp_path / "kept/digits"))
    assert kept == ours
    assert "inconclusive" in ours


def test_results_are_kept_in_the_format_of_a_sweep(swept, tmp_path):
    keeps(swept, output=tmp_path / "kept")
    results = [dataclasses.replace(each, error=without_places(each.error)) for each in read_results(swept)]
    expected = results_csv(results, "val_error", {name: list(values) for name, values in GRID.items()})
    assert (tmp_path / "kept/digits/results.csv").read_text() == expected
    assert "metric_seed" in expected.splitlines()[0]


def test_places_and_names_of_machines_are_not_kept(swept, tmp_path):
    write_run(tmp_path / "runs/other", "sweep of image_classification", status="failed: OSError: /home/me/x/y is full")
    keeps(swept, output=tmp_path / "kept")
    config = json.loads((tmp_path / "kept/digits/config.json").read_text())["config"]
    assert (config["data_dir"], config["source"]) == (".../mnist", ".../multi30k/a.en.gz")
    assert config["output_dir"] == ".../digits"
    kept = "".join(path.read_text() for path in (tmp_path / "kept/digits").iterdir())
    assert "OSError: ... has no space left on .../step-10.npz" in kept
    assert not PATHS.search(kept)
    assert PATHS.search((swept / "config.json").read_text())
    assert "node7" not in kept


def of_seeds(*seeds):
    return {**GRID, "seed": list(seeds)}


def test_a_later_piece_adds_to_what_is_kept(swept, tmp_path):
    output = tmp_path / "kept"
    keeps(swept, output=output)
    more = write_sweep(tmp_path / "more/digits", same, of_seeds(3, 4), data_dir="/elsewhere/mnist")
    keeps(more, output=output)
    assert json.loads((output / "digits/config.json").read_text())["config"]["seeds"] == [1, 2, 3, 4]
    results = {result.name: result for result in read_runs([str(output)]).sweeps[0].results}
    assert len(results) == 24
    assert results[FAILED].status == "done"  # the later piece has a result for the run that failed before
    assert keeps(more, output=output).endswith("(24 runs)")  # once more changes nothing


def test_pieces_in_any_order_are_the_same_as_all_at_once(tmp_path):
    for name, seeds in (("first", (1, 2)), ("second", (3, 4)), ("all", (1, 2, 3, 4))):
        write_sweep(tmp_path / name / "digits", same, of_seeds(*seeds))
    keeps(tmp_path / "second", output=tmp_path / "pieces")
    keeps(tmp_path / "first", output=tmp_path / "pieces")
    keeps(tmp_path / "all", output=tmp_path / "whole")
    for name in SWEEP_FILES:
        assert (tmp_path / "pieces/digits" / name).read_text() == (tmp_path / "whole/digits" / name).read_text(), name


def test_another_result_of_a_run_that_is_kept_is_refused(swept, tmp_path):
    keeps(swept, output=tmp_path / "kept")
    before = (tmp_path / "kept/digits/results.csv").read_text()
    change_result(swept, "rate-0.001_beta-0.999_radam_seed-2", objective=0.25)
    message = "Runs that are kept already must have the same results; .* has 0.1.* Received: '0.25 of rate-0.001"
    with pytest.raises(ConfigError, match=message):
        keeps(swept, output=tmp_path / "kept")
    assert (tmp_path / "kept/digits/results.csv").read_text() == before


def test_another_configuration_under_a_name_that_is_kept_is_refused(swept, tmp_path):
    keeps(swept, output=tmp_path / "kept")
    other = write_sweep(tmp_path / "other/digits", same, of_seeds(4), weight_decay=0.1)
    with pytest.raises(
        ConfigError, match=r"RUNS must have the configuration .* Received: weight_decay=0.1, and .* 0.0"
    ):
        keeps(other, output=tmp_path / "kept")


def test_a_gradient_analysis_is_kept_with_its_measurements(tmp_path):
    folder = write_analysis(tmp_path / "runs/gradients")
    draw_gradients(folder, read_series(folder))
    write_simulation(tmp_path / "runs/simulation")
    assert keeps(tmp_path / "runs", output=tmp_path / "kept") == f"kept: {tmp_path}/kept/gradients"
    assert {path.name for path in (tmp_path / "kept/gradients").iterdir()} == ANALYSIS_FILES
    [ours], [kept] = (read_runs([str(tmp_path / name)]).analyses for name in ("runs", "kept"))
    assert findings(kept.series) == findings(ours.series)
    assert kept.series["t"] == ours.series["t"]
    for name, values in ours.series.items():
        assert kept.series[name] == pytest.approx(values, rel=1e-8), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"config.json": ('"beta_2": 0.999', '"beta_2": 0.99')},
            "RUNS must have the configuration .* beta_2=0.99, and",
        ),
        ({"gradient_analysis.csv": ("0.98", "0.97")}, "Measurements that are kept already must be the same"),
    ],
)
def test_another_analysis_under_the_name_of_a_kept_one_is_refused(tmp_path, change, message):
    folder = write_analysis(tmp_path / "runs/gradients", beta_2=0.999)
    draw_gradients(folder, read_series(folder))
    keeps(tmp_path / "runs", output=tmp_path / "kept")
    before = {path.name: path.read_text() for path in (tmp_path / "kept/gradients").iterdir()}
    keeps(tmp_path / "runs", output=tmp_path / "kept")  # the same one may be kept again
    for name, (old, new) in change.items():
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))
    with pytest.raises(ConfigError, match=message):
        keeps(tmp_path / "runs", output=tmp_path / "kept")
    assert {path.name: path.read_text() for path in (tmp_path / "kept/gradients").iterdir()} == before


def test_runs_without_results_are_refused_and_nothing_is_written(tmp_path):
    write_simulation(tmp_path / "runs/simulation")
    with pytest.raises(ConfigError, match="RUNS must include finished runs of a sweep, or a gradient analysis"):
        keeps(tmp_path / "runs", output=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_what_is_large_is_refused(tmp_path):
    folder = write_run(tmp_path / "gradients", "gradient_analysis")
    (folder / "gradient_analysis.csv").write_text("t,moment_correlation\n" + "1,0.123456789\n" * (LARGEST // 12))
    with pytest.raises(ConfigError, match="A file that is kept must have at most 1,500,000 bytes"):
        keeps(folder, output=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_numbers_come_back_to_the_last_bit(tmp_path):
    value = 0.1 + 0.2
    folder = write_sweep(tmp_path / "digits", lambda **point: value * point["seed"])
    keeps(folder, output=tmp_path / "kept")
    [sweep] = read_runs([str(tmp_path / "kept")]).sweeps
    assert {result.objective for result in sweep.results} == {value, value * 2, value * 3}
    assert all(isinstance(result, Result) and result.seconds == 2.0 for result in sweep.results)


FOLDERS = [str(ROOT / "docs/results"), str(ROOT / "docs/study")]
PAGES = [ROOT / page for page in ("README.md", "docs/results.md", "docs/analyses.md")]
KEPT = sorted(path for folder in FOLDERS for path in pathlib.Path(folder).glob("*/*"))


def test_nothing_large_and_nothing_of_a_machine_is_in_the_repository():
    assert {path.name for path in KEPT} <= SWEEP_FILES | ANALYSIS_FILES | {CHECKS}
    assert sum(path.stat().st_size for path in KEPT) < 5_000_000
    for path in KEPT:
        text = path.read_text()
        assert len(text) <= LARGEST, path
        assert not PATHS.search(text), path
        assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text), path
        if path.name == "config.json":
            assert set(json.loads(text)["machine"]) == {"cores", "processor", "python"}, path


@pytest.mark.skipif(not KEPT, reason="nothing is kept yet")
def test_everything_in_the_repository_can_be_read():
    runs = read_runs(FOLDERS)
    assert not runs.problems
    assert all(sweep.results for sweep in runs.sweeps)


@pytest.mark.skipif(not KEPT, reason="nothing is kept yet")
def test_tables_and_verdicts_of_the_documentation_are_those_of_the_runs_that_are_kept():
    for sweep in read_runs(FOLDERS).sweeps:
        assert (sweep.folder.path / "summary.md").read_text() == kept_summary(sweep), sweep.folder.name
    sweeps, problems = read_sweeps(FOLDERS[:1])
    found, analyses = [*answers(sweeps), *published_answers()], read_analyses(FOLDERS[:1], problems)
    assert not problems
    for page in PAGES:
        assert new_page(page, sweeps, analyses, found, tuned_texts(sweeps)) == page.read_text(), page.name
    studied = [Trained(sweep) for sweep in read_sweeps(FOLDERS[1:])[0] if has_losses(sweep)]
    tables = study_tables([trained for trained in studied if DYNAMIC in trained.runs])
    page = ROOT / "docs/dynamic_warmup.md"
    assert with_parts(page, tables) == page.read_text()


def test_every_difference_of_tuned_and_untuned_warmups_on_the_page_is_one_of_the_verdicts():
    page = (ROOT / "docs/results.md").read_text()
    verdicts = page.partition(begin("verdicts"))[2]
    table = page.partition("### Tuned against untuned")[2].partition("\n- ")[0]
    told = re.findall(r"([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\]", table)
    assert len(told) == 9
    for mean, low, high in told:
        assert re.search(rf"best period - \w+: \{mean} \w+, 90 % interval \{low} to \{high}, ", verdicts), mean
