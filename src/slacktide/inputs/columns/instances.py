"""Rows of a file that stand for several instances: what their columns may hold, and the instances they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Integers, expected_name, parse_float, parse_integer
from slacktide.inputs.columns.terms import parse_attributes
from slacktide.inputs.problems import Problems
from slacktide.model import AGGREGATED, APPROACHES, INDEPENDENT, Requests

KINDS = ("service", "batch")
SERVICE, BATCH = range(2)
MOST = 100_000_000
"""Instances of a workload, and the largest of any count: above it a mistake is likelier than the memory."""
LATEST = 1e15  # seconds, as of all times
INSTANT = 2.0**-20  # seconds to which a run rounds times: what is closer than this happens at once

COUNT = f"a whole number from 1 to {MOST:,}"
SCALE = f"seconds=instances such as '600=5; 1200=2', seconds increasing from 0, instances from 0 to {MOST:,}"
# Why a cell must be empty, or what it must be, given the others of its row.
NO_INSTANCES = "nothing: how many instances a batch request has is its completions"
SERVICE_ONLY = "counts that never grow: only a service is scaled up, a batch request begins with its completions"
BATCH_ONLY = "nothing: only a request of kind batch has it"
WHY_AGGREGATED = "the instances of a batch request complete one by one, so only their mean says what it got"
BATCH_APPROACH = f"aggregated or nothing: {WHY_AGGREGATED}"

Scale = tuple[tuple[float, int], ...]
"""Seconds and how many instances there shall be from then on, in order of time."""


def parse_kind(text: str) -> int:
    """The index into ``KINDS``; nothing is a service. Raises :class:`ValueError`."""
    return KINDS.index(text) if text else SERVICE


def parse_approach(text: str) -> int:
    """The index into ``APPROACHES``; nothing is -1. Raises :class:`ValueError`."""
    return APPROACHES.index(text) if text else -1


def parse_count(text: str) -> int:
    """A whole number from 1 to ``MOST``; nothing is 0. Raises :class:`ValueError`."""
    number = parse_integer(text) if text else 0
    if text and not 1 <= number <= MOST:
        raise ValueError(text)
    return number


def parse_scale(text: str) -> Scale:
    """Scale events written as ``600=5; 1200=2``. Raises :class:`ValueError` when they are not."""
    found = tuple((parse_float(time), parse_integer(count)) for time, count in parse_attributes(text).items())
    if not all(0 <= time <= LATEST and 0 <= count <= MOST for time, count in found):
        raise ValueError(text)
    if any(round(later[0] / INSTANT) <= round(earlier[0] / INSTANT) for earlier, later in pairwise(found)):
        raise ValueError(text)
    return found


def format_scale(scale: Scale) -> str:
    """Text from which :func:`parse_scale` makes equal events."""
    return "; ".join(f"{repr(float(time)).removesuffix('.0')}={count}" for time, count in scale)


def expected_kind(text: str) -> str:
    """What a cell of ``kind`` may hold."""
    return expected_name(text, KINDS)


def expected_approach(text: str) -> str:
    """What a cell of ``approach`` may hold."""
    return expected_name(text, APPROACHES)


@dataclass(slots=True)
class RequestColumns:
    """The columns of requests as read, shape (n,), one entry per row of the file.

    kind          int8   index into ``KINDS``; -1 where the cell is broken
    instances, completions, parallelism  int64  1 or more; 0 where the cell is empty or broken
    approach      int8   index into ``APPROACHES``; -1 where the cell is empty or broken
    scale         int32  index into ``scales``
    member        int64  the number of the request of which each row is an instance; None: each row is its own request
    """

    kind: NDArray[np.int8]
    instances: Integers
    completions: Integers
    parallelism: Integers
    approach: NDArray[np.int8]
    scale: NDArray[np.int32]
    scales: tuple[Scale, ...] = ((),)
    member: Integers | None = None

    @classmethod
    def empty_cells(cls, count: int, *, members: bool = False) -> RequestColumns:
        """``count`` rows in which nothing is given; with ``members`` there is room for that column."""
        return cls(
            kind=np.zeros(count, np.int8),
            instances=np.zeros(count, np.int64),
            completions=np.zeros(count, np.int64),
            parallelism=np.zeros(count, np.int64),
            approach=np.full(count, -1, np.int8),
            scale=np.zeros(count, np.int32),
            member=np.zeros(count, np.int64) if members else None,
        )

    def is_plain(self) -> bool:
        """Whether every row is an independent service of one instance."""
        return self.member is None and not (
            self.kind.any() or (self.instances > 1).any() or self.scale.any() or (self.approach > INDEPENDENT).any()
        )


@dataclass(frozen=True, slots=True)
class Expansion:
    """The instances that rows of a file stand for: first row first, each row's instances in order of admission.

    Of each ``row`` (int32) is the row of the file, ``request`` (int32) the request, the same number where each row is
    one, and ``admission`` (float64) the second.
    """

    row: NDArray[np.int32]
    request: NDArray[np.int32]
    admission: NDArray[np.float64]
    requests: Requests


def check(columns: RequestColumns, admission: NDArray[np.float64], lines: Integers | None, problems: Problems) -> None:
    """Add to ``problems`` every cell that does not go with the others of its row, and a total that is too large."""
    batch, service = columns.kind == BATCH, columns.kind == SERVICE

    def refuse(wrong: NDArray[np.bool_], column: str, expected: str, words: Sequence[str] = ()) -> None:
        if wrong.any():
            found = getattr(columns, column)
            values = [words[code] for code in found] if words else found.tolist()
            problems.add_rows(wrong, lines, column, values, expected)

    refuse(batch & (columns.instances > 0), "instances", NO_INSTANCES)
    refuse(service & (columns.completions > 0), "completions", BATCH_ONLY)
    refuse(service & (columns.parallelism > 0), "parallelism", BATCH_ONLY)
    wrong = batch & (columns.approach >= 0) & (columns.approach != AGGREGATED)
    refuse(wrong, "approach", BATCH_APPROACH, [*APPROACHES, ""])
    if columns.scale.any():
        texts = [format_scale(one) for one in columns.scales]
        first = np.array([one[0][0] if one else np.inf for one in columns.scales])[columns.scale]
        events = _events(columns)
        grows = np.bincount(events.request, events.added, minlength=len(batch)) > 0
        refuse(batch & grows, "scale", SERVICE_ONLY, texts)
        early = (batch | service) & (np.rint(first / INSTANT) <= np.rint(_begins(columns, admission) / INSTANT))
        refuse(early & ~(batch & grows), "scale", "seconds after those of the request's admission", texts)
    if not problems.total and not columns.is_plain():
        total = float(_rows_of_each(columns, _events(columns))[0].sum(dtype=np.float64))
        if total > MOST:
            problems.add(0, "", f"{total:,.0f} instances in all", f"at most {MOST:,}")


@dataclass(frozen=True, slots=True)
class _Events:
    """Scale events by request, then by time; ``added`` is by how many each exceeds the one before it."""

    request: NDArray[np.int64]
    time: NDArray[np.float64]
    replicas: Integers
    added: Integers


def expand(columns: RequestColumns, ids: Integers, admission: NDArray[np.float64]) -> Expansion:
    """The instances of checked columns; ``ids`` and ``admission`` are those of the rows of the file."""
    batch = columns.kind == BATCH
    events = _events(columns)
    rows, at_first = _rows_of_each(columns, events)
    most = at_first if columns.member is None else np.maximum(at_first, _sizes(columns.member))
    request = np.repeat(np.arange(len(ids), dtype=np.int32), rows)
    times = admission[request]
    if len(events.request):
        within = np.arange(len(request)) - np.repeat(np.cumsum(rows) - rows, rows)
        times[within >= at_first[request]] = np.repeat(events.time, events.added)
    approach = np.where(columns.approach >= 0, columns.approach, np.where(batch, AGGREGATED, INDEPENDENT))
    at_once = np.maximum(columns.parallelism, 1)
    order = np.argsort(events.time, kind="stable")
    requests = Requests(
        ids=ids,
        batch=batch,
        approach=approach.astype(np.int8),
        parallelism=np.where(batch & (at_once < most), at_once, 0),
        scale_time=events.time[order],
        scale_request=events.request[order].astype(np.int32),
        scale_replicas=events.replicas[order],
    )
    found = Expansion(request, request, times, requests)
    return found if columns.member is None else _merged(found, columns.member)


def _merged(found: Expansion, member: Integers) -> Expansion:
    """Rows that name one request as its instances: what the first of them says holds for it."""
    number, first, of = np.unique(member, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    place, each, first = place[of.reshape(-1)], found.requests, first[order]
    requests = Requests(
        ids=number[order],
        batch=each.batch[first],
        approach=each.approach[first],
        parallelism=each.parallelism[first],
        scale_time=each.scale_time,
        scale_request=place[each.scale_request],
        scale_replicas=each.scale_replicas,
    )
    return Expansion(found.row, place[found.row], found.admission, requests)


def _sizes(member: Integers) -> Integers:
    """Of how many rows the request of each row is."""
    _, of, count = np.unique(member, return_inverse=True, return_counts=True)
    return np.asarray(count[of.reshape(-1)], np.int64)


def _begins(columns: RequestColumns, admission: NDArray[np.float64]) -> NDArray[np.float64]:
    """The admission of each row's request: that of the first of its rows."""
    if columns.member is None:
        return admission
    number, of = np.unique(columns.member, return_inverse=True)
    least = np.full(len(number), np.inf)
    np.minimum.at(least, of.reshape(-1), admission)
    return least[of.reshape(-1)]


