"""The controllers of the control plane, as far as scenes need them."""

from __future__ import annotations

import json
import zlib
from math import ceil
from typing import Any

from simulated.agents import PODS, Agent, is_active, is_over, owned, owner_of, reference, remove
from simulated.api_model import ApiModel
from simulated.pod_model import is_true, seconds_of, selects, set_condition
from simulated.resources import BY_NAME, Json
from simulated.store import Change, Key

DEPLOYMENTS, REPLICA_SETS, JOBS = BY_NAME["deployments"], BY_NAME["replicasets"], BY_NAME["jobs"]
STATEFUL_SETS = BY_NAME["statefulsets"]
BUDGETS, CLAIMS = BY_NAME["poddisruptionbudgets"], BY_NAME["resourceclaims"]
TOLD_SECONDS = 120.0
"""After so long an eviction that did not happen is forgotten."""


def make_pod(api: ApiModel, owner: Json, template: Json, name: str = "") -> None:
    """One more pod of a controller."""
    metadata = owner["metadata"]
    named = {"name": name} if name else {"generateName": f"{metadata['name']}-"}
    body = json.loads(json.dumps(template))
    body.setdefault("metadata", {}).update(ownerReferences=[reference(owner)], **named)
    api.create(PODS, metadata["namespace"], body)


def by_expendability(pods: list[Json]) -> list[Json]:
    """Who is removed first: who has no node, is not ready, is young."""
    return sorted(
        pods,
        key=lambda one: (
            bool(one["spec"].get("nodeName")), is_true(one, "Ready"), -seconds_of(one["metadata"]["creationTimestamp"]),
            one["metadata"]["name"],
        ),
    )  # fmt: skip


class ReplicaSets(Agent):
    """As many pods as each wants."""

    def see(self, change: Change) -> None:
        if change.resource is REPLICA_SETS:
            self.wake(change.key)
        elif change.resource is PODS and (owner := owner_of(change.body)) and owner["kind"] == "ReplicaSet":
            self.wake((change.key[0], owner["name"]))

    def sync(self, key: Key) -> None:
        found = self.store.get("replicasets", *key)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return
        pods = [one for one in owned(self.store, "pods", found["metadata"]["uid"]) if is_active(one)]
        wanted = found["spec"]["replicas"]
        for _ in range(wanted - len(pods)):
            make_pod(self.api, found, found["spec"]["template"])
        for one in by_expendability(pods)[: max(0, len(pods) - wanted)]:
            remove(self.api, "pods", one)


class Deployments(Agent):
    """Rolling updates, a quarter at a time."""

    def see(self, change: Change) -> None:
        if change.resource is DEPLOYMENTS:
            self.wake(change.key)
        elif change.resource is REPLICA_SETS and (owner := owner_of(change.body)):
            self.wake((change.key[0], owner["name"]))
        elif change.resource is PODS and (owner := owner_of(change.body)) and owner["kind"] == "ReplicaSet":
            self.wake((change.key[0], owner["name"].rpartition("-")[0]))

    def sync(self, key: Key) -> None:
        found = self.store.get("deployments", *key)
        if found is None:
            return
        template, wanted = found["spec"]["template"], found["spec"]["replicas"]
        mark = f"{zlib.crc32(json.dumps(template, sort_keys=True).encode()):08x}"
        sets = owned(self.store, "replicasets", found["metadata"]["uid"])
        name = f"{key[1]}-{mark}"
        new = next((one for one in sets if one["metadata"]["name"] == name), None)
        old = [one for one in sets if one["metadata"]["name"] != name]
        if new is None:
            labels = {**template["metadata"]["labels"], "pod-template-hash": mark}
            made = json.loads(json.dumps(template))
            made["metadata"]["labels"] = labels
            first = wanted if not old else 0
            body = {
                "metadata": {"name": name, "labels": labels, "ownerReferences": [reference(found)]},
                "spec": {"replicas": first, "selector": {"matchLabels": labels}, "template": made},
            }
            self.api.create(REPLICA_SETS, key[0], body)
            self.wake(key)
            return
        self._roll(new, old, wanted)

    def _roll(self, new: Json, old: list[Json], wanted: int) -> None:
        others = sum(one["spec"]["replicas"] for one in old)
        surge, away = ceil(wanted / 4), wanted // 4
        if others == 0:
            self._scale(new, wanted)
            return
        self._scale(new, min(wanted, max(new["spec"]["replicas"], wanted + surge - others)))
        pods = {one["metadata"]["name"]: self._pods(one) for one in (new, *old)}
        ready = sum(is_true(pod, "Ready") for several in pods.values() for pod in several)
        spare = ready - (wanted - away)
        for one in old:
            mine = pods[one["metadata"]["name"]]
            idle = sum(not is_true(pod, "Ready") for pod in mine)
            goes = min(one["spec"]["replicas"], idle + max(spare, 0))
            spare -= max(0, goes - idle)
            self._scale(one, one["spec"]["replicas"] - goes)

    def _pods(self, one: Json) -> list[Json]:
        return [pod for pod in owned(self.store, "pods", one["metadata"]["uid"]) if is_active(pod)]

    def _scale(self, one: Json, replicas: int) -> None:
        copy = self.store.copy("replicasets", one["metadata"]["namespace"], one["metadata"]["name"])
        if copy is not None and copy["spec"]["replicas"] != replicas:
            copy["spec"]["replicas"] = replicas
            copy["metadata"]["generation"] += 1
            self.store.write(REPLICA_SETS, copy)


