"""The page in headless Chromium: what is drawn, sorted, saved, printed, said to screen readers, and not loaded."""

from __future__ import annotations

import base64
import re
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from slacktide.reporting.export import KEYS
from support.browsing import asked, looks, prefers, serious
from support.browsing import browser as browser  # the fixture, by its name

pytestmark = pytest.mark.slow

READABLE = 4.5
"""Contrast of text to its ground that WCAG 2.2 asks for (success criterion 1.4.3)."""

# Every text that is seen, its colour and the ground it stands on, as the browser worked them out.
TEXTS = """
const seen = [];
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (colour && colour !== "rgba(0, 0, 0, 0)") return colour;
  }
  return "rgb(255, 255, 255)";
};
for (const element of document.querySelectorAll("body *")) {
  const own = Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || ["SCRIPT", "STYLE", "title", "desc"].includes(element.tagName)) continue;
  if (!element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const svg = element.namespaceURI.endsWith("svg");
  seen.push([element.tagName.toLowerCase(), svg ? style.fill : style.color, ground(element)]);
}
return seen;
"""


@pytest.fixture
def opened(browser: Any, page: Path) -> Iterator[Any]:
    """The page, freshly loaded, in light mode and at the usual width."""
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get(page.as_uri())
    yield browser
    assert browser.get_log("browser") == []


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it, of ``rgb(r, g, b)``."""
    parts = [int(float(one)) / 255 for one in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_black_on_white_has_the_contrast_that_wcag_says() -> None:
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21.0)
    assert contrast("rgb(119, 119, 119)", "rgb(255, 255, 255)") == pytest.approx(4.48, abs=0.01)


DRAWN = """
return Array.from(document.querySelectorAll('figure svg'), (svg) => {
  const box = svg.getBoundingClientRect();
  return [svg.closest('figure').id, box.left, box.width, box.height, svg.querySelectorAll('path, use').length];
}).filter((one) => one[2] > 0);
"""
"""Of every drawing that is seen: its figure, where it is, its size, and how many marks it has."""


def test_every_figure_is_drawn_and_the_console_is_silent(opened: Any) -> None:
    drawn = opened.execute_script(DRAWN)
    pairs = KEYS.index(r"pairs-\d+")
    assert [one[0] for one in drawn] == [*KEYS[:pairs], "pairs-1", "pairs-2", *KEYS[pairs + 1 :]]
    for key, _, width, height, marks in drawn:
        assert width > 500, key
        assert height > 100, key
        assert marks > 10, key


def test_the_answer_is_on_the_first_screen(opened: Any) -> None:
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    answer, others = opened.execute_script(
        "return [document.querySelector('#answer .wide svg').getBoundingClientRect().bottom,"
        " Array.from(document.querySelectorAll('a:not(.skip)'), (one) => one.getBoundingClientRect().top)]"
    )
    assert answer <= 900
    assert [top for top in others if top < answer] == []  # no wall of links before it
    shown = opened.find_element("css selector", "#answer .wide svg").text
    assert {"gold", "silver", "bronze", "priority"} <= set(shown.split())


def test_nothing_but_the_page_itself_is_asked_for(opened: Any, page: Path) -> None:
    urls = asked(opened)
    assert page.as_uri() in urls
    assert [url for url in urls if url != page.as_uri() and not url.startswith("data:")] == []


def test_the_file_is_small(page: Path) -> None:
    assert page.stat().st_size < 10e6


def column(browser: Any, table: str, place: int) -> list[str]:
    found = browser.execute_script(
        "return Array.from(document.querySelectorAll(arguments[0]), (row) => row.cells[arguments[1]].textContent)",
        f"#{table} tbody tr",
        place,
    )
    return [str(one) for one in found]


def test_tables_are_sorted_by_number_where_they_hold_numbers(opened: Any) -> None:
    heads = opened.find_elements("css selector", "#outcome thead button")
    place, before = next(
        (place, cells)
        for place in range(len(heads))
        if len(cells := column(opened, "outcome", place)) == 6
        and all(re.fullmatch(r"-?[\d,]+(\.\d+)?", cell) for cell in cells)
        and sorted(cells) != sorted(cells, key=lambda cell: float(cell.replace(",", "")))
    )
    button = heads[place]
    numbers = sorted(float(one.replace(",", "")) for one in before)
    button.click()
    assert [float(one.replace(",", "")) for one in column(opened, "outcome", place)] == numbers
    head = button.find_element("xpath", "..")
    assert head.get_attribute("aria-sort") == "ascending"
    button.click()
    assert [float(one.replace(",", "")) for one in column(opened, "outcome", place)] == numbers[::-1]
    assert head.get_attribute("aria-sort") == "descending"


def test_tables_are_sorted_by_word_and_by_keyboard(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    button = opened.find_elements("css selector", "#outcome thead button")[1]
    button.send_keys(Keys.ENTER)
    names = column(opened, "outcome", 1)
    assert names == sorted(names)
    assert len(set(names)) == 3
    assert len(opened.find_elements("css selector", "#outcome [aria-sort]")) == 1


def saved(folder: Path, name: str) -> bytes:
    """The file that the browser saves, once it is whole."""
    for _ in range(2400):
        if (folder / name).is_file() and (folder / name).stat().st_size:
            return (folder / name).read_bytes()
        time.sleep(0.05)
    raise AssertionError(f"{name} was not saved; there is {sorted(one.name for one in folder.iterdir())}")


def test_figures_are_saved_as_svg_png_and_csv(opened: Any, tmp_path: Path) -> None:
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    for kind in ("svg", "png", "csv"):
        opened.find_element("css selector", f"button[data-of=penalties][data-export={kind}]").click()
    svg = saved(tmp_path, "penalties.svg").decode()
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(--" not in svg
    assert "priority" in svg
    picture = saved(tmp_path, "penalties.png")
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) > 1500  # pixels across
    lines = saved(tmp_path, "penalties.csv").decode().splitlines()
    assert lines[0] == "hosts,policy,value,low,high,runs"
    assert len(lines) == 7
    assert len(picture) > 20_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(scheme: str, opened: Any) -> None:
    prefers(opened, scheme)
    opened.execute_script("for (const one of document.querySelectorAll('details')) one.open = true;")
    texts = {tuple(one) for one in opened.execute_script(TEXTS)}
    assert {"text", "p", "td", "th", "button", "summary", "a", "caption"} <= {one[0] for one in texts}
    assert [one for one in texts if contrast(one[1], one[2]) < READABLE] == []


def test_dark_mode_changes_the_page_and_its_drawings(opened: Any) -> None:
    colours = (
        "const of = (one, name) => getComputedStyle(document.querySelector(one))[name];"
        "return [of('body', 'backgroundColor'), of('body', 'color'), of('figure svg text', 'fill'),"
        " of('#queue path[style*=\"--policy-1\"]', 'stroke'), of('#demand path[style*=\"--class-1\"]', 'fill')]"
    )
    prefers(opened, "light")
    light = opened.execute_script(colours)
    prefers(opened, "dark")
    dark = opened.execute_script(colours)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    assert luminance(light[0]) > 0.9
    assert luminance(dark[0]) < 0.05
    for found in (light, dark):
        assert all(contrast(colour, found[0]) >= 3.0 for colour in found[1:])  # WCAG 1.4.11


def test_inks_stand_out_from_both_grounds_and_their_hues_differ() -> None:
    from slacktide.palette import AT_RISK, CLASSES, GROUND, INKS, KEPT, MISSED, PANEL, POLICIES, UNKNOWN

    def rgb(colour: str) -> str:
        return f"rgb({', '.join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5))})"

    for one in (*POLICIES, *CLASSES):
        assert contrast(rgb(one.light), rgb(GROUND.light)) >= 3.0, one
        assert contrast(rgb(one.dark), rgb(GROUND.dark)) >= 3.0, one
    for state in (KEPT, AT_RISK, MISSED, UNKNOWN):
        for under in (GROUND, PANEL):
            assert contrast(rgb(state.light), rgb(under.light)) >= READABLE, state
            assert contrast(rgb(state.dark), rgb(under.dark)) >= READABLE, state
    assert len({one.light for one in INKS}) == len(INKS)


def test_on_a_phone_nothing_is_cut_off(opened: Any) -> None:
    metrics = {"width": 390, "height": 800, "deviceScaleFactor": 2, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    opened.execute_script("dispatchEvent(new Event('resize'))")
    assert opened.execute_script("return document.scrollingElement.scrollWidth") <= 390
    drawn = opened.execute_script(DRAWN)
    assert len(drawn) == len(KEYS) + 1
    assert [one for one in drawn if one[1] < 0 or one[1] + one[2] > 390] == []
    beyond = opened.execute_script(
        "return Array.from(document.querySelectorAll('main *')).filter((one) => one.getClientRects().length"
        " && !one.closest('.sr, .cards thead, pre, details') && one.getBoundingClientRect().right > 391)"
        ".map((one) => one.outerHTML.slice(0, 120))"
    )
    assert beyond == []
    opened.execute_script("document.querySelector('#demand-data').closest('details').open = true;")
    box = "document.querySelector('#demand-data').parentElement"  # data alone are scrolled, also with the keyboard
    assert opened.execute_script(f"dispatchEvent(new Event('resize')); return {box}.tabIndex === 0")
    small = opened.execute_script(
        "return Array.from(document.querySelectorAll('.slim svg text'),"
        " (one) => [one.textContent, one.getBoundingClientRect().height]).filter((one) => one[1] < 8)"
    )
    assert small == []


def test_on_paper_there_are_pages_with_text_and_no_buttons(opened: Any) -> None:
    made = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
    pdf = base64.b64decode(made["data"])
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 5 <= pages <= 30
    written = b"".join(
        zlib.decompressobj().decompress(part) for part in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL)
        if part[:1] == b"\x78"
    )  # fmt: skip
    assert written.count(b"TJ") + written.count(b"Tj") > 500
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "return ['nav', '.tools', '.skip'].map((one) => getComputedStyle(document.querySelector(one)).display)"
    assert opened.execute_script(hidden) == ["none"] * 3
    assert luminance(opened.execute_script("return getComputedStyle(document.body).backgroundColor")) > 0.9


def test_screen_readers_find_landmarks_headings_figures_and_tables(opened: Any) -> None:
    nodes = opened.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    named: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            named.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    assert {"main", "navigation", "banner", "contentinfo"} <= named.keys()
    assert {"Verdict", "What was compared", "Figures", "How to cite and to reproduce"} <= set(named["heading"])
    assert {"Penalties: mean of a run", "Queue over time", "Fairness, by contention class"} <= set(named["image"])
    assert any(name.startswith("Outcome by host set and policy") for name in named["table"])
    assert {f"{kind} of Penalties: mean of a run" for kind in ("SVG", "PNG", "CSV")} <= set(named["button"])
    for role in ("image", "button", "link", "table", "heading", "figure"):
        assert all(named[role]), role
    images = [node for node in nodes if node.get("role", {}).get("value") == "image"]
    assert all(len(node["description"]["value"]) > 30 for node in images)


def test_the_keyboard_reaches_the_content_first_and_shows_where_it_is(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    opened.find_element("css selector", "body").send_keys(Keys.TAB)
    active = opened.switch_to.active_element
    assert active.text == "To the content"
    assert active.value_of_css_property("outline-style") == "solid"
    active.send_keys(Keys.ENTER)
    assert opened.execute_script("return document.activeElement.id") == "main"


def test_hostile_names_stay_names(browser: Any, hostile: Path) -> None:
    browser.get_log("browser")
    browser.get(hostile.as_uri())
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.querySelectorAll('script:not([type]), img').length") == 1
    assert browser.execute_script("return document.querySelectorAll('figure svg').length") >= 10
    assert browser.title == "<script>alert(1)</script>"
    looks(browser, "light", 390, 800)
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= 390  # long ones break


@pytest.mark.parametrize(("scheme", "width"), [("light", 1100), ("dark", 390)])
def test_axe_finds_nothing_serious(scheme: str, width: int, opened: Any) -> None:
    looks(opened, scheme, width, 800)
    opened.execute_script("dispatchEvent(new Event('resize'))")
    # Everything opened; of long tables a few rows. Drawings are images with a name: what is in them is no part
    # of the page to axe (its contrast has a test above), and takes it half a minute.
    opened.execute_script(
        "for (const one of document.querySelectorAll('tbody tr:nth-child(n+4), figure svg > g')) one.remove();"
        "for (const one of document.querySelectorAll('details')) one.open = true;"
    )
    assert serious(opened) == []
