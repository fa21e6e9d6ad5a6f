"""What an API server's audit log says of workloads: an accountant that knows neither the scheduler nor its kernels.

From the log alone (creations of workloads and pods, status patches, evictions, deletions, cordons, maintenance windows)
this works out, of each Deployment, for how long its instances delivered, what they lost and by whose doing, how long
their promises over a rolling window would last, and when the scheduler disrupted them. The rules are those of
docs/causes.md and docs/semantics.md, read anew, for what the play in :mod:`cluster.churning` does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from cluster.judging import Json, seconds

SCHEDULER = "system:serviceaccount:slacktide-system:slacktide"
WRITES = ["create", "update", "patch", "delete", "deletecollection"]
ENTRY = '{"kind":"Event"'
NEVER = float("inf")
LATE_SECONDS = 5.0
"""What is seen so long after its own timestamp was written by a line that is lost."""
CLUSTER, WORKLOAD, OPERATOR = "cluster", "workload", "operator"


def audit_policy(reader: str) -> Json:
    """What the API server is to write down; ``reader``: the user whose lists of pods are, too, by which a version
    comes to light whose line was lost when the server was killed."""
    pods = ["pods", "pods/status", "pods/binding", "pods/eviction", "nodes", "nodes/status"]
    kinds = [
        {"group": "", "resources": pods},
        {"group": "apps", "resources": ["deployments"]},
        {"group": "slacktide.io", "resources": ["maintenancewindows"]},
    ]
    quiet = ["system:serviceaccount:kube-system:deployment-controller", "system:kube-controller-manager"]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": quiet, "resources": [{"group": "apps"}]},
            {"level": "RequestResponse", "verbs": WRITES, "resources": kinds},
            {"level": "RequestResponse", "verbs": ["list"], "users": [reader], "resources": kinds[:1]},
            {"level": "None"},
        ],
    }


@dataclass(slots=True)
class Pod:
    """A pod's life, seconds since 1970. ``told``: when it was told to go, and by whose doing."""

    name: str
    created: float
    bound: float = NEVER
    up: list[list[float]] = field(default_factory=list)
    told: float = NEVER
    cause: str = ""
    node: str = ""
    version: int = 0
    """Of the latest that was read; lines of answers that took long come late."""
    ended: float = NEVER
    disrupted: float = NEVER
    """When the scheduler's eviction of it came."""
    until: float = NEVER
    """Where an operator told it to go: the end of the maintenance window."""
    dark: list[list[float]] = field(default_factory=list)
    """When its node was not Ready."""

    @property
    def first_up(self) -> float:
        return self.up[0][0] if self.up else NEVER

    def is_lost(self, at: float) -> bool:
        """Whether its node is not Ready, or was not and it has not been ready since."""
        begin = max((begin for begin, _ in self.dark if begin <= at), default=NEVER)
        end = max((end for begin, end in self.dark if begin <= at), default=NEVER)
        return begin <= at and (at < end or not any(begin <= up <= at for up, _ in self.up))


@dataclass(slots=True)
class Promise:
    """What a Deployment says of itself."""

    name: str
    replicas: int
    service: str
    pods: list[Pod] = field(default_factory=list)


@dataclass
class Account:
    """What instances had and lost, in seconds, by an instant."""

    good: float = 0.0
    lost: dict[str, float] = field(default_factory=lambda: {CLUSTER: 0.0, WORKLOAD: 0.0, OPERATOR: 0.0})