class StatefulSets(Agent):
    """Pods with numbers, all at once: of sets whose pods are made anew from the template when somebody deletes them
    (``OnDelete``). Those of other sets a scene makes itself."""

    def see(self, change: Change) -> None:
        if change.resource is STATEFUL_SETS:
            self.wake(change.key)
        elif change.resource is PODS and (owner := owner_of(change.body)) and owner["kind"] == "StatefulSet":
            self.wake((change.key[0], owner["name"]))

    def sync(self, key: Key) -> None:
        found = self.store.get("statefulsets", *key)
        if found is None or found["spec"].get("updateStrategy", {}).get("type") != "OnDelete":
            return
        wanted = [f"{key[1]}-{number}" for number in range(found["spec"]["replicas"])]
        for name in wanted:
            if self.store.get("pods", key[0], name) is None:
                make_pod(self.api, found, found["spec"]["template"], name)
        for one in owned(self.store, "pods", found["metadata"]["uid"]):
            if is_active(one) and one["metadata"]["name"] not in wanted:
                remove(self.api, "pods", one)


class Jobs(Agent):
    """Pods until as many as wanted have succeeded."""

    def see(self, change: Change) -> None:
        if change.resource is JOBS:
            self.wake(change.key)
        elif change.resource is PODS and (owner := owner_of(change.body)) and owner["kind"] == "Job":
            self.wake((change.key[0], owner["name"]))

    def sync(self, key: Key) -> None:
        found = self.store.copy("jobs", *key)
        if found is None or is_true(found, "Complete"):
            return
        pods = owned(self.store, "pods", found["metadata"]["uid"])
        done = sum(one["status"].get("phase") == "Succeeded" for one in pods)
        there = sum(not is_over(one) for one in pods)
        wanted = found["spec"]["completions"]
        if done >= wanted:
            set_condition(found, self.now, "Complete", "True")
            self.store.write(JOBS, found)
            return
        if found["spec"].get("suspend"):
            for one in pods:
                if is_active(one):
                    remove(self.api, "pods", one)
            return
        for _ in range(min(found["spec"]["parallelism"], wanted - done) - there):
            make_pod(self.api, found, found["spec"]["template"])


def _share(said: int | str, of: int) -> int:
    """A number, or a percentage of so many."""
    return ceil(int(said.rstrip("%")) * of / 100) if isinstance(said, str) else said


