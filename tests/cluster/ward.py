"""A scheduler that is shown objects that make no sense: the pod concerned waits with a reason, nobody else notices."""

from __future__ import annotations

import itertools
import re
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.disturbing import brief, three_classes
from cluster.judging import seconds
from cluster.kubectl import Kubectl
from cluster.labtools import condition, pod, until
from cluster.pulse import Pulse
from cluster.running import Running, prepared
from slacktide.lab import ApiError, Binaries, ControlPlane

SPACE = "malformed"
PODS = f"/api/v1/namespaces/{SPACE}/pods"
LEDGERS = f"/apis/slacktide.io/v1beta1/namespaces/{SPACE}/availabilities"
CANARY_SECONDS = 10
"""Within seconds an ordinary pod is bound, by the API server's timestamps, on a machine that is not late itself."""
SLOW = 10.0
"""As often, or less, an answer is waited for until then."""
NUMBERS = itertools.count(1)


@dataclass
class Ward:
    """A control plane with a scheduler that must survive everything."""

    plane: ControlPlane
    scheduler: Running
    kubectl: Kubectl
    pulse: Pulse

    def create(self, name: str, class_name: str = "bronze", cpu: str = "10m", **settings: Any) -> None:
        plain = brief(class_name)
        for key in ("labels", "annotations"):
            plain[key].update(settings.pop(key, {}))
        self.plane.api.post(PODS, pod(name, cpu, "1Mi", **plain, **settings))

    def pod(self, name: str) -> dict[str, Any]:
        return dict(self.plane.api.get(f"{PODS}/{name}"))

    def bound(self, name: str) -> None:
        until(lambda: self.pod(name)["spec"].get("nodeName"), f"pod {name} is bound")

    def waits(self, name: str, reason: str) -> None:
        def says() -> bool:
            found = condition(self.pod(name), "PodScheduled")
            return found.get("status") == "False" and bool(re.search(reason, found.get("message", "")))

        try:
            until(says)
        except AssertionError:
            said = condition(self.pod(name), "PodScheduled")
            raise AssertionError(f"pod {name} does not wait because of {reason!r}; it says {said}") from None

    def canary(self) -> None:
        """Nobody else notices."""
        name, begun = f"canary-{next(NUMBERS)}", time.time()
        self.create(name)
        self.bound(name)
        found = self.pod(name)
        bound, created = condition(found, "PodScheduled")["lastTransitionTime"], found["metadata"]["creationTimestamp"]
        late = self.pulse.late(begun - 1.0, time.time())
        assert seconds(bound) - seconds(created) <= CANARY_SECONDS + SLOW * late, f"{late:.1f} s were the machine's"
        self.plane.api.delete(f"{PODS}/{name}", 0)
        assert self.scheduler.component.running
        assert [one for one in self.scheduler.complaints() if "Traceback" in one or "defect" in one] == []

    def again(self) -> None:
        """The scheduler is killed, and a new one begins from what there is."""
        self.scheduler.kill()
        self.scheduler.restart()

    def remove(self, *names: str) -> None:
        for name in names:
            with suppress(ApiError):
                self.plane.api.delete(f"{PODS}/{name}", 0)

    def posted(self, path: str, body: dict[str, Any]) -> bool:
        """Whether the API server takes an object at all."""
        return self.accepted(lambda: self.plane.api.post(path, body))

    def accepted(self, create: Callable[[], Any]) -> bool:
        """Whether the API server takes what is being created."""
        try:
            create()
        except ApiError as error:
            if error.status not in (400, 422):
                raise
            return False
        return True

    def serves_not(self, path: str) -> bool:
        """Whether the API server does not know a kind any more."""
        try:
            self.plane.api.get(path)
        except ApiError as error:
            return error.status == 404
        return False

    def has_ledger(self, name: str, instances: int = 1) -> None:
        until(lambda: self.ledger(name).get("running") == instances, f"{name} runs and has a ledger")

    def ledger(self, name: str) -> dict[str, Any]:
        try:
            return dict(self.plane.api.get(f"{LEDGERS}/{name}").get("status", {}))
        except ApiError:
            return {}


@contextmanager
def warded(binaries: Binaries, directory: Path) -> Iterator[Ward]:
    plane = prepared(binaries, directory)
    try:
        three_classes(plane.api)
        plane.create_nodes(3, cpu="4")
        plane.api.post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
        trust = ssl.create_default_context(cafile=str(plane.ca_file))
        scheduler = Running(plane, kube__leader_election=False)
        pulse = Pulse()
        pulse.attend(f"{plane.url}/api/v1/namespaces/default", {"Authorization": f"Bearer {plane.token}"}, trust)
        found = Ward(plane, scheduler, Kubectl(binaries["kubectl"], plane.kubeconfig), pulse)
        scheduler.wait_until_leading()
        yield found
        pulse.stop()
        scheduler.stop()
    finally:
        plane.kill()


def expressions(count: int, values: int) -> list[dict[str, Any]]:
    """So many expressions of a selector, each with so many values."""
    every = [(f"key-{i}", [f"value-{i}-{j}" for j in range(values)]) for i in range(count)]
    return [{"key": key, "operator": "NotIn", "values": listed} for key, listed in every]