class AuditReading:
    """All that the log says, read from its beginning."""

    def __init__(self, log: Path) -> None:
        self.workloads: dict[str, Promise] = {}
        self._pods: dict[str, Pod] = {}
        self._by_name: dict[str, Pod] = {}
        self._cordons: dict[str, list[list[float]]] = {}
        self._dark: dict[str, list[list[float]]] = {}
        self._node_versions: dict[str, int] = {}
        self._windows: list[tuple[float, float, dict[str, str]]] = []
        self._labels: dict[str, dict[str, str]] = {}
        entries = [one for one in whole_lines(log.read_text()) if one["stage"] == "ResponseComplete"]
        for entry in sorted(entries, key=lambda one: seconds(one["stageTimestamp"])):
            if entry.get("responseStatus", {}).get("code", 500) < 300:
                self._read(entry)

    # -- reading ---------------------------------------------------------------------------------------------------

    def _read(self, entry: Json) -> None:
        at, about = seconds(entry["stageTimestamp"]), entry["objectRef"]
        body = entry.get("responseObject") or {}
        kind = about["resource"]
        if kind == "pods" and about.get("subresource") == "eviction":
            self._evicted(entry, seconds(entry["requestReceivedTimestamp"]))
        elif kind == "pods":
            for one in body.get("items", [body]) if body.get("kind") in ("Pod", "PodList") else []:
                self._pod(one, at)
        elif kind == "nodes" and body.get("kind") == "Node":
            self._node(body, at)
        elif kind == "deployments" and entry["verb"] == "create" and body.get("kind") == "Deployment":
            spec, name = body["spec"], body["metadata"]["name"]
            service = spec["template"]["metadata"]["labels"]["slacktide.io/class"]
            self.workloads[name] = Promise(name, spec["replicas"], service)
        elif kind == "maintenancewindows" and entry["verb"] == "create":
            spec = body["spec"]
            labels = spec.get("nodeSelector", {}).get("matchLabels", {})
            self._windows.append((seconds(spec["start"]), seconds(spec["end"]), labels))

    def _node(self, body: Json, at: float) -> None:
        name, version = body["metadata"]["name"], int(body["metadata"]["resourceVersion"])
        if version < self._node_versions.get(name, 0):
            return
        self._node_versions[name] = version
        self._labels[name] = body["metadata"].get("labels", {})
        _noted(self._cordons.setdefault(name, []), bool(body["spec"].get("unschedulable")), at)
        said = {one["type"]: one["status"] for one in body.get("status", {}).get("conditions") or ()}
        _noted(self._dark.setdefault(name, []), said.get("Ready", "True") != "True", at)

    def _pod(self, body: Json, at: float) -> None:
        meta, status = body["metadata"], body.get("status", {})
        owner = self.workloads.get(meta.get("labels", {}).get("app", ""))
        if owner is None:
            return
        pod = self._pods.get(meta["uid"])
        if pod is None:
            pod = self._pods[meta["uid"]] = Pod(meta["name"], instant(meta["creationTimestamp"], at))
            self._by_name[meta["name"]] = pod
            owner.pods.append(pod)
        if int(meta["resourceVersion"]) < pod.version:
            return
        pod.version = int(meta["resourceVersion"])
        pod.node = body["spec"].get("nodeName", "")
        pod.dark = self._dark.setdefault(pod.node, []) if pod.node else []
        conditions: dict[str, Json] = {one["type"]: one for one in status.get("conditions") or ()}
        if pod.node and pod.bound == NEVER:
            pod.bound = instant(conditions.get("PodScheduled", {}).get("lastTransitionTime"), at)
        self._readiness(pod, conditions.get("Ready", {}), at)
        if meta.get("deletionTimestamp") and pod.told == NEVER:
            told = seconds(meta["deletionTimestamp"]) - (meta.get("deletionGracePeriodSeconds") or 0)
            pod.told = at if told <= at < told + 2.5 else told + 0.5
            pod.cause = self._evicted_by_whom(pod, None) if "DisruptionTarget" in conditions else WORKLOAD
        if status.get("phase") in ("Succeeded", "Failed") and pod.ended == NEVER:
            pod.ended = instant(conditions.get("Ready", {}).get("lastTransitionTime"), at)

    def _readiness(self, pod: Pod, ready: Json, at: float) -> None:
        is_up = bool(pod.up) and pod.up[-1][1] == NEVER
        if ready.get("status") == "True" and not is_up:
            pod.up.append([instant(ready.get("lastTransitionTime"), at), NEVER])
        elif ready and ready["status"] != "True" and is_up:
            pod.up[-1][1] = max(pod.up[-1][0], instant(ready.get("lastTransitionTime"), at))

    def _evicted(self, entry: Json, at: float) -> None:
        pod = self._by_name.get(entry["objectRef"]["name"])
        if pod is None:
            return
        by_us = entry["user"]["username"] == SCHEDULER
        if by_us and pod.disrupted == NEVER:
            pod.disrupted = at
        pod.told = min(pod.told, at)
        pod.cause = self._evicted_by_whom(pod, by_us)

    def _evicted_by_whom(self, pod: Pod, by_us: bool | None) -> str:
        """By whose doing a pod is evicted; ``by_us`` None: the line is lost. Nobody else evicts from an open node."""
        cordoned = any(begin <= pod.told <= end for begin, end in self._cordons.get(pod.node, ()))
        if by_us or not cordoned:
            return CLUSTER
        labels = self._labels.get(pod.node, {}).items()
        ends = [end for begin, end, wanted in self._windows if begin <= pod.told < end and wanted.items() <= labels]
        pod.until = max(ends, default=NEVER)
        return OPERATOR if ends else CLUSTER

    # -- accounts --------------------------------------------------------------------------------------------------

    def chains(self, workload: str, until: float) -> list[list[Pod]]:
        """The pods that each instance was, one after the other: a new one takes the place of the first that was told to
        go and has no successor."""
        promise = self.workloads[workload]
        chains: list[list[Pod]] = []
        for pod in sorted(promise.pods, key=lambda one: one.created):
            if pod.created > until:
                continue
            going = [chain for chain in chains if min(chain[-1].told, chain[-1].ended) <= pod.created + 1.0]
            if len(chains) < promise.replicas:
                chains.append([pod])
            elif going:
                chain = min(going, key=lambda chain: min(chain[-1].told, chain[-1].ended))
                chain.append(pod)
        return chains

    def account(self, workload: str, until: float) -> Account:
        """What all instances of a workload had and lost by then."""
        account = Account()
        for chain in self.chains(workload, until):
            pieces = list(losses(chain, until))
            for begin, end, cause in pieces:
                account.lost[cause] += end - begin
            account.good += until - chain[0].created - sum(end - begin for begin, end, _ in pieces)
            for begin, end, cause in surplus(chain, until):
                if cause:
                    account.lost[cause] += end - begin
                else:
                    account.good += end - begin
        return account

    def slack(self, workload: str, until: float, window: float, received: float) -> float:
        """For how long the promise over a rolling window holds if all stop: of ``window`` seconds this many must be
        received, and before its first pod came all was. The worst instance's; seconds."""
        found = NEVER
        for chain in self.chains(workload, until):
            gaps = [(begin, end) for begin, end, cause in losses(chain, until) if cause == CLUSTER]
            found = min(found, since_received(gaps, until, received) + window - until)
        return found

    def disruptions(self, workload: str) -> list[tuple[float, float]]:
        """When the scheduler evicted its pods, and when the one that came in each one's place was ready; in order."""
        found = []
        for chain in self.chains(workload, NEVER):
            for i, pod in enumerate(chain):
                if pod.disrupted < NEVER:
                    found.append((pod.disrupted, min((one.first_up for one in chain[i + 1 :]), default=NEVER)))
        return sorted(found)


