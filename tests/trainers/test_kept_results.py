"""The results in docs can be read, have nothing of anybody's machine, and give the tables of the documentation."""

import dataclasses
import json
import pathlib
import re
import shutil
import socket

from tests.pages import ROOT
from tests.trainers.reports import keep, same, write_analysis, write_sweep
from trainers.analysis.findings import findings
from trainers.evidence.__main__ import EvidenceConfig
from trainers.evidence.pages import SAID, begin, new_page, unfounded, with_parts
from trainers.evidence.program import judge_sweeps
from trainers.evidence.questions import answers, published_answers
from trainers.evidence.summary import Summary, summary_csv
from trainers.evidence.tables import tuned_texts
from trainers.figures.paper import draw_gradients
from trainers.reports.method_claims import judged, method_claims
from trainers.results.folders import read_series
from trainers.results.formats import markdown_table
from trainers.results.layout import ANALYSIS_TABLE, CHECKS, CONFIG, RESULT, RESULTS, STATUS, SUMMARY, TRIALS
from trainers.results.results_csv import read_results
from trainers.results.runs import read_analyses, read_runs, read_sweeps
from trainers.study.conditions import DYNAMIC
from trainers.study.failures import Trained, has_losses
from trainers.study.program import study_tables

FILES = {ANALYSIS_TABLE, CHECKS, CONFIG, RESULTS, STATUS, SUMMARY}
LARGEST = 1_500_000  # bytes per file, enough for 10,000 measured iterations
# A path from the root or from somebody's home, of at least two names: "1/2" and ".../mnist" are none.
PATHS = re.compile(r"(?:(?<=^)|(?<=[\s\"'=,(:\[]))[~/]+[\w.@+-]+/[\w.@+-]", re.MULTILINE)


def summary(sweep):
    """The tables and verdicts that follow from the other files."""
    return Summary(sweep.table(), sweep.runs, f"{sweep.task}, {sweep.subject}", sweep.terms).markdown()


def told(folder):
    """All that is told of the only sweep in a folder."""
    runs = read_runs([str(folder)])
    assert not runs.problems
    [sweep] = runs.sweeps
    table = sweep.table()
    return summary_csv(table), Summary(table, sweep.runs).markdown(), method_claims([judged(sweep)])


def test_a_table_alone_says_what_the_folder_of_the_sweep_says(tmp_path):
    sweep = write_sweep(tmp_path / "digits", same)
    for result in read_results(sweep):
        made = dataclasses.replace(result, environment={"threads": 1 + result.values["seed"] // 3})
        (sweep / TRIALS / result.trial / RESULT).write_text(made.to_json())
    kept = keep(sweep, tmp_path / "kept/digits")
    assert told(kept) == told(sweep)
    assert "Runs differ in threads: 1 (12 runs), 2 (6 runs)." in told(kept)[1]
    ours, theirs, alone = (judge_sweeps(EvidenceConfig((str(path),))) for path in (sweep, kept, kept / RESULTS))
    assert theirs == alone == ours
    assert "inconclusive" in ours


def test_the_table_of_a_gradient_analysis_gives_its_findings(tmp_path):
    folder, kept = write_analysis(tmp_path / "runs/gradients"), tmp_path / "kept/gradients"
    draw_gradients(folder, read_series(folder))
    kept.mkdir(parents=True)
    for name in (CONFIG, ANALYSIS_TABLE):
        shutil.copy(folder / name, kept)
    [ours], [theirs] = (read_runs([str(tmp_path / name)]).analyses for name in ("runs", "kept"))
    assert findings(theirs.series) == findings(ours.series)
    assert theirs.series["t"] == ours.series["t"]


FOLDERS = [str(ROOT / "docs/results"), str(ROOT / "docs/study")]
PAGES = [ROOT / page for page in ("README.md", "docs/results.md", "docs/analyses.md")]
KEPT = sorted(path for folder in FOLDERS for path in pathlib.Path(folder).glob("*/*"))


def test_nothing_large_and_nothing_of_a_machine_is_in_the_repository():
    assert {path.name for path in KEPT} <= FILES
    assert sum(path.stat().st_size for path in KEPT) < 5_000_000
    for path in KEPT:
        text = path.read_text()
        assert len(text) <= LARGEST, path
        assert not PATHS.search(text), path
        assert not re.search(rf"\b{re.escape(socket.gethostname())}\b", text), path
        if path.name == "config.json":
            assert set(json.loads(text)["machine"]) == {"cores", "processor", "python"}, path


def test_everything_in_the_repository_can_be_read():
    runs = read_runs(FOLDERS)
    assert not runs.problems
    assert all(len(sweep.runs) for sweep in runs.sweeps)


def test_tables_and_verdicts_of_the_documentation_are_those_of_the_runs_that_are_kept():
    for sweep in read_runs(FOLDERS).sweeps:
        assert (sweep.folder.path / "summary.md").read_text() == summary(sweep), sweep.folder.name
    sweeps, problems = read_sweeps(FOLDERS[:1])
    found, analyses = [*answers(sweeps), *published_answers()], read_analyses(FOLDERS[:1], problems)
    assert not problems
    for page in PAGES:
        assert new_page(page, sweeps, analyses, found, tuned_texts(sweeps)) == page.read_text(), page.name
        assert not unfounded(page.read_text(), found), page.name
    assert SAID.search((ROOT / "docs/results.md").read_text())
    studied = [Trained(sweep) for sweep in read_sweeps(FOLDERS[1:])[0] if has_losses(sweep)]
    tables = study_tables([trained for trained in studied if DYNAMIC in trained.methods])
    page = ROOT / "docs/dynamic_warmup.md"
    assert with_parts(page, {part: markdown_table(table) for part, table in tables.items()}) == page.read_text()


def test_every_difference_of_tuned_and_untuned_warmups_on_the_page_is_one_of_the_verdicts():
    page = (ROOT / "docs/results.md").read_text()
    verdicts = page.partition(begin("verdicts"))[2]
    table = page.partition("### Tuned against untuned")[2].partition("\n- ")[0]
    told = re.findall(r"([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\]", table)
    assert len(told) == 9
    for mean, low, high in told:
        assert re.search(rf"best period - \w+: \{mean} \w+, 90 % interval \{low} to \{high}, ", verdicts), mean
