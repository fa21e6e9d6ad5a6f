"""The scheduler as users run it, on a control plane with an auditor; and scenes that are played there at once.

Live tests mostly wait. So a module's tests are scenes, each with a namespace and nodes of its own, that share
one control plane and one scheduler and run at the same time; each test then says how its scene went.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cluster.auditor import POLICY, Auditor, Life, seconds
from cluster.installation import ACCOUNT
from cluster.kubectl import Json, Kubectl
from cluster.labtools import HANG_SECONDS, NUMBERS, condition, pod, pods_path, until
from cluster.stories import stories
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import ApiError, Binaries, ControlPlane
from slacktide.lab.processes import Component

LEADS_SECONDS = 900
"""The first start compiles the kernels."""
AT_ONCE = 16
CLASSES = "/apis/slacktide.io/v1beta1/serviceclasses"
SCENE_SECONDS = 900
"""Longer than all that a scene waits for; only ends a hang."""
WATCHDOG_SECONDS = 90
"""Passes that nothing calls for come so seldom that a wait for a binding of ``WOKEN_SECONDS`` shows that one did."""
WOKEN_SECONDS = 80.0
BETWEEN_EQUALS = 3600.0
"""``policy.patience`` where scenes have pods wait for equals that must stay: they may be told why after more than a
minute, and by the default of a minute they would have preempted those by then."""
SAID = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")
REASON_SECONDS = 300.0
"""What nodes lack is told again after a minute, if it changed, by the first pass after it: the watchdog's at the
latest. The rest only ends a hang."""


class Running:
    """``slacktide run`` under the account and the rights of the manifests, and nothing else."""

    def __init__(
        self,
        plane: ControlPlane,
        *words: str,
        name: str = "scheduler",
        environment: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.plane = plane
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.kubeconfig = plane.service_account_kubeconfig(*ACCOUNT)
        chosen: dict[str, Any] = {"kube.listen": f"127.0.0.1:{self.port}", "kube.http_access": "loopback"}
        if "qos__alpha" in settings:  # then that is what tests reckon with
            chosen["kube.learn_startup"] = False
        chosen |= {key.replace("__", "."): value for key, value in settings.items()}
        words_of = {key: str(value).lower() if isinstance(value, bool) else value for key, value in chosen.items()}
        sets = [f"--set={key}={value}" for key, value in words_of.items()]
        command = [sys.executable, "-m", "slacktide", "run", f"--kubeconfig={self.kubeconfig}", *sets, *words]
        passed_on = ("PYTHONPATH", "SLACKTIDE_CACHE", "SLACKTIDE_TRACEBACK")
        inherited = {key: os.environ[key] for key in passed_on if key in os.environ}
        self._from = 0
        self.component: Component = plane.add(name, command, inherited | dict(environment or {}))

    @property
    def log(self) -> str:
        """What it has said since its last start."""
        return self.component.log.read_text(errors="replace")[self._from :]

    @property
    def leads(self) -> bool:
        return "leading as" in self.log

    def wait_until_leading(self) -> Running:
        until(lambda: self.leads or not self.component.running, "the scheduler leads", LEADS_SECONDS)
        assert self.component.running, self.component.log_tail()
        return self

    def kill(self) -> None:
        """SIGKILL."""
        self.component.kill()

    def stop(self) -> None:
        """SIGTERM, and wait."""
        self.component.stop()

    def restart(self) -> Running:
        """Start it again after ``kill`` or ``stop``; the log begins anew."""
        self._from = len(self.component.log.read_text(errors="replace"))
        self.component.start()
        return self.wait_until_leading()

    def said(self) -> list[tuple[float, str]]:
        """The lines of its log since its first start, and when it said each; a traceback is part of its line."""
        found: list[tuple[float, str]] = []
        for line in self.component.log.read_text(errors="replace").splitlines():
            if SAID.match(line):
                found.append((datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp(), line[24:]))
            elif found:
                found[-1] = found[-1][0], f"{found[-1][1]}\n{line}"
            else:
                found.append((0.0, line))
        return found

    def terms(self) -> list[float]:
        """When it began to decide, at each of its starts, seconds since 1970."""
        return [at for at, line in self.said() if "leading as" in line]

    def complaints(self) -> list[str]:
        """Tracebacks and errors in its log."""
        return [line for line in self.log.splitlines() if re.search(r"Traceback|^\S+ \S+ E |Error: ", line)]


@dataclass
class Stage:
    """A control plane with a scheduler and an auditor."""

    plane: ControlPlane
    kubectl: Kubectl
    scheduler: Running
    auditor: Auditor


def prepared(
    binaries: Binaries,
    directory: Path,
    audit_policy: Json = POLICY,
    install: bool = True,
    *,
    gates: str = "",
    apis: str = "",
    kube_scheduler: bool = False,
) -> ControlPlane:
    """A control plane with the manifests applied, whose API server writes down what ``audit_policy`` says.

    ``gates`` are feature gates of Kubernetes' programs, ``apis`` API versions that are not served by default; with
    ``kube_scheduler`` that one runs, too.
    """
    directory.mkdir(parents=True, exist_ok=True)
    policy = directory / "audit-policy.json"
    policy.write_text(json.dumps(audit_policy))
    flags = [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log(directory)}"]
    flags.append("--audit-log-maxsize=100000")  # in MB; by default another file begins after 100
    gated = [f"--feature-gates={gates}"] if gates else []
    if apis:
        flags.append(f"--runtime-config={apis}")
    every = {"kube-apiserver": flags + gated} | ({"kube-scheduler": gated} if gated and kube_scheduler else {})
    plane = ControlPlane.create(directory / "plane", binaries, with_kube_scheduler=kube_scheduler, flags=every)
    plane.start(guarded=True)
    if install:
        plane.install()
    return plane


def audit_log(directory: Path) -> Path:
    return directory / "audit.log"


def staged(
    binaries: Binaries, directory: Path, classes: list[Json], plane: ControlPlane | None = None, **settings: Any
) -> Iterator[Stage]:
    """The stage of a module's scenes; ``plane`` where it is not the usual one of ``directory``."""
    plane = plane or prepared(binaries, directory)
    try:
        for one in classes:
            plane.api.post(CLASSES, one)
        auditor = Auditor(plane.url, plane.token, plane.ca_file, audit_log(directory))
        auditor.start()
        scheduler = Running(plane, **settings).wait_until_leading()
        auditor.pulse.attend(f"http://127.0.0.1:{scheduler.port}/livez")
        yield Stage(plane, Kubectl(binaries["kubectl"], plane.kubeconfig), scheduler, auditor)
        scheduler.stop()
    finally:
        plane.kill()


