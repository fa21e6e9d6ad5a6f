"""Random scripts of requests, to be carried out by the model and by a real API server, which must agree.

A step says what is meant ("the pod's UID", "an old version"); each server's own values are put in when it is sent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from simulated.api_model import ApiModel, Request
from simulated.resources import OURS, Json, decode

NODE = "ghost"
"""Pods are bound to it; nobody has it, so nobody starts or stops them."""
PODS = ("p0", "p1", "p2")
JSON = "application/json"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
LENGTH = 14
NOBODY = "00000000-0000-4000-8000-00000000ffff"

Carry = Callable[[str, str, Any, str], tuple[int, str, Json]]
"""Carries a request out: method, path with its query, body, content type; code, reason and body of the answer."""


class Step(NamedTuple):
    """One request. Texts ``$UID:kind/name``, ``$OLD:...`` and ``$VERSION:...`` stand for what a server gave out."""

    method: str
    path: str
    body: Any = None
    content_type: str = JSON

    @property
    def is_read(self) -> bool:
        return self.method == "GET"


def script(seed: int, namespace: str) -> list[Step]:
    """Some steps in a namespace."""
    draw = random.Random(seed)
    writer = _Writer(draw, namespace)
    found: list[Step] = [writer.create_pod(), writer.create_pod(), writer.create_lease()]
    several = [
        writer.create_pod, writer.create_pod, writer.bind, writer.bind, writer.ready, writer.ready, writer.nominate,
        writer.annotate, writer.evict, writer.evict, writer.delete, writer.read, writer.create_lease, writer.put_lease,
        writer.put_lease, writer.budget, writer.no_budget, writer.apply_ledger, writer.apply_ledger,
        writer.delete_ledger, writer.finalizers, writer.odd,
    ]  # fmt: skip
    found += [draw.choice(several)() for _ in range(LENGTH)]
    return found


class _Writer:
    def __init__(self, draw: random.Random, namespace: str) -> None:
        self._draw, self._core = draw, f"/api/v1/namespaces/{namespace}"
        self._lease = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._budget = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        self._ledger = f"/apis/{OURS}/namespaces/{namespace}/availabilities"
        self._namespace = namespace

    def _pod(self) -> str:
        return self._draw.choice(PODS)

    def _meant(self, kind: str, name: str, *, often: float = 0.7) -> str:
        """The UID or version of an object, or a former one's."""
        return f"${kind if self._draw.random() < often else 'OLD'}:{name}"

    def create_pod(self) -> Step:
        grace = self._draw.choice((0, 5, 30))
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1m"}}}
        body = {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": self._pod(), "labels": {"app": self._draw.choice("ab")}},
            "spec": {"schedulerName": "nobody", "containers": [container], "terminationGracePeriodSeconds": grace},
        }  # fmt: skip
        return Step("POST", f"{self._core}/pods", body)

    def bind(self) -> Step:
        name = self._pod()
        metadata = {"name": name, "namespace": self._namespace}
        if self._draw.random() < 0.8:
            metadata["uid"] = self._meant("UID", f"pods/{name}")
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        return Step("POST", f"{self._core}/pods/{name}/binding", body)

    def _status(self, name: str, status: Json, **metadata: str) -> Step:
        return Step("PATCH", f"{self._core}/pods/{name}/status", {"metadata": metadata, "status": status}, STRATEGIC)

    def ready(self) -> Step:
        name, is_so = self._pod(), self._draw.choice(("True", "True", "False"))
        conditions = [{"type": "Ready", "status": is_so, "reason": "Said"}]
        return self._status(name, {"phase": "Running", "conditions": conditions})

    def nominate(self) -> Step:
        name = self._pod()
        return self._status(
            name, {"nominatedNodeName": self._draw.choice((NODE, None))}, uid=self._meant("UID", f"pods/{name}")
        )

    def annotate(self) -> Step:
        name = self._pod()
        metadata: Json = {"annotations": {"a": self._draw.choice(("1", "2", None))}}
        if self._draw.random() < 0.7:
            metadata["resourceVersion"] = self._meant("VERSION", f"pods/{name}")
        return Step("PATCH", f"{self._core}/pods/{name}", {"metadata": metadata}, MERGE)

    def finalizers(self) -> Step:
        name = self._pod()
        wanted = self._draw.choice(([], ["example.org/one"]))
        return Step("PATCH", f"{self._core}/pods/{name}", {"metadata": {"finalizers": wanted}}, MERGE)

    def _options(self, name: str) -> Json:
        options: Json = {}
        if self._draw.random() < 0.7:
            options["preconditions"] = {"uid": f"$UID:pods/{name}"}
        if self._draw.random() < 0.4:  # with a version, as else another UID is tried for ten seconds
            options.setdefault("preconditions", {})["resourceVersion"] = self._meant("VERSION", f"pods/{name}")
        if self._draw.random() < 0.3:
            options["gracePeriodSeconds"] = self._draw.choice((0, 1, 60))
        return options

    def evict(self) -> Step:
        name = self._pod()
        body = {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self._namespace},
            "deleteOptions": self._options(name),
        }  # fmt: skip
        return Step("POST", f"{self._core}/pods/{name}/eviction", body)

    def delete(self) -> Step:
        name = self._pod()
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **self._options(name)}
        return Step("DELETE", f"{self._core}/pods/{name}", body)

    def read(self) -> Step:
        return Step("GET", f"{self._core}/pods/{self._pod()}")

    def _lease_body(self, **metadata: str) -> Json:
        spec = {"holderIdentity": self._draw.choice("xyz"), "leaseDurationSeconds": self._draw.choice((1, 15))}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "l", **metadata},
            "spec": spec,
        }

    def create_lease(self) -> Step:
        return Step("POST", self._lease, self._lease_body())

    def put_lease(self) -> Step:
        version = {"resourceVersion": self._meant("VERSION", "leases/l")} if self._draw.random() < 0.8 else {}
        return Step("PUT", f"{self._lease}/l", self._lease_body(**version))

    def budget(self) -> Step:
        spec = {"minAvailable": self._draw.choice((0, 1, 2)), "selector": {"matchLabels": {"app": "a"}}}
        name = self._draw.choice(("b", "b", "c"))
        body = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
        return Step("POST", self._budget, body)

    def no_budget(self) -> Step:
        return Step("DELETE", f"{self._budget}/{self._draw.choice(('b', 'c'))}", {})

    def apply_ledger(self) -> Step:
        status: Json = {"class": self._draw.choice(("gold", "silver")), "running": self._draw.choice((0, 1, 2))}
        if self._draw.random() < 0.5:
            status["accumulators"] = {self._draw.choice("uv"): self._draw.choice((1, 2))}
        body = {"apiVersion": OURS, "kind": "Availability", "metadata": {"name": "x"}, "status": status}
        return Step("PATCH", f"{self._ledger}/x?fieldManager=slacktide&force=true", body, APPLY)

    def delete_ledger(self) -> Step:
        return Step("DELETE", f"{self._ledger}/x", {})

    def odd(self) -> Step:
        """What is not there, or makes no sense."""
        nobody = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}}
        return self._draw.choice((
            Step("GET", f"{self._core}/pods/none"), Step("GET", "/apis/example.org/v1/things"),
            Step("POST", f"{self._core}/pods/none/eviction", nobody),
            Step("DELETE", f"{self._core}/pods/none", {}), Step("PUT", f"{self._lease}/none", self._lease_body()),
            Step("GET", f"{self._core}/pods?limit=1"),
        ))  # fmt: skip


