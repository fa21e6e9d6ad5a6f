"""The hosts of a recorded session, and what happened to them, as files of a simulation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Set

import numpy as np

from slacktide.engine.journal.retrace import Amounts, HostHistory, SessionHistory
from slacktide.engine.journal.workload_text import Terms
from slacktide.inputs.columns.affinity_text import format_counted
from slacktide.inputs.columns.occasions import format_amounts
from slacktide.model import Hosts, Workload

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