def service_class(name: str, slo: float, rank: int, **spec: Any) -> Json:
    spec = {"slo": slo, "rank": rank, "namespaces": ["*"], **spec}
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name}, "spec": spec}


def heard(plane: ControlPlane) -> None:
    """Wait until the scheduler has heard of every change of nodes and service classes so far.

    Watches of two kinds have no order among each other, but each has one in itself: so a pod waits for a node and a
    class that come after those changes, and is bound once the scheduler knows both.
    """
    name = f"fence-{next(NUMBERS)}"
    plane.api.post(CLASSES, service_class(name, 0.5, 9))
    plane.create_nodes(1, prefix=name, labels={"fence": name})
    labels = {"slacktide.io/class": name}
    body = pod(name, labels=labels, nodeSelector={"fence": name}, schedulerName="slacktide")
    path = pods_path("default")
    plane.api.post(path, body)
    until(lambda: plane.api.get(f"{path}/{name}")["spec"].get("nodeName"), "the scheduler knows a new node and class")
    plane.api.delete(f"{path}/{name}", 0)


class Place:
    """Where a scene plays: its namespace, its nodes (label ``scene``), and short words for what scenes do."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage, self.name = stage, name
        self.api, self.auditor = stage.plane.api, stage.auditor
        self.kubectl, self.scheduler = stage.kubectl, stage.scheduler
        self.namespace = name
        self.api.post("/api/v1/namespaces", {"metadata": {"name": name}})

    def nodes(self, count: int, prefix: str = "", labels: Json | None = None, **settings: Any) -> list[str]:
        """New nodes, of which the scheduler has heard: pods that come afterwards find them all."""
        labels = {"scene": self.name, **(labels or {})}
        names = self.stage.plane.create_nodes(count, prefix=f"{self.name}{prefix}", labels=labels, **settings)
        self.heard()
        return names

    def kinds_path(self, kind: str) -> str:
        group = {"pods": "/api/v1", "persistentvolumeclaims": "/api/v1", "jobs": "/apis/batch/v1"}
        group |= {"cronjobs": "/apis/batch/v1", "poddisruptionbudgets": "/apis/policy/v1"}
        group |= {"availabilities": "/apis/slacktide.io/v1beta1"}
        return f"{group.get(kind, '/apis/apps/v1')}/namespaces/{self.namespace}/{kind}"

    def create(self, kind: str, body: Json) -> Json:
        """Create an object whose pods are the scheduler's and stay on the scene's nodes."""
        spec = body["spec"] if kind == "pods" else body.get("spec", {}).get("template", {}).get("spec")
        if kind == "cronjobs":
            spec = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        if spec is not None and "containers" in spec:
            spec.setdefault("schedulerName", "slacktide")
            spec["nodeSelector"] = {"scene": self.name, **spec.get("nodeSelector", {})}
        return dict(self.api.post(self.kinds_path(kind), body))

    def get(self, kind: str, name: str) -> Json | None:
        """An object, or None."""
        items = self.api.get(f"{self.kinds_path(kind)}?fieldSelector=metadata.name={name}")["items"]
        return dict(items[0]) if items else None

    def pod(self, name: str) -> Json:
        found = self.get("pods", name)
        assert found is not None, f"no pod {name}"
        return found

    def pods(self, prefix: str = "") -> list[Json]:
        every = self.api.get(self.kinds_path("pods"))["items"]
        return [one for one in every if one["metadata"]["name"].startswith(prefix)]

    def node_of(self, name: str) -> str:
        return str(self.pod(name)["spec"].get("nodeName", ""))

    def ready(self, prefix: str = "", count: int = 1) -> list[Json]:
        """Wait until so many pods, and no others of that prefix, are ready."""

        def found() -> list[Json] | None:
            here = [one for one in self.pods(prefix) if "deletionTimestamp" not in one["metadata"]]
            here = [one for one in here if one["status"]["phase"] not in ("Succeeded", "Failed")]
            up = [one for one in here if condition(one, "Ready").get("status") == "True"]
            return up if len(up) == len(here) == count else None

        try:
            up = list(until(found, f"{count} pods {self.name}/{prefix}* are ready"))
        except AssertionError as error:
            there = [(one["metadata"]["name"], one["status"].get("phase")) for one in self.pods()]
            raise AssertionError(f"{error}; there are {there}") from None
        seen = {one["metadata"]["uid"] for one in up}
        until(lambda: seen <= {life.uid for life in self.lives(prefix) if life.ready}, "the auditor has seen it, too")
        return up

    def heard(self) -> None:
        """Wait until the scheduler has heard of every change of nodes and service classes so far."""
        heard(self.stage.plane)

    def bound(self, name: str, seconds: float = WOKEN_SECONDS) -> str:
        """Wait until a pod is on a node; its name. An event called for it: a watchdog's pass takes longer to come."""
        return str(until(lambda: self.node_of(name), f"pod {self.name}/{name} is bound", seconds))

    def waits(self, name: str, text: str, seconds: float = REASON_SECONDS, reason: str = "Unschedulable") -> Json:
        """Wait until a pod's condition says why it waits, for this reason; its event must say the same."""

        def says() -> Json | None:
            found = condition(self.pod(name), "PodScheduled")
            fits = found.get("status") == "False" and found.get("reason") == reason
            return found if fits and re.search(text, found.get("message", "")) else None

        def last() -> str:
            return str(condition(self.pod(name), "PodScheduled"))

        try:
            found = until(says, f"pod {self.name}/{name} waits because of {text!r}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it says {last()}") from None

        def told() -> bool:
            events = self.auditor.events(self.namespace, "FailedScheduling", name)
            return any(re.search(text, one.get("note", "")) for one in events)

        until(told, f"an event of {name} says {text!r}")
        return dict(found)

    def reason(self, name: str) -> str:
        """Why a pod waits, as the scheduler knows at this moment; empty where it does not.

        A condition may be a minute old. So this tells what the scheduler has heard of.
        """
        return str(self.explained(name).get("reason", ""))

    def explained(self, name: str) -> Json:
        """What the scheduler answers about a pod; empty where it has not heard of it."""
        asked = f"http://127.0.0.1:{self.scheduler.port}/explain?namespace={self.namespace}&name={name}"
        try:
            with urlopen(asked, timeout=HANG_SECONDS) as answer:
                return dict(json.loads(answer.read()))
        except HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return {}

    def delete(self, kind: str, name: str, grace_seconds: int | None = None) -> None:
        self.api.delete(f"{self.kinds_path(kind)}/{name}?propagationPolicy=Background", grace_seconds)

    def patch(self, kind: str, name: str, body: Json) -> None:
        self.api.patch(f"{self.kinds_path(kind)}/{name}", body, STRATEGIC)

    # -- ledgers ---------------------------------------------------------------------------------------------------

    def ledger(self, name: str) -> Json | None:
        """A controller's Availability, such as ``deployment-web``."""
        return self.get("availabilities", name)

    def status(self, name: str, when: Callable[[Json], Any], what: str, seconds: float = HANG_SECONDS) -> Json:
        """Wait until a ledger's status is so."""

        def found() -> Json | None:
            one = self.ledger(name)
            return one["status"] if one is not None and when(one["status"]) else None

        try:
            return dict(until(found, f"ledger {self.name}/{name}: {what}", seconds))
        except AssertionError as error:
            status = (self.ledger(name) or {}).get("status", {})
            says = {key: value for key, value in status.items() if key != "accumulators"}
            raise AssertionError(f"{error}; it says {says}") from None

    def slack(self, name: str) -> float:
        """The slack that a controller of one instance has by now, seconds: the scheduler's last word, carried on.

        Ledgers are written when something happens. From then on slack grows while the instance runs, and else falls.
        How long a pod runs does not tell it: what it took to become ready counts as well.
        """
        status = (self.ledger(name) or {}).get("status")
        if not status:
            return float("-inf")
        grows = 1.0 / status["promised"] - 1.0 if status["running"] and not status["waiting"] else -1.0
        return float(status["slackSeconds"]) + grows * (time.time() - at(status))

    def lives(self, prefix: str = "") -> list[Life]:
        return self.auditor.lives(self.namespace, prefix)


