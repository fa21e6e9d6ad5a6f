"""Chromium without a window for tests, and what is looked at in pages: the only place that starts one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A browser; without one the test is skipped, or fails where SLACKTIDE_REQUIRE_BROWSER=1."""
    program, driver = next(filter(None, map(shutil.which, BROWSERS)), None), shutil.which("chromedriver")
    if program is None or driver is None:
        reason = f"no {'Chromium' if program is None else 'chromedriver'} on the PATH"
        if os.environ.get("SLACKTIDE_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, but SLACKTIDE_REQUIRE_BROWSER=1")
        pytest.skip(f"{reason}; SLACKTIDE_REQUIRE_BROWSER=1 makes this a failure")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    words = ("--headless=new", "--no-sandbox", "--window-size=1280,900", "--disable-dev-shm-usage")
    for word in (*words, f"--user-data-dir={profile}"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    opened.set_script_timeout(300)  # axe takes half a minute where others are at work, too
    try:
        yield opened
    finally:
        opened.quit()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The browser of a module's tests, which imports this by its name."""
    with chromium(tmp_path_factory.mktemp("profile")) as found:
        yield found


def prefers(browser: Any, scheme: str) -> None:
    """Light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})


def looks(browser: Any, scheme: str, width: int, height: int = 900) -> None:
    """Light or dark, and how large; below 600 pixels as a phone."""
    prefers(browser, scheme)
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def asked(browser: Any) -> list[str]:
    """The addresses that pages have asked for since the log was last read, in order.

    The browser's own first page, which it may still load when a test begins, is left out.
    """
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    sent = [one["params"] for one in messages if one["method"] == "Network.requestWillBeSent"]
    return [one["request"]["url"] for one in sent if not one["documentURL"].startswith("chrome:")]


def serious(browser: Any, *further: str) -> list[tuple[str, list[str]]]:
    """What axe-core finds serious or critical, by ``further`` rules as well: the rule, and the elements."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})  # as a user's tool, despite the page's policy
    found = browser.execute_async_script(
        "const [rules, done] = arguments;"
        "axe.run(document, {preload: false, rules}).then(done, (error) => done({error: String(error)}))",
        {one: {"enabled": True} for one in further},
    )
    assert "error" not in found, found
    assert len(found["passes"]) > 15
    bad = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"][:160] for node in one["nodes"][:3]]) for one in bad]
