"""No workload suffers more than its class allows, whoever leads and however often: by the API server's audit log."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cluster.auditor import Auditor, seconds
from cluster.disturbing import GOLD
from cluster.judging import Json
from cluster.labtools import HANG_SECONDS, deployment, pod, pods, until
from cluster.running import CLASSES, Running, audit_log, prepared, service_class
from cluster.truth import Course, courses
from slacktide.kube.client.http import KubeError
from slacktide.lab import Api, ApiError, Binaries, ControlPlane

NAMESPACE = "shop"
KILLS = 6
PER, COOLDOWN = 20.0, 6.0
"""Seconds."""
BLUR = 1.0
"""An eviction may reach the API server so long after it was decided, and the next one sooner."""
CLASS_OF: dict[str, Json] = {
    "often": {"disruptions": {"max": 2, "per": f"{PER:g}s"}},
    "calm": {"cooldown": f"{COOLDOWN:g}s"},
    "never": {"disruptions": {"max": 0, "per": "1h"}},
    "free": {},
}
OWN = {"own": ("often", {"slacktide.io/disruptions": "1 per 40s"})}
"""A workload of a class that is stricter by itself."""


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("limits")
    plane = prepared(binaries, directory)
    try:
        plane.api.post(CLASSES, service_class(GOLD, 0.999, 1))
        for name, limits in CLASS_OF.items():
            plane.api.post(CLASSES, service_class(name, 0.02, 3, overheadLimit=1.0, marginSeconds=0.5, **limits))
        plane.create_nodes(4, cpu="4")
        yield plane
    finally:
        plane.kill()


def brief(name: str, **annotations: str) -> dict[str, Any]:
    """Settings of a pod of a class that starts and ends within a second."""
    quick = {"slacktide.io/startup-seconds": "0.3", "slacktide.io/shutdown-seconds": "0.4"}
    return {
        "labels": {"slacktide.io/class": name},
        "annotations": quick | annotations,
        "schedulerName": "slacktide",
        "terminationGracePeriodSeconds": 1,
    }


class GoldenPods:
    """Pods that come and go until ``end``, each of which wants the place of somebody else."""

    def __init__(self, api: Api) -> None:
        self.api, self._chance, self._over = api, random.Random(7), threading.Event()
        self._names: list[str] = []
        self._count = 0
        self._thread = threading.Thread(target=self._come_and_go, daemon=True)
        self._thread.start()

    def _come_and_go(self) -> None:
        while not self._over.wait(self._chance.uniform(0.05, 0.4)):
            with suppress(KubeError, OSError, ApiError):
                if len(self._names) < 8 and self._chance.random() < 0.6:
                    self._count += 1
                    name = f"gold-{self._count}"
                    self.api.post(f"/api/v1/namespaces/{NAMESPACE}/pods", pod(name, cpu="1", **brief(GOLD)))
                    self._names.append(name)
                elif self._names:
                    name = self._names.pop(self._chance.randrange(len(self._names)))
                    self.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")

    def end(self) -> None:
        self._over.set()
        self._thread.join(HANG_SECONDS)
        for name in self._names:
            self.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")


def begun(auditor: Auditor, workload: str) -> dict[str, float]:
    """When each pod of a workload was evicted by the scheduler; an eviction may have been asked for twice."""
    found: dict[str, float] = {}
    for act in auditor.evictions(NAMESPACE):
        name = str(act["objectRef"]["name"])
        if name.startswith(f"{workload}-"):
            found.setdefault(name, seconds(act["requestReceivedTimestamp"]))
    return found


def too_many(times: list[float], most: int, per: float) -> list[tuple[float, ...]]:
    """Runs of more than ``most`` within ``per`` seconds, but for what the way to the API server takes."""
    runs = (tuple(times[i : i + most + 1]) for i in range(len(times) - most))
    return [run for run in runs if run[-1] - run[0] < per - BLUR]


def too_soon(at: float, evicted: dict[str, float], lives: list[Course], count: int) -> str:
    """What is wrong with an eviction of a workload with a cooldown, of ``count`` pods; empty where nothing is.

    Whoever comes in this one's place may be ready in the same second, by its own timestamps before this eviction. So
    what counts is when somebody was seen to be ready.
    """
    before = [one for one in evicted.values() if one < at]
    if not before:
        return ""
    up = [life for life in lives if any(a <= at + BLUR and b > at - BLUR for a, b in life.up)]
    if len(up) < count:
        return f"only {len(up)} of {count} were ready"
    came = [a for life in lives for a, _ in life.up if a <= at and life.created > max(before) - BLUR]
    if not came:
        return f"nobody ready has come since the eviction {at - max(before):.1f} s before"
    since = at - max(came)
    return "" if since >= COOLDOWN - BLUR else f"{since:.1f} s after one was ready again"


def test_no_limit_is_exceeded_while_leaders_are_killed(plane: ControlPlane) -> None:
    auditor = Auditor(plane.url, plane.token, plane.ca_file, audit_log(plane.directory.parent))
    auditor.start()
    scheduler = Running(plane, policy__name="priority", scheduler__watchdog=1, kube__lease_duration=3)
    scheduler.wait_until_leading()
    auditor.pulse.attend(f"http://127.0.0.1:{scheduler.port}/livez")
    plane.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    counts = {"often": 3, "calm": 3, "never": 2, "free": 3, "own": 3}
    for name, count in counts.items():
        cls, annotations = OWN.get(name, (name, {}))
        body = deployment(name, count, cpu="1", **brief(cls, **annotations))
        plane.api.post(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", body)
    until(lambda: len(pods(plane.api, NAMESPACE, "Running")) == sum(counts.values()), "all of them run")
    golden = GoldenPods(plane.api)
    for kill in range(KILLS + 1):
        more_are_evicted(auditor, 12 if kill == KILLS else 4)
        if kill < KILLS:
            scheduler.kill()
            scheduler.restart()
    until(lambda: limits_told(plane, scheduler), "it is said what a pod may suffer")
    golden.end()
    until(lambda: len(pods(plane.api, NAMESPACE, "Running")) == sum(counts.values()), "all of them run again")
    auditor.catch_up()
    scheduler.stop()
    auditor.stop()
    times = {name: sorted(begun(auditor, name).values()) for name in counts}
    assert not times["never"]
    assert min(len(times[name]) for name in counts if name != "never") >= 2, times
    for name, (most, per) in {"often": (2, PER), "own": (1, 40.0)}.items():
        assert not too_many(times[name], most, per), (name, times[name], scheduler.terms())
    assert too_many(times["free"], 2, PER), "without limits there are more"
    evicted, lives = begun(auditor, "calm"), courses(auditor, NAMESPACE, "calm-")
    wrong = {name: problem for name, at in evicted.items() if (problem := too_soon(at, evicted, lives, counts["calm"]))}
    assert not wrong, (wrong, evicted, scheduler.terms())
    complaints = scheduler.complaints()
    assert not complaints, "\n".join(complaints)


def more_are_evicted(auditor: Auditor, count: int) -> None:
    """Wait until the scheduler has evicted so many more pods."""
    wanted = len(auditor.evictions(NAMESPACE)) + count
    until(lambda: len(auditor.evictions(NAMESPACE)) >= wanted, f"{count} more pods are evicted")


def limits_told(plane: ControlPlane, scheduler: Running) -> bool:
    """Whether the scheduler says of a pod what it may suffer yet."""
    name = next(one["metadata"]["name"] for one in pods(plane.api, NAMESPACE) if "often-" in one["metadata"]["name"])
    asked = f"http://127.0.0.1:{scheduler.port}/explain?namespace={NAMESPACE}&name={name}"
    try:
        with urlopen(asked, timeout=HANG_SECONDS) as answer:
            return any("of at most 2 in 20s" in line for line in json.loads(answer.read()).get("limits", []))
    except HTTPError:
        return False  # it went meanwhile
