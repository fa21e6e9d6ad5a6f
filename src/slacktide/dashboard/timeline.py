"""What can be looked at at any instant: the results of a simulation, or a recorded session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import isfinite
from typing import Protocol

import numpy as np
from aiohttp import web
from numpy.typing import NDArray

from slacktide.dashboard.pages import Route, answer, refusal
from slacktide.dashboard.view import Head, View, encode

MARKS = 240
"""Into so many equal parts of its span a timeline's preemptions are counted."""
MOST_WORKLOADS = 60_000
"""So many workloads have rows of their own: those whose promises stand worst. All are counted."""
MOST_DECISIONS = 200
"""The last so many decisions are listed."""

Points = list[tuple[float, float | None]]
Told = tuple[float, str, int]
"""What happened when, in words; if it was for the sake of a workload the number of that, else -1."""


class Timeline(Protocol):
    """A source with a beginning and an end. Instants are seconds, as its head says since when."""

    head: Head

    def at(self, instant: float) -> View:
        """The whole state at an instant."""

    def history(self, workload: int, until: float, samples: int) -> tuple[Points, list[Told]]:
        """Slack over time up to an instant (None: infinite), and what happened to its pods."""

    def story(self, namespace: str, name: str, until: float) -> list[Told] | None:
        """What happened to a pod up to an instant; None where it is not known."""


def marks_of(times: NDArray[np.float64], span: tuple[float, float]) -> list[int]:
    """How many of ``times`` are in each of :data:`MARKS` equal parts of the span."""
    counts, _ = np.histogram(times, MARKS, (span[0], max(span[1], span[0] + 1e-9)))
    found: list[int] = counts.tolist()
    return found


def finite(value: float) -> float | None:
    """A number to a millionth, or None where it is infinite or none at all, as JSON has neither."""
    return round(value, 6) if isfinite(value) else None


MOST_AT_ONCE = 200
"""So many workloads' history may be asked for at a time."""
SAMPLES = 120
MOST_SAMPLES = 500
BAD, NOT_FOUND = 400, 404

Work = Callable[[], bytes | None]


class _Wrong(Exception):  # noqa: N818  # never leaves this module
    """What is wrong with a question."""


def timeline_routes(timeline: Timeline) -> dict[str, Route]:
    """What the page asks of a timeline, by path. One question is worked on at a time, beside the event loop."""
    turn = asyncio.Lock()

    def route(work_of: Callable[[web.Request, float], Awaitable[Work]]) -> Route:
        async def answered(request: web.Request) -> web.StreamResponse:
            try:
                work = await work_of(request, _instant(request, timeline))
            except _Wrong as wrong:
                return refusal(BAD, str(wrong))
            async with turn:
                found = await asyncio.to_thread(work)
            return refusal(NOT_FOUND, f"{request.query_string}: is not known") if found is None else answer(found)

        return answered

    async def view(request: web.Request, at: float) -> Work:  # noqa: ARG001
        return lambda: encode(timeline.at(at))

    async def history(request: web.Request, at: float) -> Work:
        numbers = _numbers(request, "workloads", "")
        (samples,) = _numbers(request, "samples", str(SAMPLES))[:1]
        told = "told" in request.query

        def work() -> bytes:
            found = {}
            for one in numbers:
                points, texts = timeline.history(one, at, min(samples, MOST_SAMPLES))
                found[one] = {"points": points} | ({"told": texts} if told else {})
            return encode(found)

        return work

    async def explain(request: web.Request, at: float) -> Work:
        namespace, name = (request.query.get(word, "") for word in ("namespace", "name"))

        def work() -> bytes | None:
            told = timeline.story(namespace, name, at)
            return None if told is None else encode({"told": told})

        return work

    return {"/view": route(view), "/history": route(history), "/explain": route(explain)}


def _instant(request: web.Request, timeline: Timeline) -> float:
    """The instant that is asked for, the end if none is."""
    _, end = timeline.head.span or (0.0, 0.0)
    text = request.query.get("at", "")
    try:
        at = float(text) if text else end
    except ValueError:
        at = float("nan")
    if not isfinite(at):
        raise _Wrong(f"at: found {text!r}, expected seconds")
    return at


def _numbers(request: web.Request, word: str, default: str) -> list[int]:
    text = request.query.get(word, default)
    words = text.split(",")
    if len(words) > MOST_AT_ONCE or not all(one.isascii() and one.isdecimal() and len(one) < 16 for one in words):
        raise _Wrong(f"{word}: found {text[:80]!r}, expected whole numbers, {MOST_AT_ONCE} at most")
    return [int(one) for one in words]
