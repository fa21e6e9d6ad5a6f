"""Who may ask a running scheduler: whoever the API server knows and lets, as kube-scheduler's own pages have it.

A request shows a client certificate (:mod:`.certificates`) or a bearer token. A TokenReview tells whose a
token is, a SubjectAccessReview whether that user may use the verb on the path (a ``nonResourceURL`` of RBAC). Both
answers are remembered for :data:`ANSWER_SECONDS`, as there, so that a right that is taken away ends after twice that at
the latest. Where the API server cannot be asked nobody is let in.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from aiohttp import hdrs, web

from slacktide.dashboard.hub import MAY_STILL
from slacktide.kube.client.http import FORBIDDEN, SERVER_ERROR, TOO_MANY, UNAUTHORIZED, Connection, KubeError
from slacktide.kube.observe.http_site import Route

LOG = logging.getLogger(__name__)

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
ANSWER_SECONDS = 10.0
"""So long an answer of the API server holds, be it yes or no."""
REVIEW_SECONDS = 10.0
"""The longest that a review may take."""
MOST_ANSWERS = 1024
REVIEWS_AT_ONCE = 4
MOST_WAITING = 64
"""More requests than these do not wait for reviews: a flood of made-up tokens must not keep the scheduler busy."""
ANONYMOUS = "system:anonymous"

K = TypeVar("K")
V = TypeVar("V")


class User(msgspec.Struct, frozen=True):
    """Whom the API server takes a token's owner for."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: User = User()
    error: str = ""


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _Answer(msgspec.Struct, Generic[V]):
    status: V


class Verdict(NamedTuple):
    """Why somebody is not let in: a status of HTTP and the reason; status 0: he is."""

    status: int
    reason: str = ""


LET_IN = Verdict(0)


class Remembered(Generic[K, V]):
    """Answers by what was asked, each for so many seconds; of too many the oldest go."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, asked: K) -> V | None:
        """The answer, while it holds."""
        until, answer = self._answers.get(asked, (0.0, None))
        return answer if self._clock() < until else None

    def put(self, asked: K, answer: V) -> None:
        """Remember an answer from now on."""
        self._answers.pop(asked, None)
        self._answers[asked] = self._clock() + self._seconds, answer
        if len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)


class Reviews:
    """Asks the API server by ``connection``, whose account needs the rights of ``system:auth-delegator``.

    ``certified`` says whom a request's certificate names; then no token is looked at.
    """

    def __init__(
        self,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
        certified: Callable[[web.Request], User | None] = lambda _request: None,
    ) -> None:
        self._connection, self._certified = connection, certified
        self._users: Remembered[bytes, User | Verdict] = Remembered(ANSWER_SECONDS, clock)
        self._rights: Remembered[tuple[str, str, str, bytes], Verdict] = Remembered(ANSWER_SECONDS, clock)
        self._room = asyncio.Semaphore(REVIEWS_AT_ONCE)
        self._waiting = 0
        self._problem = ""

    def guard(self, route: Route) -> Route:
        """``route`` for those only who may."""

        async def guarded(request: web.Request) -> web.StreamResponse:
            async def may_still() -> bool:
                return (await self._asked(request)).status == 0

            verdict = await self._asked(request)
            if verdict.status == 0:
                MAY_STILL.set(may_still)
                return await route(request)
            headers = {hdrs.WWW_AUTHENTICATE: "Bearer"} if verdict.status == UNAUTHORIZED else None
            return web.json_response({"error": verdict.reason}, status=verdict.status, headers=headers)

        return guarded

    async def _asked(self, request: web.Request) -> Verdict:
        authorization = request.headers.get(hdrs.AUTHORIZATION, "")
        return await self.verdict(request.method, request.path, authorization, self._certified(request))

    async def verdict(self, method: str, path: str, authorization: str, certified: User | None = None) -> Verdict:
        """Whether the sender of this header, or whom a certificate names, may use this method on this path."""
        kind, _, token = authorization.partition(" ")
        if certified is None and (kind.lower() != "bearer" or not token.strip()):
            return Verdict(UNAUTHORIZED, f"{path}: found no bearer token, nor a client certificate of the cluster's, "
                           f"expected one of a user who may get {path}")  # fmt: skip
        try:
            user = await self._user(token.strip()) if certified is None else certified
            return user if isinstance(user, Verdict) else await self._right(user, method.lower(), path)
        except _Crowded:
            return Verdict(TOO_MANY, f"{path}: {MOST_WAITING} requests are being reviewed already; retry later")
        except (KubeError, msgspec.DecodeError, msgspec.ValidationError) as error:
            if str(error) != self._problem:  # whoever asks again and again does not fill the log
                LOG.warning("HTTP requests are refused: the API server cannot review tokens and access: %s", error)
            self._problem = str(error)
            return Verdict(SERVER_ERROR, f"{path}: the API server cannot review the token or the access: {error}")

    async def _user(self, token: str) -> User | Verdict:
        digest = hashlib.sha256(token.encode()).digest()  # no token stays in memory

        async def ask() -> User | Verdict:
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
            status = msgspec.json.decode(await self._ask(TOKEN_REVIEWS, review), type=_Answer[_TokenStatus]).status
            if not status.authenticated or status.user.username in ("", ANONYMOUS):
                return Verdict(UNAUTHORIZED, f"the API server does not know this token {status.error}".rstrip())
            return status.user

        return await self._answer(self._users, digest, ask)

    async def _right(self, user: User, verb: str, path: str) -> Verdict:
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}

        async def ask() -> Verdict:
            spec = who | {"nonResourceAttributes": {"path": path, "verb": verb}}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
            status = msgspec.json.decode(await self._ask(ACCESS_REVIEWS, review), type=_Answer[_AccessStatus]).status
            if status.allowed:
                return LET_IN
            needed = f"a ClusterRole with nonResourceURLs [{path}] and verbs [{verb}]"
            return Verdict(FORBIDDEN, f"{user.username} may not {verb} {path}: {needed} is needed")

        # A user of the same name may have other groups with another token.
        everything = hashlib.sha256(msgspec.json.encode(who, order="sorted")).digest()
        return await self._answer(self._rights, (user.username, verb, path, everything), ask)

    async def _answer(self, known: Remembered[K, V], asked: K, ask: Callable[[], Awaitable[V]]) -> V:
        found = known.get(asked)
        if found is not None:
            return found
        if self._waiting >= MOST_WAITING:
            raise _Crowded
        self._waiting += 1
        try:
            async with self._room:
                found = known.get(asked)  # somebody may have asked meanwhile
                if found is None:
                    found = await ask()
                    known.put(asked, found)
                    self._problem = ""
        finally:
            self._waiting -= 1
        return found

    async def _ask(self, path: str, review: dict[str, Any]) -> bytes:
        # Neither the limit of requests nor the pool of connections is that of bindings.
        return await self._connection.post(path, msgspec.json.encode(review), urgent=True, timeout=REVIEW_SECONDS)


class _Crowded(Exception):  # noqa: N818  # it says what is the matter
    """Too many wait for reviews."""
