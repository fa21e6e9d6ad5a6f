"""What lies between a process and the API server: delays, lost requests and answers, an API server that is too busy,
and times at which nothing comes through.

A request that leaves a process is carried out within ``LATEST`` seconds, or never: on this the election relies, as
whoever takes the lease over waits for longer than the last holder may act (its module says so).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass

from simulated.api_model import Answer, ApiModel, Request
from simulated.chance import Chance
from simulated.loop import Actor
from simulated.resources import REASONS, Refused, encode

LATEST = 4.0
USUAL = (0.0005, 0.02)
"""Seconds between a process and the API server, one way."""


@dataclass
class Weather:
    """How likely what is, of each request or event. ``calm`` is all of it away."""

    slow: float = 0.03
    """To take up to ``LATEST`` seconds."""
    lost: float = 0.01
    """Never to arrive."""
    unanswered: float = 0.015
    """To be carried out, and that nobody hears of it."""
    busy: float = 0.01
    """To be refused, with 429, 500, 503 or 504; of the latter some are carried out all the same."""
    conflict: float = 0.01
    """A write, to be refused with 409 although nobody was in its way."""
    lagging: float = 0.03
    """An event, to come up to ten seconds late, and all that follow it."""
    overloaded: float = 0.0
    """To be refused with 429, unless it is about a lease: while the API server has no time."""

    def clear(self) -> None:
        for name in self.__dataclass_fields__:
            setattr(self, name, 0.0)


class Wire:
    """The connections of one process to the API server.

    ``observed`` is told of each request when it leaves, and of its answer when it was carried out.
    """

    def __init__(self, api: ApiModel, actor: Actor, chance: Chance, weather: Weather) -> None:
        self.api, self.actor, self.chance, self.weather = api, actor, chance, weather
        self.cut = asyncio.Event()
        """Set while nothing comes through."""
        self.whole = asyncio.Event()
        self.whole.set()
        self.dead = False
        self.leaseless = False
        """Requests about leases do not come through, and all else does, though connections may take long."""
        self.leaving: Callable[[Actor, Request], None] = lambda *_: None
        self.arrived: Callable[[Actor, Request, Answer], None] = lambda *_: None
        self.requests = 0
        self._delays, self._fates = f"delay of {actor.name}", f"fate of {actor.name}"

    def cut_off(self) -> None:
        """From now on nothing comes through, either way."""
        self.cut.set()
        self.whole.clear()

    def mend(self) -> None:
        """It does again."""
        self.cut.clear()
        self.whole.set()

    def delay(self) -> float:
        """Seconds for one way."""
        if self.chance.happens(self._delays, self.weather.slow):
            return self.chance.between(self._delays, 0.1, LATEST)
        return self.chance.between(self._delays, *USUAL)

    async def exchange(self, request: Request) -> Answer:
        """Send a request; its answer. Raises ``ConnectionResetError``; waits for ever where nothing comes through."""
        self.leaving(self.actor, request)
        self.requests += 1
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[Answer] = loop.create_future()
        if self.cut.is_set() or (self.leaseless and "/leases" in request.path):
            pass
        elif self.chance.happens(self._fates, self.weather.lost):
            loop.call_later(self.delay(), _break, heard)
        else:
            is_answered = not self.chance.happens(self._fates, self.weather.unanswered)
            loop.call_later(min(self.delay(), LATEST), self._arrive, request, heard, is_answered, context=Context())
        return await heard

    def _arrive(self, request: Request, heard: asyncio.Future[Answer], is_answered: bool) -> None:
        if self.cut.is_set():
            return  # it never came through
        answer = self._fate(request)
        self.arrived(self.actor, request, answer)
        wait = answer.wait + self.delay()
        asyncio.get_running_loop().call_later(wait, self._return, answer, heard, is_answered, context=Context())

    def _return(self, answer: Answer, heard: asyncio.Future[Answer], is_answered: bool) -> None:
        if self.cut.is_set():
            return
        if not is_answered:
            _break(heard)
        elif not heard.done():
            heard.set_result(answer)

    def _fate(self, request: Request) -> Answer:
        """What the API server does with a request that has arrived."""
        subject = self._fates
        if "/leases" not in request.path and self.chance.happens(subject, self.weather.overloaded):
            return refusal(429, "too many requests, please try again later")
        if self.chance.happens(subject, self.weather.busy):
            code = self.chance.one_of(subject, (429, 429, 500, 503, 504))
            if code in (500, 504) and self.chance.happens(subject, 0.5):
                self.api.answer(request)  # it was carried out all the same
            return refusal(code, "the model is too busy")
        if request.method in ("PUT", "PATCH", "POST") and self.chance.happens(subject, self.weather.conflict):
            is_creation = request.method == "POST" and not request.path.endswith(("/binding", "/eviction"))
            if not is_creation:
                return refusal(409, "the object has been modified; please apply your changes to the latest version")
        return self.api.answer(request)


def _break(heard: asyncio.Future[Answer]) -> None:
    if not heard.done():
        heard.set_exception(ConnectionResetError("the connection was reset"))


def refusal(code: int, message: str) -> Answer:
    """An answer that says no."""
    headers = {"Retry-After": "1"} if code in (429, 503) else {}
    return Answer(code, encode(Refused(code, message, REASONS[code]).status), headers)
