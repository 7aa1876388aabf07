"""The programs of the paper's analyses: what they write, what they say, and what they refuse."""

import csv
import json
import re
import xml.etree.ElementTree

import numpy as np
import pytest

from tests.trainers.helpers import finish, program
from tfwarmup import WARMUPS, effective_warmup_period, factors
from trainers.engine.flags import make_config
from trainers.figures.config import SimulationConfig, WarmupConfig
from trainers.figures.look import write_csv
from trainers.figures.programs import draw_warmups, simulate
from trainers.results.methods import DRAWN, FIRST_STEPS_OF, STYLES, VARIANTS
from trainers.system.errors import ConfigError


def read_csv(path):
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


def assert_figure(folder, name):
    """SVG, PNG, PDF and CSV are there, whole; the PDF has the width of a column."""
    assert xml.etree.ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / f"{name}.svg").stat().st_size < 200_000
    pdf = (folder / f"{name}.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert re.findall(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf) == [b"237.6"]  # 3.3 inches
    return read_csv(folder / f"{name}.csv")


def run_simulation(folder, **options):
    return simulate(make_config(SimulationConfig, {"output_dir": str(folder), "parameters": 2000, **options}))


def test_the_simulation_writes_its_quantiles_and_says_what_they_are(tmp_path):
    said = run_simulation(tmp_path)
    columns = assert_figure(tmp_path, "update_magnitudes")
    assert list(columns) == ["t", "q05", "q25", "median", "q75", "q95"]
    np.testing.assert_array_equal(columns["t"], np.arange(1, 1001))
    assert [columns[name][0] for name in ("q05", "median", "q95")] == pytest.approx([1, 1, 1], rel=2e-7)
    assert f"median {columns['median'][39]:.4f} alpha (paper: about 0.16" in said
    assert (tmp_path / "status").read_text() == "done\n"


def test_a_simulation_again_is_the_same_and_another_is_refused(tmp_path):
    run_simulation(tmp_path, iterations=20)
    before = (tmp_path / "update_magnitudes.csv").read_text()
    run_simulation(tmp_path, iterations=20)
    assert (tmp_path / "update_magnitudes.csv").read_text() == before
    with pytest.raises(ConfigError, match="--output_dir must be new or hold this run"):
        run_simulation(tmp_path, iterations=20, warmup="untuned_linear")
    assert (tmp_path / "update_magnitudes.csv").read_text() == before


@pytest.mark.parametrize("options", [{"parameters": 0}, {"beta_2": 1.0}, {"warmup": "linear"}, {"first_steps": "sgd"}])
def test_bad_input_writes_nothing(options, tmp_path):
    with pytest.raises(ConfigError, match="Received"):
        run_simulation(tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_the_figures_of_the_warmups_hold_the_librarys_numbers(tmp_path):
    said = draw_warmups(make_config(WarmupConfig, {"output_dir": str(tmp_path), "updates": 50}))
    assert "RAdam                    1033.3247 updates" in said
    omega = assert_figure(tmp_path, "factors")
    np.testing.assert_allclose(omega["radam"], factors.radam(np.arange(1, 51), 0.999), rtol=1e-8)
    periods = assert_figure(tmp_path, "effective_warmup")
    assert (periods["beta_2"][0], periods["beta_2"][-1]) == (0.9, 0.9999)
    for name in DRAWN:
        assert periods[name][-1] == pytest.approx(effective_warmup_period(name, beta_2=0.9999), rel=1e-8)


def test_effective_warmup_refuses_what_radam_refuses(tmp_path):
    for options in ({"beta_2": 0.5}, {"updates": 1}):
        with pytest.raises(ConfigError, match="Received"):
            draw_warmups(make_config(WarmupConfig, {"output_dir": str(tmp_path / "run"), **options}))
    assert not (tmp_path / "run").exists()


def test_every_warmup_has_a_look_of_its_own():
    assert list(STYLES) == list(WARMUPS)
    assert set(VARIANTS) == set(FIRST_STEPS_OF)
    assert len({(style.colour, style.dash) for style in STYLES.values()}) == len(STYLES)
    rules = [STYLES["radam"], *VARIANTS.values()]
    assert len({style.colour for style in rules}) == len({style.dash for style in rules}) == len(rules)
    shown = [STYLES[name] for name in ("none", *DRAWN)]
    assert len({style.dash for style in shown}) == len(shown)  # readable without colours
    weights = ((1, 0.3), (3, 0.59), (5, 0.11))
    luminance = [sum(int(style.colour[i : i + 2], 16) * w for i, w in weights) for style in shown]
    assert min(np.diff(sorted(luminance))) > 15


def test_a_missing_number_is_an_empty_cell(tmp_path):
    write_csv(tmp_path / "a.csv", {"t": [1, 2], "value": [0.1, float("nan")]})
    assert (tmp_path / "a.csv").read_text() == "t,value\n1,0.1\n2,\n"


def test_the_programs_run_as_the_documentation_says(tmp_path):
    output, _ = finish(program("trainers.simulate", "--iterations=50", f"--output_dir={tmp_path}/s"))
    assert "second half: median" in output
    assert json.loads((tmp_path / "s/config.json").read_text())["config"]["parameters"] == 25_000
