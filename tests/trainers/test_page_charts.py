"""The charts of the page in a real browser: legends, values, colours, files, and paper."""

import base64
import csv
import re
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib import image
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.trainers import reports
from tests.trainers.browser import colours, curves, look, needs_browser, run, wait, wait_for_downloads
from tfwarmup import warmups
from trainers.reports.palette import contrast

pytestmark = needs_browser
PDF_TO_TEXT = shutil.which("pdftotext")
PAPER = (680, 1009)  # pixels of 180 x 267 mm: A4 without its margins


def legend_button(browser, selector, name):
    script = """
        const figure = document.querySelector(arguments[0]).closest('figure');
        return [...figure.querySelectorAll('.legend button')].find(e => e.textContent === arguments[1])"""
    return run(browser, script, selector, name)


@pytest.mark.parametrize("keyboard", [False, True])
def test_the_legend_hides_a_method_in_all_charts_of_its_sweep(opened, keyboard):
    loss, error = '[data-chart="sweep-1-0"]', '[data-chart="sweep-1-1"]'

    def press(selector):
        button = legend_button(opened, selector, "RAdam")
        if keyboard:
            button.send_keys(Keys.ENTER)
        else:
            run(opened, "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", button)
            button.click()

    def seen(selector):
        pressed = legend_button(opened, selector, "RAdam").get_attribute("aria-pressed")
        shown = {name for name, (_, _, visible) in curves(opened, selector).items() if visible}
        assert (pressed == "true") == ("RAdam" in shown)
        return shown

    assert seen(loss) == seen(error) == {"Untuned exponential", "Untuned linear", "RAdam"}
    press(loss)
    assert seen(loss) == seen(error) == {"Untuned exponential", "Untuned linear"}
    assert opened.switch_to.active_element.text == "RAdam"  # the focus stays where it was
    choice = opened.find_element(By.ID, "choice-sweep-1")
    choice.find_elements(By.TAG_NAME, "option")[1].click()
    assert "RAdam" not in seen(loss)  # another cell, the same method
    press(error)
    assert "RAdam" in seen(loss) & seen(error)


def test_the_cell_that_is_chosen_is_drawn(opened):
    def last_error():
        return curves(opened, '[data-chart="sweep-1-1"]')["RAdam"][1][-1]

    for number, rate in enumerate((1e-3, 1e-2)):
        opened.find_element(By.ID, "choice-sweep-1").find_elements(By.TAG_NAME, "option")[number].click()
        runs = [100 * (reports.same(rate, 0.999, "radam", seed) + 1 / 100) for seed in (1, 2, 3)]
        assert last_error() == pytest.approx(np.mean(runs), rel=5e-6)  # six digits


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_curve_tells_its_values_under_the_pointer(opened, scheme):
    look(opened, scheme=scheme)
    chart = opened.find_element(By.CSS_SELECTOR, "#factor-chart > svg")
    run(opened, "arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", chart)
    webdriver.ActionChains(opened).move_to_element(chart).perform()
    wait(opened, lambda: opened.find_element(By.CSS_SELECTOR, "#factor-chart .tip").is_displayed())
    title, *values = opened.find_element(By.CSS_SELECTOR, "#factor-chart .tip").text.splitlines()
    t = int(title.removeprefix("update t ").replace(",", ""))
    expected = float(warmups.UntunedExponential(0.999)(t))
    assert values[1] == f"Untuned exponential: {expected:.4g}"
    (box,) = colours(opened, "#factor-chart .tip", "backgroundColor")
    assert min(contrast(ink, box) for ink in colours(opened, "#factor-chart .tip", "color")) >= 7


def test_the_arrow_keys_read_a_curve_out(opened):
    chart = opened.find_element(By.CSS_SELECTOR, "#factor-chart > svg")
    chart.send_keys(Keys.END)
    tip = opened.find_element(By.CSS_SELECTOR, "#factor-chart .tip")
    assert tip.get_attribute("role") == "status"  # a screen reader says it
    assert tip.text.splitlines() == ["update t 100,000", "Untuned linear: 1", "Untuned exponential: 1", "RAdam: 1"]
    chart.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    assert tip.text.startswith("update t 2\nUntuned linear: 0.001\n")
    chart.send_keys(Keys.ESCAPE)
    assert not tip.is_displayed()


def test_every_chart_has_its_numbers_in_words_and_in_a_table(opened):
    names = run(opened, "return [...document.querySelectorAll('.chart > svg')].map(e => e.getAttribute('aria-label'))")
    assert all(re.search(r": -?[\d,.e-]+ at [\d,.e-]+, -?[\d,.e-]+ at", name) for name in names), names
    run(opened, "for (const e of document.querySelectorAll('.numbers')) e.open = true")
    tables = opened.find_elements(By.CSS_SELECTOR, ".numbers table")
    assert len(tables) == len(names)
    rows = [row.text for row in tables[0].find_elements(By.CSS_SELECTOR, "tr")]
    assert rows[0] == "update t Untuned linear Untuned exponential RAdam"
    assert rows[-1] == "100,000 1 1 1"


