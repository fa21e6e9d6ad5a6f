"""Chromium without a window, for measuring a page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium(width: int = 1440, height: int = 900) -> Iterator[Any]:
    """A browser; raises SystemExit where there is none."""
    program, driver = next(filter(None, map(shutil.which, BROWSERS)), None), shutil.which("chromedriver")
    if program is None or driver is None:
        raise SystemExit("no Chromium or no chromedriver on the PATH: make browser")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    words = ("--headless=new", "--no-sandbox", f"--window-size={width},{height}", "--disable-dev-shm-usage")
    with tempfile.TemporaryDirectory(prefix="slacktide-page-") as profile:
        for word in (*words, "--enable-precise-memory-info", "--hide-scrollbars", f"--user-data-dir={profile}"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        try:
            yield opened
        finally:
            opened.quit()


def looks(browser: Any, scheme: str, width: int, height: int) -> None:
    """Light or dark, and how large."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
