"""A workload changed: a stretch of time cut out, thinned, its times, demands or rate of arrival multiplied.

Functions of pieces are for a workload that comes piece by piece (:mod:`slacktide.inputs.pieces`), in order of
admission: every row a request of its own, or all in one piece. Their results are the same rows, in the memory of a few
pieces. Pieces of results may be shorter than those given, and none is empty. Settings are refused before the first
piece is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.activity import Spans, spans
from slacktide.inputs.columns.occasions import distinct
from slacktide.inputs.rows import columns_of, select
from slacktide.model import NOTHING_LOST, Requests, Resizing, Unreadiness, Workload


def _cut(workload: Workload, start: float, end: float, keep_running: bool) -> Workload | None:
    """What is admitted from ``start`` until before ``end`` (seconds), and what runs at ``start``; times from then on.

    An instance that, on one infinite host (:func:`spans`), began before ``start`` and goes on after it is admitted
    at 0 with what remains of its duration, unless ``keep_running`` is false; then requests that began before are left
    out whole. Instances are not cut at the end: they run on. Requests keep numbers, jobs, constraints and
    neighbours; of scale events those in the window stay, with the instances that they add, and changes of demand,
    where what was demanded at ``start`` is demanded from the first. Of a batch request the
    instances that have completed are gone, the others stay. None where nothing is in it.
    """
    found = spans(workload)
    rows = _rows(workload, found, start, end, keep_running)
    if not len(rows):
        return None
    admission = np.maximum(workload.admission[rows] - start, 0.0)
    if workload.request is not None:
        # At one instant the instances of a request follow each other, as in a file.
        order = np.lexsort((workload.request[rows], admission))
        rows, admission = rows[order], admission[order]
    columns = {name: getattr(workload, name)[rows] for name in columns_of(workload)}
    columns |= {"admission": admission, "duration": _remaining(workload, found, rows, start)}
    columns |= {"lost": None, "losses": (NOTHING_LOST,)}  # who was there before begins anew
    columns["spells"] = tuple(_spells(one, start, end) for one in workload.spells)
    chosen = _resized(replace(workload, **columns), start, end)
    if workload.requests is None or workload.request is None:
        return chosen
    request = workload.request[rows]
    kept = np.zeros(len(workload.requests), np.bool_)
    kept[request] = True
    place = (np.cumsum(kept) - 1).astype(np.int32)
    return replace(
        chosen,
        request=place[request],
        requests=_requests(workload.requests, kept, place, start, end, place[request], admission),
    )


def _rows(workload: Workload, found: Spans, start: float, end: float, keep_running: bool) -> NDArray[np.int64]:
    inside = (workload.admission < end) & (found.end > np.maximum(start, found.start))
    if not keep_running:
        inside &= _first_admission(workload) >= start
    return np.flatnonzero(inside)


def _resized(workload: Workload, start: float, end: float) -> Workload:
    """Changes of demand counted from ``start``; earlier ones have happened, later ones than ``end`` do not."""
    if workload.resize is None:
        return workload
    demand = workload.demand.copy()
    later: list[Resizing] = []
    for code, resizing in enumerate(workload.resizings):
        rows = np.flatnonzero(workload.resize == code)
        for name, amount in (one for at, amounts in resizing if at <= start for one in amounts):
            demand[rows, workload.resources.index(name)] = amount
        later.append(tuple((at - start, amounts) for at, amounts in resizing if start < at < end))
    limit = None if workload.limit is None else np.maximum(workload.limit, demand)
    return replace(workload, demand=demand, limit=limit, resizings=tuple(later))


def _spells(spells: Unreadiness, start: float, end: float) -> Unreadiness:
    """Spells counted from ``start``, where something of them is in the window.

    Of those that reach over ``start`` the first one does: the others came while it lasted, and nothing came of them.
    """
    over, present = -np.inf, []
    for at, lasts in spells:
        if at > start or at >= over:
            over = at + lasts
            if at < end and over > start:
                present.append((max(0.0, at - start), over - max(at, start)))
    return distinct(tuple(present))


def _first_admission(workload: Workload) -> NDArray[np.float64]:
    """Of each row: when its request was admitted."""
    if workload.requests is None or workload.request is None:
        return workload.admission
    first = np.full(len(workload.requests), np.inf)
    np.minimum.at(first, workload.request, workload.admission)
    return np.asarray(first[workload.request])


def _remaining(workload: Workload, found: Spans, rows: NDArray[np.int64], start: float) -> NDArray[np.float64]:
    done = np.maximum(start - found.start[rows], 0.0)
    return np.asarray(workload.duration[rows] - done)


def _requests(
    requests: Requests,
    kept: NDArray[np.bool_],
    place: NDArray[np.int32],
    start: float,
    end: float,
    request: NDArray[np.int32],
    admission: NDArray[np.float64],
) -> Requests:
    """The kept requests, with the scale events after the first of their instances and before the window's end."""
    first = np.full(int(kept.sum()), np.inf)
    np.minimum.at(first, request, admission)
    events = np.flatnonzero(kept[requests.scale_request] & (requests.scale_time < end))
    events = events[requests.scale_time[events] - start > first[place[requests.scale_request[events]]]]
    return Requests(
        ids=requests.ids[kept],
        batch=requests.batch[kept],
        approach=requests.approach[kept],
        parallelism=requests.parallelism[kept],
        scale_time=requests.scale_time[events] - start,
        scale_request=place[requests.scale_request[events]],
        scale_replicas=requests.scale_replicas[events],
    )


