"""Rows of the page from an engine, live or one that does a recorded session again. Changes nothing of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from slacktide.dashboard.timeline import finite
from slacktide.dashboard.totals import Promise, Totals
from slacktide.dashboard.view import (
    LEAVING,
    READY,
    STARTING,
    WAITING,
    DecisionRow,
    Loss,
    NodeRow,
    PodRow,
    WorkloadRow,
)
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.engine.ledger.overview import overview
from slacktide.kernels.drive import apply_plan
from slacktide.kernels.place import preemption_obstacles
from slacktide.model import ServiceClass
from slacktide.model.service_class import OWN

ASKERS = 200
"""Of so many pods that wait the most urgent is looked for."""


class Numbers:
    """Small numbers for names, as rows are known by; those of names that are gone are not given again."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._next = 0

    def of(self, name: str) -> int:
        """The number of a name, a new one where it has none."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = self._next
            self._next += 1
        return found

    def known(self, name: str) -> int:
        """The number of a name, -1: none."""
        return self._known.get(name, -1)

    def forget(self, name: str) -> int:
        """A name is gone; the number that it had, -1: none."""
        return self._known.pop(name, -1)

    def names(self) -> list[str]:
        """All that have a number."""
        return list(self._known)


class Party(NamedTuple):
    """A pod that gained or lost by a decision: its name, its controller's key and class, its slack then, seconds."""

    pod: str
    key: str
    service: ServiceClass
    slack: float


class Made(NamedTuple):
    """A decision that is remembered, also when its pods are gone."""

    at: float
    pod: Party
    node: str
    victims: tuple[Party, ...]


def made(engine: Engine, decision: Decision, at: float) -> Made | None:
    """What is remembered of a decision that was just made; None where its pod is not known any more. O(victims)."""
    pairs = [(decision.uid, decision.metric), *((one.uid, one.metric) for one in decision.victims)]
    parties = []
    for uid, slack in pairs:
        pod = engine.pods.get(uid)
        if pod is not None:
            title = f"{named(pod.key)[1]}/{pod.name}"
            parties.append(Party(title, pod.key, engine.controllers[pod.key].service, slack))
        elif uid == decision.uid:
            return None
    return Made(at, parties[0], decision.host, tuple(parties[1:]))


