"""Keeps a handler informed of all objects of one kind: list once, page by page, then watch without end.

Of a large cluster all pods together are larger than what this process may have.

Invariants: a handler is told of every state it has not seen, once and in the order in which the API server had them;
states that came and went while no watch was open may be missing, the outcome never is. Resource versions are compared
for equality only.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Raw

from slacktide.kube.client.http import FORBIDDEN, GATEWAY_TIMEOUT, GONE, NOT_FOUND, ApiError, Connection, Unreachable
from slacktide.kube.client.kinds import HasMetadata, Identity, Kind, Malformed, Status, identity_of, split_listing
from slacktide.kube.client.turns import Gate
from slacktide.kube.clock import monotonic_seconds

LOG = logging.getLogger(__name__)

PAGE = 500
"""Objects in a page, as with client-go."""
ATTEMPTS = (PAGE, PAGE, 0)
"""Pages of so many objects at each attempt; 0 asks for everything at once."""


class Page(NamedTuple):
    """Some objects of a list, still bytes (of the page's memory, which they keep alive).

    ``begins``: it is the first of the list, and whatever came before it is void. All pages are of one version.
    """

    items: list[msgspec.Raw]
    resource_version: str
    begins: bool


async def pages(
    connection: Connection, path: str, query: Mapping[str, str] | None = None
) -> AsyncGenerator[Page, None]:
    """The list at ``path``, of the newest version. Raises ``ApiError``, ``Unreachable`` and ``msgspec.DecodeError``.

    The API server forgets a version after some minutes; then the token that asks for the next page has expired.
    client-go asks for the whole list at once then. Here it is begun again first, as the whole may be too large for us.
    """
    for limit in ATTEMPTS:
        asked = {**(query or {}), "limit": str(limit)} if limit else dict(query or {})
        try:
            async with aclosing(_attempt(connection, path, asked)) as every:
                async for page in every:
                    yield page
        except _Expired as expired:
            LOG.info("the list of %s starts again: %s", path, expired)
        else:
            return


async def _attempt(connection: Connection, path: str, asked: dict[str, str]) -> AsyncGenerator[Page, None]:
    token = ""
    while True:
        try:
            listing = split_listing(await connection.get_list(path, asked))
        except ApiError as error:
            if error.status == GONE and token:
                raise _Expired(error.message) from None
            raise
        yield Page(listing.items or [], listing.metadata.resource_version, begins=not token)
        token = listing.metadata.continue_
        if not token:
            return
        asked["continue"] = token


class _Expired(Exception):  # noqa: N818  # it never leaves this module
    """The next page of this version cannot be had any more."""


SLICE_SECONDS = 0.02
"""Seconds of work after which the event loop gets its turn."""
SHORTEST_BACKOFF_SECONDS = 0.2
LONGEST_BACKOFF_SECONDS = 3.0
"""The end of a pod that nobody saw counts from when it is noticed: longer pauses would make that worse."""
TELLING_SECONDS = 0.005
TOGETHER_SECONDS = 0.2
"""Within so many seconds all watches begin again once the API server answers one of them."""
WATCH_SECONDS = 600.0
"""The API server ends a watch after a random time, this long at most and half as long at least, so that not all watches
begin again at once. It sends bookmarks about every minute, but none of a kind of which nothing ever changed: so only
the end that was asked for shows for certain that a quiet watch lives."""
SILENT = 1.1
"""So many times as long a watch may say nothing. Then it is given up, and begun again."""
DEAD = 1.15
"""No sign of life for so many times as long: whoever decides on what it said last decides on the past."""
SHORT_WATCH_SECONDS = 1.0
ABSENT_SECONDS = 10.0
"""A kind that the API server does not serve may come: custom resources are installed while we run."""
CATCHING_UP_SECONDS = 1.0
"""For so many seconds after a watch came back, its news may be of the time while it was away."""

T = TypeVar("T", bound=HasMetadata)
Seen = TypeVar("Seen", contravariant=True)


class Handler(Protocol[Seen]):
    """Who is told. All calls are synchronous and should be short; an exception ends the reflector.

    ``replaced`` comes first and once, with all well-formed objects, and once more after the API server did not serve
    the kind for a while. ``changed`` is an object that is new or differs from what was told before. ``deleted`` has its
    last known identity and, if the end itself was seen, its last state. ``malformed`` takes the place of ``changed``
    (after ``replaced``, of a first list) where an object cannot be decoded; of one without a readable name nothing more
    is heard.
    """

    def replaced(self, objects: Sequence[Seen], /) -> None: ...

    def changed(self, found: Seen, /) -> None: ...

    def deleted(self, identity: Identity, last: Seen | None, /) -> None: ...

    def malformed(self, problem: Malformed, /) -> None: ...


class Reflector(Generic[T]):
    """Lists and watches ``kind`` (at ``path``, everywhere unless given) and tells ``handler`` while ``gate`` is open.

    ``run`` never returns; cancel it. ``synced`` is set once the first list was told, ``accepted`` once the API server
    has accepted a watch. ``lists``, ``watches`` and ``failures`` count what was begun and what went wrong,
    ``last_error`` says why, empty while all is well. ``watch_seconds`` is the longest time of a watch. ``lighten``
    makes of each object one that takes less memory, before anybody has seen it. ``absent`` is called where the API
    server does not serve the kind, or not any more, which is then no failure: it is asked again now and then, and
    ``synced`` is not set before it was listed (again).
    """

    def __init__(
        self,
        connection: Connection,
        kind: Kind[T],
        handler: Handler[T],
        *,
        path: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        gate: Gate | None = None,
        watch_seconds: float = WATCH_SECONDS,
        lighten: Callable[[T], T] | None = None,
        absent: Callable[[], None] | None = None,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        self.accepted = False
        self.resource_version = ""
        self.lists = 0
        self.watches = 0
        self.failures = 0
        self.last_error = ""
        self.refusals = 0
        """How many failures in a row said that there is no such kind, or that it is not for us."""
        self._connection = connection
        self._watch_seconds = watch_seconds
        self._lighten = lighten or _as_it_is
        self._absent = absent
        self.is_absent = False
        """The API server does not serve the kind, as far as is known."""
        self._handler = handler
        self._gate = gate or Gate()
        self._path = kind.path() if path is None else path
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        self._selectors = {name: value for name, value in selectors.items() if value}
        self._known: dict[tuple[str, str], Identity] = {}
        self._must_list = True
        self._missed = False
        """It was served before, and the last answer said that it is not."""
        self._alive_at = float("-inf")
        self._slice_began = 0.0
        self._failed_in_a_row = 0
        self._hurried_at = float("-inf")
        self._lost_at: float | None = None
        self._missed_since, self._caught_up_at = float("-inf"), float("-inf")
        self.telling = False
        """Whether it is reading a list."""
        self._asked = self._listed = 0
        """How often a list was asked for by :meth:`renewed`, and how many of these have been told."""
        self._watching: asyncio.Timeout | None = None

    async def renewed(self) -> None:
        """Lists anew, and returns when that was told: by then all is known that had been written before this call,
        which a watch may tell of late."""
        self._asked += 1
        asked = self._asked
        if self._watching is not None:
            self._watching.reschedule(asyncio.get_running_loop().time())
        while self._listed < asked:
            await asyncio.sleep(TELLING_SECONDS)

    def away(self) -> float:
        """While it catches up with what it missed: seconds since it was lost. Else 0."""
        now = monotonic_seconds()
        return now - self._missed_since if self.telling or now < self._caught_up_at else 0.0

    def age(self) -> float:
        """Seconds since the API server last showed that this watch lives; infinite before the first list.

        A quiet watch shows life about once a minute, or where nothing of its kind ever changed, when it ends after
        ten minutes at most.
        """
        return monotonic_seconds() - self._alive_at

    def is_dead(self) -> bool:
        """Whether there has been no sign of life for longer than a watch lasts."""
        return self.age() > DEAD * self._watch_seconds

    async def run(self) -> None:
        """Lists and watches until cancelled."""
        while True:
            began = monotonic_seconds()
            try:
                if self._must_list or self._asked > self._listed:
                    asked = self._asked
                    await self._list()
                    self._must_list = self.is_absent = self._missed = False
                    self._listed = asked
                if not await self._watched():
                    continue
                if monotonic_seconds() - began >= SHORT_WATCH_SECONDS:
                    continue
                wait = self._backoff()
            except ApiError as error:
                if self._absent is not None and error.status == NOT_FOUND:
                    await self._found_absent(self._absent)
                    await asyncio.sleep(ABSENT_SECONDS)
                    continue
                if error.status in (GONE, GATEWAY_TIMEOUT) and self.synced.is_set():
                    # The server has forgotten where we were (or, restored from a backup, was never there).
                    self._must_list, self.resource_version = True, ""
                wait = max(self._failed(error), min(error.retry_after or 0.0, LONGEST_BACKOFF_SECONDS))
                if error.status == GONE and self._failed_in_a_row == 1:
                    wait = 0.0
            except (Unreachable, msgspec.DecodeError, UnicodeDecodeError) as error:
                wait = self._failed(error)
            await self._pause(wait)

    async def _pause(self, seconds: float) -> None:
        """Wait before the next try; where the API server was away and answers somebody, for a moment only.

        Until it is seen, what happened meanwhile counts as of when it is. A watch that fails again at once, while
        others are answered, is not begun faster than otherwise.
        """
        if monotonic_seconds() - self._hurried_at < LONGEST_BACKOFF_SECONDS:
            await asyncio.sleep(seconds)
        elif await self._connection.presence.back(seconds):
            self._hurried_at, self._failed_in_a_row = monotonic_seconds(), 0
            await asyncio.sleep(random.uniform(0.0, TOGETHER_SECONDS))

    async def _found_absent(self, tell: Callable[[], None]) -> None:
        """The API server does not serve the kind. Of one that it served before that is believed when it says so again
        after a while: an API server that has just begun may not know all its custom resources."""
        await self._gate.passed()
        if self.synced.is_set() and not self._missed:
            self._missed = True
            return
        for identity in tuple(self._known.values()):
            await self._gate.passed()
            self._handler.deleted(identity, None)
        self._known.clear()
        self.synced.clear()
        self._must_list, self.resource_version, self._missed = True, "", False
        self.is_absent = True
        tell()

    def _failed(self, error: Exception) -> float:
        self.failures += 1
        if self._lost_at is None:
            self._lost_at = self._missed_since if self.away() else self._alive_at
        said = f"{self.kind.plural}: {error}"
        if said != self.last_error:
            LOG.warning("watch of %s", said)
        self.last_error = said
        refused = isinstance(error, ApiError) and error.status in (FORBIDDEN, NOT_FOUND)
        self.refusals = self.refusals + 1 if refused else 0
        return self._backoff()

    def _backoff(self) -> float:
        self._failed_in_a_row += 1
        longest = min(LONGEST_BACKOFF_SECONDS, SHORTEST_BACKOFF_SECONDS * 2.0 ** min(self._failed_in_a_row, 16))
        return random.uniform(SHORTEST_BACKOFF_SECONDS, longest)

    def _alive(self) -> None:
        self._alive_at = now = monotonic_seconds()
        if self._lost_at is not None:
            self._missed_since, self._lost_at = self._lost_at, None
            self._caught_up_at = now + CATCHING_UP_SECONDS

    async def _breathe(self) -> None:
        """Gives the event loop its turn where we have kept it for long."""
        if monotonic_seconds() - self._slice_began > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._slice_began = monotonic_seconds()

    async def _list(self) -> None:
        self.lists += 1
        news: list[T | Malformed] = []
        uids: dict[tuple[str, str], str] = {}
        version = ""
        async with aclosing(pages(self._connection, self._path, self._selectors)) as every:
            async for page in every:
                self._alive()
                if page.begins:
                    news.clear()
                    uids.clear()
                    version = page.resource_version
                await self._read(page.items, news, uids)
        if not self.synced.is_set():
            await self._gate.passed()
            self._tell_all(news)
        else:
            self.telling = True
            try:
                await self._tell_difference(news, uids)
            finally:
                self.telling = False
            # Reading and the handler may have taken long.
            self._caught_up_at = monotonic_seconds() + CATCHING_UP_SECONDS
        self.resource_version = version

    async def _read(self, items: list[Raw], news: list[T | Malformed], uids: dict[tuple[str, str], str]) -> None:
        """Takes what is new or has changed out of a page of a list, and who is there; of the rest nothing is kept."""
        self._slice_began = monotonic_seconds()
        for item in items:
            identity = identity_of(item)
            if identity is None or self._known.get(identity.key) != identity:
                found = self._decoded(self.kind.decode(item))
                news.append(found)
                identity = found.identity if isinstance(found, Malformed) else _identity(found)
            uids[identity.key] = identity.uid
            await self._breathe()

    def _decoded(self, found: T | Malformed) -> T | Malformed:
        return found if isinstance(found, Malformed) else self._lighten(found)

    def _tell_all(self, news: list[T | Malformed]) -> None:
        objects = [one for one in news if not isinstance(one, Malformed)]
        for found in objects:
            identity = _identity(found)
            self._known[identity.key] = identity
        self._handler.replaced(objects)
        for problem in news:
            if isinstance(problem, Malformed):
                self._changed(problem)
        self.synced.set()

    async def _tell_difference(self, news: list[T | Malformed], uids: dict[tuple[str, str], str]) -> None:
        """Tells a handler that has missed something first what is gone, which makes room, then what is new."""
        for key, identity in list(self._known.items()):
            if uids.get(key) != identity.uid:
                await self._gate.passed()
                del self._known[key]
                self._handler.deleted(identity, None)
                await self._breathe()
        for found in news:
            await self._gate.passed()
            self._changed(found)
            await self._breathe()

    async def _watched(self) -> bool:
        """Watches until the API server ends it; whether it did, and the watch was not left to list anew."""
        if self._asked > self._listed:
            return False
        try:
            async with asyncio.timeout(None) as self._watching:
                await self._watch()
        except TimeoutError:
            if self._asked == self._listed:
                raise
            self._lost_at = self._alive_at  # for so long it may have been behind
            return False
        finally:
            self._watching = None
        return True

    async def _watch(self) -> None:
        self.watches += 1
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self.resource_version,
            "timeoutSeconds": str(max(1, round(self._watch_seconds * random.uniform(0.5, 1.0)))),
            **self._selectors,
        }
        silence = SILENT * self._watch_seconds
        async with aclosing(self._connection.stream(self._path, query, silence)) as stream:
            async for lines in stream:
                self._alive()
                self.accepted, self._missed = True, False
                self._slice_began = monotonic_seconds()
                for line in lines:
                    await self._gate.passed()
                    self._told(line)
                    await self._breathe()
                if lines:
                    self._failed_in_a_row = 0
                    self.last_error = ""

    def _told(self, line: bytes) -> None:
        event = self.kind.decode_event(line)
        found = event.object
        if isinstance(found, Status):
            raise ApiError(found.code, found.reason, found.message)
        if isinstance(found, Identity):
            version = found.resource_version
        elif event.type == "DELETED":
            version = self._deleted(self._decoded(found))
        else:
            version = self._changed(self._decoded(found))
        if version:
            self.resource_version = version

    def _changed(self, found: T | Malformed) -> str:
        identity = found.identity if isinstance(found, Malformed) else _identity(found)
        before = self._known.get(identity.key)
        if before == identity:
            return identity.resource_version
        if before is not None and before.uid != identity.uid:
            del self._known[identity.key]
            self._handler.deleted(before, None)
        if identity.name:
            self._known[identity.key] = identity
        if isinstance(found, Malformed):
            self._handler.malformed(found)
        else:
            self._handler.changed(found)
        return identity.resource_version

    def _deleted(self, found: T | Malformed) -> str:
        identity = found.identity if isinstance(found, Malformed) else _identity(found)
        before = self._known.get(identity.key)
        if before is not None and before.uid == identity.uid:
            del self._known[identity.key]
            self._handler.deleted(identity, None if isinstance(found, Malformed) else found)
        return identity.resource_version


def _as_it_is(found: T) -> T:
    return found


def _identity(found: HasMetadata) -> Identity:
    metadata = found.metadata
    return Identity(metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)
