"""The documentation site builds without a warning, from this checkout alone, and fetches nothing from elsewhere."""

from __future__ import annotations

import functools
import http.server
import importlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import nbformat
import pytest

from support.browsing import asked
from support.browsing import browser as browser  # the fixture, by its name
from support.made_once import made_once
from support.repository import REPOSITORY


def built(site: Path, config: Path = REPOSITORY / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    """The site, built as ``make docs`` does."""
    words = ["-m", "mkdocs", "build", "--strict", "--config-file", str(config), "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:

    def fill(folder: Path) -> None:
        done = built(folder)
        assert done.returncode == 0, done.stdout + done.stderr

    return made_once(tmp_path_factory, "site", fill)


def checked(site: Path) -> subprocess.CompletedProcess[str]:
    """What website/check.py says of it."""
    words = [sys.executable, "website/check.py", str(site)]
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_every_page_of_docs_is_in_it(site: Path) -> None:
    missing = [one.name for one in (REPOSITORY / "docs").glob("*.md") if not (site / f"{one.stem}.html").is_file()]
    assert missing == []


def test_reference_pages_have_every_command_and_every_field(site: Path) -> None:
    commands, resources = ((site / name).read_text(encoding="utf-8") for name in ("commands.html", "resources.html"))
    for heading in ("slacktide simulate", "slacktide trace sample", "slacktide openslo import"):
        assert f">{heading}<" in commands
    for field in ("spec.hours[].timeZone", "spec.hard.workloads", "status.delivered", "spec.window.rolling"):
        assert f"<code>{field}</code>" in resources, field


def test_links_that_lead_nowhere_stop_the_build(tmp_path: Path) -> None:
    links = ["nowhere.md", "limits.md#no-such-heading", "../examples/nothing.py"]
    shutil.copytree(REPOSITORY / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "windows.md").open("a", encoding="utf-8") as page:
        page.writelines(f"\n[away]({link})\n" for link in links)
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {REPOSITORY / 'mkdocs.yml'}\nhooks: [{REPOSITORY / 'website/hooks.py'}]\n")
    done = built(tmp_path / "site", config)
    assert done.returncode != 0
    for said in ("nowhere.md", "no-such-heading", "files/examples/nothing.py.md"):
        assert said in done.stdout + done.stderr


def test_a_page_that_is_not_written_yet_is_left_out_of_the_navigation(site: Path) -> None:
    named = set(re.findall(r"[\w/-]+\.md", (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8")))
    absent = [name for name in named if not (site / name).with_suffix(".html").is_file()]
    start = (site / "index.html").read_text(encoding="utf-8")
    assert [name for name in absent if f"{Path(name).stem}.html" in start] == []


def test_it_fetches_nothing_from_elsewhere(site: Path) -> None:
    assert checked(site).stderr == ""


@pytest.mark.parametrize(
    "added",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        "<style>p { background: url('https://example.org/a.png') }</style>",
    ],
)
def test_what_would_be_fetched_from_elsewhere_is_told(added: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f'<a href="https://example.org/read">read</a>{added}')
    done = checked(tmp_path)
    assert done.returncode == 1
    assert "example.org/a." in done.stderr
    assert "example.org/read" not in done.stderr


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    serving.join()


def test_in_a_browser_it_finds_a_word_and_asks_nobody_else(address: str, browser: Any) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(f"{address}/index.html")
    box = browser.find_element(By.CSS_SELECTOR, "input.md-search__input")
    browser.execute_script("document.getElementById('__search').click(); arguments[0].focus()", box)
    box.send_keys("triage")
    found = WebDriverWait(browser, 60).until(
        lambda seen: seen.find_elements(By.CSS_SELECTOR, ".md-search-result__link[href*='overload.html']")
    )
    assert found
    assert [one for one in asked(browser) if one.startswith("http") and not one.startswith(address)] == []
    assert [one["message"] for one in browser.get_log("browser")] == []


def test_a_notebook_is_a_page_with_what_its_cells_gave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "website"))
    notebooks = importlib.import_module("notebooks")
    v4, write = cast(Any, nbformat.v4), cast(Any, nbformat.write)
    cells = [
        v4.new_markdown_cell("# Two frames\n\nSee [the other](your-own-policy.ipynb)."),
        v4.new_code_cell("import polars as pl\nprint('said')\npl.DataFrame({'a': [41]})"),
    ]
    source = tmp_path / "two.ipynb"
    write(v4.new_notebook(cells=cells), source)
    before = notebooks.page(source, tmp_path / "ran")
    assert before.startswith("# Two frames\n\n(As a [file for Jupyter](two.ipynb).)")
    assert "(your-own-policy.md)" in before
    assert "41</td>" not in before
    notebooks.run(source, tmp_path / "ran")
    after = notebooks.page(source, tmp_path / "ran")
    assert "```text\nsaid\n```" in after
    assert "41</td>" in after
    cells[1].source += "\n"
    write(v4.new_notebook(cells=cells), source)
    assert "41</td>" not in notebooks.page(source, tmp_path / "ran")  # of other cells


def test_the_notebooks_are_pages(site: Path) -> None:
    for one in sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb")):
        text = (site / "notebooks" / f"{one.stem}.html").read_text(encoding="utf-8")
        assert "slacktide" in text
        assert f'href="{one.name}"' in text
    assert 'href="notebooks/your-own-policy.html"' in (site / "own-policies.html").read_text(encoding="utf-8")
