"""The report without a browser: what it reads, what it refuses, and that its text is text."""

import html.parser
import json
import os
import re
import subprocess
import sys

import pytest

from tests.trainers import reports
from tests.trainers.browser import contrast, rows_of
from tests.trainers.helpers import ROOT, finish, program
from trainers.engine.flags import ConfigError
from trainers.figures.look import PLAIN
from trainers.reports.page import SCRIPTS, make_page
from trainers.reports.program import TITLE, write_report
from trainers.reports.sections import make_report
from trainers.reports.tables import paper_table
from trainers.results.methods import RIVAL_STYLES, STYLES, UNKNOWN_STYLE, VARIANTS
from trainers.results.paper import TABLES
from trainers.results.runs import read_runs
from trainers.results.tasks import OBJECTIVES
from trainers.study.checks import warmup_lines
from trainers.tasks import CONFIGS, load_task

MARKUP = "<img src=x onerror=alert(1)></script><!--"
FORMULA = ' d="$#ffffff^{&amp;'  # a path, mathtext, a colour


class Page(html.parser.HTMLParser):
    """The elements of a page and its text, apart from scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.text, self._inside = [], "", ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.text += data

    def handle_endtag(self, tag):
        self._inside = ""


def report(*folders, title=TITLE):
    return make_page(make_report(read_runs([str(folder) for folder in folders])).sections, title)


def downloads(page):
    """The rows of every file that the page offers."""
    links = [attributes for _, attributes in page.elements if "href" in attributes and "download" in attributes]
    return {link["download"]: rows_of(link["href"]) for link in links}


def test_a_single_run_gives_a_page_with_what_there_is(tmp_path):
    run = reports.write_run(tmp_path / "mine", records=reports.training_records(), results={"val_error": 0.125})
    page = Page(report(run))
    assert {"claims", "factors", "runs-1", "making"} <= {attributes.get("id") for _, attributes in page.elements}
    assert "Run: mine" in page.text
    assert "0.125" in page.text
    assert page.text.count("not measured") >= 10
    assert "2 cores of a processor, Python 3.11.7" in page.text
    assert str(tmp_path) not in page.text  # where it lies is nobody's business


def test_a_run_is_shown_with_what_its_records_say_about_its_warmup(tmp_path):
    records = reports.training_records()
    reports.write_run(tmp_path / "old", records=records)
    assert "to try next" not in Page(report(tmp_path)).text.lower()
    sizes = [1.0, 0.5, *[0.25] * 8]
    newer = [record | {"update_rms": size, "gradient_norm": 1.0} for record, size in zip(records, sizes, strict=True)]
    reports.write_run(tmp_path / "new", records=newer, beta_2=0.98, warmup="untuned_linear")
    text = Page(report(tmp_path)).text
    assert "Warmup: untuned_linear; at the full rate from update 50; it cost as much as 20.0 of 100 full" in text
    assert "Updates: the largest was 1.00 times the final level of 0.250 alpha; settled from update 30 on" in text
    assert "To try next: linear warmup over 100 (2 / (1 - beta_2)), 30 (where the updates settled)." in text


def test_a_run_with_every_update_recorded_has_a_verdict_on_its_warmup(tmp_path):
    """RAdam's four momentum steps have no size."""
    momentum = [{"step": t, "updates": t, "loss": 2.0, "warmup_factor": 0.0, "update_rms": None} for t in range(1, 5)]
    adam = [{"step": t, "updates": t, "loss": 2.0, "warmup_factor": 0.5, "update_rms": 0.09} for t in range(5, 41)]
    reports.write_run(tmp_path / "run", records=momentum + adam, beta_1=0.9, beta_2=0.9, warmup="radam")
    text = Page(report(tmp_path)).text
    assert "Warmup: too short (updates fell to 0.39 times the size of noise; limit 0.47); radam;" in text


def test_folders_are_found_below_and_once_but_trials_belong_to_their_sweep(tmp_path):
    reports.write_sweep(tmp_path / "runs/deep/sweep", reports.same)
    reports.write_run(tmp_path / "runs/mine", records=reports.training_records())
    (tmp_path / "runs/other").mkdir()
    (tmp_path / "runs/other/config.json").write_text('{"architectures": []}')  # of another program
    runs = read_runs([str(tmp_path / "runs"), str(tmp_path / "runs/mine")])
    assert [folder.name for folder in runs.folders] == ["deep/sweep", "mine"]
    assert len(runs.sweeps[0].runs) == 18
    trial = next((tmp_path / "runs/deep/sweep/trials").iterdir())
    assert [folder.task for folder in read_runs([str(trial)]).folders] == ["image_classification"]