class Player:
    """Carries scripts out with one server, and keeps what it gave out."""

    def __init__(self, carry: Carry) -> None:
        self._carry = carry
        self._given: dict[str, tuple[str, str]] = {}
        self._old: dict[str, list[str]] = {}
        """A UID and a version that an object of this name had, and has no more."""

    def play(self, namespace: str, step: Step) -> tuple[int, str, Json]:
        """Code, reason, and what is essential of the body."""
        body = self._meant(namespace, step.body)
        code, reason, answer = self._carry(step.method, step.path, body, step.content_type)
        self._note(namespace, answer)
        return code, reason, essential(answer)

    def note(self, namespace: str, plural: str, listing: Json) -> None:
        """What is there now."""
        for one in listing["items"]:
            self._note(namespace, {**one, "kind": {"pods": "Pod", "leases": "Lease"}[plural]})

    def _note(self, namespace: str, answer: Json) -> None:
        plural = {"Pod": "pods", "Lease": "leases"}.get(answer.get("kind", ""))
        if plural is None:
            return
        key = f"{namespace}:{plural}/{answer['metadata']['name']}"
        now = answer["metadata"]["uid"], answer["metadata"]["resourceVersion"]
        old = self._old.setdefault(key, [NOBODY, "1"])
        for place, before in enumerate(self._given.get(key, now)):
            if before != now[place]:
                old[place] = before
        self._given[key] = now

    def _meant(self, namespace: str, body: Any) -> Any:
        if isinstance(body, dict):
            return {key: self._value(namespace, key, value) for key, value in body.items()}
        if isinstance(body, list):
            return [self._meant(namespace, one) for one in body]
        return body

    def _value(self, namespace: str, field: str, value: Any) -> Any:
        if not isinstance(value, str) or not value.startswith("$"):
            return self._meant(namespace, value)
        what, _, name = value[1:].partition(":")
        place = 0 if field == "uid" else 1
        known = (self._old if what == "OLD" else self._given).get(f"{namespace}:{name}", (NOBODY, "1"))
        return known[place]


METADATA = ("name", "labels", "annotations", "finalizers", "deletionGracePeriodSeconds")


def essential(body: Json) -> Json:
    """What two servers must agree on: no UIDs, versions, times, and no defaults of fields that nobody reads."""
    if body.get("kind") == "Status":
        return {"status": body.get("status")}
    if "items" in body:
        return {"items": [essential(one) for one in body["items"]], "more": "continue" in body["metadata"]}
    metadata = body.get("metadata", {})
    found: Json = {name: metadata[name] for name in METADATA if metadata.get(name)}
    found["goes"] = "deletionTimestamp" in metadata
    if "containers" in body.get("spec", {}):
        spec, status = body["spec"], body["status"]
        found |= {name: spec.get(name) for name in ("nodeName", "schedulerName", "terminationGracePeriodSeconds")}
        found |= {name: status.get(name) for name in ("phase", "nominatedNodeName")}
        found["conditions"] = sorted(
            (one["type"], one["status"], one.get("reason", "")) for one in status.get("conditions", ())
        )
    elif "holderIdentity" in body.get("spec", {}):
        found |= {name: body["spec"].get(name) for name in ("holderIdentity", "leaseDurationSeconds")}
    elif "status" in body and "minAvailable" not in body.get("spec", {}):
        found["status"] = body["status"]
    return found


def of_model(api: ApiModel) -> Carry:
    """Has the model carry requests out."""

    def carry(method: str, path: str, body: Any, content_type: str) -> tuple[int, str, Json]:
        place, _, query = path.partition("?")
        data = b"" if body is None else json.dumps(body).encode()
        answer = api.answer(Request(method, place, dict(parse_qsl(query)), data, content_type))
        found = decode(answer.body) if answer.body[:1] == b"{" else {}
        return answer.code, "" if answer.ok else found.get("reason", ""), found

    return carry
