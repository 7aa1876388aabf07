"""The reproduction: every step once, whatever happens, and a page at the end."""

import contextlib
import csv
import dataclasses
import json
import shutil
import time

import psutil
import pytest
from tqdm import tqdm

from tests.pages import ROOT
from tests.trainers.helpers import finish, program, status
from trainers.engine.flags import make_config
from trainers.reproduce import ReproductionConfig, _ray_for, reproduce
from trainers.reproduction.progress import StepProgress
from trainers.reproduction.steps import FULL, PLANS, QUICK
from trainers.sweeps.cluster import Started
from trainers.sweeps.space import grid
from trainers.system.errors import ConfigError

pytestmark = pytest.mark.xdist_group("ray")
MODULE = "tests.trainers.tiny_reproduction"
NAMES = ("simulation", "digits", "first_steps")


def start(folder, *more):
    return program(MODULE, f"--output_dir={folder}", "--workers=2", *more)


def results(folder):
    """Every run of a sweep without the seconds it took."""
    rows = csv.DictReader((folder / "results.csv").read_text().splitlines())
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reproduction") / "run"
    return folder, finish(start(folder))[0].splitlines()


@pytest.mark.slow
def test_a_reproduction_runs_every_step_and_ends_with_the_path_of_a_page(whole):
    folder, said = whole
    assert [status(folder / name) for name in NAMES] == ["done\n"] * 3
    assert [len(results(folder / name)) for name in NAMES[1:]] == [8, 8]
    assert said[-1] == str(folder / "report.html")
    assert said[-5].startswith("Use untuned linear warmup")  # the answer, in four lines
    assert said[-2].startswith("These results are from")
    assert said[3] == "On two cores: 5 min in total, 5 min of it remaining."
    assert "1 of 3, Adam's updates at a simulated minimum: done in" in said[5]
    assert "first update: 1 to 1 alpha" in (folder / "logs/simulation.log").read_text()
    page = (folder / "report.html").read_text()
    assert all(name in page for name in NAMES)


@pytest.mark.slow
def test_what_is_done_is_not_done_again(whole):
    folder, _ = whole
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "report.html"}
    page = folder / "report.html"
    page.unlink()
    said = finish(start(folder))[0].splitlines()
    assert (said[-6], said[-1]) == ("On two cores: 5 min in total, 0 s of it remaining.", str(page))
    assert all(line.endswith("(done)") for line in said[:-6])
    assert page.exists()
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path != page}
    assert {path: after[path] for path in after if path.is_file()} == {p: t for p, t in before.items() if p.is_file()}


@pytest.mark.slow
def test_a_folder_of_other_experiments_is_refused_before_anything_runs(whole, tmp_path):
    document = json.loads((whole[0] / "simulation/config.json").read_text())
    document["config"]["variance"] = 1.0
    (tmp_path / "simulation").mkdir()
    (tmp_path / "simulation/config.json").write_text(json.dumps(document))
    _, errors = finish(start(tmp_path), code=2)
    assert "--output_dir must be new or hold this run" in errors
    assert "variance=1.0, not 1e-09" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["simulation"]


