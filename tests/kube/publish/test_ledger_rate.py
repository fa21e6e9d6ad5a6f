"""5,000 workloads by the real writer, housekeeper and rate limit, in virtual time: only the API server is played."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from slacktide.config import Config
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.overview import Overview, overview
from slacktide.kube import housekeeping
from slacktide.kube.client import pacing
from slacktide.kube.client.metadata import Metadata, Reference, rfc3339
from slacktide.kube.client.turns import Gate
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.housekeeping import Housekeeper
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.publish.availability import LedgerCounts, LedgerWriter
from slacktide.kube.publish.conditions import ConditionWriter
from slacktide.kube.publish.events import EventRecorder, SessionContext
from slacktide.kube.publish.state_events import LEAST_SECONDS, MOST_A_SECOND, MOST_AT_ONCE, StateEvents
from slacktide.kube.publish.write_plan import BUSY_SECONDS, CROWD, SPARE_PART, SPARE_SECONDS
from slacktide.kube.resources.objects import POD, ServiceClass, ServiceClassSpec
from slacktide.settings import load_live
from support import made_objects, virtual_time

NOW = 1_790_000_000.0
WORKLOADS, SECONDS, LONGEST = 5_000, 240.0, 1200.0
ANSWER_SECONDS = 0.02


class Server:
    """Takes every ledger after a moment, and notes when it was sent and what it said."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str, str]] = []

    async def patch(self, path: str, body: bytes, *_: Any, **__: Any) -> bytes:
        said = msgspec.json.decode(body)
        self.sent.append((asyncio.get_running_loop().time(), path.rpartition("-")[2], said["status"]["state"]))
        await asyncio.sleep(ANSWER_SECONDS)
        return b""


class Listener(FeedListener):
    """Tells the writer what changed."""

    writer: LedgerWriter

    def changed(self, key: str) -> None:
        self.writer.changed(key)


def late_by(seconds: float, number: int) -> dict[str, Any]:
    """A pod that came so long ago, and is ready as of now: it has made that up after as long again."""
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(NOW)}
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": rfc3339(NOW)}
    created = rfc3339(NOW - seconds)
    labels = {"slacktide.io/class": "half"}
    metadata = {"name": f"w-{number}", "namespace": "n", "uid": f"u{number}", "labels": labels}
    return {
        "metadata": metadata | {"creationTimestamp": created},
        "spec": {"schedulerName": "slacktide", "nodeName": "a", "containers": [made_objects.container(cpu="1m")]},
        "status": {"phase": "Running", "conditions": [ready, bound]},
    }


def led(
    server: Server, config: Config, clock: Callable[[], float], behind: Sequence[int], under_way: int = 0
) -> tuple[SessionContext, LedgerWriter]:
    """What a leader knows of so many workloads, each late by so many seconds, and who writes its ledgers."""
    mirror, listener = ClusterMirror(config, clock), Listener()
    mirror.on_class_update(ServiceClass(Metadata("half"), ServiceClassSpec(0.5, 1, namespaces=("*",))))
    room = {"cpu": "100", "memory": "1Gi", "pods": str(WORKLOADS)}
    mirror.on_node_update(
        made_objects.node("a", labels={"node-restriction.kubernetes.io/slacktide": "true"}, allocatable=room)
    )
    for number, seconds in enumerate(behind):
        mirror.on_pod_update(made_objects.decoded(POD, late_by(seconds, number)))
    feed = LiveFeed(mirror, Engine(config), listener, clock, lambda: 0.0)
    connection = cast("Any", server)
    recorder = EventRecorder(connection, "slacktide", "test")
    term = SessionContext(connection, config.kube, feed, recorder, clock, lambda: True, Gate())
    listener.writer = LedgerWriter(term, LedgerCounts(), lambda: under_way, lambda: float("-inf"))
    take_over(feed, {}, lambda _decision, _leaving: None)
    mirror.follow(feed)
    assert len(feed.engine.controllers) == len(behind)
    return term, listener.writer