def test_a_chart_can_be_downloaded_as_numbers_and_as_a_picture(opened):
    figure = opened.find_element(By.CSS_SELECTOR, '[data-chart="sweep-1-1"]').find_element(By.XPATH, "..")
    files = [opened.downloads / f"sweep-1-1.{kind}" for kind in ("csv", "png")]
    for path in files:
        path.unlink(missing_ok=True)
    for kind in ("chart-csv", "chart-png"):
        run(opened, "arguments[0].click()", figure.find_element(By.CLASS_NAME, kind))
    wait_for_downloads(opened, *files)
    with files[0].open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    one = [row for row in rows if (row["choice"], row["curve"]) == ("learning rate 1e-3, β₂ 0.999", "RAdam")]
    assert {row["part"] for row in one} == {"", "seed 1", "seed 2", "seed 3"}
    seed = [row for row in one if row["part"] == "seed 2"][-1]
    expected = 100 * (reports.same(1e-3, 0.999, "radam", 2) + 1 / 100)
    assert float(seed["validation error, %"]) == pytest.approx(expected, rel=5e-6)
    picture = image.imread(files[1])
    assert picture.shape[1] > 600
    shown = {tuple(colour) for colour in (picture[..., :3].reshape(-1, 3) * 255).round().astype(int)}
    assert (0xD5, 0x5E, 0x00) in shown  # the curve of untuned exponential


def faults_of_the_differences(browser):
    """What is wrong with the picture of the differences: it must be inside its box, and the box on the page."""
    script = """
        const picture = document.querySelector('#differences .picture img');
        const [own, box] = [picture, picture.closest('figure')].map(e => e.getBoundingClientRect());
        return [picture.naturalHeight / picture.naturalWidth, own.width, own.height,
            own.left - box.left, box.right - own.right, own.top - box.top, box.bottom - own.bottom,
            box.left, document.documentElement.clientWidth - box.right]"""
    shape, width, height, *room = run(browser, script)
    return {
        "not drawn": width < PAPER[0] / 2,
        "distorted": abs(height - shape * width) > 1,
        "larger than its box": min(room[:4]) < -1,
        "beyond the page": min(room[4:]) < -1,
        "longer than a page": height > PAPER[1],
    }


def test_the_picture_of_the_differences_is_whole_on_paper(opened):
    look(opened, width=PAPER[0], media="print")
    assert not any(faults_of_the_differences(opened).values())


@pytest.mark.parametrize(
    ("rules", "fault"),
    [
        ("display: none", "not drawn"),
        ("height: 10rem", "distorted"),
        ("width: 60rem", "larger than its box"),
        ("height: 5in; width: auto; margin-bottom: -2in", "larger than its box"),
    ],
)
def test_a_picture_that_is_cut_off_on_paper_would_be_found(opened, rules, fault):
    look(opened, width=PAPER[0], media="print")
    script = "document.querySelector('#differences .picture img').style.cssText = arguments[0]"
    run(opened, script, rules)
    assert faults_of_the_differences(opened)[fault]


def test_nothing_is_cut_off_on_paper(opened):
    """Under print media every chart, picture and table is inside its box, and every box inside the page."""
    look(opened, width=PAPER[0], media="print")
    boxes = run(
        opened,
        """
        const width = document.documentElement.clientWidth;
        const places = [...document.querySelectorAll('.chart > svg, .scroll > table, figure, .claims')]
            .filter(e => e.checkVisibility());
        return places.map(e => {
            const [own, outer] = [e.getBoundingClientRect(), e.parentElement.getBoundingClientRect()];
            const room = [own.left - outer.left, outer.right - own.right, width - own.right];
            return [e.tagName, ...room, own.width, own.height];
        })""",
    )
    assert len([box for box in boxes if box[0] == "svg"]) == len(opened.find_elements(By.CLASS_NAME, "chart"))
    for box in boxes:
        assert min(box[1:4]) >= -1, box
        assert min(box[4:]) > 20, box
    # All of a chart is inside what the SVG shows: texts and curves, also at its right end.
    script = """
        return [...document.querySelectorAll('.chart > svg')].map(svg => {
            const frame = svg.getBoundingClientRect();
            const parts = [...svg.querySelectorAll('text, :scope > svg')].map(e => e.getBoundingClientRect());
            const [left, right, bottom] = ['left', 'right', 'bottom'].map(side => parts.map(part => part[side]));
            const ends = [frame.right - Math.max(...right), frame.bottom - Math.max(...bottom)];
            return [Math.min(...left) - frame.left, ...ends];
        })"""
    for places in run(opened, script):
        assert min(places) >= -1, places


def test_the_printed_page_has_every_chart_to_its_last_value(opened, tmp_path):
    look(opened, scheme="dark")
    pdf = base64.b64decode(opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    # Folded tables are open on paper, and closed again afterwards.
    wait(opened, lambda: run(opened, "return document.querySelectorAll('details.table[open]').length") == 0)
    if PDF_TO_TEXT:
        (tmp_path / "page.pdf").write_bytes(pdf)
        subprocess.run([PDF_TO_TEXT, tmp_path / "page.pdf", tmp_path / "page.txt"], check=True, timeout=60)
        text = " ".join((tmp_path / "page.txt").read_text().split())
        assert text.count("100,000") >= 1  # the last tick of the factors
        assert "seed 3" in text


@pytest.mark.parametrize(
    ("scheme", "media", "is_dark"), [("light", "", False), ("dark", "", True), ("dark", "print", False)]
)
def test_text_and_lines_stand_out_on_any_screen_and_on_paper(opened, scheme, media, is_dark):
    look(opened, scheme=scheme, media=media)
    (background,) = colours(opened, "body", "backgroundColor")
    assert (contrast(background, "#FFFFFF") > 10) == is_dark
    wanted = {("body, h1, th, .note, small, .verdict, .mark", "color"): 4.5}
    wanted |= {("#factor-chart text", "fill"): 7, (".chart .curve, .legend .curve", "stroke"): 3}
    for (selector, what), least in wanted.items():
        assert min(contrast(colour, background) for colour in colours(opened, selector, what)) >= least, selector