@pytest.mark.slow
def test_the_full_reproduction_adds_to_the_quick_one_and_the_quick_one_takes_nothing_away(whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole[0], folder)
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/trials/*/result.json")}
    said = finish(start(folder, "--full"))[0].splitlines()
    assert said[1].endswith("RAdam with other first steps (67 % done)")
    assert "Skipped, because --data lacks their data: mnist." in said
    assert len(results(folder / "first_steps")) == 12  # 4 rules x 3 seeds
    assert [row for row in results(folder / "first_steps") if row["seed"] != "3"] == results(whole[0] / "first_steps")
    after = {path: path.stat().st_mtime_ns for path in folder.glob("*/trials/*/result.json")}
    assert {path: after[path] for path in before} == before
    assert all(line.endswith("(done)") for line in finish(start(folder))[0].splitlines()[:3])
    assert len(results(folder / "first_steps")) == 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ("digit",)}, "--only must be one of warmups, simulation, .* Received: 'digit'"),
        ({"workers": 0}, "--workers must be an integer between 1 and 1024. Received: 0"),
        ({"data": "."}, "--data is for --full. Received: '.'"),
        ({"only": ("mnist",)}, "--only must be one of warmups, .*, first_steps without --full. Received: 'mnist'"),
        ({"full": True, "data": "/nowhere"}, "--data must be a folder. Received: '/nowhere'"),
        ({"only": ("mnist",), "full": True}, "--data must be a folder with mnist for --only=mnist. Received: None"),
    ],
)
def test_flags_that_cannot_be_and_steps_that_cannot_run_are_refused(options, message, tmp_path):
    with pytest.raises(ConfigError, match=message):
        reproduce(make_config(ReproductionConfig, {"output_dir": str(tmp_path), **options}))
    assert not any(tmp_path.iterdir())


QUICK_STEPS = ("warmups", "simulation", "gradients", "digits", "resnet", "language", "translation", "first_steps")
ONLY_FULL = ("gradients_emnist", "translation_first_steps", "mnist", "emnist", "wikitext2", "multi30k", "imagenette")
QUICK_RUNS = {"digits": 108, "resnet": 12, "language": 12, "translation": 12, "first_steps": 12}
FULL_RUNS = {"first_steps": 160, "language": 24, "digits": 360, "translation": 40, "translation_first_steps": 40}
FULL_RUNS |= {"mnist": 160, "emnist": 160, "resnet": 168, "digits_tuned": 810, "language_tuned": 54}
FULL_RUNS |= {"translation_tuned": 90, "wikitext2": 40, "multi30k": 96, "imagenette": 160}


def test_the_steps_are_those_of_the_paper_and_the_full_ones_have_the_runs_of_the_quick_ones_and_more(tmp_path):
    assert PLANS.places == (*QUICK_STEPS, *ONLY_FULL)
    assert tuple(step.name for step in QUICK) == QUICK_STEPS
    cells = {}
    for steps, counts in ((QUICK, QUICK_RUNS), (FULL, FULL_RUNS)):
        sweeps = [step for step in steps if step.is_sweep]
        runs = [{cell.name for cell in grid(step.config(tmp_path, workers=2, data="/data"))} for step in sweeps]
        assert {step.name: len(names) for step, names in zip(sweeps, runs, strict=True)} == counts
        for step, names in zip(sweeps, runs, strict=True):
            assert names >= cells.get(step.place, set()), step.name
            cells[step.place] = names
    assert not any(tmp_path.iterdir())


def test_every_sweep_has_a_control_without_warmup_and_the_default_cell_where_its_runs_are_long_enough(tmp_path):
    sweeps = {step.name: step.config(tmp_path, 2, "/data") for step in FULL if step.task.startswith("sweep")}
    for name in ("first_steps", "translation_first_steps"):
        del sweeps[name]
    assert all("none" in config.warmups for config in sweeps.values())
    long_enough = {"digits", "mnist", "emnist", "wikitext2", "multi30k"}
    assert {name for name, config in sweeps.items() if 0.999 in config.beta_2s} == {*long_enough, "digits_tuned"}


def test_a_dry_run_tells_the_plan_and_writes_nothing(tmp_path, capsys):
    (tmp_path / "data/mnist").mkdir(parents=True)
    options = {"output_dir": str(tmp_path / "run"), "dry_run": True, "full": True, "data": str(tmp_path / "data")}
    lines = reproduce(make_config(ReproductionConfig, options)).splitlines()
    named = [line.split()[0] for line in lines[:-2]]
    assert named == [step.name for step in FULL if not step.data or step.name == "mnist"]
    assert lines[-2].startswith("On two cores: ")
    assert lines[-1] == (
        "Skipped, because --data lacks their data: gradients_emnist, emnist, wikitext2, multi30k, imagenette."
    )
    assert not (tmp_path / "run").exists()
    assert capsys.readouterr().out == ""


def test_the_full_plan_takes_the_time_that_its_help_says():
    (full,) = (field for field in dataclasses.fields(ReproductionConfig) if field.name == "full")
    assert "about five and a half hours" in full.metadata["help"]
    assert 5.25 * 3600 < sum(step.seconds for step in FULL) < 5.75 * 3600
    assert sum(step.seconds for step in QUICK) < 15 * 60


def test_the_line_says_which_step_is_running_and_how_long_is_left(capsys, monkeypatch):
    steps = [step for step in QUICK if step.name in NAMES]
    known = steps[1].seconds + steps[2].seconds
    with StepProgress(steps, {steps[0].name: 1.0}, terminal=True) as progress:
        progress.begin(steps[1])
        assert str(progress._bar).startswith(f"about {tqdm.format_interval(known)} left |")
        now = time.monotonic() + steps[1].seconds
        monkeypatch.setattr(time, "monotonic", lambda: now)
        progress.show(steps[1], (40, 80, "runs"))  # half of it took as long as all of it should
        assert str(progress._bar).endswith("| 2 of 3, rates and beta_2 on digits: 40 of 80 runs")
        minutes, seconds = str(progress._bar).split()[1].split(":")
        assert known - steps[1].seconds / 2 < 60 * int(minutes) + int(seconds) < 2 * known
        progress.end(steps[1])
    assert f"2 of 3, rates and beta_2 on digits: done in {steps[1].seconds} s" in capsys.readouterr().out


def test_what_was_done_before_does_not_count_as_speed():
    [step] = [step for step in FULL if step.name == "multi30k"]
    with StepProgress([step], {step.name: 0.5}, terminal=True) as progress:
        progress.begin(step)
        progress.show(step, (48, 96, "runs"))
        assert str(progress._bar).startswith(f"about {tqdm.format_interval(step.seconds / 2)} left |")


@pytest.mark.slow
def test_a_step_that_fails_is_named_and_the_others_run(whole, tmp_path):
    in_the_way = [tmp_path / "digits/trials" / trial.name for trial in (whole[0] / "digits/trials").iterdir()]
    in_the_way[0].parent.mkdir(parents=True)
    shutil.copy(whole[0] / "digits/config.json", tmp_path / "digits")  # its own run, as far as it can tell
    for path in in_the_way:
        path.write_text("in the way of the folder of a trial")
    said, errors = finish(start(tmp_path), code=1)
    assert "2 of 3, rates and beta_2 on digits: FAILED:" in said
    assert (
        f"failed: digits; run the same command again to retry. The page of the other steps: {tmp_path}/report.html"
        in errors
    )
    assert status(tmp_path / "first_steps") == "done\n"
    assert "first_steps" in (tmp_path / "report.html").read_text()
    assert status(tmp_path / "digits") == "incomplete: 0 failed, 8 missing\n"
    for path in in_the_way:
        path.unlink()
    assert finish(start(tmp_path))[0].splitlines()[-1] == str(tmp_path / "report.html")
    assert len(results(tmp_path / "digits")) == 8


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_where_it_was(whole, tmp_path):
    process = start(tmp_path)
    while not list(tmp_path.glob("digits/trials/*/result.json")):
        time.sleep(0.05)
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    everyone = [each for each in everyone if not each.name().endswith("Agent")]  # Ray's, which write nothing
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(everyone, timeout=20)
    assert not alive  # nobody goes on in a folder that the next start will use
    said = finish(start(tmp_path))[0].splitlines()
    assert not any("1 of 3, Adam's updates" in line for line in said)
    for name in NAMES[1:]:
        assert results(tmp_path / name) == results(whole[0] / name)


