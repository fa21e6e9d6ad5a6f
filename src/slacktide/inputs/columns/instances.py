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
SERVICE_ONLY = "nothing: only a service is scaled"
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
    """

    kind: NDArray[np.int8]
    instances: Integers
    completions: Integers
    parallelism: Integers
    approach: NDArray[np.int8]
    scale: NDArray[np.int32]
    scales: tuple[Scale, ...] = ((),)

    @classmethod
    def empty_cells(cls, count: int) -> RequestColumns:
        """``count`` rows in which nothing is given."""
        return cls(
            kind=np.zeros(count, np.int8),
            instances=np.zeros(count, np.int64),
            completions=np.zeros(count, np.int64),
            parallelism=np.zeros(count, np.int64),
            approach=np.full(count, -1, np.int8),
            scale=np.zeros(count, np.int32),
        )

    def is_plain(self) -> bool:
        """Whether every row is an independent service of one instance."""
        return not (
            self.kind.any() or (self.instances > 1).any() or self.scale.any() or (self.approach > INDEPENDENT).any()
        )


@dataclass(frozen=True, slots=True)
class Expansion:
    """The instances that rows of a file stand for: first row first, each row's instances in order of admission.

    ``request`` (int32) is the row of the file and ``admission`` (float64) the second of each of them.
    """

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
        refuse(batch & (columns.scale > 0), "scale", SERVICE_ONLY, texts)
        early = service & (np.rint(first / INSTANT) <= np.rint(admission / INSTANT))
        refuse(early, "scale", "seconds after those of the request's admission", texts)
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
        parallelism=np.where(batch & (at_once < at_first), at_once, 0),
        scale_time=events.time[order],
        scale_request=events.request[order].astype(np.int32),
        scale_replicas=events.replicas[order],
    )
    return Expansion(request, times, requests)


def _events(columns: RequestColumns) -> _Events:
    lengths = np.array([len(one) for one in columns.scales])
    scaled = np.flatnonzero(columns.scale)
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
    before[first] = np.maximum(columns.instances[scaled], 1)
    return _Events(request, time, replicas, np.maximum(replicas - before, 0))


def _rows_of_each(columns: RequestColumns, events: _Events) -> tuple[Integers, Integers]:
    """How many instances each request has in all, and how many of them at its admission."""
    at_first = np.maximum(np.where(columns.kind == BATCH, columns.completions, columns.instances), 1)
    rows = at_first.copy()
    np.add.at(rows, events.request, events.added)
    return rows, at_first