def _noted(spans: list[list[float]], holds: bool, at: float) -> None:
    """Of something that holds, or does not any more, from an instant on: the spans in which it does."""
    held = bool(spans) and spans[-1][1] == NEVER
    if holds and not held:
        spans.append([at, NEVER])
    elif held and not holds:
        spans[-1][1] = at


def instant(said: str | None, seen: float) -> float:
    """When something happened: when its line was written, and where that is lost, within its timestamp's second."""
    if not said:
        return seen
    return seen if seen < seconds(said) + LATE_SECONDS else seconds(said) + 0.5


def whole_lines(text: str) -> Iterator[Json]:
    """The entries of an audit log: one on which an API server was killed is followed on the same line by the next."""
    for line in text.splitlines(keepends=True):
        try:
            yield json.loads(line)
        except ValueError:
            if line.endswith("\n") and (again := line.rfind(ENTRY, 1)) > 0:
                yield json.loads(line[again:])


def losses(chain: list[Pod], until: float) -> Iterator[tuple[float, float, str]]:
    """The spans in which an instance delivered nothing, in order, and by whose doing."""
    up = sorted((a, min(b, until)) for pod in chain for a, b in pod.up if a < until)
    at = chain[0].created
    for begin, end in [*up, (until, until)]:
        if begin > at:
            yield from _caused(chain, at, begin)
        at = max(at, end)


def surplus(chain: list[Pod], until: float) -> Iterator[tuple[float, float, str]]:
    """The spans in which a pod was there though the one before it, which others than the scheduler told to go, still
    delivered: it is an instance more as long as that lasts, and delivers where no cause is given. A successor of the
    scheduler's victims waits for their end.
    """
    for before, pod in pairwise(chain):
        end = min(until, before.up[-1][1] if before.up else pod.created, before.ended)
        if before.disrupted == NEVER and pod.created < end:
            waits, bound, up = (
                OPERATOR if before.cause == OPERATOR else CLUSTER,
                min(pod.bound, end),
                min(pod.first_up, end),
            )
            yield pod.created, bound, waits
            yield bound, up, WORKLOAD if before.cause == WORKLOAD else waits
            yield up, end, ""


def _caused(chain: list[Pod], begin: float, end: float) -> Iterator[tuple[float, float, str]]:
    """A span without delivery, cut at the instants at which its cause may change."""
    cuts = {begin, end}
    for pod in chain:
        dark = (at for span in pod.dark for at in span)
        cuts |= {at for at in (pod.created, pod.bound, pod.told, pod.ended, pod.until, *dark) if begin < at < end}
    for a, b in pairwise(sorted(cuts)):
        yield a, b, _cause(chain, (a + b) / 2)


def _cause(chain: list[Pod], at: float) -> str:
    """By whose doing an instance delivers nothing at an instant."""
    present = [pod for pod in chain if pod.created <= at]
    pod = present[-1]
    before = present[-2] if len(present) > 1 else None
    if pod.told <= at or pod.ended <= at:
        return pod.cause or WORKLOAD if pod.until > at else CLUSTER
    if pod.bound <= at and pod.is_lost(at):
        return CLUSTER
    if pod.bound <= at and pod.up and pod.first_up <= at:
        return WORKLOAD  # it was ready on this node, and is not
    origin = CLUSTER if before is None else before.cause
    if origin == OPERATOR:
        return OPERATOR if before is not None and at < before.until else CLUSTER
    return WORKLOAD if origin == WORKLOAD and pod.bound <= at else CLUSTER


def since_received(gaps: list[tuple[float, float]], until: float, received: float) -> float:
    """The last instant up to which there was no more than what there is now less ``received`` seconds."""
    at, left = until, received
    for begin, end in reversed(gaps):
        if at - end >= left:
            break
        left -= max(0.0, at - end)
        at = begin
    return at - left
