"""The product's client alone on the model of the API server, which misbehaves as a scene says, at known instants."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from simulated.api_model import Answer, Request
from simulated.loop import Actor
from simulated.network import USUAL, Weather, Wire, refusal
from simulated.transport import SimulatedConnection
from simulated.world import World, played

T = TypeVar("T")
ONE_WAY = USUAL[1]
"""Seconds that a request or its answer takes, at most."""
LOOK_SECONDS = 0.001
PATIENCE_SECONDS = 1200.0
"""What is not so by then is never so."""


@dataclass
class Fault:
    """What goes wrong with requests whose method, path, query and body match, until it has happened ``times`` times.

    ``delay`` seconds are waited first. Then ``reset`` breaks the connection before, ``unanswered`` after the API server
    has carried the request out; ``code`` answers in its place, with ``after`` as Retry-After and this ``message``.
    ``watches``: of watches alone, or of all else.
    """

    method: str = ""
    path: str = ""
    query: str = ""
    body: str = ""
    times: float = float("inf")
    delay: float = 0.0
    code: int = 0
    after: int | None = None
    message: str = "a scene says so"
    reset: bool = False
    unanswered: bool = False
    watches: bool | None = None
    before: Callable[[], object] | None = None
    then: Callable[[], object] | None = None
    rewrite: Callable[[Answer], Answer] | None = None
    struck: int = 0
    """How often it has happened."""

    def befalls(self, request: Request) -> bool:
        query = "&".join(f"{name}={value}" for name, value in request.query.items())
        return (
            self.times > 0
            and self.method in ("", request.method)
            and self.watches in (None, "watch" in request.query)
            and re.search(self.path, request.path) is not None
            and re.search(self.query, query) is not None
            and re.search(self.body.encode(), request.body) is not None
        )


class Sent(NamedTuple):
    """A request, and when it left, in the world's seconds."""

    at: float
    request: Request

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def path(self) -> str:
        return self.request.path

    @property
    def query(self) -> str:
        """The names in it."""
        return "&".join(self.request.query)


class Faults:
    """What goes wrong with requests over a wire: the first fault that matches befalls each. ``sent`` has them all, and
    ``codes`` those of answers, in order."""

    def __init__(self, wire: Wire) -> None:
        self._wire, self._exchange = wire, wire.exchange
        self.every: list[Fault] = []
        self.sent: list[Sent] = []
        self.codes: list[int] = []
        setattr(wire, "exchange", self.exchange)  # noqa: B010 (for this wire alone)

    def add(self, **what: Any) -> Fault:
        """Something goes wrong from now on."""
        self.every.append(fault := Fault(**what))
        return fault

    async def exchange(self, request: Request) -> Answer:
        self.sent.append(Sent(asyncio.get_running_loop().time(), request))
        answer = await self._answer(request, next((one for one in self.every if one.befalls(request)), Fault()))
        self.codes.append(answer.code)
        return answer

    async def _answer(self, request: Request, fault: Fault) -> Answer:
        fault.times -= 1
        fault.struck += 1
        await asyncio.sleep(fault.delay)
        if fault.before is not None:
            fault.before()
        if fault.reset:
            raise ConnectionResetError("the connection was reset")
        if fault.code:
            await asyncio.sleep(self._wire.delay())
            answer = refusal(fault.code, fault.message)
            return answer if fault.after is None else answer._replace(headers={"Retry-After": str(fault.after)})
        answer = await self._exchange(request)
        if fault.then is not None:
            fault.then()
        if fault.unanswered:
            raise ConnectionResetError("the connection was reset")
        return answer if fault.rewrite is None else fault.rewrite(answer)


class Client:
    """A connection of its own to the model."""

    def __init__(self, world: World, name: str = "client", **options: Any) -> None:
        weather = Weather()
        weather.clear()
        self.world, self.actor = world, Actor(name)
        self.wire = Wire(world.api, self.actor, world.chance, weather)
        self.faults = Faults(self.wire)
        self.connection = SimulatedConnection(self.wire, world.store, world.chance, **options)

    @property
    def now(self) -> float:
        return self.world.loop.time()

    def fails(self, **what: Any) -> Fault:
        """Something goes wrong from now on."""
        return self.faults.add(**what)

    @property
    def sent(self) -> list[Sent]:
        return self.faults.sent

    @property
    def codes(self) -> list[int]:
        return self.faults.codes

    def cut_watches(self) -> None:
        """Their connections are reset."""
        for one in self.connection.watches():
            one.break_off()

    def expire_watches(self) -> None:
        """The API server says that it has forgotten their versions."""
        for one in self.connection.watches():
            one.expire()


class _Heard(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


@contextmanager
def warnings_of(module: str) -> Iterator[list[str]]:
    """What a module logs as a warning; a world keeps such lines from all others."""
    said: list[str] = []
    handler, log = _Heard(said), logging.getLogger(module)
    log.addHandler(handler)
    log.setLevel(logging.WARNING)
    try:
        yield said
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)


async def until(is_so: Callable[[], T], what: object = "") -> T:
    """The first true answer."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while not (found := is_so()):
        assert loop.time() < begun + PATIENCE_SECONDS, f"never so: {what or is_so}"
        await asyncio.sleep(LOOK_SECONDS)
    return found


def plays(scene: Callable[[World], Coroutine[Any, Any, T]]) -> T:
    """What comes of a scene in a world without replicas, in which nothing but its faults goes wrong."""
    weather = Weather()
    weather.clear()
    world, found = played(1, weather, scene, replicas=0)
    assert world.invariants.findings == []
    return found
