"""Headless Chromium without a network, for the tests of the page: starts, inspects and operates it."""

import csv
import io
import re
import shutil
import urllib.parse

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

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
    "--window-size=1280,900",  # the pointer cannot leave it
)
WITHIN = 20  # seconds, on a machine that is busy with something else
ROWS = ("period", "constant", "half", "nearly", "fifth", "momentum", "rho_inf")


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


def factor_curves(browser):
    """The points of the curves above the slider, read off their paths: updates and factors."""
    script = """
        const svg = document.querySelector('#factor-chart svg');
        return [svg.dataset.frame, ...[...svg.querySelectorAll('g > title + path')].map(e => e.getAttribute('d'))]"""
    frame, *paths = run(browser, script)
    left, right, bottom, top = map(float, frame.split())
    found = []
    for path in paths:
        across, down = np.array(re.findall(r"[ML]([\d.]+) ([\d.]+)", path), float).T
        found.append((100_000 ** ((across - left) / (right - left)), 1.05 * (down - bottom) / (top - bottom)))
    return dict(zip(DRAWN, found, strict=True))


def factor_table(browser):
    """The numbers below the slider at full precision, by row and method."""
    script = """
        const rows = [...document.querySelectorAll('#factor-table tbody tr')];
        return rows.map(row => [...row.cells].slice(1).map(cell => cell.dataset.value))"""
    rows = run(browser, script)
    return {name: dict(zip(DRAWN, row, strict=True)) for name, row in zip(ROWS, rows, strict=True)}


def rows_of(address):
    """The rows of a CSV file in a link."""
    kind, _, text = address.partition(",")
    assert kind == "data:text/csv;charset=utf-8"
    content = urllib.parse.unquote(text)
    assert content.startswith("\ufeff")  # by which spreadsheets know UTF-8
    return list(csv.reader(io.StringIO(content[1:])))


def link(browser, name):
    """The rows of the file behind a link."""
    return rows_of(browser.find_element(By.CSS_SELECTOR, f'a[download="{name}.csv"]').get_attribute("href"))


def colours(browser, selector, what="color"):
    """The computed colours of all elements that match."""
    script = "return [...document.querySelectorAll(arguments[0])].map(e => getComputedStyle(e)[arguments[1]])"
    found = [re.findall(r"\d+", colour)[:3] for colour in run(browser, script, selector, what)]
    assert found
    return ["#" + "".join(f"{int(channel):02X}" for channel in channels) for channels in found]


def contrast(first, second):
    """WCAG's contrast ratio of two colours.

    >>> round(contrast("#FFFFFF", "#000000"), 6)
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
