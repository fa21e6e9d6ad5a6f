"""The results of a simulation (docs/results.md) as a timeline, from its tables alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from slacktide.dashboard.simulated_lives import STARTS, Lives, alive
from slacktide.dashboard.simulated_tables import Events, Floats, Ints, load
from slacktide.dashboard.simulated_waits import Waits, written
from slacktide.dashboard.timeline import MOST_DECISIONS, MOST_WORKLOADS, Points, Told, finite, marks_of
from slacktide.dashboard.totals import Promise, Totals, class_rows
from slacktide.dashboard.view import READY, WAITING, DecisionRow, Head, Loss, Lost, NodeRow, PodRow, View, WorkloadRow
from slacktide.engine.ledger.slo_status import STATES
from slacktide.for_people import slack_text
from slacktide.qos.availability import fulfilled
from slacktide.qos.standing import at_risk, delivered_of

KEPT, AT_RISK, MISSED, UNKNOWN = range(len(STATES))
WORST_FIRST = np.array([2, 1, 0, 3])
"""Of each state, how early workloads in it are listed."""
NO_EVENTS = "This run was written without --events. So the page shows how promises ended, and nothing in between."


class Standing(NamedTuple):
    """Requests at an instant, shape (n,): ``delivered`` NaN where it is not known, ``left`` in seconds."""

    state: Ints
    delivered: Floats
    left: Floats
    over: NDArray[np.bool_]
    lifetime: Floats
    """Instance seconds."""
    running: Ints
    waiting: Ints
    preempted: Ints

    def pick(self, rows: Ints) -> Standing:
        """Some of them."""
        return Standing(*(column[rows] for column in self))  # type: ignore[arg-type]  # each of its own kind


class Simulation:
    """A :class:`.timeline.Timeline`. Raises :class:`InputError` for what is no folder of results.

    Without events.parquet (``simulate --events``) there is one instant to look at: the end.
    """

    def __init__(self, folder: Path) -> None:
        self.results = results = load(folder)
        events = results.events
        self._lives = None if events is None else Lives(results, events)
        self._waits = None if self._lives is None else Waits(self._lives)
        preempted = np.zeros(0) if events is None else events.time[events.is_("preempted")]
        self._span = span = (0.0 if events is not None else results.end, results.end)
        self.head = Head(
            source="simulation",
            title=results.title,
            policy=results.policy,
            clock="seconds",
            span=span,
            marks=marks_of(preempted, span),
            remarks=[NO_EVENTS] if events is None else [],
        )
        self._promises = [Promise(one.name, one.slo, one.rank, one.margin) for one in results.classes]
        self._slo = np.array([one.slo for one in results.classes])[results.cls]
        self._margin = np.array([one.margin for one in results.classes])[results.cls]
        self._places = {("", str(number)): place for place, number in enumerate(results.ids.tolist())}
        self._places |= {one: place for place, one in enumerate(results.called) if one[1]}

    def at(self, instant: float) -> View:
        """The whole state at an instant. O(events)."""
        results = self.results
        begin, end = self._span
        at = min(max(instant, begin), end)
        last = self._last_moves(at)
        every = self._standing(at, last)
        there = np.flatnonzero(results.admission <= at)
        stood = every.pick(there)
        order = np.lexsort((stood.left, WORST_FIRST[stood.state], stood.over))[:MOST_WORKLOADS]
        shown = np.zeros(len(results.ids), np.bool_)
        shown[there[order]] = True
        totals = Totals(
            results.cls[there], stood.state, self._slo[there], stood.delivered, stood.lifetime,
            stood.running, stood.waiting, stood.preempted,
        )  # fmt: skip
        classes = class_rows(self._promises, totals)
        lost: dict[int, Lost] = {}
        if self._waits is not None:
            seconds = self._waits.lost(at)
            missed = there[stood.state == MISSED]
            for one in classes:
                classes[one.number] = replace(
                    one, lost=written(seconds[missed[results.cls[missed] == one.number]].sum(0))
                )
            lost = {one: written(seconds[one]) for one in missed[shown[missed]].tolist()}
        return View(
            at=at,
            whole=True,
            head=self.head,
            classes=classes,
            workloads=self._workloads(there[order], stood.pick(order), lost),
            nodes=[NodeRow(number, name, None, 0, True) for number, name in enumerate(results.hosts)],
            pods=self._pods(at, last, shown),
            decisions=[] if results.events is None else self._decisions(results.events, at),
            hidden=len(there) - len(order),
        )

    def _last_moves(self, at: float) -> Ints:
        if self._lives is None:
            return np.full(len(self.results.request), -1)
        return self._lives.last_move(at)

    def _on_host(self, last: Ints) -> NDArray[np.bool_]:
        events = self.results.events
        if events is None:
            return np.zeros(len(last), np.bool_)
        found: NDArray[np.bool_] = (last >= 0) & events.is_(*STARTS)[last]
        return found

    def _standing(self, at: float, last: Ints) -> Standing:
        results, count = self.results, len(self.results.ids)
        over = (results.ended <= at) | (at >= results.end) & np.isfinite(results.ended)
        lived = alive(results.instance_admission, results.instance_ended, at)
        lifetime: Floats = np.bincount(results.request, lived, count).astype(np.float64)
        here = (results.instance_admission <= at) & (results.instance_ended > at)
        on_host = self._on_host(last) & here
        running = np.bincount(results.request[on_host], minlength=count)
        waiting = np.bincount(results.request[here & ~on_host], minlength=count)
        if self._lives is None:
            waiting = running  # nothing says where anybody is
        delivered, left = self._left(at, lived)
        final = over | (at >= results.end)
        delivered = np.where(final, results.achieved, delivered)
        known = ~np.isnan(delivered)
        kept = np.where(known, fulfilled(delivered, self._slo), ~(left < -1e-9))
        kept = np.where(final, results.met, kept)
        risky = at_risk(left, np.where(known, delivered, 0.0), self._slo, self._margin) & ~over
        state = np.where(kept, np.where(risky, AT_RISK, KEPT), MISSED)
        state = np.where((lifetime > 0.0) | final, state, UNKNOWN)  # in the end the table of requests says it
        return Standing(state, delivered, left, over, lifetime, running, waiting, self._preempted(at))

    def _left(self, at: float, lived: Floats) -> tuple[Floats, Floats]:
        """What was delivered to requests, and what is left, seconds; NaN where it is not known at this instant."""
        results, count = self.results, len(self.results.ids)
        if self._lives is None:
            return results.achieved, np.full(count, np.nan)
        lives = self._lives
        left, instances = lives.left(at), len(results.request)
        alone = results.by_instance
        mine = np.where(alone[results.request], left[:instances], np.nan)
        share = delivered_of(mine, lived, lives.slo[:instances])
        share[lives.windowed[:instances]] = np.nan
        least, given = np.full(count, np.inf), np.full(count, np.inf)
        np.fmin.at(least, results.request, mine)
        np.fmin.at(given, results.request, share)
        of_requests = left[instances:]
        return (
            np.where(np.isinf(given) | ~alone, np.nan, given),
            np.where(alone, np.where(np.isinf(least), np.nan, least), of_requests),
        )

    def _preempted(self, at: float) -> Ints:
        results, events = self.results, self.results.events
        if events is None:
            return results.preempted
        mine = events.is_("preempted") & (events.time <= at) & (events.instance >= 0)
        found: Ints = np.bincount(results.request[events.instance[mine]], minlength=len(results.ids))
        return found

    def _workloads(self, rows: Ints, stood: Standing, lost: dict[int, Lost]) -> list[WorkloadRow]:
        results = self.results
        columns = zip(
            rows.tolist(), results.batch[rows].tolist(), results.cls[rows].tolist(),
            self._slo[rows].tolist(), stood.delivered.tolist(), stood.left.tolist(), stood.state.tolist(),
            stood.running.tolist(), stood.waiting.tolist(), stood.preempted.tolist(), stood.over.tolist(),
            strict=True,
        )  # fmt: skip
        return [
            WorkloadRow(
                number, results.called[number][0], results.title_of(number),
                "batch" if batch else "service", cls, promised, finite(delivered), finite(left), state,
                running, waiting, preempted, 0, over, None, lost.get(number, ()),
            )
            for number, batch, cls, promised, delivered, left, state, running, waiting, preempted, over in columns
        ]  # fmt: skip

    def _pods(self, at: float, last: Ints, shown: NDArray[np.bool_]) -> list[PodRow]:
        results, events = self.results, self.results.events
        if events is None:
            return []
        here = shown[results.request] & (results.instance_admission <= at) & (results.instance_ended > at)
        rows = np.flatnonzero(here)
        on_host = self._on_host(last)[rows]
        since = self._since(rows, last)
        node = np.where(on_host, events.host[last[rows]], -1)
        reasons = np.full(len(rows), "", object)
        if self._waits is not None:
            waits = ~on_host
            reasons[waits] = self._waits.reasons(rows[waits], last[rows[waits]], since[waits], at)
        columns = zip(
            rows.tolist(), results.request[rows].tolist(), node.tolist(), on_host.tolist(), since.tolist(),
            reasons.tolist(), strict=True,
        )  # fmt: skip
        return [
            PodRow(
                number, results.namespace_of(number), results.name_of(number), request, host,
                READY if placed else WAITING, began, reason,
            )
            for number, request, host, placed, began, reason in columns
        ]  # fmt: skip

    def _since(self, rows: Ints, last: Ints) -> Floats:
        """When some instances came to where they are: their last move, or their admission."""
        results, events = self.results, self.results.events
        if events is None:
            return results.instance_admission[rows]
        return np.where(last[rows] >= 0, events.time[last[rows]], results.instance_admission[rows])

    def _decisions(self, events: Events, at: float) -> list[DecisionRow]:
        """The last placements, and the last of those for which somebody made room."""
        stop = int(np.searchsorted(events.time, at, "right"))
        placed = np.flatnonzero(events.is_("placed")[:stop])
        costly = np.flatnonzero(events.is_("preempted")[:stop] & (events.by[:stop] >= 0))[-2 * MOST_DECISIONS :]
        victims: dict[tuple[float, int, int], list[int]] = defaultdict(list)
        for event in costly.tolist():
            victims[events.time[event], int(events.by[event]), int(events.host[event])].append(event)
        requests = self.results.request[events.instance[placed]]
        keys = list(zip(events.time[placed].tolist(), requests.tolist(), events.host[placed].tolist(), strict=True))
        with_victims = [place for place, key in enumerate(keys) if key in victims][-MOST_DECISIONS // 2 :]
        chosen = sorted({*with_victims, *range(max(len(keys) - MOST_DECISIONS // 2, 0), len(keys))}, reverse=True)
        return [self._decision(events, int(placed[one]), victims.get(keys[one], [])) for one in chosen]

    def _decision(self, events: Events, event: int, victims: list[int]) -> DecisionRow:
        results = self.results
        instance = int(events.instance[event])
        request = int(results.request[instance])
        losses = tuple(self._loss(events, one) for one in victims)
        return DecisionRow(
            event, float(events.time[event]), results.name_of(instance), request, int(results.cls[request]),
            results.hosts[events.host[event]], finite(float(events.qos[event])), losses,
        )  # fmt: skip

    def _loss(self, events: Events, event: int) -> Loss:
        results, instance = self.results, int(events.instance[event])
        request = int(results.request[instance])
        return Loss(results.name_of(instance), request, int(results.cls[request]), finite(float(events.qos[event])))

    def history(self, workload: int, until: float, samples: int) -> tuple[Points, list[Told]]:
        """Slack over time of a request up to an instant, and what happened to its instances."""
        if self._lives is None or not 0 <= workload < len(self.results.ids):
            return [], []
        mine = np.flatnonzero(self.results.request == workload)
        points: Points = list(self._lives.history(np.unique(self._lives.unit[mine]), until, samples))
        return points, self._told(mine, until)

    def story(self, namespace: str, name: str, until: float) -> list[Told] | None:
        """What happened to an instance, or all of a request, up to an instant; None: it is not known."""
        place, number = self._places.get((namespace, name)), ""
        if place is None:
            request, _, number = name.rpartition("-")
            place = self._places.get((namespace, request))
        if place is None or not (number or "0").isdecimal():
            return None
        mine = np.flatnonzero(self.results.request == place)
        mine = mine[self.results.number[mine] == int(number)] if number else mine
        if not len(mine):
            return None
        return self._told(mine, until)

    def _told(self, instances: Ints, until: float) -> list[Told]:
        events = self.results.events
        if events is None or self._waits is None:
            return []
        until = min(until, self.results.end)
        found = np.flatnonzero(np.isin(events.instance, instances) & (events.time <= until))
        several = len(instances) > 1
        told = [self._words(events, one, several) for one in found.tolist()]
        last = self._last_moves(until)
        waits = ~self._on_host(last) & (self.results.instance_ended > until)
        waits &= self.results.instance_admission <= until
        rows = instances[waits[instances]]
        reasons = self._waits.reasons(rows, last[rows], self._since(rows, last), until)
        names = [f"{self.results.name_of(one)}: " if several else "" for one in rows.tolist()]
        return [*told, *((until, f"{name}waits, {why}", -1) for name, why in zip(names, reasons, strict=True))]

    def _words(self, events: Events, event: int, several: bool) -> Told:
        results, kind = self.results, events.kinds[events.kind[event]]
        who = f"{results.name_of(int(events.instance[event]))}: " if several else ""
        host = f" on {results.hosts[events.host[event]]}" if events.host[event] >= 0 else ""
        qos = float(events.qos[event])
        slack = "" if np.isnan(qos) else f", decided with {slack_text(qos)}"
        return float(events.time[event]), f"{who}{kind}{host}{slack}", int(events.by[event])