class EngineRows:
    """Rows of an engine's controllers, hosts and pods, and their numbers: of controllers by key, of pods by UID."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.workloads, self.nodes, self.pods = Numbers(), Numbers(), Numbers()
        self._classes: dict[str, int] = {}
        self.promises: list[Promise] = []

    # -- classes and workloads -------------------------------------------------------------------------------------

    def class_number(self, service: ServiceClass) -> int:
        """Of a service class; one with an own SLO (``NAME@SLO``) counts to the class that it is of."""
        name, _, own = service.name.partition(OWN)
        found = self._classes.get(name)
        promise = Promise(name, service.slo, service.rank, service.margin)
        if found is None:
            found = self._classes[name] = len(self.promises)
            self.promises.append(promise)
        elif not own:
            self.promises[found] = promise
        return found

    def workload_rows(self, keys: Iterable[str], now: float) -> tuple[list[WorkloadRow], Totals]:
        """Where controllers stand at ``now``; those that are not known are left out. O(their live instances)."""
        known = [key for key in keys if key in self.engine.controllers]
        if not known:
            return [], Totals.empty()
        found = overview(self.engine, now, known)
        classes = [self.class_number(one.service) for one in found.controllers]
        rows = []
        # What decisions hold back for a start-up is no loss.
        columns = zip(
            known, classes, found.promised.tolist(), found.delivered.tolist(), (found.slack + found.alpha).tolist(),
            found.state.tolist(), found.running.tolist(), found.waiting.tolist(), found.preemptions.tolist(),
            (found.lost + found.starving).tolist(), found.given_up.tolist(), strict=True,
        )  # fmt: skip
        for key, cls, promised, delivered, slack, state, running, waiting, preempted, late, since in columns:
            kind, namespace, name = named(key)
            rows.append(WorkloadRow(
                self.workloads.of(key), namespace, name, kind, cls, promised, finite(delivered), finite(slack), state,
                running, waiting, preempted, late, given_up=finite(since),
            ))  # fmt: skip
        totals = Totals(
            np.array(classes), found.state, found.promised, found.delivered, found.lifetime,
            found.running, found.waiting, found.preemptions,
        )  # fmt: skip
        return rows, totals

    # -- nodes and pods --------------------------------------------------------------------------------------------

    def others(self) -> Counter[str]:
        """How many pods that are not ours are on each host. O(those pods)."""
        return Counter(host for host, _, _ in self.engine.others.values())

    def node_row(self, name: str, others: int) -> NodeRow | None:
        """A host as it is; None where it is not known."""
        h = self.engine.hosts.get(name)
        if h is None:
            return None
        tb = self.engine.tables.tb
        capacity, free = tb["capacity"][h], tb["free"][h]
        there = capacity > 0
        used = float((1.0 - free[there] / capacity[there]).max()) if there.any() else None
        down = bool(tb["hosts"]["down"][h])
        return NodeRow(self.nodes.of(name), name, None if used is None else round(used, 4), others, not down)

    def pod_row(self, uid: str, reason: str = "") -> PodRow | None:
        """A pod as it is; None where it is not known. One whose place is kept until others are gone waits."""
        pod = self.engine.pods.get(uid)
        if pod is None:
            return None
        on_node = pod.state in (types.PLACED, types.LEAVING) and (pod.bound or pod.state == types.LEAVING)
        state = WAITING
        if on_node:
            state = LEAVING if pod.state == types.LEAVING else READY if pod.ready else STARTING
        _, namespace, _ = named(pod.key)
        node = self.nodes.of(pod.host) if on_node else -1
        since = float(self.engine.tables.tb["instances"]["since"][pod.row])
        return PodRow(
            self.pods.of(uid), namespace, pod.name, self.workloads.of(pod.key), node, state, finite(since),
            reason if state == WAITING else "",
        )  # fmt: skip

    def pods_of(self, key: str) -> list[str]:
        """UIDs of a controller's pods."""
        rows, uids = self.engine.controllers[key].rows, self.engine.uid_of_row
        return [uids[row] for row in rows if row in uids]

    # -- decisions -------------------------------------------------------------------------------------------------

    def decision_row(self, number: int, made: Made) -> DecisionRow:
        """A decision that is remembered, under a number."""
        losses = tuple(
            Loss(one.pod, self.workloads.of(one.key), self.class_number(one.service), finite(one.slack))
            for one in made.victims
        )
        pod = made.pod
        return DecisionRow(
            number, made.at, pod.pod, self.workloads.of(pod.key), self.class_number(pod.service), made.node,
            finite(pod.slack), losses,
        )  # fmt: skip

    # -- who could make room ---------------------------------------------------------------------------------------

    def asker(self, now: float) -> types.Pod | None:
        """The pod that waits most urgently and may preempt by now; None where there is none."""
        best, least = None, np.inf
        for uid in self.engine.waiting()[:ASKERS]:
            pod = self.engine.pods[uid]
            mine = self._metric(pod, now)
            if mine < least and not self._is_held(pod, mine):
                best, least = pod, mine
        return best

    def may_go(self, asker: types.Pod, hosts: Sequence[str], now: float) -> list[int]:
        """Of the pods on these hosts the numbers of those that could make room for ``asker``. O(those pods)."""
        engine = self.engine
        tb = engine.tables.tb
        places = np.array([engine.hosts[one] for one in hosts if one in engine.hosts], np.int64)
        counts = tb["hosts"]["count"][places]
        if not counts.sum():
            return []
        found = np.zeros(int(counts.sum()), np.int64)
        mine = self._metric(asker, now)
        preemption_obstacles.obstacles(tb.state, places, asker.row, mine, self._at(now), found)
        taken = np.arange(int(counts.max())) < counts[:, None]
        rows = tb["slots"]["row"][places, : int(counts.max())][taken]
        uids = engine.uid_of_row
        free = rows[found == int(preemption_obstacles.NOTHING)].tolist()
        return [self.pods.of(uids[row]) for row in free if row in uids]

    def _at(self, now: float) -> float:
        return max(types.snap(now), self.engine.latest)

    def _metric(self, pod: types.Pod, now: float) -> float:
        """Of a pod that waits; NaN where it is in no queue."""
        return float(apply_plan.metric_in_queue(self.engine.tables.tb.state, pod.row, self._at(now)))

    def _is_held(self, pod: types.Pod, mine: float) -> bool:
        tables = self.engine.tables
        kind = int(tables.tb["instances"]["kind"][pod.row])
        if tables.spec_of(kind).never:
            return True
        return bool(preemption_obstacles.held(tables.tb.state, int(tables.tb["kinds"]["cls"][kind]), mine))


def named(key: str) -> tuple[str, str, str]:
    """Kind, namespace and name of a controller, from its key in the engine (``Kind/namespace/name/UID``)."""
    kind, namespace, name = (*key.split("/"), "", "")[:3]
    return kind, namespace, name


def same_for_people(one: Any, other: Any) -> bool:
    """Whether two rows of workloads look the same: slack counts from a hundredth of it on, or a tenth of a second."""
    if one is None or other is None or one.state != other.state:
        return False
    first, second = one.slack, other.slack
    if (first is None) != (second is None):
        return False
    if first is not None and abs(first - second) > max(0.1, 0.01 * min(abs(first), abs(second))):
        return False
    given = abs((one.delivered or 0.0) - (other.delivered or 0.0)) < 5e-5
    return given and all(
        getattr(one, name) == getattr(other, name)
        for name in ("running", "waiting", "preempted", "late", "given_up", "cls", "promised")
    )
