"""The page in a real browser: headless Chromium, without a network."""

import base64
import csv
import json
import re
import shutil
import time

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.trainers import reports
from tfwarmup import effective_warmup_period, warmups
from tfwarmup.factors import momentum_steps, rho_inf
from trainers.figures.look import METHODS
from trainers.reports.palette import contrast
from trainers.reports.program import write_report

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    not (DRIVER and BROWSER), reason="needs chromium and chromedriver (Debian: chromium, chromium-driver)"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WITHIN = 20  # seconds, on a machine that is busy with something else
ROWS = ("period", "constant", "half", "nearly", "fifth", "momentum", "rho_inf")


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """The file, made from one of everything."""
    runs = tmp_path_factory.mktemp("page")
    reports.write_simulation(runs / "all/simulation")
    reports.write_analysis(runs / "all/analysis")
    reports.write_sweep(runs / "all/sweep", reports.same)
    reports.write_run(runs / "all/=mine, <b>", records=reports.training_records(), results={"val_error": 0.1})
    write_report([str(runs / "all")], str(runs / "report.html"))
    return runs / "report.html"


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    profile, downloads = tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("downloads")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = downloads
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, page):
    """The page, new, on a light desktop screen."""
    browser.get("about:blank")
    look(browser)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
    wait(browser, lambda: run(browser, "return document.querySelectorAll('.chart:not(.js-plotly-plot)').length") == 0)
    return browser


def look(browser, width=1280, scheme="light", media=""):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def run(browser, script, *arguments):
    return browser.execute_script(script, *arguments)


def wait(browser, condition):
    WebDriverWait(browser, WITHIN, 0.05).until(lambda _: condition())


def set_input(browser, name, value):
    """As if a user had moved or typed it."""
    script = (
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'))"
    )
    run(browser, script, name, str(value))


def curves(browser, selector="#factor-chart"):
    """The lines of a chart by their names: x, y and whether they are drawn."""
    script = """
        const drawn = document.querySelector(arguments[0]).data;
        return drawn.map(t => [t.name, Array.from(t.x), Array.from(t.y), t.visible])"""
    return {name: (np.array(x), np.array(y), visible) for name, x, y, visible in run(browser, script, selector)}


def factor_table(browser):
    """The numbers below the slider, with every digit: a row name to a method to a value."""
    script = """
        const rows = [...document.querySelectorAll('#factor-table tbody tr')];
        return rows.map(row => [...row.cells].slice(1).map(cell => cell.dataset.value))"""
    rows = run(browser, script)
    return {name: dict(zip(METHODS, row, strict=True)) for name, row in zip(ROWS, rows, strict=True)}


