"""The files of a record written as a workload: its rows, and what happened to hosts."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

import numpy as np

from slacktide.engine.journal.retrace import SHORTEST, Amounts, Demand, HostHistory, InstanceHistory, SessionHistory
from slacktide.engine.journal.workload_text import Terms
from slacktide.inputs.columns.affinity_text import format_counted
from slacktide.inputs.columns.instances import BATCH, SERVICE, Scale
from slacktide.inputs.columns.occasions import format_amounts
from slacktide.model import Hosts, Past, Unreadiness, Workload
from slacktide.model.request_events import lost_in
from slacktide.model.workload import AGGREGATED, INDEPENDENT

TOGETHER = 1.0
"""Seconds: who comes that soon before or after another of its request has gone for good takes its place."""


@dataclass(slots=True)
class Row:
    """A row of the workload, times from the beginning of the record: an instance of its ``request``, a number. Rows of
    one request have the same ``kind``, ``approach`` and ``scale``."""

    life: InstanceHistory
    admission: float
    duration: float
    kind: int
    approach: int
    request: int = 0
    scale: Scale = ()
    lost: Past = ()
    spells: Unreadiness = ()
    asked: list[tuple[float, Demand]] = field(default_factory=list)
    """What it asks for, from when on, seconds since 1970; the first from its admission on."""


def rows_of(history: SessionHistory) -> list[Row]:
    """What to simulate, in order of admission. Requests are numbered in order of their first rows."""
    requests: list[list[Row]] = []
    together: dict[str, list[InstanceHistory]] = {}
    for life in history.instances:
        controller = life.controller
        if life.end <= history.begin + SHORTEST or life.end <= life.admission + SHORTEST or life.spec is None:
            continue
        if controller.approach == INDEPENDENT and not controller.batch:
            requests.append([_row_of_one(life, history.begin)])
        else:
            together.setdefault(f"{controller.key}/{controller.q}/{id(controller)}", []).append(life)
    requests += [(_job if lives[0].controller.batch else _service)(lives, history) for lives in together.values()]
    rows = sorted((row for one in requests for row in one), key=lambda row: row.admission)
    number: dict[int, int] = {}
    of = {id(row): id(one) for one in requests for row in one}
    for row in rows:
        row.request = number.setdefault(of[id(row)], len(number) + 1)
    return rows


def _row_of_one(life: InstanceHistory, begin: float) -> Row:
    """An instance alone: it completes when it has run as long again, or goes when it went."""
    scale = ((life.end - begin, 0),) if np.isfinite(life.end) and not life.completed else ()
    duration = _work(life, begin) if life.completed else np.inf
    row = Row(life, life.admission - begin, duration, SERVICE, INDEPENDENT, scale=scale, lost=life.lost)
    row.spells, row.asked = _spells((life,), begin), life.demands
    return row


def _work(life: InstanceHistory, begin: float) -> float:
    """What it ran until it completed, which is more than what it ran before the record began."""
    ran = max(0.0, begin - life.admission) - lost_in(life.lost)
    duration = ran + life.received if life.running >= life.before else life.running  # else work was lost
    return max(ran + SHORTEST, duration)


def _spells(lives: Iterable[InstanceHistory], begin: float) -> Unreadiness:
    """When one of them was not ready."""
    spells = [(max(0.0, since - begin), until - max(since, begin)) for life in lives for since, until in life.spells]
    return tuple((round(at, 6), seconds) for at, seconds in sorted(spells) if seconds > SHORTEST)


def _job(lives: list[InstanceHistory], history: SessionHistory) -> list[Row]:
    """The pods of a Job: each does its own work, and goes on for ever where it had not completed in the end. They come
    when they came: what another left free was somebody else's by then."""
    begin = history.begin
    ends = [life.end for life in lives if np.isfinite(life.end) and not life.completed]
    scale = _scale_of([(life.admission, life.end) for life in lives], ends, begin)
    rows = []
    for life in sorted(lives, key=lambda life: life.admission):
        row = Row(life, life.admission - begin, np.inf, BATCH, AGGREGATED, scale=scale, lost=life.lost)
        if life.completed:
            row.duration = _work(life, begin)
        row.spells, row.asked = _spells((life,), begin), life.demands
        rows.append(row)
    return rows


def _scale_of(spans: list[tuple[float, float]], ends: list[float], begin: float) -> Scale:
    """How many are left of those with these lives, each time that some went who had not completed."""
    counts: dict[float, int] = {}
    for at in sorted(set(ends)):
        counts[round(at - begin, 6)] = sum(since <= at < until for since, until in spans)
    return tuple(counts.items())