def scale(workload: Workload, *, time: float = 1.0, demand: float = 1.0, rate: float = 1.0) -> Workload:
    """A workload with factors above 0 applied.

    ``time``    all times, admissions, durations, scale events, changes of demand, deadlines, grace periods, spells of
                unreadiness: 2 makes everything take twice as long
    ``demand``  what each instance asks of every resource, at first and later, and its limits
    ``rate``    arrivals in a second: 2 admits twice as fast, admissions, scale events, changes of demand and begins
                of spells being divided by it, while durations stay, so that twice as many are active. Times are counted
                from 0.

    Raises :class:`ConfigError` for another factor.
    """
    for name, factor in (("time", time), ("demand", demand), ("rate", rate)):
        if not 0 < factor <= 1e6:
            raise ConfigError(f"{name}: found {factor:g}, expected a factor above 0 and at most 1e6")
    requests = workload.requests
    return replace(
        workload,
        admission=workload.admission * (time / rate),
        duration=workload.duration * time,
        demand=workload.demand * demand,
        limit=None if workload.limit is None else workload.limit * demand,
        accesses=tuple(replace(one, deadline=one.deadline * time) for one in workload.accesses),
        requests=None if requests is None else replace(requests, scale_time=requests.scale_time * (time / rate)),
        resizings=tuple(_scaled(one, time / rate, demand) for one in workload.resizings),
        grace=None if workload.grace is None else workload.grace * time,
        spells=tuple(
            distinct(tuple((at * (time / rate), lasts * time) for at, lasts in one)) for one in workload.spells
        ),
        losses=tuple(
            tuple((end * (time / rate), lost * (time / rate)) for end, lost in one) for one in workload.losses
        ),
    )


def _scaled(resizing: Resizing, time: float, demand: float) -> Resizing:
    return tuple((at * time, tuple((name, n * demand) for name, n in amounts)) for at, amounts in resizing)


def thin_pieces(pieces: Iterable[Workload], count: int, share: float, seed: int) -> Iterator[Workload]:
    """``share`` (above 0, at most 1) of the requests, drawn without replacement, in their order.

    ``count`` is how many all pieces have; 5 bytes are needed for each. The share of all, rounded, is kept, at least
    one. A request of several instances is kept whole or not at all. Of one seed a smaller share keeps requests that a
    larger one keeps. Raises :class:`ConfigError`.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"share: found {share:g}, expected a number above 0 and at most 1")
    order = np.arange(count, dtype=np.int32)
    np.random.default_rng(seed).shuffle(order)
    kept = np.zeros(count, np.bool_)
    kept[order[: max(round(count * share), 1)]] = True

    def chosen() -> Iterator[Workload]:
        done = 0
        for piece in pieces:
            rows = np.flatnonzero(kept[done : done + len(piece)] if piece.request is None else kept[piece.request])
            done += len(piece)
            if len(rows):
                yield select(piece, rows)

    return chosen()


def window_pieces(
    pieces: Iterable[Workload], start: float, end: float, *, keep_running: bool = True
) -> Iterator[Workload]:
    """A stretch of time of a workload, as :func:`_cut` says; nothing is asked for that comes after it.

    Raises :class:`ConfigError` where the times make no window, at once, or nothing is in it.
    """
    if not (0 <= start < end and np.isfinite(start)):
        raise ConfigError(f"window: found {start:g} to {end:g} s, expected seconds from 0, the end after the start")

    def cut() -> Iterator[Workload]:
        found = False
        for piece in pieces:
            if piece.admission[0] >= end:
                break
            if (made := _cut(piece, start, end, keep_running)) is not None:
                found = True
                yield made
        if not found:
            raise ConfigError(f"window: found nothing admitted or running from {start:g} to {end:g} s")

    return cut()
