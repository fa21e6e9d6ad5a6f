"""Submits a workload to a cluster at its own times, scales it, and removes what has ended.

A service ends when its pods have been ready for as many seconds, together, as its rows ask for: the useful running
time of the simulator. Jobs end by themselves. Times are the workload's; ``speed`` makes them pass faster.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from slacktide.errors import ConfigError
from slacktide.kube.client.http import (
    GATEWAY_TIMEOUT,
    NOT_FOUND,
    SERVER_ERROR,
    TOO_MANY,
    UNAVAILABLE,
    ApiError,
    Connection,
    KubeError,
    Unreachable,
)
from slacktide.kube.client.kinds import Identity, Malformed, encode
from slacktide.kube.client.reflector import Reflector
from slacktide.kube.resources.objects import DEPLOYMENT, JOB, POD, SERVICE_CLASS, Pod
from slacktide.model import ServiceClass
from slacktide.submit.manifests import REQUEST_LABEL, RUN_LABEL, Submission, class_object

LOG = logging.getLogger(__name__)

AT_ONCE = 32
"""Requests to the API server under way at once."""
LOOK_SECONDS = 0.2
"""Between looks at which services have ended."""
ATTEMPTS = 8
LONGEST_PAUSE_SECONDS = 5.0
PASSING = frozenset({TOO_MANY, SERVER_ERROR, UNAVAILABLE, GATEWAY_TIMEOUT})
BACKGROUND = b'{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}'


@dataclass
class BrokerReport:
    """What was done; ``latest``: by how many seconds of real time the latest action came too late at most."""

    deployments: int = 0
    jobs: int = 0
    scaled: int = 0
    removed: int = 0
    refused: int = 0
    latest: float = 0.0
    problems: list[str] = field(default_factory=list)
    """The first few refusals by the API server."""


class Running:
    """Seconds for which each request's pods have been ready, from a watch."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ready: dict[str, str] = {}
        self._had: dict[str, tuple[float, int, float]] = {}  # seconds until an instant, how many are ready since

    def seconds(self, request: str) -> float:
        """How long a request's pods have been ready, together."""
        had, count, since = self._had.get(request, (0.0, 0, 0.0))
        return had + count * (self._clock() - since)

    def _step(self, request: str, by: int) -> None:
        _, count, _ = self._had.get(request, (0.0, 0, 0.0))
        self._had[request] = (self.seconds(request), count + by, self._clock())

    def replaced(self, objects: Sequence[Pod]) -> None:
        for pod in objects:
            self.changed(pod)

    def changed(self, pod: Pod) -> None:
        uid, request = pod.metadata.uid, pod.metadata.labels.get(REQUEST_LABEL, "")
        ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
        if ready and uid not in self._ready:
            self._ready[uid] = request
            self._step(request, 1)
        elif not ready:
            self._stop(uid)

    def deleted(self, identity: Identity, last: Pod | None) -> None:  # noqa: ARG002  # a handler's
        self._stop(identity.uid)

    def malformed(self, problem: Malformed) -> None:
        LOG.warning("pod %s/%s is malformed: %s", problem.namespace, problem.name, problem.problem)

    def _stop(self, uid: str) -> None:
        request = self._ready.pop(uid, None)
        if request is not None:
            self._step(request, -1)


Action = tuple[float, int, Submission, int | None]
"""When, the number of the submission, and how many replicas it shall have; None: it is made."""


