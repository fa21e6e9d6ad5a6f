"""The page in headless Chromium, on the results of a simulation: what it shows, to whom, and what it asks for."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from dashboard.test_simulation import results
from slacktide import for_people
from slacktide.cli.cluster.dashboard import local_routes
from slacktide.dashboard.pages import PAGE
from slacktide.dashboard.simulation import Simulation
from slacktide.dashboard.timeline import timeline_routes
from slacktide.kube.observe.http_site import Site
from support import clusters
from support.browsing import asked, looks, serious
from support.browsing import browser as browser  # the fixture, by its name

KEY = "a-key-of-this-test"
SHOWN = "return !document.getElementById('main').hidden && document.querySelectorAll('#list-workloads .row').length > 0"
PAINT_SECONDS = 1.0
SPOKEN = "label-content-name-mismatch"


class Served:
    """The page of a simulation, on an event loop in a thread."""

    def __init__(self, shown: Simulation) -> None:
        self.shown, self.address = shown, ""
        self._loop, self._ready, self._over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        self._thread.start()
        assert self._ready.wait(30)

    async def _serve(self) -> None:
        async with Site("test", "127.0.0.1:0", local_routes(timeline_routes(self.shown), KEY)) as site:
            self.address = f"http://127.0.0.1:{site.port}"
            self._ready.set()
            await self._over.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = Served(Simulation(results(clusters.cluster(22), tmp_path_factory.mktemp("shown"))))
    yield found
    found.stop()


@pytest.fixture
def page(browser: Any, served: Served) -> Iterator[Any]:
    """The page, freshly loaded, light and wide; its console is silent."""
    opened(browser, served)
    yield browser
    assert browser.get_log("browser") == []


def opened(browser: Any, served: Served, scheme: str = "light", width: int = 1280) -> None:
    for log in ("browser", "performance"):
        browser.get_log(log)
    looks(browser, scheme, width)
    browser.get("about:blank")
    browser.get(f"{served.address}{PAGE}#token={KEY}")
    until(lambda: browser.execute_script(SHOWN))


def until(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def text(browser: Any, what: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0]).textContent", what))


def test_it_says_at_once_who_keeps_what(page: Any, served: Served) -> None:
    view = served.shown.at(1e9)
    kept, _, missed, _ = (sum(one.counts[state] for one in view.classes) for state in range(4))
    assert f"{missed} of {kept + missed} promises missed" in text(page, "#verdict")
    cards = page.execute_script("return Array.from(document.querySelectorAll('.card'), (one) => one.innerText)")
    for one in view.classes:
        if sum(one.counts):
            (card,) = [card for card in cards if card.startswith(one.name)]
            assert f"{one.counts[0]} kept" in card
            assert f"{one.counts[2]} missed" in card


def test_a_list_has_all_rows_and_only_those_that_are_seen_in_the_document(page: Any, served: Served) -> None:
    view = served.shown.at(1e9)
    sizes = page.execute_script(
        "const rows = [...document.querySelectorAll('#list-workloads .row:not([hidden])')];"
        "const names = rows.map((one) => one.children[1].textContent);"
        "return [rows.length, Number(rows[0].getAttribute('aria-setsize')), names]"
    )
    assert sizes[1] == len(view.workloads)
    assert sizes[0] < 40
    worst = sorted(view.workloads, key=lambda one: (one.over, {2: 0, 1: 1, 0: 2, 3: 3}[one.state]))
    assert sizes[2][0] in {one.name for one in worst if one.state == worst[0].state}


WRITTEN = """
const [shares, times, done] = arguments, past = times.map(Math.abs);
import("./format.js").then((made) => done([
  shares.map(made.percent), times.map(made.duration), times.map(made.ofSlack),
  past.map((one) => made.clockText(one, "epoch")), past.map((one) => made.clockText(one, "seconds")),
  past.map((one) => made.count(Math.round(one))),
]));
"""


def test_numbers_and_times_are_written_as_in_commands_and_in_the_report(page: Any) -> None:
    chance = random.Random(7)
    shares = [0.0, 1.0, 0.77875, 0.7788, 0.57, 0.99995, 0.9999, 0.999995, 1 - 1e-12, 5e-5]
    shares += [chance.random() for _ in range(500)]
    shares += [1.0 - 10.0 ** chance.uniform(-9, 0) for _ in range(500)]
    times = [0.0, -0.04, 0.05, 0.25, -1415.9, 99.94, 99.95, 86399.4, 86399.6, 2.5e7, -86400.0]
    times += [chance.choice((-1, 1)) * 10.0 ** chance.uniform(-2, 8) for _ in range(1000)]
    written = page.execute_async_script(WRITTEN, shares, times)
    assert written[0] == [for_people.unbroken(for_people.percent(one)) for one in shares]
    assert written[1] == [for_people.duration(one) for one in times]
    assert written[2] == [for_people.slack_text(one) for one in times]
    assert written[3] == [for_people.clock(abs(one), True) for one in times]
    assert written[4] == [for_people.clock(abs(one), False) for one in times]
    assert written[5] == [for_people.unbroken(for_people.count(math.floor(abs(one) + 0.5))) for one in times]


COUNTING = """
globalThis.sorts = 0;
globalThis.reads = 0;
const sort = Array.prototype.sort;
Array.prototype.sort = function (order) {
  if (this.length > 1 && this[0].others !== undefined) globalThis.sorts += 1; // nodes
  return sort.call(this, order);
};
const top = Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop");
function get() {
  globalThis.reads += 1;
  return top.get.call(this);
}
Object.defineProperty(Element.prototype, "scrollTop", { ...top, get });
"""


def test_drawing_anew_neither_sorts_the_same_nodes_nor_asks_where_lists_stand(page: Any) -> None:
    """With 5,000 nodes the first takes half a second; the second lays out the page, once for each list."""
    from selenium.webdriver.common.action_chains import ActionChains

    counted = "return [globalThis.sorts, globalThis.reads]"
    page.execute_script(COUNTING)
    ActionChains(page).send_keys("/", "host-1").perform()
    until(lambda: " of " in text(page, "#count-workloads"))
    ActionChains(page).send_keys("\ue00c", "t", "t").perform()  # Escape, then dark and light again
    until(lambda: " of " not in text(page, "#count-workloads"))
    assert page.execute_script(counted) == [0, 0]
    page.execute_script("localStorage.clear(); slacktide.nodeSet += 1; document.getElementById('theme').click()")
    until(lambda: page.execute_script(counted)[0] == 1)
    page.execute_script("document.getElementById('theme').click(); localStorage.clear()")


def test_a_list_that_gets_shorter_than_where_it_stands_shows_its_last_rows_at_once(page: Any) -> None:
    rows = (
        "[...document.querySelectorAll('#list-workloads .row:not([hidden])')].map((one) => one.children[1].textContent)"
    )
    box = "document.getElementById('list-workloads')"
    page.execute_script(f"{box}.scrollTop = 1e6")
    until(lambda: page.execute_script(f"return {box}.scrollTop > 0"))
    last = until(lambda: page.execute_script(f"return {rows}"))[-1]
    shown = page.execute_script(
        "const search = document.getElementById('search'); search.value = arguments[0];"
        f"search.dispatchEvent(new Event('input')); return {rows}", last
    )  # fmt: skip
    assert last in shown
    page.execute_script(
        "const search = document.getElementById('search'); search.value = ''; search.dispatchEvent(new Event('input'))"
    )


def test_a_workload_alone_in_the_list_is_asked_for_however_often_it_is_drawn(page: Any, served: Served) -> None:
    name = served.shown.at(1e9).workloads[0].name
    answered = "performance.getEntriesByType('resource').some((one) => one.name.includes('/history?'))"
    until(lambda: page.execute_script(f"return {answered}"))
    page.get_log("performance")
    page.execute_async_script(
        "const [name, done] = arguments, search = document.getElementById('search');"
        "slacktide.at += 0.001;"  # another instant: nothing is known of it
        "search.value = name;"
        "for (let drawn = 0; drawn < 3; drawn++) search.dispatchEvent(new Event('input'));"
        "setTimeout(done, 60);",  # after the page's own of as long, which were set before
        name,
    )
    histories = [url for url in asked(page) if "/history?" in url]
    assert histories
    assert not [url for url in histories if "workloads=&" in url]


def test_the_slider_shows_an_earlier_instant(page: Any, served: Served) -> None:
    page.execute_script(
        "const slider = document.getElementById('slider'); slider.value = 300;slider.dispatchEvent(new Event('input'));"
    )
    assert served.shown.head.span is not None
    at = 0.3 * served.shown.head.span[1]
    view = served.shown.at(at)
    until(lambda: abs(page.execute_script("return slacktide.at") - at) < 0.01)
    until(lambda: page.execute_script("return slacktide.workloads.size") == len(view.workloads))
    on_hosts = page.execute_script("return [...slacktide.pods.values()].filter((one) => one.node >= 0).length")
    assert on_hosts == sum(one.node >= 0 for one in view.pods)


def test_it_can_be_used_by_keys_alone(page: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def press(*keys: str) -> None:
        ActionChains(page).send_keys(*keys).perform()

    press("1", Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    chosen = until(
        lambda: page.execute_script("return document.querySelector('#list-workloads .chosen')?.children[1].textContent")
    )
    assert page.execute_script("return document.activeElement.getAttribute('aria-activedescendant')")
    press(Keys.ENTER)
    until(lambda: page.execute_script("return document.getElementById('detail').open"))
    assert text(page, "#detail-head") == chosen
    until(lambda: "placed on" in text(page, "#detail-body") or "admitted" in text(page, "#detail-body"))
    press(Keys.ESCAPE)
    until(lambda: not page.execute_script("return document.getElementById('detail').open"))
    press("3", Keys.ARROW_RIGHT)
    assert text(page, "#tile-said").startswith("host-")
    press(Keys.ENTER)
    until(lambda: text(page, "#detail-head").startswith("Node host-"))
    press(Keys.ESCAPE)
    press("/", chosen)
    until(lambda: " of " in text(page, "#count-workloads"))
    press(Keys.ESCAPE)
    before = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    press("t")
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") != before
    press("t")
    page.execute_script("localStorage.clear()")


def test_a_pods_story_names_who_it_made_room_for(page: Any, served: Served) -> None:
    costly = next(one for one in served.shown.at(1e9).decisions if one.victims)
    page.execute_script("document.getElementById('costly').click()")
    rows = until(
        lambda: page.execute_script(
            "return Array.from(document.querySelectorAll('#list-decisions .row:not([hidden])'), (one) => one.innerText)"
        )
    )
    mine = next(one for one in rows if one.startswith(costly.pod))
    assert all(victim.pod in mine for victim in costly.victims[:3])


def test_nothing_is_asked_of_anybody_else_and_the_key_leaves_the_address(page: Any, served: Served) -> None:
    urls = set(asked(page))
    assert len(urls) > 10
    assert [url for url in urls if not url.startswith((f"{served.address}/", "about:"))] == []
    assert KEY not in page.current_url
    assert not [url for url in urls if KEY in url.partition("#")[0]]


def test_without_the_key_it_asks_for_one(browser: Any, served: Served) -> None:
    browser.get("about:blank")
    browser.get(f"{served.address}{PAGE}")
    until(lambda: browser.execute_script("return !document.getElementById('gate').hidden"))
    assert browser.execute_script("return document.getElementById('main').hidden")
    browser.execute_script(
        "document.getElementById('token').value = arguments[0];document.getElementById('gate-form').requestSubmit()",
        KEY,
    )
    until(lambda: browser.execute_script(SHOWN))
    browser.get_log("browser")  # the refusal is in it


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)])
def test_axe_finds_nothing_serious_and_a_phone_cuts_nothing_off(
    scheme: str, width: int, browser: Any, served: Served
) -> None:
    opened(browser, served, scheme, width)
    assert serious(browser, SPOKEN) == []
    assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
    browser.execute_script("document.querySelector('#list-workloads .row').click()")
    until(lambda: "History" in text(browser, "#detail-body"))
    assert serious(browser, SPOKEN) == []
    # The rule reads canvases of its own, of which the browser warns.
    assert [one for one in browser.get_log("browser") if "Canvas2D" not in one["message"]] == []


def test_the_first_paint_comes_within_a_second(page: Any) -> None:
    paint = until(
        lambda: page.execute_script("return performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    )
    assert paint / 1000 < PAINT_SECONDS * 3  # on a machine that is three times slower


def test_memory_stays_flat_while_it_plays(page: Any, served: Served) -> None:
    def heap() -> float:
        page.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        return float(page.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"])

    def shows(place: int) -> bool:
        assert served.shown.head.span is not None
        at = place / 1000 * served.shown.head.span[1]
        return bool(abs(page.execute_script("return Number(document.documentElement.dataset.at)") - at) < 0.01)

    def pass_over(places: range) -> None:
        for place in places:
            page.execute_script(
                "const slider = document.getElementById('slider'); slider.value = arguments[0];"
                "slider.dispatchEvent(new Event('input'));",
                place,
            )
            until(partial(shows, place))

    pass_over(range(0, 1000, 100))
    before = heap()
    for _ in range(3):
        pass_over(range(0, 1000, 250))
    assert heap() < 1.3 * before + 1e6