def download(browser, name):
    """Clicks a table's button; returns the rows of the file that arrives."""
    path = browser.downloads / f"{name}.csv"
    path.unlink(missing_ok=True)
    run(browser, 'document.querySelector(`button[data-csv="${arguments[0]}"]`).click()', name)
    wait(browser, path.exists)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def colours(browser, selector, what="color"):
    """What the browser makes of all rules, for every element that there is."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e)[arguments[1]])"
    found = [re.findall(r"\d+", colour)[:3] for colour in run(browser, script, selector, what)]
    assert found
    return ["#" + "".join(f"{int(channel):02X}" for channel in channels) for channels in found]


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
    for method, (t, omega, _) in zip(METHODS, shown.values(), strict=True):
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
    assert f"RAdam at β₂ = {beta_2}: momentum for updates 1 to 4" in opened.find_element(By.ID, "phases").text


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


def click_legend(browser, selector, name):
    script = """
        const item = [...document.querySelectorAll(`${arguments[0]} .legend .traces`)]
            .find(e => e.textContent.trim() === arguments[1]).querySelector('.legendtoggle');
        item.scrollIntoView({block: 'center', behavior: 'instant'});
        return item"""
    webdriver.ActionChains(browser).click(run(browser, script, selector, name)).perform()


def test_a_legend_click_hides_a_method_in_all_charts_of_its_sweep(opened):
    loss, error = '[data-chart="sweep-1-0"]', '[data-chart="sweep-1-1"]'

    def seen(selector):
        return {name for name, (_, _, visible) in curves(opened, selector).items() if visible is True}

    assert seen(loss) == seen(error) == {"Untuned exponential", "Untuned linear", "RAdam"}
    click_legend(opened, loss, "RAdam")
    wait(opened, lambda: seen(loss) == seen(error) == {"Untuned exponential", "Untuned linear"})
    choice = opened.find_element(By.ID, "choice-sweep-1")
    choice.find_elements(By.TAG_NAME, "option")[1].click()
    assert "RAdam" not in seen(loss)  # another cell, the same method
    click_legend(opened, error, "RAdam")
    wait(opened, lambda: "RAdam" in seen(loss) & seen(error))


def test_the_cell_that_is_chosen_is_drawn(opened):
    def last_error():
        return curves(opened, '[data-chart="sweep-1-1"]')["RAdam"][1][-1]

    for number, rate in enumerate((1e-3, 1e-2)):
        opened.find_element(By.ID, "choice-sweep-1").find_elements(By.TAG_NAME, "option")[number].click()
        runs = [100 * (reports.same(rate, 0.999, "radam", seed) + 1 / 100) for seed in (1, 2, 3)]
        assert last_error() == pytest.approx(np.mean(runs), rel=1e-6)


def test_a_table_can_be_downloaded_with_every_digit(opened):
    rows = download(opened, "sweep_1")
    assert rows[0] == ["learning_rate", "beta_2", "warmup", "mean", "std", "n", "diverged", "failed", "missing"]
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
    assert rows[0] == ["beta_2 = 0.99", *METHODS]
    assert float(rows[1][3]) == pytest.approx(effective_warmup_period("radam", beta_2=0.99), rel=1e-9)


def test_what_a_folder_is_called_is_neither_markup_nor_a_formula(opened):
    assert opened.find_elements(By.CSS_SELECTOR, "section b, section img") == []
    names = {row[0] for row in download(opened, "folders")}
    assert "'=mine, <b>" in names


def test_every_table_has_a_button(opened):
    assert run(opened, "return document.querySelectorAll('table').length") == run(
        opened, "return document.querySelectorAll('button[data-csv]').length"
    )


@pytest.mark.parametrize("width", [320, 375])
def test_a_phone_scrolls_down_only(opened, width):
    look(opened, width)
    opened.refresh()
    wait(opened, lambda: run(opened, "return document.querySelectorAll('.chart:not(.js-plotly-plot)').length") == 0)
    assert run(opened, "return document.documentElement.scrollWidth") <= width
    assert (
        run(opened, "return Math.max(...[...document.querySelectorAll('.main-svg')].map(e => e.clientWidth))") <= width
    )
    height = (
        "return Math.min(...[...document.querySelectorAll('button, select, #beta-slider')].map(e => e.offsetHeight))"
    )
    assert run(opened, height) >= 32  # a finger can hit them


@pytest.mark.parametrize(
    ("scheme", "media", "is_dark"), [("light", "", False), ("dark", "", True), ("dark", "print", False)]
)
def test_text_and_lines_stand_out_on_any_screen_and_on_paper(opened, scheme, media, is_dark):
    look(opened, scheme=scheme, media=media)
    (background,) = colours(opened, "body", "backgroundColor")
    assert (contrast(background, "#FFFFFF") > 10) == is_dark
    wanted = {("body, h1, th, .note, small, .verdict, .mark", "color"): 4.5}
    wanted |= {("#factor-chart text", "fill"): 7, (".scatterlayer .js-line, .legendlines path", "stroke"): 3.4}
    for (selector, what), least in wanted.items():
        assert min(contrast(colour, background) for colour in colours(opened, selector, what)) >= least, selector


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_curve_tells_its_values_under_the_pointer(opened, scheme):
    look(opened, scheme=scheme)
    chart = opened.find_element(By.ID, "factor-chart")
    run(opened, "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    webdriver.ActionChains(opened).move_to_element(chart).perform()
    wait(opened, lambda: len(opened.find_elements(By.CSS_SELECTOR, "#factor-chart .hoverlayer .legendtext")) == 3)
    texts = [e.text for e in opened.find_elements(By.CSS_SELECTOR, "#factor-chart .hoverlayer .legendtext")]
    assert re.fullmatch(r"Untuned exponential : 0\.\d+", texts[1])
    (box,) = colours(opened, "#factor-chart .hoverlayer .legend .bg", "fill")
    assert min(contrast(ink, box) for ink in colours(opened, "#factor-chart .hoverlayer text", "fill")) >= 7


def test_it_prints_on_paper(opened):
    look(opened, scheme="dark")
    pdf = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    wait(opened, lambda: run(opened, "return document.documentElement.className") == "")  # as it was before


def test_headings_labels_and_names_are_there_for_a_screen_reader(opened):
    assert run(opened, "return document.documentElement.lang") == "en-GB"
    levels = run(opened, "return [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    unnamed = "return [...document.querySelectorAll(arguments[0])].filter(e => !e.labels?.length).length"
    assert run(opened, unnamed, "input, select") == 0
    assert run(opened, "return [...document.querySelectorAll('table')].filter(t => !t.caption).length") == 0
    assert run(opened, "return [...document.querySelectorAll('th:not([scope])')].length") == 0
    assert run(opened, "return [...document.querySelectorAll('.chart:not([aria-label])')].length") == 0
    identifiers = run(opened, "return [...document.querySelectorAll('body [id]:not(svg *)')].map(e => e.id)")
    assert len(identifiers) == len(set(identifiers))


def test_dragging_is_smooth(opened):
    began = time.perf_counter()
    for place in np.linspace(1, 4, 20):
        set_input(opened, "beta-slider", round(float(place), 2))
    assert (time.perf_counter() - began) / 20 < 0.5  # far less on a machine with nothing else to do
