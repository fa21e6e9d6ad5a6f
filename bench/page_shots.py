"""The pictures of docs/dashboard.md: the page of a simulation, light, dark and on a phone.

    python bench/page_shots.py [--out docs/figures]

Needs Chromium and chromedriver (make browser).
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from page_parts.browser import chromium, looks

from slacktide.dashboard.pages import PAGE, page_routes
from slacktide.dashboard.recorded import Recording
from slacktide.dashboard.simulation import Simulation
from slacktide.dashboard.timeline import Timeline, timeline_routes
from slacktide.engine.journal.record import sessions
from slacktide.kube.observe.http_site import Site

RECORD = Path(__file__).parent.parent / "tests" / "recorded"
SEEN = "return !document.getElementById('main').hidden"
SHOTS = (
    # name, source, scheme, width, height, share of the span, what is done first
    ("dashboard-light", "record", "light", 1280, 900, 0.62, "document.querySelector('#paint [value=class]').click()"),
    ("dashboard-dark", "simulation", "dark", 1280, 900, 0.5, "document.querySelector('#paint [value=class]').click()"),
    ("dashboard-story", "record", "light", 1280, 900, 0.99, "document.querySelector('#list-workloads .row').click()"),
    ("dashboard-phone", "record", "dark", 390, 844, 0.62, "document.getElementById('tab-waiting').click()"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="slacktide-shots-") as directory:
        shown = {"simulation": simulated(Path(directory)), "record": Recording(sessions(RECORD)[-1], "yesterday")}
        with chromium() as browser:
            for name, source, scheme, width, height, share, act in SHOTS:
                shoot(browser, shown[source], (scheme, width, height), share, act, out / f"{name}.png")


def simulated(directory: Path) -> Simulation:
    """An hour of a cell of 620 hosts with work for some more."""
    cell, results = directory / "cell", directory / "an hour of a cell"
    run = [sys.executable, "-m", "slacktide"]
    subprocess.run([*run, "generate", "cell", "--out", str(cell)], check=True, stdout=subprocess.DEVNULL)
    words = [str(cell / "workload.parquet"), str(cell / "hosts.parquet"), "--end", "3600", "--events"]
    subprocess.run([*run, "simulate", *words, "--out", str(results)], check=True, stdout=subprocess.DEVNULL)
    return Simulation(results)


def shoot(browser: Any, shown: Timeline, look: tuple[str, int, int], share: float, act: str, file: Path) -> None:
    served = Served(shown)
    try:
        looks(browser, *look)
        browser.get("about:blank")
        browser.get(served.url)
        wait(browser, SEEN)
        browser.execute_script(
            "const slider = document.getElementById('slider'); slider.value = 1000 * arguments[0];"
            "slider.dispatchEvent(new Event('input'));", share
        )  # fmt: skip
        time.sleep(2.0)
        browser.execute_script(act)
        time.sleep(2.0)  # slack over time is asked for when it is seen
        browser.save_screenshot(str(file))
        smaller(file)
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB")
    finally:
        served.stop()


def smaller(file: Path) -> None:
    """A page has few colours: a palette of 256 is enough."""
    from PIL import Image

    Image.open(file).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


def wait(browser: Any, condition: str) -> None:
    for _ in range(200):
        if browser.execute_script(condition):
            return
        time.sleep(0.05)
    raise SystemExit("the page shows nothing after 10 s")


class Served:
    """A timeline's page on an event loop in a thread."""

    def __init__(self, shown: Timeline) -> None:
        self._shown, self.url = shown, ""
        self._loop, self._ready, self._over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))
        self._thread.start()
        self._ready.wait()

    async def _serve(self) -> None:
        async with Site("shots", "127.0.0.1:0", {**page_routes(), **timeline_routes(self._shown)}) as site:
            self.url = f"http://127.0.0.1:{site.port}{PAGE}"
            self._ready.set()
            await self._over.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


if __name__ == "__main__":
    main()
