"""A timeline over HTTP: the state at an instant, slack over time, and stories of pods."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import isfinite

from aiohttp import web

from slacktide.dashboard.pages import Route, answer, refusal
from slacktide.dashboard.timeline import Timeline
from slacktide.dashboard.view import encode

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
            lines = timeline.story(namespace, name, at)
            return None if lines is None else encode({"text": "\n".join(lines)})

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