def test_folders_of_one_name_are_told_apart(tmp_path):
    for root in ("a", "b", "c/b"):
        reports.write_run(tmp_path / root / "trials/run", records=reports.training_records())
    runs = read_runs([str(tmp_path / root) for root in ("a", "b", "c/b")])
    assert [folder.name for folder in runs.folders] == ["trials/run", "b/trials/run", "b/trials/run (2)"]


def test_errors_are_reported_in_a_line_and_nothing_is_written(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/config.json").write_text("{")
    output = tmp_path / "report.html"
    for roots, rule in (([], "at least one"), (["nowhere"], "folders of runs"), (["empty"], "config.json")):
        with pytest.raises(ConfigError, match=f"RUNS must .*{rule}.*Received"):
            write_report([str(tmp_path / root) for root in roots], str(output))
    with pytest.raises(ConfigError, match="readable JSON. Received: .*broken"):
        write_report([str(tmp_path / "broken")], str(output))
    run = reports.write_run(tmp_path / "run")
    for bad in (tmp_path, tmp_path / "no/folder/report.html"):
        with pytest.raises(ConfigError, match="--output must .*Received"):
            write_report([str(run)], str(bad))
    assert not output.exists()


def test_the_program_writes_the_page_and_says_where(tmp_path):
    run = reports.write_run(tmp_path / "mine", records=reports.training_records())
    output, _ = finish(program("trainers.report", str(run), f"--output={tmp_path}/a.html", "--title=Of mine"))
    assert output == f"written: {tmp_path}/a.html\n"
    assert "<title>Of mine</title>" in (tmp_path / "a.html").read_text()
    _, errors = finish(program("trainers.report", str(tmp_path / "nowhere")), code=2)
    assert errors.splitlines()[-1].startswith("error: RUNS must be folders of runs. Received")
    assert "Traceback" not in errors


def test_flags_need_no_matplotlib_and_the_page_no_tensorflow():
    code = "import sys, trainers.reports.program; sys.exit('matplotlib' in sys.modules)"
    more = "import sys, trainers.reports.page; sys.exit('tensorflow' in sys.modules)"
    for each in (code, more):
        subprocess.run([sys.executable, "-c", each], cwd=ROOT, env={**os.environ, "KERAS_BACKEND": "numpy"}, check=True)


def test_nothing_points_outside_the_file(tmp_path):
    page = Page(report(reports.write_sweep(tmp_path / "sweep", reports.same)))
    for tag, attributes in page.elements:
        assert tag not in ("iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "action", "poster", "srcset"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:")), (tag, attributes)
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy


@pytest.mark.parametrize("hostile", [MARKUP, FORMULA])
def test_text_from_configs_and_file_names_is_text(tmp_path, hostile):
    name = hostile.replace("/", "|")  # what a file's name can have
    config = {"dataset": hostile, "model": hostile}
    grid = {**reports.GRID, "warmup": ["radam", hostile.replace("/", "|")]}
    reports.write_sweep(tmp_path / "runs" / name, reports.same, grid, status=f"failed: {hostile}", **config)
    reports.write_run(tmp_path / "runs/run", records=reports.training_records(), results={hostile: hostile}, **config)
    reports.write_run(tmp_path / "runs/=1+1", records=reports.training_records())
    text = report(tmp_path / "runs", title=hostile)
    page, clean = Page(text), Page(report(reports.write_run(tmp_path / "clean")))
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in clean.elements}
    assert not any(key.startswith("on") for _, attributes in page.elements for key in attributes)
    assert [tag for tag, _ in page.elements].count("script") == len(SCRIPTS)
    assert hostile in page.text
    assert page.text.count(f"{name}, seed 1") == 4  # titles of lines: two metrics in each of two cells
    assert hostile in {row[0] for row in downloads(page)["runs_1.csv"]}
    assert "'=1+1" in {row[0] for row in downloads(page)["folders.csv"]}


