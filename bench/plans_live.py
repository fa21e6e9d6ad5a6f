"""Nine services on eight places of a real control plane, with windows of two minutes: what the plan keeps, and when.

    PYTHONPATH=tests:bench python bench/plans_live.py [--minutes 30]

Nine Deployments of one pod each promise .9 over rolling windows of two minutes; eight nodes have room for one pod each.
Prints for each state how much of the time so many promises were in it, from the second minute on, how often it changed
who is given up, and the evictions; and the same of the simulator, for the same services and start-up times.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

from measuring import announce, parsed, table
from promises_parts.inputs import Input, alone, machines
from promises_parts.outcome import Policy, measured

from cluster.conftest import PROGRAMS
from cluster.labtools import deployment
from cluster.running import Place, service_class, staged
from slacktide.lab import Binaries
from slacktide.model import ServiceClass, Window

SERVICES, PLACES, WINDOW = 9, 8, 120.0
SLO, ALPHA = 0.9, 2.0
EVERY = 1.0  # seconds between two looks


def scene(place: Place) -> None:
    """Nine services on eight places, and no room besides."""
    place.nodes(PLACES, cpu="1")
    for one in place.api.get("/api/v1/nodes?labelSelector=fence")["items"]:  # room that none of the scene can use
        place.api.delete(f"/api/v1/nodes/{one['metadata']['name']}")
    for number in range(SERVICES):
        labels = {"slacktide.io/class": "minutes"}
        place.create("deployments", deployment(f"web-{number}", 1, cpu="1", labels=labels))


def live(minutes: float) -> list[list[str]]:
    """Rows of the live run."""
    classes = [service_class("minutes", SLO, 2, window={"rolling": "2m"})]
    settings = {"qos__alpha": ALPHA, "scheduler__watchdog": 1}
    with tempfile.TemporaryDirectory() as folder:
        stages = staged(Binaries.find(PROGRAMS), Path(folder), classes, **settings)
        place = Place(next(stages), "plans")
        scene(place)
        kept, given, preempted = Counter[int](), set[str](), 0
        began = time.monotonic()
        while time.monotonic() < began + 60 * minutes:
            time.sleep(EVERY)
            found = place.api.get(place.kinds_path("availabilities"))["items"]
            if time.monotonic() < began + WINDOW or len(found) < SERVICES:
                continue
            kept[sum(one["status"]["state"] in ("Kept", "AtRisk") for one in found)] += 1
            given |= {one["metadata"]["name"] for one in found if one["status"].get("givenUp")}
            preempted = sum(one["status"].get("preemptions", 0) for one in found)
        next(stages, None)
    looks = sum(kept.values())
    rows = [[f"live: {count} kept", f"{times / looks:.1%} of the time"] for count, times in sorted(kept.items())]
    return [*rows, ["live: given up at some time", str(len(given))], ["live: preemptions", str(preempted)]]


def simulated(minutes: float) -> list[list[str]]:
    """Rows of the simulation."""
    promise = ServiceClass("minutes", SLO, 2, window=Window(rolling=WINDOW, budget="whole"), alpha=ALPHA)
    rows = [(0.5 * number, float("inf"), 1.0, "minutes") for number in range(SERVICES)]
    starts = ("startup.hot=constant:2", "startup.cold=constant:2")
    one = Input("nine on eight", alone(rows, (promise,)), machines(PLACES, 1.0), 60 * minutes, starts)
    found = measured(one, Policy("plan"))
    kept = f"{found.kept[0]} of {SERVICES}"
    return [["simulated: kept", kept], ["simulated: preemptions", str(found.preemptions)]]


def main() -> None:
    """Run and print."""
    asked = parsed(__doc__, minutes=30.0)
    announce()
    print(table(["", ""], [*simulated(asked.minutes), *live(asked.minutes)]))


if __name__ == "__main__":
    main()