def test_ray_is_started_once_for_all_sweeps_unless_there_is_one(monkeypatch):
    starts = []

    @contextlib.contextmanager
    def started(cpus):
        starts.append(cpus)
        yield Started({"RAY_ADDRESS": "here"}, "")

    monkeypatch.setattr("trainers.reproduce.started", started)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with _ray_for(QUICK, 2) as environment:
        assert environment == {"RAY_ADDRESS": "here"}
    without_sweeps = [step for step in QUICK if not step.is_sweep]
    for steps, workers, address in ((QUICK, 1, ""), (without_sweeps, 2, ""), (QUICK, 2, "host:6379")):
        monkeypatch.setenv("RAY_ADDRESS", address)
        with _ray_for(steps, workers) as environment:
            assert environment == {}
    assert starts == [2]


def test_a_copy_of_kept_results_counts_as_done(tmp_path):
    shutil.copytree(ROOT / "docs/results", tmp_path / "run")
    places = [place for step in FULL for place in step.data.values()]
    for place in places:
        (tmp_path / "data" / place).mkdir(parents=True, exist_ok=True)
    options = {"output_dir": str(tmp_path / "run"), "full": True, "data": str(tmp_path / "data"), "dry_run": True}
    config = make_config(ReproductionConfig, options)
    lines = reproduce(config).splitlines()
    assert [line.split()[0] for line in lines if not line.endswith("(done)")] == ["warmups", "simulation", "On"]
    kept = tmp_path / "run/first_steps/results.csv"
    kept.write_text("".join(kept.read_text().splitlines(keepends=True)[: 1 + 40]))
    (tmp_path / "run/first_steps/status").write_text("stopped\n")
    assert "RAdam with other first steps (25 % done)" in reproduce(config)
