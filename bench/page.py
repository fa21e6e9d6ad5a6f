"""The live page with many nodes and pods: how soon it is there, its frames, and what it costs the scheduler.

    python bench/page.py [--nodes 5000] [--pods 50000] [--churn 50] [--seconds 20]

An engine of its own holds the cluster; so many pods a second go, come anew and are placed, and now and then gold pods
preempt. The page is watched in Chromium without a window, which draws on the processor: a machine with a graphics
processor is faster. Frames are measured while the list of workloads is scrolled. The program's event loop is what the
scheduler's would be: its longest turn while somebody watches stands beside that while nobody does.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import threading
import time
from typing import Any

from page_parts.browser import chromium
from page_parts.cluster import MadeCluster

from slacktide.dashboard.pages import PAGE, page_routes
from slacktide.kube.housekeeping import collect_when_idle
from slacktide.kube.observe.http_site import Site

FRAMES = """
const done = arguments[arguments.length - 1];
const [seconds] = arguments;
const list = document.getElementById("list-workloads") || document.documentElement;
const found = [];
const began = performance.now();
let last = began;
let step = 0;
function frame(now) {
  found.push(now - last);
  last = now;
  step += 1;
  list.scrollTop = (step * 23) % Math.max(1, list.scrollHeight - list.clientHeight);
  if (now - began < seconds * 1000) requestAnimationFrame(frame);
  else done(found.slice(1));
}
requestAnimationFrame(frame);
"""
STATE = """
const paint = performance.getEntriesByName("first-contentful-paint")[0];
const heap = performance.memory ? performance.memory.usedJSHeapSize / 1e6 : 0;
return [paint ? paint.startTime : -1, heap, Number(document.documentElement.dataset.pods || 0)];
"""


LONG = """
globalThis.longTasks = [];
const add = (list) => globalThis.longTasks.push(...list.getEntries().map((one) => Math.round(one.duration)));
new PerformanceObserver(add).observe({ entryTypes: ["longtask"] });
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=50_000)
    parser.add_argument("--churn", type=int, default=50, help="pods a second that go and come anew")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--soak", type=float, default=0.0, help="seconds in which the page's memory is watched")
    options = parser.parse_args()
    server = Served(options.nodes, options.pods, options.churn)
    server.start()
    try:
        measure(server, options)
    finally:
        server.stop()


