"""How the page shows what it is told, in headless Chromium: made views of what a run seldom has all at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from dashboard.test_browser import Served, opened, text, until
from dashboard.test_browser import served as served  # the fixture, by its name
from slacktide import palette
from slacktide.dashboard.view import (
    READY,
    WAITING,
    ClassRow,
    DecisionRow,
    Loss,
    NodeRow,
    PodRow,
    View,
    WorkloadRow,
    encode,
)
from support.browsing import browser as browser
from support.browsing import looks

KEPT, AT_RISK, MISSED, UNKNOWN = range(4)
GOLD = ClassRow(0, "gold", 1.0, 0, 10.0, (2, 0, 1, 0), -0.56, 2, 1, 3, ((1, 90.0),))
BRONZE = ClassRow(1, "bronze", 0.5, 2, 10.0, (1, 1, 1, 0), 0.4, 2, 1, 3, ((0, 4000.0), (-1, 90.0)))
HEBREW = "\u05d0\u05ea\u05e8-12"
LONG = "a-name-of-as-many-letters-as-kubernetes-allows-" * 4
SLACKS = (-86_399.0, -36_000.5, -59 * 86_400.0 - 1000.0, None, -3599.0)


def workload(number: int, name: str, state: int = KEPT, cls: int = 1, **others: Any) -> WorkloadRow:
    row = WorkloadRow(number, "", name, "service", cls, 0.5, 0.77876, 30.0, state, 1, 0, 0)
    return replace(row, **others)


def show(page: Any, served: Served, **tables: Any) -> None:
    """What the page makes of a view."""
    view = View(at=600.0, whole=True, head=served.shown.head, classes=[GOLD, BRONZE], **tables)
    page.execute_script(
        "slacktide.apply(JSON.parse(arguments[0])); slacktide.touched.all = true;"
        "document.getElementById('search').dispatchEvent(new Event('input'))", encode(view).decode()
    )  # fmt: skip


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    opened(browser, served)
    yield browser
    assert browser.get_log("browser") == []


def seen(page: Any, script: str, *arguments: Any) -> Any:
    return page.execute_script(f"return {script}", *arguments)


def rows(page: Any, which: str, child: int) -> list[str]:
    texts = f".map((one) => one.children[{child}].textContent)"
    found: list[str] = seen(page, all_of(f"#list-{which} .row:not([hidden])") + texts)
    return found


def all_of(selector: str) -> str:
    return f"[...document.querySelectorAll({json.dumps(selector)})]"


def search(page: Any, words: str) -> None:
    page.execute_script(
        "const one = document.getElementById('search'); one.value = arguments[0];"
        "one.dispatchEvent(new Event('input'))", words
    )  # fmt: skip


def brightness(colour: str) -> float:
    """Relative luminance (WCAG) of a computed colour."""
    parts = [int(one) / 255 for one in colour[4:-1].split(",")]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((brightness(one), brightness(other)))
    return (light + 0.05) / (dark + 0.05)


FILLS = "['missed', 'kept'].map((one) => getComputedStyle(document.querySelector('.bar .fill-' + one)).backgroundColor)"


def test_time_lost_is_said_with_whose_doing_it_was(page: Any, served: Served) -> None:
    lost = ((0, 4000.0), (-1, 90.0))
    show(page, served, workloads=[workload(1, "web", MISSED, lost=lost)])
    said = "1h6m40s to gold, 90.0s before the first place"
    assert f"those who missed lost {said}" in text(page, ".card:nth-child(2)")
    assert f"lost {said}" in page.find_element("css selector", "#list-workloads .row").accessible_name
    page.execute_script("document.querySelector('#list-workloads .row').click()")
    assert f"time lost{said}" in text(page, "#detail-body")


@pytest.mark.parametrize("width", [800, 1280, 1440, 1920])
def test_no_slack_is_cut(width: int, browser: Any, served: Served) -> None:
    opened(browser, served, width=width)
    show(browser, served, workloads=[workload(at, f"web-{at}", MISSED, slack=one) for at, one in enumerate(SLACKS)])
    cells = all_of("#list-workloads .row:not([hidden]) > :nth-child(6)")
    cut = ".filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)"
    assert seen(browser, cells + cut) == []
    assert sorted(rows(browser, "workloads", 5)) == ["-10h1s", "-23h59m59s", "-59d", "-59m59s", "unlimited"]


def test_the_axis_of_slack_shows_its_minus_sign(page: Any) -> None:
    script = """
    const [done] = [arguments[arguments.length - 1]], canvas = document.getElementById("canvas"), found = [];
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, x) {
      if (this.textAlign === "right") found.push([text, x - this.measureText(text).width]);
    };
    import("./chart.js").then(({ chart }) => chart(canvas, [[0, -86399], [600, 86399]], [], "seconds")).then(() => {
      CanvasRenderingContext2D.prototype.fillText = draw;
      done(found);
    });
    """
    found = dict(page.execute_async_script(script))
    assert {"-23h59m59s", "0.0s", "23h59m59s"} <= set(found)
    assert min(found.values()) >= 0.0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_missed_and_kept_differ_in_luminance_and_the_worst_comes_first(
    scheme: str, browser: Any, served: Served
) -> None:
    opened(browser, served, scheme)
    show(browser, served)
    assert contrast(*seen(browser, FILLS)) >= 3.0
    assert seen(browser, "document.querySelector('.bar').firstChild.className") == "fill-missed"


def test_an_overdrawn_budget_is_not_grey(page: Any, served: Served) -> None:
    show(page, served)
    shares = ".map((one) => [one.className, one.offsetWidth / one.parentNode.offsetWidth])"
    (gold, bronze) = seen(page, all_of(".meter i") + shares)
    assert gold == ["fill-missed", 1]
    assert bronze[1] == pytest.approx(0.4, abs=0.02)


def test_a_node_too_small_for_its_pods_has_the_colour_of_the_worst(page: Any, served: Served) -> None:
    nodes = [NodeRow(number, f"node-{number}", None, 0, True) for number in range(1335)]
    pods = [PodRow(number, "", f"p-{number}", 1, number % 1335, READY, 0.0) for number in range(8 * 1335)]
    page.execute_script(
        "globalThis.fills = new Map(); const fill = CanvasRenderingContext2D.prototype.fillRect;"
        "CanvasRenderingContext2D.prototype.fillRect = function (x, y, ...size) {"
        "  if (this.canvas.id === 'canvas') globalThis.fills.set(`${x} ${y}`, this.fillStyle);"
        "  fill.call(this, x, y, ...size); };"
    )
    show(page, served, workloads=[workload(1, "kept"), workload(2, "missed", MISSED)], nodes=nodes,
         pods=[*pods, PodRow(99_999, "", "worst", 2, 7, READY, 0.0)])  # fmt: skip
    tiles = seen(page, "[...globalThis.fills.values()]")
    assert len(tiles) == 1335
    assert [tiles[6], tiles[7], len(set(tiles))] == [palette.KEPT_FILL.light, palette.MISSED.light, 2]
    assert "in the colour of its worst pod" in text(page, "#tile-said")


def test_a_tablet_shows_all_columns_without_gaps(browser: Any, served: Served) -> None:
    opened(browser, served, width=800)
    show(browser, served, workloads=[workload(1, "web")])
    row = all_of("#list-workloads-0 > *") + ".filter((one) => one.offsetWidth)"
    assert len(seen(browser, row)) >= 9
    frames = seen(browser, f"{row}.map((one) => one.getBoundingClientRect().toJSON())")
    assert frames[-1]["right"] - frames[0]["left"] > 0.9 * 760


def test_names_are_in_order_as_people_count(page: Any, served: Served) -> None:
    names = ["web-1001", "web-999", "web-10", "Web-9"]
    show(page, served, workloads=[workload(at, one) for at, one in enumerate(names)])
    page.execute_script(
        "const one = document.getElementById('sort'); one.value = 'name'; one.dispatchEvent(new Event('change'))"
    )
    assert rows(page, "workloads", 1) == ["Web-9", "web-10", "web-999", "web-1001"]


def test_a_search_that_finds_nothing_says_so(page: Any, served: Served) -> None:
    decided = DecisionRow(1, 5.0, "web-0", 1, 1, "node-1", 3.0, (Loss("db-0", 2, 1, 9.0),))
    show(page, served, workloads=[workload(1, "web")], decisions=[decided])
    search(page, "zebra")
    for which in ("workloads", "waiting", "decisions"):
        assert text(page, f"#list-{which} .empty") == "Nothing here matches \u201czebra\u201d."
    search(page, "")
    show(page, served)
    assert text(page, "#list-decisions .empty") == "Nothing was decided yet."


@pytest.mark.parametrize("width", [390, 1280])
def test_names_in_another_direction_and_long_ones_keep_their_row(width: int, browser: Any, served: Served) -> None:
    opened(browser, served, width=width)
    decided = [
        DecisionRow(at, 5.0, name, at, 1, name, 3.0, (Loss(name, 2, 1, 9.0),)) for at, name in enumerate((HEBREW, LONG))
    ]
    pods = [PodRow(at, "", name, at, -1, WAITING, 0.0, "never placed") for at, name in enumerate((HEBREW, LONG))]
    show(
        browser,
        served,
        workloads=[workload(0, HEBREW, waiting=1), workload(1, LONG, waiting=1)],
        pods=pods,
        decisions=decided,
    )
    for which in ("workloads", "waiting", "decisions"):
        browser.execute_script("document.getElementById(arguments[0]).click()", f"tab-{which}")
        frame = ".map((one) => one.getBoundingClientRect().toJSON())"
        row = f"#list-{which} .row:not([hidden])"
        assert sorted(seen(browser, f"{all_of(f'{row} bdi')}.map((one) => one.textContent)")) == sorted((HEBREW, LONG))
        (edge, *_) = seen(browser, all_of(row) + frame)
        assert max(one["right"] for one in seen(browser, all_of(f"{row} *") + frame)) <= edge["right"] + 1
        assert min(one["width"] for one in seen(browser, all_of(f"{row} bdi") + frame)) >= 30
    assert f"\u2068{HEBREW}\u2069 (bronze" in text(browser, "#list-decisions")


def test_who_is_given_up_is_told_by_which_plan(page: Any, served: Served) -> None:
    show(page, served, workloads=[workload(1, "web", MISSED, given_up=130.0)])
    page.execute_script("document.querySelector('#list-workloads .row').click()")
    assert "given up by the plan of 00:02:10: it takes free room" in text(page, "#detail-body")


def test_a_row_is_spoken_with_class_promise_and_what_was_delivered(page: Any, served: Served) -> None:
    show(page, served, workloads=[workload(1, "web", MISSED, slack=-1416.0)])
    assert (
        page.find_element("css selector", "#list-workloads .row").accessible_name
        == "web, class bronze, promised 50\u00a0%, delivered 77.87\u00a0%, missed, minus 23m36s of slack"
    )


def test_on_paper_are_the_lists_and_no_tools(browser: Any, served: Served) -> None:
    opened(browser, served, "dark")
    page = browser
    show(page, served, workloads=[workload(at, f"web-{at}", MISSED) for at in range(200)])
    try:
        page.execute_script("dispatchEvent(new Event('beforeprint'))")
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        tools = ".tools, .time, .tabs, .controls, .switch"
        assert seen(page, "[...document.querySelectorAll(arguments[0])].every((one) => !one.offsetWidth)", tools)
        assert brightness(seen(page, "getComputedStyle(document.body).color")) < 0.1
        tops = seen(
            page, "[...document.querySelectorAll('#list-workloads .row:not([hidden])')].map((one) => one.offsetTop)"
        )
        assert len(tops) == 60
        assert tops == sorted(set(tops))
        assert all(
            seen(page, f"document.getElementById('{one}').offsetHeight") for one in ("waiting", "nodes", "decisions")
        )
    finally:
        page.execute_script("dispatchEvent(new Event('afterprint'))")
        looks(page, "dark", 1280)
    assert brightness(seen(page, "getComputedStyle(document.body).color")) > 0.5
    assert len(rows(page, "workloads", 1)) < 40


def test_with_colours_of_the_readers_own_missed_and_kept_still_differ(page: Any, served: Served) -> None:
    show(page, served)
    features = [{"name": "forced-colors", "value": "active"}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": features})
    missed, kept = seen(page, FILLS)
    ground = seen(page, "getComputedStyle(document.body).backgroundColor")
    looks(page, "light", 1280)
    assert contrast(missed, kept) >= 1.3
    assert contrast(missed, ground) >= 7.0


def test_it_plays_as_fast_as_is_chosen_however_long_answers_take(page: Any) -> None:
    script = """
    const done = arguments[arguments.length - 1], own = performance.now;
    import("./slider.js").then(({ Slider }) => {
      const one = new Slider(slacktide, () => {});
      Object.assign(one, { from: 0, to: 1e6, at: 0, begun: 0, since: 0, speed: { value: "600" } });
      one.go = (at) => { one.at = at; };
      let now = 0;
      performance.now = () => now;
      const found = [250, 1800, 1900].map((at) => {
        now = at;
        one.asking = at === 1800; // an answer is still awaited
        one.tick();
        return one.at;
      });
      performance.now = own;
      done(found);
    });
    """
    assert page.execute_async_script(script) == pytest.approx([150.0, 150.0, 1140.0])


def test_who_preempted_is_a_link_with_its_class(page: Any, served: Served) -> None:
    costly = next(one for one in served.shown.at(1e9).decisions if one.victims)
    victim = costly.victims[0]
    name = seen(page, "slacktide.workloads.get(arguments[0]).name", costly.workload)
    cls = seen(page, "slacktide.classes.get(arguments[0]).name", costly.cls)
    search(page, str(seen(page, "slacktide.workloads.get(arguments[0]).name", victim.workload)))
    page.execute_script("document.querySelector('#list-workloads .row:not([hidden])').click()")
    wanted = json.dumps(f"{name} ({cls})")
    link = f"{all_of('#detail-body .story button')}.find((one) => one.textContent === {wanted})"
    until(lambda: seen(page, f"Boolean({link})"))
    page.execute_script(f"{link}.click()")
    until(lambda: text(page, "#detail-head") == name)
    page.execute_script("document.getElementById('detail').close()")
    search(page, "")