class Broker:
    """Carries submissions out in ``namespace``. ``progress`` is told the workload's time now and then."""

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        run: str,
        *,
        speed: float = 1.0,
        progress: Callable[[float, BrokerReport], None] = lambda _time, _report: None,
    ) -> None:
        self.report = BrokerReport()
        self._connection, self._namespace, self._run_name = connection, namespace, run
        self._speed, self._progress = speed, progress
        self._loop = asyncio.get_running_loop()
        self._began = 0.0
        self._running = Running(self._loop.time)
        self._ending: dict[str, float] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def prepare(self, classes: Sequence[ServiceClass], *, create: bool) -> None:
        """Make sure that the namespace and the classes are there; missing classes are made where ``create``.

        Raises :class:`ConfigError` naming those that are missing, and :class:`KubeError`.
        """
        with suppress(_ExistsError):
            body = encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}})
            await self._persist("POST", "/api/v1/namespaces", body)
        listing = SERVICE_CLASS.decode_list(await self._connection.get_list(SERVICE_CLASS.path()))
        known = {one.metadata.name for one in listing.items}
        missing = [one for one in classes if one.name not in known]
        if missing and not create:
            names = ", ".join(one.name for one in missing)
            raise ConfigError(f"service classes {names}: not in the cluster; --create-classes makes them")
        for one in missing:
            with suppress(_ExistsError):
                await self._persist("POST", SERVICE_CLASS.path(), encode(class_object(one)))

    async def submit(self, items: Sequence[Submission], until: float = float("inf")) -> BrokerReport:
        """Submit, scale and remove at their times until all is done, or until the workload's second ``until``."""
        agenda = [(at, number, item, count) for number, item in enumerate(items) for at, count in _actions(item)]
        agenda = [one for one in agenda if one[0] <= until]
        heapq.heapify(agenda)
        self._began = self._loop.time()
        selector = f"{RUN_LABEL}={self._run_name}"
        reflector = Reflector(
            self._connection, POD, self._running, path=POD.path(self._namespace), label_selector=selector
        )
        watch = self._loop.create_task(reflector.run())
        try:
            async with asyncio.TaskGroup() as group:
                ending = group.create_task(self._remove_ended())
                await self._work_off(agenda, group)
                await self._wait_for_ends(until)
                ending.cancel()
        finally:
            watch.cancel()
            with suppress(asyncio.CancelledError):
                await watch
        return self.report

    async def _work_off(self, agenda: list[Action], group: asyncio.TaskGroup) -> None:
        """Begin each action at its time. An object is scaled only after it was made."""
        made: dict[int, asyncio.Task[bool]] = {}
        while agenda:
            at, number, item, count = heapq.heappop(agenda)
            await self._sleep_until(at)
            if count is None:
                made[number] = group.create_task(self._create(item, at))
            else:
                group.create_task(self._scale(made[number], item, at, count))
        for task in made.values():
            await task

    async def _wait_for_ends(self, until: float) -> None:
        """Until ``until``, or without one until the last service that ends has ended; Jobs end without us."""
        while self._ending if until == float("inf") else self._now() < until:
            await self._tick()

    async def _tick(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        self._progress(self._now(), self.report)

    def _now(self) -> float:
        """The workload's time."""
        return (self._loop.time() - self._began) * self._speed

    async def _sleep_until(self, at: float) -> None:
        while (left := (at - self._now()) / self._speed) > 0:
            await asyncio.sleep(min(left, 1.0))
            self._progress(self._now(), self.report)

    def _late(self, at: float) -> None:
        self.report.latest = max(self.report.latest, (self._now() - at) / self._speed)

    # -- actions ---------------------------------------------------------------------------------------------------

    async def _create(self, item: Submission, at: float) -> bool:
        kind = JOB if item.batch else DEPLOYMENT
        try:
            await self._persist("POST", kind.path(self._namespace), encode(item.body))
        except KubeError as error:
            self._refused(item, error)
            return False
        self._late(at)
        if item.batch:
            self.report.jobs += 1
        else:
            self.report.deployments += 1
            if item.needs != float("inf"):
                self._ending[item.name] = item.needs / self._speed
        return True

    async def _scale(self, made: asyncio.Task[bool], item: Submission, at: float, count: int) -> None:
        if not await made:
            return
        path = DEPLOYMENT.path(self._namespace, item.name)
        try:
            await self._persist("PATCH", path, encode({"spec": {"replicas": count}}))
        except KubeError as error:
            if not (isinstance(error, ApiError) and error.status == NOT_FOUND):  # it has ended meanwhile
                self._refused(item, error)
            return
        self._late(at)
        self.report.scaled += 1

    async def _remove_ended(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for name in [name for name, needs in self._ending.items() if self._running.seconds(name) >= needs]:
                try:
                    await self._persist("DELETE", DEPLOYMENT.path(self._namespace, name), BACKGROUND)
                    self.report.removed += 1
                except KubeError as error:
                    LOG.warning("deployment %s is not removed: %s", name, error)
                self._ending.pop(name, None)

    def _refused(self, item: Submission, error: KubeError) -> None:
        self.report.refused += 1
        said = f"{item.body['kind']} {self._namespace}/{item.name}: {error}"
        LOG.warning("%s", said)
        if len(self.report.problems) < 10:
            self.report.problems.append(said)

    async def _persist(self, method: str, path: str, body: bytes) -> None:
        """Send until there is an answer that trying again would not change.

        Raises :class:`KubeError`; :class:`_ExistsError` where an object that is to be made is there already, unless
        an earlier attempt of ours, whose answer was lost, may have made it.
        """
        lost = False
        for attempt in range(ATTEMPTS):
            try:
                async with self._slots:
                    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
                    await self._connection.request(method, path, body=body, content_type=content)
                return
            except Unreachable:
                lost = True
                if attempt == ATTEMPTS - 1:
                    raise
            except ApiError as error:
                if error.reason == "AlreadyExists":
                    if lost:
                        return
                    raise _ExistsError(error.status, error.reason, error.message) from None
                if error.status == NOT_FOUND and method == "DELETE":
                    return
                if error.status not in PASSING or attempt == ATTEMPTS - 1:
                    raise
            await asyncio.sleep(min(0.2 * 2.0**attempt, LONGEST_PAUSE_SECONDS))

    async def delete_all(self) -> None:
        """Remove everything that this run has submitted."""
        for kind in (DEPLOYMENT, JOB):
            query = f"?labelSelector={RUN_LABEL}%3D{self._run_name}"
            await self._persist("DELETE", f"{kind.path(self._namespace)}{query}", BACKGROUND)


class _ExistsError(ApiError):
    """An object of this name is there already."""


def _actions(item: Submission) -> list[tuple[float, int | None]]:
    """When an object is made (None) and scaled."""
    return [(item.at, None), *item.scale]