class Served:
    """The made cluster and its page, on an event loop in a thread of its own."""

    def __init__(self, nodes: int, pods: int, churn: int) -> None:
        began = time.perf_counter()
        self.cluster = MadeCluster(nodes, pods)
        print(f"{nodes} nodes, {pods} pods in an engine: {time.perf_counter() - began:.1f} s", flush=True)
        self.churn, self.turns = churn, 0
        self.url, self._ready, self._loop = "", threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._over = asyncio.Event()

    def start(self) -> None:
        Turn.measure()
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        async def story(request: Any) -> Any:  # noqa: ARG001
            from aiohttp import web

            return web.json_response({"text": "nothing"})

        routes = {**page_routes(), "/view": self.cluster.hub.view, "/explain": story}
        collecting = collect_when_idle(lambda: self.turns)  # as the scheduler has it
        async with Site("bench", "127.0.0.1:0", routes) as site:
            self.url = f"http://127.0.0.1:{site.port}{PAGE}"
            tasks = [asyncio.ensure_future(one) for one in (self._churning(), collecting)]
            self._ready.set()
            await self._over.wait()
            for one in tasks:
                one.cancel()

    async def _churning(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            self.turns += 1
            if self.turns % 25 == 0:
                self.cluster.surge(20)
            self.cluster.churn(max(1, self.churn // 5))

    def longest_turn(self) -> float:
        """Seconds of processor time of one turn of the event loop, since the last time this was asked."""
        longest, Turn.longest = Turn.longest, 0.0
        return longest


class Turn:
    """Measures each turn of an event loop. Processor time: what other programs do meanwhile does not count."""

    longest = 0.0
    _run = asyncio.Handle._run

    @classmethod
    def measure(cls) -> None:
        """From now on, in this process."""

        def run(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            cls._run(handle)
            cls.longest = max(cls.longest, time.thread_time() - began)

        asyncio.Handle._run = run  # type: ignore[method-assign]


def measure(server: Served, options: argparse.Namespace) -> None:
    server.longest_turn()
    used = time.process_time()
    time.sleep(5.0)
    idle, alone = server.longest_turn(), (time.process_time() - used) / 5.0
    with chromium() as browser:
        browser.set_script_timeout(options.seconds + 60)
        browser.get("data:text/html,<div style=height:5000px>")
        empty = quantiles(browser.execute_async_script(FRAMES, options.seconds / 2))
        began = time.perf_counter()
        browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": LONG})
        browser.get(server.url)
        paint = until_whole(browser, options.pods)
        print(f"first paint after {paint:.0f} ms, all {options.pods} pods after {time.perf_counter() - began:.1f} s; "
              f"processor time of the page's thread until then: {tasks(browser):.2f} s; tasks longer than 50 ms, "
              f"ms: {long_tasks(browser)}")  # fmt: skip
        server.longest_turn()
        used = time.process_time()
        before = tasks(browser)
        frames = browser.execute_async_script(FRAMES, options.seconds)
        own = 1e3 * (tasks(browser) - before) / len(frames)
        watched, beside = server.longest_turn(), (time.process_time() - used) / options.seconds
        print(f"{len(frames) / options.seconds:.0f} frames a second; ms from one to the next: {quantiles(frames)}")
        print(f"processor time of the page's thread: {own:.1f} ms a frame, scrolling and changes together")
        print(f"tasks longer than 50 ms, ms: {long_tasks(browser)}")
        print(f"an empty page that is scrolled, here and now: {empty}")
        print(f"longest turn of the event loop: {1e3 * watched:.1f} ms watched, {1e3 * idle:.1f} ms not; "
              f"processor {beside:.0%} watched, {alone:.0%} not")  # fmt: skip
        if options.soak:
            soak(browser, options.soak)
        for entry in browser.get_log("browser"):
            print(entry["message"])


def tasks(browser: Any) -> float:
    """Seconds of processor time that the page's main thread has taken."""
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def long_tasks(browser: Any) -> str:
    """The five longest since this was asked, by the clock: a busy machine makes them longer."""
    found = sorted(browser.execute_script("return globalThis.longTasks.splice(0)"), reverse=True)
    return f"{len(found)}, the longest {', '.join(f'{one:.0f}' for one in found[:5])}" if found else "none"


def quantiles(frames: list[float]) -> str:
    """Of milliseconds between frames."""
    ordered = sorted(frames)
    half, most, nearly, last = (ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95, 0.99, 1.0))
    return f"median {half:.1f}, 95 % {most:.1f}, 99 % {nearly:.1f}, longest {last:.1f}"


def until_whole(browser: Any, pods: int) -> float:
    """Milliseconds until the first paint, once all pods are there."""
    for _ in range(600):
        paint, _, shown = browser.execute_script(STATE)
        if shown >= 0.98 * pods:
            return float(paint)
        time.sleep(0.05)
    raise SystemExit("the page did not get all pods in 30 s")


def soak(browser: Any, seconds: float) -> None:
    """The heap after a collection, at ten instants."""
    found = []
    for _ in range(10):
        time.sleep(seconds / 10)
        browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        found.append(float(browser.execute_script(STATE)[1]))
    half = len(found) // 2
    print(f"JavaScript heap over {seconds:.0f} s, MB: {', '.join(f'{one:.0f}' for one in found)}; mean of the halves "
          f"{statistics.mean(found[:half]):.1f} and {statistics.mean(found[half:]):.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
