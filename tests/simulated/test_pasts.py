"""A past that is read from an audit log says of each workload what the live scheduler's ledger says of it.

Random stories on the simulated cluster: every write becomes an event of the log. The ledger knows causes as the
scheduler saw them; the past works them out from the objects.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from cluster.labtools import deployment
from simulated.loop import EPOCH
from simulated.stage import Stage, service_class, staged
from simulated.store import Change
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kube.client.metadata import rfc3339
from slacktide.pasts import audit, outcome

VERBS = {"ADDED": "create", "MODIFIED": "update", "DELETED": "delete"}
EVICTED, PREEMPTED = b"EvictionByEvictionAPI", b"PreemptionByScheduler"
CLASSES = (("gold", 0.99, 1), ("bronze", 0.5, 3))


class Log:
    """The API server's log, which a world's store writes. What slacktide evicts it says to be preempted, as
    kube-scheduler does."""

    def __init__(self, place: Stage) -> None:
        self.lines: list[str] = []
        self._place = place
        place.world.store.followers.append(self.see)

    def see(self, change: Change) -> None:
        metadata = change.body["metadata"]
        ref = {"resource": change.resource.plural, "apiGroup": change.resource.group, "name": metadata["name"],
               "namespace": metadata.get("namespace", "")}  # fmt: skip
        answer = {"kind": "Status"} if change.type == "DELETED" else json.loads(change.data.replace(EVICTED, PREEMPTED))
        options = {"gracePeriodSeconds": 0} if change.type == "DELETED" else {}
        self.lines.append(json.dumps({
            "kind": "Event", "stage": "ResponseComplete", "level": "RequestResponse", "verb": VERBS[change.type],
            "objectRef": ref, "responseStatus": {"code": 200}, "requestObject": options, "responseObject": answer,
            "stageTimestamp": rfc3339(EPOCH + self._place.now),
        }))  # fmt: skip


def play(place: Stage, chance: random.Random) -> None:
    """Users deploy, scale, delete and disturb; nodes fail and come back."""
    names: list[str] = []
    for number in range(25):
        place.wait(chance.uniform(5.0, 40.0))
        what = chance.choices(("deploy", "scale", "probe", "cordon"), (5, 3, 3, 1))[0]
        if what == "deploy" or not names:
            name = f"app-{number}"
            service = chance.choice(CLASSES)[0]
            body = deployment(
                name, chance.choice((1, 2, 3)), cpu=f"{chance.choice((500, 1000))}m",
                labels={"slacktide.io/class": service}, annotations={"slacktide.io/approach": "aggregated"},
                terminationGracePeriodSeconds=chance.choice((0, 3)),
            )  # fmt: skip
            place.create("deployments", body)
            names.append(name)
        elif what == "scale":
            place.merge("deployments", chance.choice(names), {"spec": {"replicas": chance.choice((1, 2, 4))}})
        elif what == "cordon":
            place.cordon("node-0", chance.random() < 0.5)
        else:
            running = [
                one for one in place.lives_of.by_uid.values() if one.up and one.told is None and one.gone is None
            ]
            if running:
                name = chance.choice(running).name
                place.probe(name, False)
                place.wait(chance.uniform(3.0, 20.0))
                place.probe(name, True)
    place.wait(60.0)
    place.cordon("node-1")  # the log ends now


@pytest.mark.parametrize("seed", range(4))
def test_a_past_says_what_the_ledgers_say(tmp_path: Path, seed: int) -> None:
    with staged([service_class(*one) for one in CLASSES], kube__learn_startup=False) as place:
        log = Log(place)
        place.nodes(3, cpu="4")
        play(place, random.Random(seed))
        leader: Any = place.leader.scheduler
        engine: Engine = leader.session.engine
        ledgers = {
            key.split("/")[2]: slo_status(engine, key, EPOCH + place.now).delivered_always for key in engine.controllers
        }
        lines = log.lines
    path = tmp_path / "audit.log"
    path.write_text("\n".join(lines) + "\n")
    past = outcome.write(audit.story([path]), tmp_path / "past")
    found = {one.name: one.delivered["always"] for one in past.workloads if one.kind == "Deployment"}
    assert len(ledgers) >= 3
    assert {name: found[name] for name in ledgers} == pytest.approx(ledgers, abs=0.02)
