"""The reproduction: every step once, whatever happens, and a page at the end."""

import csv
import json
import time

import psutil
import pytest
from tqdm import tqdm

from tests.trainers.helpers import finish, program, status
from trainers.engine.config import ConfigError, make_config
from trainers.reproduce import ReproductionConfig
from trainers.reproduction.progress import Progress
from trainers.reproduction.steps import STEPS
from trainers.sweeps.space import grid
from trainers.sweeps.sweep import sweep

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


def test_a_reproduction_runs_every_step_and_ends_with_the_path_of_a_page(whole):
    folder, said = whole
    assert [status(folder / name) for name in NAMES] == ["done\n"] * 3
    assert [len(results(folder / name)) for name in NAMES[1:]] == [12, 8]
    assert said[-1] == str(folder / "report.html")
    assert "1 of 3, Adam's updates at a simulated minimum: done in" in said[1]
    assert "first update: 1 to 1 alpha" in (folder / "logs/simulation.log").read_text()
    page = (folder / "report.html").read_text()
    assert all(name in page for name in NAMES)


def test_what_is_done_is_not_done_again(whole):
    folder, _ = whole
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.name != "report.html"}
    page = folder / "report.html"
    page.unlink()
    assert finish(start(folder))[0].splitlines() == [str(page)]
    assert page.exists()
    after = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path != page}
    assert {path: after[path] for path in after if path.is_file()} == {p: t for p, t in before.items() if p.is_file()}


def test_a_folder_of_other_experiments_is_refused_before_anything_runs(whole, tmp_path):
    document = json.loads((whole[0] / "simulation/config.json").read_text())
    document["config"]["variance"] = 1.0
    (tmp_path / "simulation").mkdir()
    (tmp_path / "simulation/config.json").write_text(json.dumps(document))
    _, errors = finish(start(tmp_path), code=2)
    assert "--output_dir must be new or hold this very run" in errors
    assert "variance=1.0, not 1e-09" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["simulation"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": ("digit",)}, "--only must be one of warmups, simulation, .* Received: 'digit'"),
        ({"workers": 0}, "--workers must be an integer >= 1. Received: 0"),
    ],
)
def test_flags_that_cannot_be_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        make_config(ReproductionConfig, options)


def test_the_steps_are_those_of_the_paper(tmp_path):
    configs = {step.name: step.config(tmp_path, workers=2) for step in STEPS}
    assert list(configs) == [
        *("warmups", "simulation", "gradients", "digits", "resnet", "language", "translation"),
        *("first_steps", "no_warmup"),
    ]
    sweeps = {step.name: grid(configs[step.name]) for step in STEPS if step.work is sweep}
    counts = {"digits": 81, "resnet": 9, "language": 9, "translation": 9, "first_steps": 12, "no_warmup": 6}
    assert {name: len(cells) for name, cells in sweeps.items()} == counts
    assert not any(tmp_path.iterdir())


def test_the_line_says_which_step_is_running_and_how_long_is_left(capsys, monkeypatch):
    steps = [step for step in STEPS if step.name in NAMES]
    known = steps[1].seconds + steps[2].seconds
    with Progress(steps, steps[:1], terminal=True) as progress:
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


@pytest.mark.slow
def test_a_step_that_fails_is_named_and_the_others_run(tmp_path):
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits/tuner").write_text("in the way of keras-tuner's folder")
    said, errors = finish(start(tmp_path), code=1)
    assert "2 of 3, rates and beta_2 on digits: FAILED:" in said
    assert f"failed: digits; the same command tries again. The page of all others: {tmp_path}/report.html" in errors
    assert status(tmp_path / "first_steps") == "done\n"
    assert "first_steps" in (tmp_path / "report.html").read_text()
    (tmp_path / "digits/tuner").unlink()
    assert finish(start(tmp_path))[0].splitlines()[-1] == str(tmp_path / "report.html")
    assert len(results(tmp_path / "digits")) == 12


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_where_it_was(whole, tmp_path):
    process = start(tmp_path)
    while not list(tmp_path.glob("digits/trials/*/result.json")):
        time.sleep(0.05)
    everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(everyone, timeout=20)
    assert not alive  # nobody goes on in a folder that the next start will use
    said = finish(start(tmp_path))[0].splitlines()
    assert not any("simulated minimum" in line for line in said)
    for name in NAMES[1:]:
        assert results(tmp_path / name) == results(whole[0] / name)