class Disruption(Agent):
    """What budgets allow."""

    pace = (0.05, 1.5)

    def see(self, change: Change) -> None:
        if change.resource is BUDGETS:
            self.wake(change.key)
        elif change.resource is PODS:
            for key in self.store.objects["poddisruptionbudgets"]:
                if key[0] == change.key[0]:
                    self.wake(key)

    def sync(self, key: Key) -> None:
        found = self.store.copy("poddisruptionbudgets", *key)
        if found is None:
            return
        found["status"] = found.get("status", {}) | self.counted(found)
        self.store.write(BUDGETS, found)

    def counted(self, budget: Json) -> Json:
        """The status, by what is there now."""
        namespace, spec = budget["metadata"]["namespace"], budget["spec"]
        pods = [
            one
            for one in self.store.every("pods")
            if one["metadata"]["namespace"] == namespace
            and selects(spec.get("selector"), one["metadata"].get("labels", {}))
        ]
        told = budget.get("status", {}).get("disruptedPods", {})
        names = {one["metadata"]["name"] for one in pods if not one["metadata"].get("deletionTimestamp")}
        told = {name: at for name, at in told.items() if name in names and self.now < seconds_of(at) + TOLD_SECONDS}
        expected = len(pods) if "maxUnavailable" not in spec else self._expected(pods)
        least = spec.get("minAvailable", 0)
        wanted = (
            _share(least, expected)
            if "maxUnavailable" not in spec
            else expected - _share(spec["maxUnavailable"], expected)
        )
        healthy = sum(
            is_true(one, "Ready") and one["metadata"]["name"] in names and one["metadata"]["name"] not in told
            for one in pods
        )
        return {
            "observedGeneration": budget["metadata"]["generation"], "expectedPods": expected,
            "desiredHealthy": max(0, wanted), "currentHealthy": healthy, "disruptedPods": told,
            "disruptionsAllowed": max(0, healthy - max(0, wanted)) if expected else 0,
        }  # fmt: skip

    def _expected(self, pods: list[Json]) -> int:
        uids = {owner["uid"] for one in pods if (owner := owner_of(one))}
        sets = [one for one in self.store.every("replicasets") if one["metadata"]["uid"] in uids]
        found, seen = 0, set[str]()
        for one in sets:
            above = owner_of(one)
            top = next(
                (d for d in self.store.every("deployments") if above and d["metadata"]["uid"] == above["uid"]), one
            )
            if top["metadata"]["uid"] not in seen:
                seen.add(top["metadata"]["uid"])
                found += top["spec"]["replicas"]
        return found


class GarbageCollection(Agent):
    """What has no owner any more goes."""

    pace = (0.1, 3.0)
    OWNED = ("replicasets", "pods", "availabilities", "resourceclaims")

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._gone: set[str] = set()
        """UIDs."""

    def see(self, change: Change) -> None:
        if change.type == "DELETED":
            self._gone.add(change.body["metadata"]["uid"])
            self.wake(("", change.body["metadata"]["uid"]))
        elif change.type == "ADDED" and change.resource.plural in self.OWNED:  # after its owner went
            for owner in change.body["metadata"].get("ownerReferences", ()):
                if owner["uid"] in self._gone:
                    self.later(self.chance.between("orphans", *self.pace), self.sync, ("", owner["uid"]))

    def sync(self, key: Key) -> None:
        for plural in self.OWNED:
            for one in self.store.every(plural):
                if any(owner["uid"] == key[1] for owner in one["metadata"].get("ownerReferences", ())):
                    remove(self.api, plural, one)


class ResourceClaims(Agent):
    """Devices come back from pods that are gone, or over."""

    def see(self, change: Change) -> None:
        if change.resource is CLAIMS and change.type != "DELETED":
            self.wake(change.key)
        elif change.resource is PODS and (change.type == "DELETED" or is_over(change.body)):
            for key, one in self.store.objects["resourceclaims"].items():
                uids = [user["uid"] for user in one["status"].get("reservedFor", ())]
                if change.body["metadata"]["uid"] in uids:
                    self.wake(key)

    def sync(self, key: Key) -> None:
        found = self.store.copy("resourceclaims", *key)
        if found is None or not (users := found["status"].get("reservedFor")):
            return
        there = {one["metadata"]["uid"] for one in self.store.every("pods") if not is_over(one)}
        left = [one for one in users if one["uid"] in there]
        if len(left) == len(users):
            return
        found["status"]["reservedFor"] = left
        if not left:
            found["status"] = {}
            found["metadata"]["finalizers"] = []
        if not left and found["metadata"].get("deletionTimestamp"):
            self.store.remove(CLAIMS, key, found)
        else:
            self.store.write(CLAIMS, found)


CONTROLLERS = (ReplicaSets, Deployments, StatefulSets, Jobs, Disruption, GarbageCollection, ResourceClaims)