def admitted(place: Place, body: Json) -> bool:
    """Create a pod of a PriorityClass that is new; False while the admission plugin does not know that yet."""
    try:
        place.create("pods", body)
    except ApiError as error:
        if "priority" not in str(error).lower():
            raise
        return False
    return True


def at(status: Json) -> float:
    """The instant of a ledger."""
    return seconds(status["at"])


# -- scenes ------------------------------------------------------------------------------------------------------------


class Cast:
    """Plays a module's scenes, those that were asked for, all at once."""

    def __init__(self, stage: Stage, scenes: dict[str, Callable[[Place], None]]) -> None:
        self.stage = stage
        self._threads = ThreadPoolExecutor(AT_ONCE)
        self._played: dict[str, Future[None]] = {
            name: self._threads.submit(self._play, name, scene) for name, scene in scenes.items()
        }

    def _play(self, name: str, scene: Callable[[Place], None]) -> None:
        scene(Place(self.stage, re.sub(r"[^a-z0-9]+", "-", name.removeprefix("test_"))[:40].strip("-")))

    def result(self, name: str) -> None:
        """How a scene went: what it raised, if anything."""
        self._played[name].result(SCENE_SECONDS)

    def over(self) -> None:
        """Wait for all scenes, whatever came of them."""
        for one in self._played.values():
            one.exception(SCENE_SECONDS)
        self._threads.shutdown()


def scene(play: Callable[[Place], None]) -> Callable[[Cast], None]:
    """A test whose body runs at the same time as those of its module's other scenes."""

    @wraps(play)
    def test(cast: Cast) -> None:
        cast.result(play.__name__)

    del test.__wrapped__  # pytest would look at the scene's arguments
    test.scene = play  # type: ignore[attr-defined]
    return test


def cast_of(stage: Stage, request: pytest.FixtureRequest) -> Cast:
    """The cast of the module that asks for it, with the scenes that this session has selected."""
    items = [item for item in request.session.items if getattr(item, "module", None) is request.module]
    scenes = {item.originalname: item.function.scene for item in items if hasattr(item.function, "scene")}  # type: ignore[attr-defined]
    return Cast(stage, scenes)


def nothing_wrong(cast: Cast) -> None:
    """The last test of a module: what the auditor found in all of its scenes, and what the scheduler complained of."""
    cast.over()
    cast.stage.auditor.stop()
    findings, complaints = cast.stage.auditor.findings(), cast.stage.scheduler.complaints()
    assert not findings, f"{findings}\n{stories(cast.stage.auditor, findings, cast.stage.scheduler.said())}"
    assert not complaints, "\n".join(complaints)
