"""More services than places, with windows of two minutes: whom the plan gives up, and that it is told."""

from __future__ import annotations

import re

from cluster.labtools import deployment
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged

SERVICES, PLACES = 9, 8
WINDOW, SETTLED, PLAYED = 120.0, 120.0, 600.0
WHY = "capacity carries 8 of the 9 promises of class minutes"


def statuses(place: Stage) -> dict[str, Json]:
    return {one["metadata"]["name"]: one["status"] for one in place.world.store.every("availabilities")}


def test_of_nine_services_on_eight_places_eight_are_kept_and_all_is_told_of_the_ninth() -> None:
    classes = [service_class("minutes", 0.9, 2, window={"rolling": "2m"})]
    with staged(classes, qos__alpha=2, scheduler__watchdog=1) as place:
        place.nodes(PLACES, cpu="1")
        for number in range(SERVICES):
            labels = {"slacktide.io/class": "minutes"}
            place.create("deployments", deployment(f"web-{number}", 1, cpu="1", labels=labels))
        place.wait(SETTLED)
        assert len(statuses(place)) == SERVICES
        kept = []
        for _ in range(int(PLAYED / 5.0)):
            place.wait(5.0)
            kept.append(sum(one["state"] in ("Kept", "AtRisk") for one in statuses(place).values()))
        assert min(kept) >= PLACES
        [(ledger, status)] = [(name, one) for name, one in statuses(place).items() if one.get("givenUp")]
        plan, web = status["givenUp"], ledger.removeprefix("deployment-")
        assert (plan["instances"], plan["promises"], plan["carried"]) == (1, SERVICES, PLACES)
        assert re.search(
            rf"^given up by the plan since .* UTC: {WHY}; it takes free room; more room \(cpu 1", status["message"]
        )
        assert WHY in place.events("GivenUp", web)[-1]
        [waiting] = [one["metadata"]["name"] for one in place.pods() if not one["spec"].get("nodeName")]
        assert waiting.startswith(web)
        place.waits(waiting, WHY)
        told = place.explained(waiting)
        assert told["text"].count(WHY) == 2
        assert place.metrics("slacktide_promises_given_up") == {'class="minutes"': 1.0}
        assert place.metrics("slacktide_promises_carried") == {'class="minutes"': 8.0}
        assert max(float(one) for one in re.findall(r"\d+\.\d+", told["text"] + status["message"])) < 1e6

        place.nodes(1, prefix="more", cpu="1")
        place.bound(waiting, 1.0)
        place.status(ledger, lambda one: not one.get("givenUp"), "it is taken back", WINDOW)
        place.until(lambda: place.events("TakenBack", web), "an event says so", WINDOW)


def test_who_matches_no_node_costs_nobody_else_a_promise() -> None:
    """The nodes of one service are lost. No room helps it, and the others run on nearly empty nodes."""
    classes = [service_class("gold", 0.99, 1, window={"rolling": "1h"})]
    with staged(classes, scheduler__watchdog=1) as place:
        place.nodes(4, prefix="usual", cpu="8")
        lost = place.nodes(2, prefix="front", cpu="8", labels={"room": "front"})
        labels = {"slacktide.io/class": "gold"}
        place.create("deployments", deployment("front", 4, labels=labels, nodeSelector={"room": "front"}))
        place.create("deployments", deployment("usual", 4, labels=labels))
        place.ready("front", 4)
        place.ready("usual", 4)
        place.wait(SETTLED)
        for name in lost:
            place.delete("nodes", name)
        for name in place.names("front"):
            place.delete("pods", name, 0)
        waiting = place.until(lambda: [one for one in place.names("front") if not place.node_of(one)], "it waits")
        place.wait(SETTLED)
        assert place.events("GivenUp") == []
        assert place.waits(waiting[0], r"4 node\(s\) didn't match Pod's node affinity/selector")
        assert place.metrics("slacktide_promises_given_up") == {'class="gold"': 0.0}
        assert statuses(place)["deployment-front"]["lostSeconds"]["cluster"] > SETTLED
        assert statuses(place)["deployment-usual"]["state"] == "Kept"
