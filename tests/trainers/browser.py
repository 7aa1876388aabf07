"""Headless Chromium without a network, for the tests of the page: starts, inspects and operates it."""

import csv
import re
import shutil

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from tests.trainers import reports
from trainers.reports.program import write_report
from trainers.results.methods import DRAWN

DRIVER, BROWSER = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
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


def write_page(runs):
    """Writes a page with one run of each kind."""
    reports.write_simulation(runs / "all/simulation")
    reports.write_analysis(runs / "all/analysis")
    reports.write_sweep(runs / "all/sweep", reports.same)
    reports.write_run(runs / "all/=mine, <b>", records=reports.training_records(), results={"val_error": 0.1})
    write_report([str(runs / "all")], str(runs / "report.html"))
    return runs / "report.html"


def start(profile, downloads):
    """Starts the browser; its downloads go to `downloads`."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = downloads
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    return driver


def open_page(browser, page):
    """Loads the page afresh, on a light desktop screen."""
    browser.get("about:blank")
    look(browser)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(page.as_uri())
    wait_until_ready(browser)
    return browser


def wait_until_ready(browser):
    wait(browser, lambda: run(browser, "return document.documentElement.dataset.ready") == "yes")


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
    """Sets an input as if a user had moved or typed it."""
    script = (
        "const e = document.getElementById(arguments[0]); e.value = arguments[1]; e.dispatchEvent(new Event('input'))"
    )
    run(browser, script, name, str(value))


def curves(browser, selector="#factor-chart"):
    """The lines of a chart by their names: x, y and whether they are drawn."""
    script = """
        const {curves, shown} = document.querySelector(arguments[0]).drawn;
        return curves.filter(c => !c.thin).map(c => [c.name, c.x, c.y, shown.includes(c)])"""
    return {name: (np.array(x), np.array(y), visible) for name, x, y, visible in run(browser, script, selector)}


def factor_table(browser):
    """The numbers below the slider at full precision, by row and method."""
    script = """
        const rows = [...document.querySelectorAll('#factor-table tbody tr')];
        return rows.map(row => [...row.cells].slice(1).map(cell => cell.dataset.value))"""
    rows = run(browser, script)
    return {name: dict(zip(DRAWN, row, strict=True)) for name, row in zip(ROWS, rows, strict=True)}


def wait_for_downloads(browser, *paths):
    """Waits until all are complete: Chromium reserves a name with an empty file, and replaces it at the end."""
    wait(browser, lambda: all(path.exists() and path.stat().st_size for path in paths))


def download(browser, name):
    """Clicks a table's button; returns the rows of the file that arrives."""
    path = browser.downloads / f"{name}.csv"
    path.unlink(missing_ok=True)
    run(browser, 'document.querySelector(`button[data-csv="${arguments[0]}"]`).click()', name)
    wait_for_downloads(browser, path)
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def colours(browser, selector, what="color"):
    """The computed colours of all elements that match."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e)[arguments[1]])"
    found = [re.findall(r"\d+", colour)[:3] for colour in run(browser, script, selector, what)]
    assert found
    return ["#" + "".join(f"{int(channel):02X}" for channel in channels) for channels in found]