def test_a_sweep_that_is_running_or_was_killed_shows_what_there_is(tmp_path):
    def so_far(**point):
        return reports.same(**point) if point["seed"] < 3 else None

    folder = reports.write_sweep(tmp_path / "sweep", so_far, status="running")
    started = next(path for path in (folder / "trials").iterdir() if not (path / "result.json").exists())
    with (started / "metrics.jsonl").open("a") as file:
        file.write('{"step": 110, "upd')  # the kill came here
    sweep = read_runs([str(folder)]).sweeps[0]
    assert (len(sweep.runs), sweep.planned, len(sweep.trials)) == (12, 18, 18)
    running = [trial for trial in sweep.trials if trial.status == "running"]
    assert {(trial.method, trial.seed) for trial in running} == {(method, 3) for method in reports.METHODS}
    assert [len(trial.records) for trial in running] == [10] * 6
    text = Page(report(folder)).text
    assert "12 of 18 runs are finished; status: running, or killed before its end" in text
    assert "inconclusive; 6 planned runs have no result" in text


def test_records_that_no_axis_can_show_cost_only_themselves(tmp_path):
    losses = {"nan": float("nan"), "infinite": float("inf"), "null": None, "large": 1e308, "small": 5e-324}
    for name, loss in losses.items():
        records = [
            record | {"loss": (-1) ** at * loss if loss else loss}
            for at, record in enumerate(reports.training_records())
        ]
        reports.write_run(tmp_path / "runs" / name, records=records)
    for name, change in {"text": {"loss": "1"}, "list": {"loss": [1]}, "when": {"updates": "x"}}.items():
        reports.write_run(tmp_path / "runs" / name, records=[record | change for record in reports.training_records()])
    page = Page(report(tmp_path / "runs"))
    assert [row[0] for row in downloads(page)["runs_1.csv"]] == ["run", *sorted(losses)]
    assert all(f"Left out: .../runs/{name} " in page.text for name in ("text", "list", "when"))


def test_a_sweep_whose_numbers_no_table_can_hold_costs_only_itself(tmp_path):
    reports.write_sweep(tmp_path / "runs/large", lambda **_: 1e308)  # infinite in per cent
    reports.write_sweep(tmp_path / "runs/sweep", reports.same)
    runs = make_report(read_runs([str(tmp_path / "runs")])).runs
    assert [sweep.folder.name for sweep in runs.sweeps] == ["sweep"]
    assert len(runs.problems) == 1
    assert "objective" in runs.problems[0]


def test_runs_that_diverged_or_failed_are_counted(tmp_path):
    folder = reports.write_sweep(tmp_path / "sweep", lambda **p: float("nan") if p["seed"] == 2 else reports.same(**p))
    text = Page(report(folder)).text
    assert "6 runs diverged" in text
    assert "(2 of 3; 1 diverged)" in text


def test_a_run_under_way_is_told_by_its_config(tmp_path):
    methods = ["radam", "radam_nothing", "none"]
    folder = reports.write_sweep(tmp_path / "sweep", lambda **_: None, {**reports.GRID, "warmup": methods})
    assert {trial.method for trial in read_runs([str(folder)]).sweeps[0].trials} == set(methods)


def test_a_folder_that_has_only_begun_is_listed(tmp_path):
    reports.write_run(tmp_path / "runs/simulation", "simulate", status="running", warmup="none")
    reports.write_run(tmp_path / "runs/analysis", "gradient_analysis", status="running")
    reports.write_run(tmp_path / "runs/run", status="running")
    reports.write_run(tmp_path / "runs/sweep", "sweep of image_classification", status="running")
    page = Page(report(tmp_path / "runs"))
    assert page.text.count("running, or killed before its end") >= 4


def test_objectives_are_those_of_the_tasks():
    assert set(OBJECTIVES) == set(CONFIGS) == set(TABLES)
    for name, task in ((name, load_task(name)) for name in CONFIGS):
        assert (OBJECTIVES[name].metric, OBJECTIVES[name].direction) == (f"val_{task.objective}", task.direction)


def test_a_task_of_ones_own_is_judged_as_its_sweep_says(tmp_path):
    folder = reports.write_sweep(tmp_path / "sweep", reports.same, task="my_task")
    config = json.loads((folder / "config.json").read_text())
    recorded = {"resolved": {"objective": "val_score", "direction": "max"}}
    (folder / "config.json").write_text(json.dumps(config | recorded))
    table = read_runs([str(folder)]).sweeps[0].table()
    assert (table.objective, table.direction) == ("validation score", "max")
    assert "my_task: Untuned exponential" in Page(report(folder)).text