def _service(lives: list[InstanceHistory], history: SessionHistory) -> list[Row]:
    """Instances measured together. Who comes when another has gone goes on in its place; where users had told that to
    go, as in a rollout, whoever comes for it needs a place before that one is free.

    What they have lived and got before the record began is that of all of them, in equal parts.
    """
    begin = history.begin
    places = _places(sorted(lives, key=lambda life: life.admission))
    spans = [(place[0].admission, place[-1].end) for place in places]
    scale = _scale_of(spans, [end for _, end in spans if np.isfinite(end)], begin)
    lived, counted = history.totals.get(id(lives[0].controller), (0.0, 0.0))
    present = sum(since < begin for since, _ in spans)
    approach = lives[0].controller.approach
    rows = []
    for place in places:
        row = Row(place[-1], place[0].admission - begin, np.inf, SERVICE, approach, scale=scale)
        if row.admission < 0.0:
            row.admission, missing = -max(lived, SHORTEST) / present, (lived - counted) / present
            row.lost = ((0.0, missing),) if missing >= SHORTEST else ()
        row.spells = _spells(place, begin)
        row.asked = [(max(at, life.admission), demand) for life in place for at, demand in life.demands]
        rows.append(row)
    return rows


def _places(lives: list[InstanceHistory]) -> list[list[InstanceHistory]]:
    """The instances one after the other that were in one place, by the first of them."""
    places: list[list[InstanceHistory]] = []
    for life in lives:
        left = [one for one in places if _continues(life, one[-1])]
        if left:
            min(left, key=lambda one: one[-1].end).append(life)
        else:
            places.append([life])
    return places


def _continues(life: InstanceHistory, before: InstanceHistory) -> bool:
    """Whether an instance came as another went: about when it ended, or since it was preempted. Whoever comes for one
    that users told to go does not."""
    if before.told < before.end and not before.victim:
        return False
    since = min(before.told, before.end)
    return since - TOGETHER <= life.admission <= before.end + TOGETHER and life.end > before.end


UNITS = {"cpu": 1000.0}
"""Whole amounts per unit of a file: cores; all else (bytes, counts) stays as it is."""


def amounts_in_units(named: Mapping[str, int], resources: tuple[str, ...]) -> list[float]:
    """Amounts of these resources in the units of files."""
    return [named.get(name, 0) / UNITS.get(name, 1.0) for name in resources]


def hosts_of(history: SessionHistory, resources: tuple[str, ...], terms: Terms) -> Hosts:
    """What each host had when the record began, or when it came."""
    lives = history.hosts
    return Hosts(
        ids=np.arange(1, len(lives) + 1),
        names=tuple(lives),
        capacity=np.array([amounts_in_units(life.changes[0].has, resources) for life in lives.values()]),
        attributes=tuple(terms.attributes[name] for name in lives),
        resources=resources,
    )


def events_text(history: SessionHistory, workload: Workload) -> str:
    """A file of host events; empty where nothing happened.

    A host fails when nothing ran on it any more and nothing could. What it has changes, and what pods of others take;
    these take all of it while it is closed and something still runs there. Their marks are told as far as a rule or a
    preference of the workload is about them.
    """
    lines: list[tuple[float, str, str, str, str]] = []
    asked = {mark for placement in workload.placements for mark, _ in placement.asked}
    for name, life in history.hosts.items():
        for since, until in life.closed:
            if until > since:
                lines.append((max(0.0, since - history.begin), name, "fail", "", ""))
                if np.isfinite(until):
                    lines.append((until - history.begin, name, "repair", "", ""))
        changes = _changes(life, workload.resources, asked)
        lines += [(max(0.0, at - history.begin), name, kind, amounts, marks) for at, kind, amounts, marks in changes]
    if not lines:
        return ""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("time", "host", "event", "amounts", "marks"))
    rows.writerows((repr(round(at, 6)), *what) for at, *what in sorted(lines))
    return out.getvalue()


def _changes(life: HostHistory, resources: tuple[str, ...], asked: Set[str]) -> Iterator[tuple[float, str, str, str]]:
    """When what of a host is other than before, and the amounts or the marks that are."""
    before = Amounts(-np.inf, life.changes[0].has, {}, {})
    for now in life.changes:
        for kind, old, new in (("capacity", before.has, now.has), ("others", before.taken, now.taken)):
            changed = tuple(name for name in resources if old.get(name, 0) != new.get(name, 0))
            if changed:
                pairs = zip(changed, amounts_in_units(new, changed), strict=True)
                yield now.since, kind, format_amounts(tuple(pairs)), ""
        others = sorted(mark for mark in asked if before.marks.get(mark, 0) != now.marks.get(mark, 0))
        if others:
            yield now.since, "marks", "", format_counted(tuple((mark, now.marks.get(mark, 0)) for mark in others))
        before = now
