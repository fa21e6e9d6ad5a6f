"""What a user with the role ``edit`` in one namespace can do to everybody else.

    PYTHONPATH=src:tests:bench python bench/hostile_namespace.py                          four hours
    PYTHONPATH=src:tests:bench python bench/hostile_namespace.py --minutes 4

On a real API server, with slacktide and then with kube-scheduler: one namespace gets five pods a second, one by one,
for so many minutes; then the same again, while a process with the rights of ``edit`` in another namespace sends
hostile objects, twenty a second. These are pods, Jobs, claims and budgets as ``SHAPES`` makes them, and objects that
are drawn by their schemas (``tests/support``); each is changed or deleted later, so that two hundred are there at most.
Prints how many of them the API server took, and for the pods of the others: from the answer to a create to the binding;
the same from when a bare watch of all pods, in which nothing is done, had the pod to when it had the binding, as the
API server itself is late with its watches; for all pods from when slacktide saw them to the binding, by its own metric;
the longest stall of its event loop; and memory. Ends with 1 where the scheduler ended, or somebody else's pod was not
bound.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from live_parts.cases import _singles
from live_parts.cluster import KUBE, Cluster, Running
from live_parts.load import clear, watched

from slacktide.kube.client.http import ApiError, Connection, Unreachable, connect
from slacktide.kube.client.kinds import Kind
from slacktide.kube.resources.objects import JOB, PERSISTENT_VOLUME_CLAIM, POD, POD_DISRUPTION_BUDGET, RESOURCE_CLAIM
from support.drawn_objects import Drawer

Json = dict[str, Any]
NAMES = ("qos-driven", KUBE)
SPACE = "hostile"
MOST = 200
"""So many hostile objects are there at once."""
UNDER_WAY = 16
EVERYBODY = {"matchExpressions": [{"key": "nobody-has-this", "operator": "DoesNotExist"}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NUMBERS = itertools.count()
KUEUE = "kueue.x-k8s.io/pod-group"
SLI = "scheduler_pod_scheduling_sli_duration_seconds"
DEEP, LEVELS = "deep", 5_000
"""What stands for so many levels, which Python does not write."""


SCHEDULER_NAME = ["slacktide"]
"""Of hostile pods."""


def hostile(labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod that waits for slacktide, of a class that every namespace may use."""
    metadata = {"labels": {"slacktide.io/class": "low", **(labels or {})}, "annotations": annotations or {}}
    container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    return {"metadata": metadata, "spec": {"schedulerName": SCHEDULER_NAME[0], "containers": [container]} | spec}


def _terms(count: int, key: str = "") -> Json:
    """Away from all pods of the cluster, by so many terms of its own; ``key``: where, else by made-up keys."""
    number = next(NUMBERS)
    absent = [{"key": f"nobody-has-{number}-{one}", "operator": "DoesNotExist"} for one in range(count)]
    terms = [
        {
            "topologyKey": key or f"key-{number}-{at}",
            "labelSelector": {"matchExpressions": [one]},
            "namespaceSelector": {},
        }
        for at, one in enumerate(absent)
    ]
    return hostile(affinity={"podAntiAffinity": {REQUIRED: terms}})


def _spread(count: int) -> Json:
    one = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": EVERYBODY}
    return hostile(topologySpreadConstraints=[one | {"topologyKey": f"key-{number}"} for number in range(count)])


