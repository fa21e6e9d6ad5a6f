"""The scheduler behind a proxy that makes its API server misbehave, and the load under which that happens."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, TypeVar

from cluster.auditor import Auditor
from cluster.faulty import Fault, FaultyProxy
from cluster.labtools import HANG_SECONDS, condition, deployment, job, pod, pods
from cluster.running import CLASSES, Running, audit_log, prepared, service_class
from cluster.truth import PatientAuditor
from slacktide.kube.client.credentials import load_access
from slacktide.kube.client.http import KubeError
from slacktide.lab import Api, ApiError, Binaries, ControlPlane

T = TypeVar("T")

GOLD, SILVER, BRONZE = "gold", "silver", "bronze"
ROOM = 16
"""Cores of all nodes together."""
REST = {GOLD: 5, SILVER: 0, BRONZE: 8}
"""How many pods of one core of each class are left when a load ends; they all fit."""
FAULTS: tuple[dict[str, Any], ...] = (
    {"status": 429, "retry_after": 1, "chance": 0.3},
    {"status": 500, "chance": 0.3},
    {"status": 503, "chance": 0.3},
    {"delay": 0.5, "chance": 0.5},
    {"reset": True, "chance": 0.3},
    {"lose_answer": True, "chance": 0.3},
    {"halve_answer": True, "chance": 0.3},
)
"""What may happen to a request that is no watch."""


class Disturbance:
    """A ``FaultyProxy`` on a thread of its own, in front of a control plane, with the scheduler's rights."""

    def __init__(self, kubeconfig: Path, seed: int = 0) -> None:
        self._kubeconfig, self._seed = kubeconfig, seed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="faulty proxy")
        self.proxy: FaultyProxy

    def __enter__(self) -> Self:
        self._thread.start()
        access = self._do(load_access(self._kubeconfig))

        async def enter() -> FaultyProxy:
            return await FaultyProxy(access, seed=self._seed).__aenter__()

        self.proxy = self._do(enter())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self.proxy.__aexit__())
        self._do(_all_ended())
        self._do(_all_closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        done: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(HANG_SECONDS)

    def _call(self, what: Callable[..., Any], *arguments: Any) -> Any:
        async def call() -> Any:
            return what(*arguments)

        return self._do(call())

    def add(self, **settings: Any) -> Fault:
        """One more fault, from now on."""
        fault: Fault = self._call(self.proxy.add, Fault(**settings))
        return fault

    def heal(self) -> None:
        """No faults any more."""
        self._call(self.proxy.heal)

    def expire_watches(self) -> int:
        """All watches end with 410; how many."""
        return int(self._call(self.proxy.expire_watches))

    def cut_watches(self) -> int:
        """The connections of all watches break; how many."""
        return int(self._call(self.proxy.cut_watches))

    def stall_watches(self, path: str) -> None:
        """Watches whose path matches say nothing more."""
        self._call(self.proxy.stall_watches, path)

    def let_watches_flow(self) -> None:
        """They go on."""
        self._call(self.proxy.let_watches_flow)

    def outage(self, seconds: float) -> None:
        """Nobody answers for so long."""
        self._do(self.proxy.go_down())
        time.sleep(seconds)
        self._do(self.proxy.come_up())

    def running(self, plane: ControlPlane, *words: str, name: str = "scheduler", **settings: Any) -> Running:
        """A scheduler that reaches the control plane through this proxy only."""
        path = self.proxy.kubeconfig(plane.directory / f"kubeconfig-{name}")
        return Running(plane, f"--kubeconfig={path}", *words, name=name, **settings)


async def _all_ended() -> None:
    """Cancel and await what still runs on this loop: requests whose clients have gone are carried on all the same."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for one in others:
            one.cancel()
        await asyncio.gather(*others, return_exceptions=True)


async def _all_closed() -> None:
    """Wait until the connections of this loop are closed: what ended or broke them takes some of the loop's turns."""
    loop = asyncio.get_running_loop()
    while len(loop._selector.get_map()) > 1:  # type: ignore[attr-defined]  # the one that is left wakes the loop
        await asyncio.sleep(0.01)


@contextmanager
def watched(binaries: Binaries, directory: Path) -> Iterator[tuple[ControlPlane, Auditor]]:
    """A control plane of four nodes of four cores with the three classes, and an auditor that has begun."""
    plane = prepared(binaries, directory)
    try:
        three_classes(plane.api)
        plane.create_nodes(4, cpu="4")
        auditor = PatientAuditor(plane.url, plane.token, plane.ca_file, audit_log(directory))
        auditor.start()
        yield plane, auditor
    finally:
        plane.kill()


class Load:
    """Pods that come and go in a namespace until ``stop``: bare gold ones and silver Jobs that preempt bronze ones.

    What is to be left in the end fits on the nodes; what comes in between does not.
    """

    def __init__(self, api: Api, namespace: str, seed: int = 0) -> None:
        self.api, self.namespace = api, namespace
        self._chance = random.Random(seed)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._come_and_go, daemon=True, name=f"load {namespace}")
        self._gold: list[str] = []
        self._count = 0
        self.problems: list[str] = []

    def begin(self) -> None:
        """Creates the namespace with its Deployment, and begins to create and delete."""
        self.api.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        settings = brief(BRONZE)
        settings["annotations"]["slacktide.io/approach"] = "aggregated"
        bronze = deployment("bronze", REST[BRONZE], cpu="1", **settings)
        self.api.post(f"/apis/apps/v1/namespaces/{self.namespace}/deployments", bronze)
        self._thread.start()

    def end(self) -> None:
        """Ends; what there is stays."""
        self._over.set()
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive(), "the load goes on"

    def stop(self) -> None:
        """Ends, and leaves so many gold pods that all find room."""
        self.end()
        # Some may have been made or deleted without an answer.
        names = {one["metadata"]["name"]: one["metadata"] for one in pods(self.api, self.namespace)}
        self._gold = [name for name, meta in names.items() if name[:5] == "gold-" and "deletionTimestamp" not in meta]
        while len(self._gold) > REST[GOLD]:
            self._delete()
        while len(self._gold) < REST[GOLD]:
            self._create()

    def _come_and_go(self) -> None:
        while not self._over.wait(self._chance.uniform(0.05, 0.5)):
            with suppress(KubeError, OSError):  # the API server may be away
                draw = self._chance.random()
                if draw < 0.15:
                    self._count += 1
                    body = job(f"silver-{self._count}", 1.0, cpu="1", **brief(SILVER))
                    self.api.post(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)
                elif len(self._gold) < 12 and draw < 0.65:
                    self._create()
                elif len(self._gold) > 3:
                    self._delete()

    def _create(self) -> None:
        self._count += 1
        name = f"gold-{self._count}"
        self.api.post(f"/api/v1/namespaces/{self.namespace}/pods", pod(name, cpu="1", **brief(GOLD)))
        self._gold.append(name)

    def _delete(self) -> None:
        name = self._gold.pop(self._chance.randrange(len(self._gold)))
        try:
            self.api.delete(f"/api/v1/namespaces/{self.namespace}/pods/{name}")
        except ApiError as error:
            if error.status != 404:
                raise

    def is_settled(self) -> bool:
        """Whether every pod that is not over runs, and none is on its way out."""
        alive = self._alive()
        running = [one for one in alive if one["status"].get("phase") == "Running"]
        up = [one for one in running if "deletionTimestamp" not in one["metadata"]]
        return len(up) == len(alive) == REST[GOLD] + REST[BRONZE]

    def _alive(self) -> list[dict[str, Any]]:
        every = pods(self.api, self.namespace)
        return [one for one in every if one["status"].get("phase") not in ("Succeeded", "Failed")]

    def __str__(self) -> str:
        told = [
            f"{one['metadata']['name']}: {one['status'].get('phase')} on {one['spec'].get('nodeName')}"
            f"{', leaves' if 'deletionTimestamp' in one['metadata'] else ''} "
            f"{condition(one, 'PodScheduled').get('message', '')}"
            for one in self._alive()
        ]
        return f"all pods of {self.namespace} run: {'; '.join(told)}"


def brief(name: str) -> dict[str, Any]:
    """Settings of a pod of a class that starts and ends within a second."""
    return {
        "labels": {"slacktide.io/class": name},
        "annotations": {"slacktide.io/startup-seconds": "0.3", "slacktide.io/shutdown-seconds": "0.4"},
        "schedulerName": "slacktide",
        "terminationGracePeriodSeconds": 1,
    }


def three_classes(api: Api) -> None:
    """Gold preempts bronze at once, because it has no slack and bronze soon has much."""
    for name, slo, rank in ((GOLD, 0.999, 1), (SILVER, 0.95, 2), (BRONZE, 0.02, 3)):
        api.post(CLASSES, service_class(name, slo, rank))
