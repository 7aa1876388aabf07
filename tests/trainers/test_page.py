"""The page in a real browser: its answer, its slider, its tables, on a screen and on a phone."""

import json
import time

import numpy as np
import pytest
from selenium.webdriver.common.by import By

from tests.trainers import reports
from tests.trainers.browser import curves, download, factor_table, look, needs_browser, run, set_input, wait_until_ready
from tfwarmup import effective_warmup_period, warmups
from tfwarmup.factors import momentum_steps, rho_inf
from trainers.evidence.summary import COLUMNS
from trainers.results.methods import DRAWN

pytestmark = needs_browser


def test_it_opens_without_errors_and_without_any_request(opened):
    assert [entry for entry in opened.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("beta-slider", 1), ("beta-slider", 2.7), ("beta-number", 0.9987), ("beta-slider", 4)]
)
def test_the_slider_shows_the_librarys_numbers(opened, name, value):
    set_input(opened, name, value)
    beta_2 = float(run(opened, "return document.getElementById('beta-number').value"))
    assert beta_2 == (value if name == "beta-number" else pytest.approx(1 - 10**-value, abs=1e-6))
    shown, table = curves(opened), factor_table(opened)
    for method, (t, omega, _) in zip(DRAWN, shown.values(), strict=True):
        factor = warmups.get(method, beta_2=beta_2)
        np.testing.assert_allclose(omega, factor(t), rtol=1e-9, atol=1e-15)
        assert float(table["period"][method]) == pytest.approx(effective_warmup_period(method, beta_2=beta_2), rel=1e-9)
        updates = factor(np.arange(1, 100_001))
        for row, level in (("half", 0.5), ("nearly", 0.95)):
            assert int(table[row][method]) == np.argmax(updates >= level) + 1
        assert float(table["fifth"][method]) == pytest.approx(factor(5), rel=1e-9)
    assert int(table["momentum"]["radam"]) == momentum_steps(beta_2)
    assert float(table["rho_inf"]["radam"]) == pytest.approx(rho_inf(beta_2), rel=1e-12)
    assert float(table["constant"]["untuned_linear"]) == pytest.approx(2 / (1 - beta_2), rel=1e-12)
    assert f"RAdam at β₂ = {beta_2}: updates 1 to 4 are momentum steps" in opened.find_element(By.ID, "phases").text


def test_a_value_that_cannot_be_changes_nothing(opened):
    before = factor_table(opened)
    for value in ("1", "0.5", "", "abc"):
        set_input(opened, "beta-number", value)
        assert opened.find_element(By.ID, "beta-number").get_attribute("aria-invalid") == "true"
    assert factor_table(opened) == before
    set_input(opened, "beta-number", 0.99)
    assert opened.find_element(By.ID, "beta-number").get_attribute("aria-invalid") is None


def test_the_axis_can_be_the_papers(opened):
    run(opened, "document.getElementById('scale-linear').click()")
    t, omega, _ = curves(opened)["RAdam"]
    assert t[-1] == 5000
    np.testing.assert_allclose(omega, warmups.Rectified(0.999)(t), rtol=1e-9)


def test_a_table_can_be_downloaded_with_every_digit(opened):
    rows = download(opened, "sweep_1")
    assert rows[0] == ["learning_rate", "beta_2", "warmup", *COLUMNS]
    assert len(rows) == 1 + 2 * 3
    first = rows[1]
    assert first[:3] == ["0.001", "0.999", "untuned_exponential"]
    expected = np.mean([100 * reports.same(1e-3, 0.999, "untuned_exponential", seed) for seed in (1, 2, 3)])
    assert float(first[3]) == pytest.approx(expected, rel=1e-12)
    paper = download(opened, "paper_image_classification_1")
    assert len(paper) == 1 + 27
    assert paper[-1] == ["0.01", "0.999", "radam", "29.8", "0.4", "5"]


def test_the_table_below_the_slider_is_downloaded_as_it_is(opened):
    set_input(opened, "beta-number", 0.99)
    rows = download(opened, "warmup_factors")
    assert rows[0] == ["beta_2 = 0.99", *DRAWN]
    assert float(rows[1][3]) == pytest.approx(effective_warmup_period("radam", beta_2=0.99), rel=1e-9)


def test_what_a_folder_is_called_is_neither_markup_nor_a_formula(opened):
    assert opened.find_elements(By.CSS_SELECTOR, "section b, section img:not([src^='data:image/svg'])") == []
    names = {row[0] for row in download(opened, "folders")}
    assert "'=mine, <b>" in names


def test_every_table_and_every_chart_has_its_buttons(opened):
    counted = "return arguments[0].map(each => document.querySelectorAll(each).length)"
    tables, buttons = run(opened, counted, ["table:not(.numbers table)", "button[data-csv]"])
    assert tables == buttons
    charts, *buttons = run(opened, counted, [".chart", ".chart-csv", ".chart-png", ".numbers"])
    assert buttons == [charts] * 3