def _owned(length: int) -> Json:
    body = hostile()
    owner = {"apiVersion": "x/v1", "kind": "K" * length, "name": "n" * length, "uid": f"u{next(NUMBERS)}"}
    body["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    return body


def _selective(values: int) -> Json:
    selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{one}" for one in range(values)]}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector, "namespaceSelector": {}}
    return hostile(affinity={"podAffinity": {REQUIRED: [term]}})


def _ports(count: int) -> Json:
    ports = [{"containerPort": 1, "hostPort": 1_000 + number} for number in range(count)]
    return hostile(containers=[{"name": "c", "image": "none", "ports": ports}])


def _deep() -> Json:
    request = {"name": "r", "exactly": {"deviceClassName": "none"}}
    config = [{"opaque": {"driver": "d.example.com", "parameters": {"a": DEEP}}}]
    return {"metadata": {}, "spec": {"devices": {"requests": [request], "config": config}}}


def _budget() -> Json:
    return {"metadata": {}, "spec": {"maxUnavailable": 0, "selector": {}}}


def _job() -> Json:
    template = {"spec": hostile()["spec"] | {"restartPolicy": "Never"}}
    spec = {"parallelism": 2_000_000, "completions": 2_000_000, "suspend": True, "template": template}
    return {"metadata": {}, "spec": spec}


def _claimant() -> Json:
    claims = [{"name": f"v{one}", "persistentVolumeClaim": {"claimName": f"none-{one}"}} for one in range(100)]
    return hostile(volumes=claims)


SHAPES: dict[str, tuple[Kind[Any], Callable[[], Json]]] = {
    "32 terms about everybody": (POD, lambda: _terms(32)),
    "32 terms about everybody, by host": (POD, lambda: _terms(32, "kubernetes.io/hostname")),
    "1,000 terms about everybody": (POD, lambda: _terms(1_000)),
    "32 spread constraints": (POD, lambda: _spread(32)),
    "10,000 values in a selector": (POD, lambda: _selective(10_000)),
    "2,000 labels": (POD, lambda: hostile({f"l{one}": "v" for one in range(2_000)})),
    "an owner with a name of 200 kB": (POD, lambda: _owned(100_000)),
    "a workload of its own": (POD, lambda: _owned(5)),
    "a node that is made up": (POD, lambda: hostile(nodeName=f"made-up-{next(NUMBERS)}")),
    "a group of 2^63 pods": (
        POD, lambda: hostile({f"{KUEUE}-name": "g"}, {f"{KUEUE}-total-count": f"{2**63}"}),
    ),
    "an annotation of 4,301 digits": (POD, lambda: hostile(annotations={"slacktide.io/cooldown": "9" * 4_301})),
    "a time zone of hundreds of parts": (
        POD, lambda: hostile(annotations={"slacktide.io/hours": "Mon 00:00-24:00 " + "a/" * 470 + "a"}),
    ),
    "a grace period of 2^63 - 1 s": (POD, lambda: hostile(terminationGracePeriodSeconds=2**63 - 1)),
    "more than any node has": (POD, lambda: hostile(containers=[
        {"name": "c", "image": "none", "resources": {"requests": {"cpu": "9E", "example.com/x": "1"}}}
    ])),
    "2,000 host ports": (POD, lambda: _ports(2_000)),
    "100 claims that are not there": (POD, _claimant),
    "a claim of 5,000 levels": (RESOURCE_CLAIM, _deep),
    "a budget for all pods": (POD_DISRUPTION_BUDGET, _budget),
    "a Job of 2,000,000 suspended pods": (JOB, _job),
}  # fmt: skip
DRAWN = (POD, JOB, PERSISTENT_VOLUME_CLAIM, RESOURCE_CLAIM, POD_DISRUPTION_BUDGET)


class Attack:
    """Sends objects at a rate until it is told to end; ``took`` counts what the API server took and refused."""

    def __init__(self, connection: Connection, seed: int, left_out: Sequence[str]) -> None:
        self._connection = connection
        self._shapes = [one for one in SHAPES if one not in left_out]
        self._chance = random.Random(seed)
        self._drawer = Drawer(self._chance)
        self.counts: Counter[str] = Counter()
        self._there: deque[tuple[Kind[Any], str]] = deque()
        self._free = asyncio.Semaphore(UNDER_WAY)

    async def run(self, rate: float, seconds: float) -> None:
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(round(rate * seconds)):
                await asyncio.sleep(began + number / rate - time.perf_counter())
                await self._free.acquire()
                group.create_task(self._one())

    async def _one(self) -> None:
        try:
            name = f"h{next(NUMBERS)}"
            kind, shape, body = self._next()
            body["metadata"] |= {"name": name, "namespace": SPACE}
            body |= {"apiVersion": kind.api_version, "kind": kind.kind}
            text = json.dumps(body).replace(f'"{DEEP}"', '{"a":' * LEVELS + "1" + "}" * LEVELS)
            if await self._sent(shape, self._connection.post(kind.path(SPACE), text.encode())):
                self._there.append((kind, name))
            if len(self._there) > MOST:
                await self._end(*self._there.popleft())
        finally:
            self._free.release()

    def _next(self) -> tuple[Kind[Any], str, Json]:
        if self._chance.random() < 0.2:
            kind = self._chance.choice(DRAWN)
            body = self._drawer.body(kind, {})
            body.pop("status", None)
            if kind is POD:
                body["spec"] = hostile()["spec"] | self._some(body["spec"])
            return kind, f"a drawn {kind.kind}", body
        shape = self._chance.choice(self._shapes)
        kind, make = SHAPES[shape]
        return kind, shape, make()

    def _some(self, spec: Json) -> Json:
        chosen = self._chance.sample(sorted(spec), min(2, len(spec)))
        return {name: spec[name] for name in chosen if name not in ("schedulerName", "containers")}

    async def _end(self, kind: Kind[Any], name: str) -> None:
        """An object is changed and deleted."""
        path = kind.path(SPACE, name)
        await self._sent("a change", self._connection.patch(path, b'{"metadata":{"labels":{"changed":"yes"}}}'))
        await self._sent("a deletion", self._connection.delete(path, b'{"gracePeriodSeconds":0}'))

    async def _sent(self, what: str, request: Any) -> bool:
        try:
            await request
        except (ApiError, Unreachable) as error:
            reason = f"{error.status}" if isinstance(error, ApiError) else "no answer"
            self.counts[f"{what}: refused ({reason})"] += 1
            return False
        self.counts[f"{what}: taken"] += 1
        return True


async def attack(kubeconfig: Path, options: argparse.Namespace) -> None:
    async with await connect(kubeconfig, timeout=60) as connection:
        found = Attack(connection, 0, options.leave_out)
        await found.run(options.rate, 60.0 * options.minutes)
    print(json.dumps(found.counts))


def rights(cluster: Cluster) -> Path:
    """A kubeconfig of somebody who may edit one namespace, and nothing else."""
    api = cluster.api
    api.post("/api/v1/namespaces", {"metadata": {"name": SPACE}})
    api.post(f"/api/v1/namespaces/{SPACE}/serviceaccounts", {"metadata": {"name": "somebody"}})
    subject = {"kind": "ServiceAccount", "name": "somebody", "namespace": SPACE}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    body = {"metadata": {"name": "somebody"}, "roleRef": role, "subjects": [subject]}
    api.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/rolebindings", body)
    return cluster.plane.service_account_kubeconfig(SPACE, "somebody")


def seen_to_bound(running: Running) -> tuple[float, float]:
    """By the scheduler's own metric: seconds from when it saw pods to their bindings, together, and of how many."""
    if not running.port:
        return 0.0, 0.0
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    found = (re.findall(rf"^{SLI}_{what}{{[^}}]*}} (\S+)", text, re.MULTILINE) for what in ("sum", "count"))
    total, count = (sum(map(float, one)) for one in found)
    return total, count


def resident(running: Running) -> float:
    """Memory of a process as it is now, MB."""
    text = Path(f"/proc/{running.component.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


async def measured(cluster: Cluster, name: str, options: argparse.Namespace) -> bool:
    """Both halves, printed; whether all is as it should be."""
    count = round(60.0 * options.minutes * options.pods)
    good = True
    async with watched(cluster) as (connection, bindings), watched(cluster, "/api/v1/pods") as (_, bare):
        with cluster.scheduler(name) as running:
            pid = running.component.pid
            await _singles(cluster, running, connection, bindings, round(10 * options.pods), options.pods)  # warm
            for what in ("alone", "beside"):
                await asyncio.to_thread(running.stall)
                before = await asyncio.to_thread(seen_to_bound, running)
                known = set(bare.at)
                process = _attacked(running, options) if what == "beside" else None
                found = await _singles(cluster, running, connection, bindings, count, options.pods)
                stall = await asyncio.to_thread(running.stall)
                own, of = (b - a for a, b in zip(before, await asyncio.to_thread(seen_to_bound, running), strict=True))
                good &= running.component.running and running.component.pid == pid and found.bound == count
                ours = (one for one in bare.at.keys() - known if one.startswith("b"))
                late = sorted(1000 * (bare.at[one] - bare.seen[one]) for one in ours) or [float("nan")]
                values = (found.p50, found.p99, late[len(late) // 2], late[99 * len(late) // 100])
                numbers = " | ".join(f"{one:.0f}" for one in values)
                numbers += f" | {1000 * own / of if of else float('nan'):.0f} | {stall:.0f} | {resident(running):.0f}"
                print(f"| {name}, {what} | {found.bound} of {count} | {numbers} |", flush=True)
                if process is not None:
                    said, _ = await asyncio.to_thread(process.communicate)
                    print("\n".join(f"{number:6} {one}" for one, number in sorted(json.loads(said or "{}").items())))
        await clear(connection)
    return good


def _attacked(running: Running, options: argparse.Namespace) -> subprocess.Popen[str]:
    words = ["--attack", str(options.kubeconfig), "--rate", str(options.rate), "--minutes", str(options.minutes)]
    words += ["--name", running.scheduler_name, *(word for one in options.leave_out for word in ("--leave-out", one))]
    return subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each half")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--pods", type=float, default=5.0, help="of the others, a second")
    parser.add_argument("--rate", type=float, default=20.0, help="hostile objects a second")
    parser.add_argument("--leave-out", action="append", default=[], choices=SHAPES, help="none of this shape")
    parser.add_argument("--scheduler", action="append", choices=NAMES, help="only this one")
    parser.add_argument("--name", default="slacktide", help=argparse.SUPPRESS)
    parser.add_argument("--attack", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help="a new folder for logs")
    options = parser.parse_args()
    SCHEDULER_NAME[0] = options.name
    if options.attack is not None:
        asyncio.run(attack(options.attack, options))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cluster = Cluster(options.keep or Path(folder) / "lab", options.nodes, cpu="64", kubelets=True, fair=True)
        try:
            options.kubeconfig = rights(cluster)
            titles = ("", "bound", "p50 ms", "p99 ms", "watched p50 ms", "watched p99 ms", "seen to bound, mean ms")
            print(f"| {' | '.join((*titles, 'longest stall ms', 'memory MB'))} |\n{'|---' * 9}|", flush=True)
            good = [asyncio.run(measured(cluster, name, options)) for name in options.scheduler or NAMES]
        finally:
            cluster.close()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