def test_ledgers_to_which_nothing_happened_stand_back_while_many_decisions_are_carried_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The API server has to take both. What happens to a workload is written as ever."""
    sent: dict[int, list[tuple[float, str, str]]] = {}

    async def play(under_way: int) -> None:
        loop, server = asyncio.get_running_loop(), Server()
        monkeypatch.setattr(pacing, "monotonic_seconds", loop.time)
        term, writer = led(server, load_live(), lambda: NOW + loop.time(), [100] * 1_000, under_way)
        task = asyncio.ensure_future(writer.run())
        await asyncio.sleep(BUSY_SECONDS + 10.0)
        first = server.sent[0][1]
        (key,) = (key for key, one in term.feed.controllers.targets.items() if one.name == f"w-{first}")
        told = loop.time()
        writer.changed(key)
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert first in [name for at, name, _ in server.sent if at >= told]
        sent[under_way] = server.sent

    for under_way in (CROWD - 1, CROWD):
        virtual_time.run(partial(play, under_way))
    assert len(sent[CROWD - 1]) > 900  # a hundred a second
    assert 90 <= len(sent[CROWD]) <= 120  # ten


@pytest.mark.slow
def test_numbers_that_only_grow_old_take_a_part_of_the_rate_while_pods_are_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long they took all of it before, and no longer than there are decisions."""
    config, workloads, before, busy = load_live(), 4_000, 300.0, 100.0
    sent: list[float] = []

    async def play() -> None:
        loop, server = asyncio.get_running_loop(), Server()
        monkeypatch.setattr(pacing, "monotonic_seconds", loop.time)
        term, writer = led(server, config, lambda: NOW + loop.time(), [100] * workloads)
        decided = [float("-inf")]
        monkeypatch.setattr(writer, "_latest", lambda: decided[0])
        task = asyncio.ensure_future(writer.run())
        while loop.time() < before + busy + 60.0:
            writer.compare(overview(term.feed.engine, term.clock(), ()))  # as every second
            if before <= loop.time() < before + busy:
                decided[0] = term.clock()  # a pod a second is bound
            await asyncio.sleep(SPARE_SECONDS - 0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        sent.extend(at for at, *_ in server.sent)

    virtual_time.run(play)
    within = [sum(first <= at < first + 50.0 for at in sent) / 50.0 for first in (240.0, before + 10.0, before + 105.0)]
    assert within[0] > workloads / 60.0 - 1.0
    assert 0.9 * config.kube.ledger_qps / SPARE_PART < within[1] < 1.1 * config.kube.ledger_qps / SPARE_PART
    assert within[2] > workloads / 60.0


def test_more_workloads_are_looked_at_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a second that passes no more than a part is spent on how workloads stand."""
    looked: dict[int, int] = {}

    async def play(workloads: int) -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(housekeeping, "LOOKED_AT_A_SECOND", 100)
        term, writer = led(Server(), load_live(), lambda: NOW + loop.time(), [100] * workloads)
        looked[workloads] = 0

        def look(found: Overview) -> None:
            looked[workloads] += len(found.controllers)

        monkeypatch.setattr(writer, "compare", look)
        states = StateEvents(lambda *_, **__: None, term.feed.engine, {}, term.clock)
        task = asyncio.ensure_future(Housekeeper(term, ConditionWriter(term), writer, states).run())
        await asyncio.sleep(30.9)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for workloads in (50, 300):
        virtual_time.run(partial(play, workloads))
    assert looked[50] == 30 * 50
    assert 14 * 300 < looked[300] <= 15 * 300


@pytest.mark.slow
def test_five_thousand_workloads_whose_states_change(monkeypatch: pytest.MonkeyPatch) -> None:
    config, server = load_live(), Server()
    told: list[tuple[float, str, str]] = []

    def note(clock: Callable[[], float], about: Reference, reason: str, said: str, **_: str) -> None:
        assert said
        told.append((clock() - NOW, about.name, reason))

    behind = np.random.default_rng(17).integers(20, int(LONGEST), WORKLOADS).tolist()

    async def play() -> None:
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(pacing, "monotonic_seconds", loop.time)

        def clock() -> float:
            return NOW + loop.time()

        term, writer = led(server, config, clock, behind)
        feed = term.feed
        states = StateEvents(partial(note, clock), feed.engine, feed.controllers.targets, clock)
        running = [writer.run(), Housekeeper(term, ConditionWriter(term), writer, states).run()]
        tasks = [asyncio.ensure_future(one) for one in running]
        await asyncio.sleep(SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    virtual_time.run(play)
    within_the_rate(server, config.kube.ledger_qps)
    states_and_numbers_are_fresh(server, behind)
    events_are_few(told)


def most_within(times: np.ndarray[Any, np.dtype[np.float64]], length: float) -> int:
    """How many of these instants, in order, lie within so many seconds at most."""
    return int((np.searchsorted(times, times + length) - np.arange(len(times))).max())


def events_are_few(told: list[tuple[float, str, str]]) -> None:
    """All 5,000 have missed their promise at first. Each change is told once; the rate of all together is bounded, and
    they come evenly."""
    times = np.array([at for at, *_ in told])
    for length in (0.1, 1.0, 10.0, SECONDS):
        assert most_within(times, length) <= MOST_AT_ONCE + MOST_A_SECOND * length + 1, length
    # After a while there is always somebody whose turn it is: one in each twentieth of a second.
    assert most_within(times[times > 20.0], 0.1) <= 4
    assert len(told) > MOST_A_SECOND * (SECONDS - 10.0)
    by_name: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for at, name, reason in told:
        by_name[name].append((at, reason))
    for changes in by_name.values():
        for (before, former), (after, later) in pairwise(changes):
            assert former != later
            assert after - before >= LEAST_SECONDS


def within_the_rate(server: Server, qps: float) -> None:
    """In each second and each ten; at once as many may go as in a second."""
    times = np.array([at for at, *_ in server.sent])
    for length in (1.0, 10.0, SECONDS):
        assert most_within(times, length) <= qps * (length + 1.0) + 1, length
    assert len(times) > WORKLOADS * (SECONDS / 60.0 - 1.0)


def states_and_numbers_are_fresh(server: Server, behind: list[int]) -> None:
    """Of each workload whose first ledger was written: no state is wrong for 2 s, no number a minute old."""
    by_name: dict[int, list[tuple[float, str]]] = defaultdict(list)
    for at, name, state in server.sent:
        by_name[int(name)].append((at, state))
    assert len(by_name) == WORKLOADS
    turned = 0
    for number, writes in by_name.items():
        for (before, _), (after, _) in pairwise([*writes, (SECONDS, "")]):
            assert after - before <= 60.0, number
        # Half is promised: from then on it is kept, and with the ten seconds of its margin not at risk any more.
        for instant, state in ((behind[number], "AtRisk"), (behind[number] + 10.0, "Kept")):
            if writes[0][0] < instant < SECONDS - 2.0:
                told = next((at for at, said in writes if said == state and at > instant - 1e-6), SECONDS)
                assert told - instant <= 2.0, (number, behind[number], state, writes)
                turned += 1
    assert turned > WORKLOADS * SECONDS / LONGEST