def _events(columns: RequestColumns) -> _Events:
    """Of a request of several rows those that its first row says; further instances are rows, and nothing is added."""
    lengths = np.array([len(one) for one in columns.scales])
    says, alone = np.ones(len(columns.scale), np.bool_), np.ones(len(columns.scale), np.bool_)
    if columns.member is not None:
        says[:] = False
        says[np.unique(columns.member, return_index=True)[1]] = True
        alone = _sizes(columns.member) == 1
    scaled = np.flatnonzero((columns.scale > 0) & says)
    code = columns.scale[scaled]
    count = lengths[code]
    request = np.repeat(scaled, count)
    # Where each event stands in the list of the events of all scalings.
    begin = np.cumsum(lengths) - lengths
    first = np.cumsum(count) - count
    place = np.arange(len(request)) - np.repeat(first - begin[code], count)
    listed = [event for one in columns.scales for event in one]
    time = np.array([seconds for seconds, _ in listed], dtype=np.float64)[place]
    replicas = np.array([number for _, number in listed], dtype=np.int64)[place]
    before = np.roll(replicas, 1)
    before[first] = _at_first(columns)[scaled]
    added = np.where(alone[request], np.maximum(replicas - before, 0), 0)
    return _Events(request, time, replicas, added)


def _at_first(columns: RequestColumns) -> Integers:
    """How many instances each row stands for at its admission."""
    return np.maximum(np.where(columns.kind == BATCH, columns.completions, columns.instances), 1)


def _rows_of_each(columns: RequestColumns, events: _Events) -> tuple[Integers, Integers]:
    """How many instances each request has in all, and how many of them at its admission."""
    at_first = _at_first(columns)
    rows = at_first.copy()
    np.add.at(rows, events.request, events.added)
    return rows, at_first
