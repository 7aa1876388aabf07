"""The page in a real browser: its answer, slider, figures and tables, on a screen, on a phone and on paper.

The page is loaded once; each test gets it back as it was, see `opened`.
"""

import base64
import json
import re
import shutil
import subprocess
import time

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.trainers import reports
from tests.trainers.browser import (
    colours,
    contrast,
    factor_curves,
    factor_table,
    link,
    look,
    needs_browser,
    run,
    set_input,
    start,
    wait,
)
from tfwarmup import effective_warmup_period, warmups
from tfwarmup.factors import momentum_steps, rho_inf
from trainers.evidence.summary import COLUMNS
from trainers.reports.program import write_report
from trainers.results.methods import DRAWN

pytestmark = needs_browser
PDF_TO_TEXT = shutil.which("pdftotext")
PAPER = (680, 1009)  # pixels of 180 x 267 mm: A4 without its margins
BEST, OTHER = "learning rate 1e-3, β₂ 0.999", "learning rate 1e-2, β₂ 0.999"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A page with one run of each kind."""
    runs = tmp_path_factory.mktemp("page")
    reports.write_simulation(runs / "all/simulation")
    reports.write_analysis(runs / "all/analysis")
    reports.write_sweep(runs / "all/sweep", reports.same)
    reports.write_run(runs / "all/=mine, <b>", records=reports.training_records(), results={"val_error": 0.1})
    write_report([str(runs / "all")], str(runs / "report.html"))
    return runs / "report.html"


@pytest.fixture(scope="module")
def browser(tmp_path_factory, page):
    """A browser with the page, and what it wrote into its logs when it loaded it."""
    driver = start(tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("downloads"))
    look(driver)
    driver.get("about:blank")
    driver.get_log("performance")
    driver.get(page.as_uri())
    driver.logs = {kind: driver.get_log(kind) for kind in ("browser", "performance")}
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser):
    """The page on a light desktop screen, with everything that a test may have changed as it was."""
    look(browser)
    script = """
        for (const e of document.querySelectorAll('details')) e.open = false;
        document.querySelector('.cell').open = true;
        document.activeElement.blur();
        scrollTo({top: 0, behavior: 'instant'})"""
    run(browser, script)
    set_input(browser, "run-updates", 100_000)
    set_input(browser, "beta-number", 0.999)
    return browser


def test_it_opens_without_errors_and_without_any_request(opened):
    assert [entry for entry in opened.logs["browser"] if entry["level"] in ("SEVERE", "WARNING")] == []
    events = [json.loads(entry["message"])["message"] for entry in opened.logs["performance"]]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1


@pytest.mark.parametrize(
    ("name", "value"), [("beta-slider", 1), ("beta-slider", 2.7), ("beta-number", 0.9987), ("beta-slider", 4)]
)
def test_the_slider_shows_the_librarys_numbers(opened, name, value):
    set_input(opened, name, value)
    beta_2 = float(run(opened, "return document.getElementById('beta-number').value"))
    assert beta_2 == (value if name == "beta-number" else pytest.approx(1 - 10**-value, abs=1e-6))
    table = factor_table(opened)
    for method, (t, omega) in factor_curves(opened).items():
        factor = warmups.get(method, beta_2=beta_2)
        assert len(t) > 200
        np.testing.assert_allclose(omega, factor(np.round(t)), atol=0.01)  # a tenth of a pixel
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


def test_dragging_is_smooth(opened):
    began = time.perf_counter()
    for place in np.linspace(1, 4, 20):
        set_input(opened, "beta-slider", round(float(place), 2))
    assert (time.perf_counter() - began) / 20 < 0.5  # far less on a machine with nothing else to do


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


def test_a_table_can_be_downloaded_with_every_digit(opened):
    rows = link(opened, "sweep_1")
    assert rows[0] == ["learning_rate", "beta_2", "warmup", *COLUMNS]
    assert len(rows) == 1 + 2 * 3
    first = rows[1]
    assert first[:3] == ["0.001", "0.999", "untuned_exponential"]
    expected = np.mean([100 * reports.same(1e-3, 0.999, "untuned_exponential", seed) for seed in (1, 2, 3)])
    assert float(first[3]) == pytest.approx(expected, rel=1e-12)
    paper = link(opened, "paper_image_classification_1")
    assert len(paper) == 1 + 27
    assert paper[-1] == ["0.01", "0.999", "radam", "29.8", "0.4", "5"]


def test_a_click_downloads_the_table_below_the_slider_as_it_is(opened):
    """The content security policy does not prevent it."""
    set_input(opened, "beta-number", 0.99)
    rows = link(opened, "warmup_factors")
    assert rows[0] == ["beta_2 = 0.99", *DRAWN]
    assert float(rows[1][3]) == pytest.approx(effective_warmup_period("radam", beta_2=0.99), rel=1e-9)
    file = opened.downloads / "warmup_factors.csv"
    run(opened, "document.getElementById('factor-csv').click()")
    wait(opened, lambda: file.exists() and file.stat().st_size)  # it reserves the name with an empty file
    assert file.read_text(encoding="utf-8-sig").startswith('"beta_2 = 0.99","untuned_linear"')


def test_every_table_has_its_file(opened):
    counted = "return arguments[0].map(each => document.querySelectorAll(each).length)"
    tables, links = run(opened, counted, ["table:not(.numbers table)", "a[download][href]"])
    assert tables == links


@pytest.mark.parametrize("width", [320, 375])
def test_a_phone_scrolls_down_only_and_every_table_fits(opened, width):
    look(opened, width)
    assert run(opened, "return document.documentElement.scrollWidth") <= width
    assert run(opened, "return Math.max(...[...document.querySelectorAll('svg')].map(e => e.clientWidth))") <= width
    script = """
        return Math.min(...[...document.querySelectorAll('button, summary, .small, #beta-slider')]
            .filter(e => e.checkVisibility()).map(e => e.offsetHeight))"""
    assert run(opened, script) >= 32  # a finger can hit them
    run(opened, "for (const e of document.querySelectorAll('details')) e.open = true")
    script = """
        return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)
            .map(e => e.querySelector('table').id || e.textContent.slice(0, 60))"""
    assert run(opened, script) == []


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_the_letters_of_figures_can_be_read(opened, width):
    """On a phone the figure of all differences has a layout of its own."""
    look(opened, width)
    run(opened, "document.querySelectorAll('.cell').forEach(e => e.open = true)")
    script = """
        const shown = [...document.querySelectorAll('svg text')].filter(e => e.checkVisibility());
        const scale = ({ a, b }) => Math.hypot(a, b);
        return shown.map(e => parseFloat(getComputedStyle(e).fontSize) * scale(e.getScreenCTM()))"""
    sizes = run(opened, script)
    assert len(sizes) > 100
    assert min(sizes) > 7.9
    assert max(sizes) <= 20


def test_the_answer_is_above_the_fold(opened):
    assert len(opened.find_elements(By.CSS_SELECTOR, "#answer li")) == 4
    assert run(opened, "return document.querySelector('#answer ul').getBoundingClientRect().bottom") < 450
    assert run(opened, "return document.querySelector('#differences svg').getBoundingClientRect().top") < 600  # of 900
    ids = run(opened, "return [...document.querySelectorAll('main > section')].map(e => e.id)")
    assert ids[:4] == ["answer", "differences", "claims", "factors"]
    assert "keras 3.15.1" in opened.find_element(By.ID, ids[-1]).text  # versions at the end
    assert "keras 3.15.1" not in opened.find_element(By.ID, "answer").text


def test_the_page_is_small(page):
    assert page.stat().st_size < 400_000  # of one of everything; real ones stay below 1.5 MB


def test_headings_labels_and_names_are_there_for_a_screen_reader(opened):
    assert run(opened, "return document.documentElement.lang") == "en-GB"
    levels = run(opened, "return [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
    assert levels[0] == 1
    assert set(levels[1:]) == {2}
    unnamed = "return [...document.querySelectorAll(arguments[0])].filter(e => !e.labels?.length).length"
    assert run(opened, unnamed, "input, select") == 0
    assert run(opened, "return [...document.querySelectorAll('table')].filter(t => !t.caption).length") == 0
    assert run(opened, "return [...document.querySelectorAll('th:not([scope])')].length") == 0
    assert run(opened, "return [...document.querySelectorAll('svg:not([role=img][aria-label])')].length") == 0
    assert run(opened, "return document.querySelector('section b')") is None  # the name of a folder is no markup
    identifiers = run(opened, "return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(identifiers) == len(set(identifiers))


def charts_of(browser, cell):
    """The training loss and the objective of a cell of the sweep, and whether they are shown."""
    for details in browser.find_elements(By.CSS_SELECTOR, "details.cell"):
        if details.find_element(By.TAG_NAME, "summary").text == f"Learning curves at {cell}":
            return details, details.find_elements(By.TAG_NAME, "figure")
    raise AssertionError(cell)


def mean_error(rate, method):
    return np.mean([100 * (reports.same(rate, 0.999, method, seed) + 1 / 100) for seed in (1, 2, 3)])


def test_the_best_cell_is_shown_and_the_keyboard_opens_the_others(opened):
    _, (loss, error) = charts_of(opened, BEST)
    assert loss.is_displayed()
    assert error.is_displayed()
    details, (loss, error) = charts_of(opened, OTHER)
    assert not loss.is_displayed()
    details.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
    assert loss.is_displayed()
    error.find_element(By.CSS_SELECTOR, ".numbers > summary").send_keys(Keys.SPACE)
    rows = [row.text for row in error.find_elements(By.CSS_SELECTOR, ".numbers tr")]
    assert rows[0] == "update Untuned exponential Untuned linear RAdam"
    values = [f"{mean_error(1e-2, method):.4g}" for method in ("untuned_exponential", "untuned_linear", "radam")]
    assert rows[-1] == " ".join(["100", *values])


def test_a_curve_tells_its_values_under_the_pointer(opened):
    _, (_, error) = charts_of(opened, BEST)
    last = error.find_elements(By.CSS_SELECTOR, ".values circle")[-1]
    run(opened, "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", last)
    webdriver.ActionChains(opened).move_to_element(last).perform()
    under = "return document.querySelector('.values circle:hover > title').textContent"
    assert run(opened, under) == f"RAdam: {mean_error(1e-3, 'radam'):.4g} at 100"
    end = "return [...arguments[0].querySelectorAll('g > title + path')].at(-1).getAttribute('d')"
    across, down = re.findall(r"[\d.]+", run(opened, end, error))[-2:]
    assert float(last.get_attribute("cx")) == pytest.approx(float(across), abs=0.11)  # where its curve ends
    assert float(last.get_attribute("cy")) == pytest.approx(float(down), abs=0.11)
    titles = run(opened, "return [...arguments[0].querySelectorAll('g > title')].map(e => e.textContent)", error)
    labels = ("Untuned exponential", "Untuned linear", "RAdam")
    assert titles == [*(f"{label}, seed {seed}" for label in labels for seed in (1, 2, 3)), *labels]


def test_every_figure_is_told_in_words(opened):
    """Where every curve begins and ends, and what the figure of the differences says."""
    names = run(opened, "return [...document.querySelectorAll('svg')].map(e => e.getAttribute('aria-label'))")
    assert len(names) == 15
    assert all(re.search(r": -?[\d,.e-]+ at [\d,.e-]+, -?[\d,.e-]+ at", name) for name in names[2:]), names
    assert all(name.startswith("Differences between methods") for name in names[:2])


def cut_off(browser):
    """Figures and tables that leave their box or the page, and texts and curves that leave their figure."""
    return run(
        browser,
        """
        const width = document.documentElement.clientWidth;
        const boxes = [...document.querySelectorAll('figure > svg, .scroll > table, figure, .claims')]
            .filter(e => e.checkVisibility());
        const outside = boxes.filter(e => {
            const [own, outer] = [e.getBoundingClientRect(), e.parentElement.getBoundingClientRect()];
            const room = [own.left - outer.left, outer.right - own.right, width - own.right, outer.bottom - own.bottom];
            return Math.min(...room) < -1 || Math.min(own.width, own.height) < 20;
        });
        const beyond = [...document.querySelectorAll('figure > svg')].filter(e => e.checkVisibility()).flatMap(svg => {
            const frame = svg.getBoundingClientRect();
            return [...svg.querySelectorAll('text, path:not(defs *)')].filter(e => {
                const own = e.getBoundingClientRect();
                const room = [own.left - frame.left, frame.right - own.right, frame.bottom - own.bottom];
                return Math.min(...room) < -1;
            });
        });
        return [...outside, ...beyond].map(e => `${e.tagName} ${e.textContent.slice(0, 80)}`)""",
    )


@pytest.mark.parametrize(("width", "media"), [(PAPER[0], "print"), (320, ""), (1280, "")])
def test_nothing_is_cut_off(opened, width, media):
    look(opened, width=width, media=media)
    assert cut_off(opened) == []
    height = run(opened, "return Math.max(...[...document.querySelectorAll('svg')].map(e => e.clientHeight))")
    assert height <= PAPER[1] or width != PAPER[0]


@pytest.mark.parametrize("rules", ["display: block; height: 1px", "width: 60rem", "margin-left: -2in"])
def test_a_figure_that_is_cut_off_would_be_found(opened, rules):
    look(opened, width=PAPER[0], media="print")
    script = "document.querySelector('#differences .wide-figure svg').style.cssText = arguments[0]"
    run(opened, script, rules)
    found = cut_off(opened)
    run(opened, script, "")
    assert found


@pytest.mark.parametrize(("media", "seen"), [("print", True), ("screen", False)])
def test_folded_tables_are_open_on_paper(opened, media, seen):
    look(opened, width=PAPER[0], media=media)
    script = "return [...document.querySelectorAll('details.table td')].map(e => e.checkVisibility())"
    assert set(run(opened, script)) == {seen}


def test_the_printed_page_has_every_figure_to_its_last_value(opened, tmp_path):
    look(opened, scheme="dark")
    pdf = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    if PDF_TO_TEXT:
        (tmp_path / "page.pdf").write_bytes(pdf)
        subprocess.run([PDF_TO_TEXT, tmp_path / "page.pdf", tmp_path / "page.txt"], check=True, timeout=60)
        text = " ".join((tmp_path / "page.txt").read_text().split())
        assert "100,000" in text  # the last tick of the factors
        assert f"Learning curves at {BEST}" in text
        assert "seed 3" in text  # folded tables are open on paper


@pytest.mark.parametrize(
    ("scheme", "media", "is_dark"), [("light", "", False), ("dark", "", True), ("dark", "print", False)]
)
def test_text_and_lines_stand_out_on_any_screen_and_on_paper(opened, scheme, media, is_dark):
    look(opened, scheme=scheme, media=media)
    (background,) = colours(opened, "body", "backgroundColor")
    assert (contrast(background, "#FFFFFF") > 10) == is_dark
    wanted = {("body, h1, th, .note, small, .verdict, .mark, .small", "color"): 4.5}
    wanted |= {("figure text", "fill"): 7, ("g > title + path[style*='fill: none']", "stroke"): 3}
    for (selector, what), least in wanted.items():
        assert min(contrast(colour, background) for colour in colours(opened, selector, what)) >= least, selector
