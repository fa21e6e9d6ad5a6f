"""The page of a simulation's results: how soon its rows are there, its frames, and how fast it plays.

    python bench/page_results.py RESULTS [--seconds 10]

RESULTS is what 'slacktide simulate ... --events --out RESULTS' wrote, for docs/dashboard.md of
'slacktide generate cell --set hosts=1335 --set requests=100000 --set hours=12' until second 43,200. The page is watched
in Chromium without a window.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from page import FRAMES, STATE, quantiles
from page_parts.browser import chromium
from page_shots import Served

from slacktide.dashboard.simulation import Simulation

ROWS = "return document.querySelectorAll('#list-workloads .row:not([hidden])').length"
PLAY = """
const [speed, at] = arguments;
const [slider, chosen] = ["slider", "speed"].map((one) => document.getElementById(one));
slider.value = at;
slider.dispatchEvent(new Event("input"));
chosen.value = speed;
document.getElementById("play").click();
"""
AT = "return Number(document.documentElement.dataset.at)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    began = time.perf_counter()
    shown = Simulation(options.results)
    print(f"{len(shown.results.ids):,} requests read: {time.perf_counter() - began:.1f} s")
    served = Served(shown)
    try:
        with chromium() as browser:
            began = time.perf_counter()
            browser.get(served.url)
            while not browser.execute_script(ROWS):
                time.sleep(0.02)
            rows = time.perf_counter() - began
            print(f"first paint after {browser.execute_script(STATE)[0]:.0f} ms, rows after {rows:.1f} s")
            time.sleep(2.0)
            frames = browser.execute_async_script(FRAMES, options.seconds)
            print(f"scrolling, ms from one frame to the next: {quantiles(frames)}")
            for speed in ("60", "600"):
                browser.execute_script(PLAY, speed, 300)
                while browser.execute_script(AT) >= 0.5 * shown.head.span[1]:
                    time.sleep(0.05)
                time.sleep(3.0)  # views are drawn as late at the beginning as at the end, then
                from_, since = browser.execute_script(AT), time.perf_counter()
                time.sleep(options.seconds)
                passed = (browser.execute_script(AT) - from_) / (time.perf_counter() - since)
                browser.execute_script("document.getElementById('play').click()")
                time.sleep(2.0)
                print(f"plays {passed:.0f} times as fast as it was, asked for {speed}")
            for entry in browser.get_log("browser"):
                print(entry["message"])
    finally:
        served.stop()


if __name__ == "__main__":
    main()