def test_errors_are_per_cent_as_in_the_paper(tmp_path):
    folder = reports.write_sweep(tmp_path / "sweep", lambda **point: 0.07)
    table = read_runs([str(folder)]).sweeps[0].table()
    assert {cell.mean for cell in table.cells.values()} == {7.0}


def test_the_papers_tables_are_the_papers():
    assert [len(table.rows) for table in TABLES.values()] == [9, 9, 12]
    assert TABLES["image_classification"].rows[-1] == (1e-2, 0.999, ((28.9, 0.2), (28.7, 0.1), (29.8, 0.4)))
    assert TABLES["language_modeling"].rows[6] == (5e-4, 0.99, ((24.4, 2.4), (24.1, 1.4), (26.0, 1.8)))
    assert TABLES["machine_translation"].rows[10] == (1e-4, 0.998, ((25.9, 0.9), (26.5, 0.1), (26.6, 0.0)))
    shown = paper_table("paper", TABLES["image_classification"])
    assert shown.paper
    assert shown.rows[0] == ["1e-4", "0.99", "34.2 % ± 0.1", "34.2 % ± 0.1", "34.2 % ± 0.1"]
    assert shown.records[1] == [1e-4, 0.99, "untuned_exponential", 34.2, 0.1, 5]


@pytest.mark.parametrize("dark", [False, True])
def test_every_line_of_a_figure_has_enough_contrast_by_day_and_at_night(dark):
    css = (ROOT / "trainers/reports/page.css").read_text()
    day, night = re.findall(r":root \{(.*?)\}", css, re.S)[:2]
    found = dict(re.findall(r"--([\w]+): (#\w{6})", day + night * dark))
    styles = [*STYLES.values(), *VARIANTS.values(), *RIVAL_STYLES.values(), UNKNOWN_STYLE]
    for colour in {PLAIN, "#000000", "#555555", "#666666", *(style.colour for style in styles)}:
        assert contrast(found.get(f"c{colour[1:].lower()}", colour), found["paper"]) >= 3, colour


def test_no_text_of_a_status_or_an_error_shows_a_home_folder(tmp_path):
    status = "failed: [Errno 28] No space left on device: '/home/somebody/runs/x/metrics.jsonl'"
    reports.write_run(tmp_path / "runs/run", status=status, records=reports.training_records(), data="~/data/digits")
    reports.write_sweep(tmp_path / "runs/sweep", reports.same, status=status)
    (tmp_path / "runs/run/results.json").write_text("{")
    text = report(tmp_path / "runs")
    assert "somebody" not in text
    assert str(tmp_path) not in text
    assert "No space left on device: &#39;.../metrics.jsonl&#39;" in text


def test_the_differences_have_a_figure_and_the_papers_beside(tmp_path):
    folder = reports.write_sweep(tmp_path / "sweep", reports.same)
    page = Page(report(folder))
    wide, narrow = [attributes for tag, attributes in page.elements if tag == "svg"][:2]
    assert wide["aria-label"] == narrow["aria-label"]
    assert "200-100-50 network, 4,000 digits (sweep): Verdict on untuned_exponential" in wide["aria-label"]
    assert "Machine translation, WMT16 English-German (the paper's table): Verdict on" in wide["aria-label"]
    assert len(re.findall(r"RAdam − Untuned linear: [+-][\d.]+ points \[", page.text)) >= 2  # titles of its lines
    assert "$" not in page.text
    assert "Machine translation, WMT16 English-German (the paper's table)" in page.text


def test_a_run_that_was_lost_is_not_told_that_nothing_is_wrong_with_its_warmup():
    """Records have null where a number is not finite."""
    sizes = [0.3] * 40 + [None] * 2
    records = [
        {"updates": t, "update_rms": size, "warmup_factor": 1.0, "gradient_norm": 1.0, "loss": 2.0}
        for t, size in enumerate(sizes, 1)
    ]
    config = {"warmup": "none", "beta_1": 0.9, "beta_2": 0.999}
    assert warmup_lines(records[:40], config)[0].startswith("warmup: no sign that it is too short")
    assert warmup_lines(records, config)[1].startswith("updates: not finite from update 41 on")
    assert "no sign" not in warmup_lines(records, config)[0]
