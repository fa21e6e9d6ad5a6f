"""Writes that wait for their turn, get no answer or are not sent after all: what is told of them is what was last, and
what was carried out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cluster.labtools import pod
from simulated.resources import Json
from simulated.stage import Stage, service_class, staged
from simulated.store import Change
from slacktide.kube.client.http import Unreachable
from slacktide.kube.publish import write_plan
from slacktide.kube.publish.write_plan import LEAST_SECONDS

WITHDRAWN, LOST, ANSWER_LOST = "withdrawn", "lost", "answer lost"


def classes() -> list[Json]:
    return [service_class("high", 0.999, 1), service_class("low", 0.02, 3, overheadLimit=1.0, default=True)]


def low(name: str, cpu: str = "1500m") -> Json:
    return pod(name, cpu=cpu, labels={"slacktide.io/class": "low"})


def high(name: str, cpu: str = "1500m") -> Json:
    return pod(name, cpu=cpu, labels={"slacktide.io/class": "high"})


class Held:
    """Requests of the leader whose path ends so wait for their turn, as behind a rate limit: the first of them, or all
    until ``turn``. ``fault`` befalls the first."""

    def __init__(self, place: Stage, ending: str, fault: str = "", *, only_first: bool = False) -> None:
        connection = place.leader.connection
        assert connection is not None
        self._request: Callable[..., Any] = connection.request
        self._ending, self._fault, self._only_first = ending, fault, only_first
        self.waiting, self.turn = 0, asyncio.Event()
        setattr(connection, "request", self.request)  # noqa: B010 (of this connection alone)

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if not path.endswith(self._ending) or (self.waiting and self._only_first):
            return await self._request(method, path, **options)  # type: ignore[no-any-return]
        self.waiting += 1
        await self.turn.wait()
        fault, self._fault = self._fault, ""
        if fault == ANSWER_LOST:
            await self._request(method, path, **options)
        if fault in (LOST, ANSWER_LOST):
            raise Unreachable("there is no answer")
        return await self._request(method, path, **options)  # type: ignore[no-any-return]


def gone(place: Stage, name: str) -> None:
    place.delete("pods", name, 0)
    place.wait(1.0)  # it is known


@pytest.mark.parametrize("fault", [WITHDRAWN, LOST, ANSWER_LOST])
def test_events_tell_of_evictions_that_were_carried_out(fault: str) -> None:
    """With one binding at a time there is one eviction at a time."""
    with staged(classes(), kube__bindings=1, qos__alpha=0.1) as place:
        place.nodes(1, cpu="2")
        place.create("pods", low("first"))
        place.ready("first")
        held = Held(place, "/eviction", fault)
        place.create("pods", high("fickle"))
        place.until(lambda: held.waiting, "an eviction waits for its turn")
        if fault == WITHDRAWN:  # both go before the eviction is sent
            gone(place, "fickle")
            gone(place, "first")
        elif fault == LOST:  # the first has done its work
            place.patch("pods", "first", {"status": {"phase": "Succeeded"}}, sub="status")
            place.ready("fickle")
            gone(place, "fickle")
        else:
            place.do(held.turn.set)
            place.ready("fickle")
            gone(place, "fickle")
        # The next eviction comes after the first is settled.
        place.create("pods", low("second"))
        place.ready("second")
        place.create("pods", high("needs"))
        place.do(held.turn.set)
        place.ready("needs")
        place.wait(5.0)
        told = [one["involvedObject"]["name"] for one in place.world.store.every("events")
                if one["reason"] == "Preempted"]  # fmt: skip
        expected = ["first", "second"] if fault == ANSWER_LOST else ["second"]
        assert told == expected
        leader: Any = place.leader.scheduler
        assert leader.counts.evicted == len(expected)


def test_an_older_request_does_not_come_after_a_newer_one() -> None:
    """The first one about a ledger is under way for long, and the pod that it says to wait runs by then."""
    with staged(classes()) as place:
        held = Held(place, "/pod-slow", only_first=True)
        place.create("pods", low("slow"))
        place.until(lambda: held.waiting, "a ledger that says that it waits is under way")
        place.nodes(1)
        place.ready("slow")
        place.wait(LEAST_SECONDS)  # a ledger is written no more often
        # Who comes later has its ledger written meanwhile; of the first one nothing is written before that is over.
        place.create("pods", low("later"))
        place.status("pod-later", lambda one: (one["running"], one["waiting"]) == (1, 0), "its ledger says so")
        said: list[tuple[int, int]] = []

        def listens(change: Change) -> None:
            if change.body["metadata"]["name"] == "pod-slow":
                said.append((change.body["status"]["running"], change.body["status"]["waiting"]))

        place.world.store.watching["availabilities"].append(listens)
        place.wait(60.0)
        assert said == []
        place.do(held.turn.set)
        place.wait(3 * LEAST_SECONDS)
        assert said[:2] == [(0, 1), (1, 0)]
        assert set(said[1:]) == {(1, 0)}


def test_a_pod_is_not_evicted_before_a_ledger_tells_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader that ends while its victims go leaves a ledger that knows how long they ran."""
    # As it is where so many pods are bound that no first ledger has its turn.
    monkeypatch.setattr(write_plan, "NEW_SECONDS", 10_000.0)
    monkeypatch.setattr(write_plan, "BUSY_SECONDS", 10_000.0)
    with staged(classes()) as place:
        place.nodes(1, cpu="2")
        place.create("pods", low("one", "1"))
        place.create("pods", low("two", "1"))
        place.ready("", 2)
        place.wait(60.0)
        assert place.world.store.every("availabilities") == []
        written: dict[str, float] = {}

        def notes(change: Change) -> None:
            written.setdefault(change.body["metadata"]["name"], place.now)

        place.world.store.watching["availabilities"].append(notes)
        place.create("pods", high("urgent", "1"))
        place.bound("urgent")
        (victim,) = [one for one in place.lives() if one.evicted is not None]
        assert victim.evicted is not None
        assert written[f"pod-{victim.name}"] < victim.evicted
        assert [name for name, at in written.items() if at < victim.evicted] == [f"pod-{victim.name}"]
