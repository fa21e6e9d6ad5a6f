"""Memory of the live scheduler on a cluster of many pods: at its start, and when it has to list everything again.

    python bench/relist_memory.py [--pods 100000] [--nodes 5000] [--against SRC ...]

A control plane runs just long enough to record what an API server says of one running pod, its node, its Deployment and
its ReplicaSet. Then a server on loopback says the same of many: it answers lists, in pages where it is asked for pages,
and keeps watches open. ``slacktide run`` starts on that, every pod of it its own, fifty a Deployment. Names and
UIDs are shorter than real ones, by some 60 bytes a pod. Then all watches
end with 410 (Expired), and every pod has another resource version: nothing of what is known can be kept. The largest
resident memory of each of the two is printed, in MB, and how long it took.

``--against`` measures other sources of slacktide first (the folder with the package).
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aiohttp import web
from live_parts.cluster import free_port
from measuring import announce, options, table

from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.binaries import NEEDED

TOGETHER = 50
"""Pods of a Deployment."""
PATIENCE_SECONDS = 3600.0
SETTLING_SECONDS = 10.0
"""Ledgers are written meanwhile, and whatever else comes of a start belongs to it."""
PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
DEPLOYMENTS, REPLICA_SETS = "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets"
MARKS = {PODS: "@N@", NODES: "@H@", DEPLOYMENTS: "@O@", REPLICA_SETS: "@O@"}
CLASS = {"metadata": {"name": "gold", "uid": "gold", "resourceVersion": "1"}, "spec": {"slo": 0.99, "rank": 1}}


# -- what an API server says -------------------------------------------------------------------------------------------


def container() -> dict[str, Any]:
    """As such containers are: with an environment, probes and mounts, of which a scheduler reads nothing."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    names = [f"SETTING_NUMBER_{number}" for number in range(55)]
    environment = [{"name": one, "value": f"the value of {one.lower()}, as long as it may be"} for one in names]
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    return {"name": "main", "image": "registry.example/front:1", "env": environment, "resources": resources,
            "ports": [{"containerPort": 8080}], "livenessProbe": probe, "readinessProbe": probe}  # fmt: skip