@pytest.mark.parametrize("width", [320, 375])
def test_a_phone_scrolls_down_only(opened, width):
    look(opened, width)
    opened.refresh()
    wait_until_ready(opened)
    assert run(opened, "return document.documentElement.scrollWidth") <= width
    assert run(opened, "return Math.max(...[...document.querySelectorAll('svg')].map(e => e.clientWidth))") <= width
    controls = [
        "return Math.min(...[...document.querySelectorAll('button, select, #beta-slider')]",
        ".filter(e => e.checkVisibility()).map(e => e.offsetHeight))",
    ]
    assert run(opened, "".join(controls)) >= 32  # a finger can hit them


@pytest.mark.parametrize(("width", "narrow"), [(320, True), (390, True), (1280, False)])
def test_a_phone_has_its_own_picture_of_the_differences(opened, width, narrow):
    look(opened, width)
    opened.refresh()
    wait_until_ready(opened)
    script = """
        const picture = document.querySelector('#differences .picture img'), figure = picture.closest('figure');
        return [picture.currentSrc !== picture.src, picture.naturalWidth, picture.clientWidth, figure.clientWidth]"""
    is_narrow, natural, shown, room = run(opened, script)
    assert is_narrow == narrow
    assert shown <= room  # nothing to scroll
    assert natural < 300 if narrow else natural > 600  # its letters are not shrunk


@pytest.mark.parametrize("width", [320, 375])
def test_every_table_fits_a_phone(opened, width):
    look(opened, width)
    run(opened, "for (const e of document.querySelectorAll('details')) e.open = true")
    script = """
        return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)
            .map(e => e.querySelector('table').id || e.textContent.slice(0, 60))"""
    assert run(opened, script) == []


@pytest.mark.parametrize(
    ("beta_2", "updates", "text"),
    [
        (0.999, 100_000, "takes 2,000 updates at β₂ = 0.999. That is 2 % of your 100,000 updates."),
        (0.99, 300, "takes 200 updates at β₂ = 0.99. That is 66.67 % of your 300 updates. Use a smaller β₂"),
        (0.999, 500, "Your run ends first, at 25 % of the learning rate. Use a smaller β₂, or choose a shorter"),
        (0.999, 500, "LinearWarmup(rate, period=50) takes 10 %."),
    ],
)
def test_the_share_of_a_run_that_is_warmup_is_told(opened, beta_2, updates, text):
    run(opened, f"document.querySelector('[data-beta=\"{beta_2}\"]').click()")
    set_input(opened, "run-updates", updates)
    assert text in opened.find_element(By.ID, "share").text
    pressed = opened.find_elements(By.CSS_SELECTOR, '[data-beta][aria-pressed="true"]')
    assert [button.text for button in pressed] == [str(beta_2)]


def test_a_length_that_no_run_has_is_refused(opened):
    for value in ("0", "-5", "1.5", ""):
        set_input(opened, "run-updates", value)
        assert opened.find_element(By.ID, "share").text == "The number of updates must be a whole number of at least 1."


def test_the_answer_is_above_the_fold(opened):
    assert len(opened.find_elements(By.CSS_SELECTOR, "#answer li")) == 4
    assert run(opened, "return document.querySelector('#answer ul').getBoundingClientRect().bottom") < 450
    assert run(opened, "return document.querySelector('#differences img').getBoundingClientRect().top") < 600  # of 900
    ids = run(opened, "return [...document.querySelectorAll('main > section')].map(e => e.id)")
    assert ids[:4] == ["answer", "differences", "claims", "factors"]
    assert "keras 3.15.1" in opened.find_element(By.ID, ids[-1]).text  # versions at the end
    assert "keras 3.15.1" not in opened.find_element(By.ID, "answer").text


def test_the_page_is_small(page):
    assert page.stat().st_size < 500_000  # of one of everything; real ones stay below 1.5 MB


def test_headings_labels_and_names_are_there_for_a_screen_reader(opened):
    assert run(opened, "return document.documentElement.lang") == "en-GB"
    levels = run(opened, "return [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    unnamed = "return [...document.querySelectorAll(arguments[0])].filter(e => !e.labels?.length).length"
    assert run(opened, unnamed, "input, select") == 0
    assert run(opened, "return [...document.querySelectorAll('table')].filter(t => !t.caption).length") == 0
    assert run(opened, "return [...document.querySelectorAll('th:not([scope])')].length") == 0
    assert run(opened, "return [...document.querySelectorAll('.chart > svg:not([aria-label])')].length") == 0
    identifiers = run(opened, "return [...document.querySelectorAll('body [id]:not(svg *)')].map(e => e.id)")
    assert len(identifiers) == len(set(identifiers))


def test_dragging_is_smooth(opened):
    began = time.perf_counter()
    for place in np.linspace(1, 4, 20):
        set_input(opened, "beta-slider", round(float(place), 2))
    assert (time.perf_counter() - began) / 20 < 0.5  # far less on a machine with nothing else to do
