"""More services than places on a real control plane, with windows of two minutes: whom the plan gives up is told."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from cluster.kubectl import Json
from cluster.labtools import deployment, until
from cluster.running import Place, Stage, service_class, staged
from cluster.test_live_overload import metrics, rows_of
from slacktide.cli import app
from slacktide.lab import Binaries

SERVICES, PLACES = 9, 8
WINDOW = 120.0
SETTLED = 60.0
"""Seconds after which the plans agree, and all that is told of them is told."""
PLAYED = 180.0


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    classes = [service_class("minutes", 0.9, 2, window={"rolling": "2m"})]
    yield from staged(binaries, tmp_path_factory.mktemp("plans"), classes, qos__alpha=2, scheduler__watchdog=1)


@pytest.fixture
def place(stage: Stage) -> Iterator[Place]:
    found = Place(stage, "plans")
    scene(found)
    yield found
    found.api.delete(f"/api/v1/namespaces/{found.namespace}")


def scene(place: Place) -> None:
    """Nine services on eight places, and no room besides; bench/plans_live.py plays it for longer."""
    place.nodes(PLACES, cpu="1")
    for one in place.api.get("/api/v1/nodes?labelSelector=fence")["items"]:  # room that none of the scene can use
        place.api.delete(f"/api/v1/nodes/{one['metadata']['name']}")
    for number in range(SERVICES):
        labels = {"slacktide.io/class": "minutes"}
        place.create("deployments", deployment(f"web-{number}", 1, cpu="1", labels=labels))


def statuses(place: Place) -> dict[str, Json]:
    """What all ledgers say."""
    every = place.api.get(place.kinds_path("availabilities"))["items"]
    return {one["metadata"]["name"]: one["status"] for one in every}


def events(place: Place, reason: str) -> dict[str, str]:
    """Messages of events of a reason by what they are about."""
    every = place.api.get(f"/api/v1/namespaces/{place.namespace}/events")["items"]
    return {one["involvedObject"]["name"]: one["message"] for one in every if one["reason"] == reason}


def test_of_nine_services_on_eight_places_eight_are_kept_and_all_is_told_of_the_ninth(place: Place) -> None:
    until(lambda: len(statuses(place)) == SERVICES, "there are all ledgers", SETTLED)
    time.sleep(SETTLED)  # real time is what promises are about
    began, kept = time.monotonic(), list[int]()
    while time.monotonic() < began + PLAYED - SETTLED:
        kept.append(sum(one["state"] in ("Kept", "AtRisk") for one in statuses(place).values()))
        time.sleep(5.0)
    assert min(kept) >= PLACES - 1
    [(ledger, status)] = [(name, one) for name, one in statuses(place).items() if one.get("givenUp")]
    plan, web = status["givenUp"], ledger.removeprefix("deployment-")
    assert (plan["instances"], plan["promises"], plan["carried"]) == (1, SERVICES, PLACES)
    why = "capacity carries 8 of the 9 promises of class minutes"
    assert re.search(
        rf"^given up by the plan since .* UTC: {why}; it takes free room; more room \(cpu 1", status["message"]
    )
    until(lambda: why in events(place, "GivenUp").get(web, ""), "an event on the Deployment says so")
    [waiting] = [one["metadata"]["name"] for one in place.pods() if not one["spec"].get("nodeName")]
    assert waiting.startswith(web)
    place.waits(waiting, why)
    address = f"http://127.0.0.1:{place.scheduler.port}"
    explained = CliRunner().invoke(app, ["explain", "pod", waiting, "-n", place.namespace, "--address", address])
    assert explained.output.count(why) == 2
    words = ["top", "--once", "--wide", "--kubeconfig", str(place.stage.plane.kubeconfig), "-n", place.namespace]
    table = CliRunner().invoke(app, words).output
    assert f"{why}; given up: {place.namespace}/{ledger}" in table
    assert re.search(rf"{ledger} .*, given up ", table)
    shown = {one["NAME"]: one["GIVEN UP"] for one in rows_of(place.kubectl.ok("-n", place.namespace, "get", "avail"))}
    assert [name for name, since in shown.items() if since.strip()] == [ledger]
    assert metrics(place, "slacktide_promises_given_up") == {'class="minutes"': 1.0}
    assert metrics(place, "slacktide_promises_carried") == {'class="minutes"': 8.0}
    said = "\n".join([explained.output, table, status["message"]])
    assert max(float(one) for one in re.findall(r"\d+\.\d+", said)) < 1e6

    place.nodes(1, prefix="-more", cpu="1")
    place.bound(waiting)
    place.status(ledger, lambda one: not one.get("givenUp"), "it is taken back", WINDOW)
    until(lambda: web in events(place, "TakenBack"), "an event says so", WINDOW)