def recorded(directory: Path) -> dict[str, bytes]:
    """A pod, a node, a Deployment and a ReplicaSet, as JSON with marks where others have other names."""
    plane = ControlPlane.create(directory, Binaries.find([*NEEDED, "kube-scheduler"]), with_kube_scheduler=True)
    plane.start(guarded=True)
    try:
        plane.create_nodes(1, prefix="recorded-node")
        labels = {"app": "front", "slacktide.io/class": "gold"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container()]}}
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "front"}}, "template": template}
        plane.api.post(
            "/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "recorded-owner"}, "spec": spec}
        )
        until = time.monotonic() + 120.0
        while True:
            pods = plane.api.get(PODS)["items"]
            ready = [one for pod in pods for one in pod["status"].get("conditions", ()) if one["type"] == "Ready"]
            if ready and ready[0]["status"] == "True":
                break
            if time.monotonic() > until:
                sys.exit("the recorded pod is not ready within 120 s")
            time.sleep(0.2)
        found = {path: plane.api.get(path)["items"][0] for path in (PODS, NODES, DEPLOYMENTS, REPLICA_SETS)}
    finally:
        plane.kill()
    found[PODS]["spec"]["schedulerName"] = "slacktide"
    # Where ServiceAccounts are admitted, each pod has a volume with a name of its own.
    token = {"name": "kube-api-access-@N@", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    found[PODS]["spec"]["volumes"] = [token]
    return marked(found)


def marked(found: dict[str, Any]) -> dict[str, bytes]:
    """The same with ``@N@`` for a pod's number, ``@O@`` its owner's, ``@H@`` its node's, ``@V@`` for the version."""
    said = {}
    for path in (PODS, REPLICA_SETS, DEPLOYMENTS, NODES):  # longer names first: they contain the others
        metadata, short = found[path]["metadata"], path.rpartition("/")[2]
        said[metadata["uid"]] = f"uid-of-{short}-{MARKS[path]}"
        said[metadata["name"]] = f"{short}-{MARKS[path]}"
        metadata["resourceVersion"] = "@V@"
    texts = {}
    for path, one in found.items():
        text = json.dumps(one, separators=(",", ":"))
        for before, after in said.items():
            text = text.replace(before, after)
        texts[path] = text.encode()
    return texts


class Recorded:
    """The server: lists of so many objects, watches that say nothing until they expire."""

    def __init__(self, texts: dict[str, bytes], pods: int, nodes: int) -> None:
        owners = -(-pods // TOGETHER)
        self._texts, self._nodes = texts, nodes
        self._counts = {PODS: pods, NODES: nodes, DEPLOYMENTS: owners, REPLICA_SETS: owners}
        self._version = 100
        self._expired = asyncio.Event()
        self.watches = 0
        """Watches of pods that were begun."""

    def item(self, path: str, number: int) -> bytes:
        owner = number // TOGETHER if path == PODS else number
        marks = {b"@N@": number, b"@O@": owner, b"@H@": number % self._nodes, b"@V@": self._version}
        text = self._texts[path]
        for mark, value in marks.items():
            text = text.replace(mark, b"%d" % value)
        return text

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            return web.json_response(await request.json(), status=201)
        if "watch" in request.query:
            return await self._watch(request)
        path = request.path
        if path not in self._counts:
            every = [CLASS] if path.endswith("/serviceclasses") else []
            return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": every})
        return await self._list(request, path)

    async def _list(self, request: web.Request, path: str) -> web.StreamResponse:
        first, count = int(request.query.get("continue", 0)), self._counts[path]
        last = min(count, first + int(request.query.get("limit", count)))
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        token = str(last) if last < count else ""
        metadata = json.dumps({"resourceVersion": str(self._version), "continue": token})
        await response.write(b'{"metadata":%s,"items":[' % metadata.encode())
        for begin in range(first, last, 100):
            numbers = range(begin, min(begin + 100, last))
            await response.write(b"," * (begin > first) + b",".join(self.item(path, one) for one in numbers))
        await response.write(b"]}")
        return response

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        self.watches += request.path == PODS
        if request.path in self._counts:
            await self._expired.wait()
            status = {"code": 410, "reason": "Expired", "message": "too old resource version"}
            await response.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
        else:
            await asyncio.Event().wait()
        return response

    def expire(self) -> None:
        """All watches end; from now on everything has another version."""
        self._version += 1
        self._expired.set()
        self._expired = asyncio.Event()


# -- the measurement ---------------------------------------------------------------------------------------------------


def peak(pid: int) -> float:
    """The largest resident memory of a process since it was last asked, MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    return int(found[1]) / 1024 if found else 0.0


async def measured(source: Path, texts: dict[str, bytes], pods: int, nodes: int) -> list[tuple[str, float, float]]:
    """What happened, its peak in MB and its seconds, of the slacktide in ``source``."""
    server = Recorded(texts, pods, nodes)
    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    with tempfile.TemporaryDirectory() as folder:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        kubeconfig = Path(folder) / "kubeconfig"
        cluster = {"name": "one", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}
        context = {"name": "one", "context": {"cluster": "one", "user": "one"}}
        users = [{"name": "one", "user": {}}]
        kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "one",
                                          "clusters": [cluster], "contexts": [context], "users": users}))  # fmt: skip
        words = ["kube.leader_election=false", "kube.all_nodes=true", f"kube.listen=127.0.0.1:{free_port()}"]
        sets = [f"--set={one}" for one in words]
        command = [sys.executable, "-m", "slacktide", "run", f"--kubeconfig={kubeconfig}", *sets]
        log = Path(folder) / "log"
        with log.open("wb") as said:
            process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(source)}, stderr=said, stdout=said)
        try:
            began = time.monotonic()
            await until(lambda: "leading as" in log.read_text(), process, log)
            took = time.monotonic() - began
            await asyncio.sleep(SETTLING_SECONDS)
            rows = [("start", peak(process.pid), took)]
            watches, began = server.watches, time.monotonic()
            server.expire()
            await until(lambda: server.watches > watches, process, log)
            took = time.monotonic() - began
            await asyncio.sleep(SETTLING_SECONDS)
            rows.append(("list again", peak(process.pid), took))
        finally:
            process.kill()
            process.wait()
            await runner.cleanup()
        print(next(line for line in log.read_text().splitlines() if "leading as" in line), file=sys.stderr)
    return rows


async def until(condition: Any, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until it is so; stops the program where the scheduler ends before."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"the scheduler ended, or hangs:\n{log.read_text()[-2000:]}")
        await asyncio.sleep(0.1)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--against", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    announce()
    with tempfile.TemporaryDirectory() as folder:
        texts = recorded(Path(folder) / "plane")
    here = Path(__file__).parents[1] / "src"
    rows = []
    for source in [*asked.against, here]:
        for what, memory, seconds in asyncio.run(measured(source.resolve(), texts, asked.pods, asked.nodes)):
            rows.append([str(source), what, f"{memory:,.0f}", f"{seconds:.0f}"])
    print(f"{asked.pods:,} pods of {len(texts[PODS]):,} bytes on {asked.nodes:,} nodes\n")
    print(table(["sources", "", "peak MB", "s"], rows))


if __name__ == "__main__":
    main()
