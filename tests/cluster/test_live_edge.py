"""Delay-aware placement on a real control plane: as in the simulator, by round-trip times that NodeLatencies have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cluster.installation import alone
from cluster.kubectl import Json
from cluster.labtools import HANG_SECONDS, NUMBERS, new_namespace, pod, pods_path, until, without_objects
from cluster.running import CLASSES, Running, service_class
from slacktide import settings
from slacktide.config import Config
from slacktide.dryrun.dry_run import DryRun, ReadOnly, Starts
from slacktide.engine.core import types
from slacktide.engine.journal.record import sessions
from slacktide.engine.journal.replay import replay
from slacktide.engine.journal.to_workload import as_workload
from slacktide.inputs import align, read_hosts, read_workload
from slacktide.inputs.columns.access import format_users
from slacktide.inputs.formats.network_file import read_network
from slacktide.kube.client.credentials import load_access
from slacktide.kube.resources.objects import rfc3339
from slacktide.lab import Binaries, ControlPlane
from slacktide.lab.nodes import node
from slacktide.model import Hosts, Workload
from slacktide.settings import load_live
from slacktide.sim import run
from support.repository import REPOSITORY

EXAMPLES = REPOSITORY / "examples" / "edge"
OURS = "slacktide-"
ROWS = "/apis/slacktide.io/v1beta1/nodelatencies"
BANDWIDTH = "slacktide.io/network"
GI = 2**30
DELAYS = (
    *("alpha", "phi", "tolerance", "context_switch", "competition"),
    *("transfer", "memory_per_cpu", "keep_images", "grants", "fetching"),
)


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    for plane in alone(binaries, tmp_path_factory.mktemp("plane")):
        plane.install()
        plane.api.post(CLASSES, service_class("plain", 0.9, 2, default=True))
        yield plane


@dataclass
class Scenario:
    """A published scenario, its amounts rounded to what Kubernetes counts: millicores and bytes."""

    workload: Workload
    hosts: Hosts
    config: Config

    @classmethod
    def read(cls, name: str) -> Scenario:
        folder = EXAMPLES / name
        config = settings.load(folder / "settings.yaml", overrides=["simulation.end=100"])
        hosts = replace(read_hosts(folder / "hosts.csv"), network=read_network(folder / "network.yaml"))
        workload, hosts = align(read_workload(folder / "workload.csv"), hosts)
        assert workload.limit is not None
        whole = np.array([1e3, GI, 1.0])
        rounded = [np.ceil(np.round(one * whole, 3)) / whole for one in (workload.demand, workload.limit)]
        return cls(replace(workload, demand=rounded[0], limit=rounded[1]), hosts, config)

    def simulated(self) -> list[str]:
        """The host of each instance, in order of admission."""
        decisions = run(self.workload, self.hosts, self.config, decisions=True).decisions
        assert decisions is not None
        of_row = dict(zip(decisions["row"].tolist(), decisions["host"].tolist(), strict=True))
        return [self.hosts.names[of_row[row]] for row in range(len(self.workload))]

    def nodes(self) -> list[Json]:
        made = []
        for name, (cpu, memory, bandwidth) in zip(self.hosts.names, self.hosts.capacity.tolist(), strict=True):
            made.append(
                node(
                    name,
                    cpu=f"{cpu * 1e3:.0f}m",
                    memory=f"{memory * GI:.0f}",
                    resources={BANDWIDTH: f"{bandwidth:.0f}"},
                    labels=self.hosts.attributes[self.hosts.names.index(name)],
                )
            )
        return made

    def rows(self) -> dict[str, dict[str, float]]:
        """Round-trip times by place, milliseconds."""
        network = self.hosts.network
        assert network is not None
        return {
            a: {b: float(1e3 * network.rtt[i, j]) for j, b in enumerate(network.places) if i != j}
            for i, a in enumerate(network.places)
        }

    def pod(self, row: int) -> Json:
        workload = self.workload
        assert workload.limit is not None
        assert workload.access is not None
        access = workload.accesses[workload.access[row]]
        cpu, memory, bandwidth = workload.demand[row].tolist()
        said = {"slacktide.io/data": repr(access.data)}
        if access.logins:
            said["slacktide.io/users"] = format_users(access.logins)
        (condition,) = workload.terms[workload.term[row]].constraints or (None,)
        body = pod(f"p-{row}", annotations=said)
        if condition is not None:
            body["spec"]["nodeSelector"] = {condition.key: condition.value}
        requests = {"cpu": f"{cpu * 1e3:.0f}m", "memory": f"{memory * GI:.0f}"}
        limits = {"cpu": f"{workload.limit[row, 0] * 1e3:.0f}m", "memory": f"{workload.limit[row, 1] * GI:.0f}"}
        if bandwidth:
            limits[BANDWIDTH] = f"{bandwidth:.0f}"
        body["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": limits}
        return body


def write_row(plane: ControlPlane, name: str, peers: dict[str, float]) -> None:
    """A node's row as its agent would write it, milliseconds by peer."""
    told = [
        {"node": peer, "meanMs": mean, "deviationMs": 0.1, "lost": 0.0, "samples": 10} for peer, mean in peers.items()
    ]
    status = {"at": rfc3339(time.time()), "measured": len(told), "reached": len(told), "error": 1.0, "peers": told}
    if any(one["metadata"]["name"] == name for one in plane.api.get(ROWS)["items"]):
        plane.api.patch(f"{ROWS}/{name}", {"status": status})
        return
    body = {"apiVersion": "slacktide.io/v1beta1", "kind": "NodeLatency", "metadata": {"name": name}}
    plane.api.post(ROWS, body | {"status": status})


def bound(plane: ControlPlane, namespace: str, body: Json) -> str:
    """Create a pod and wait until it is on a node; its name."""
    body["spec"].setdefault("schedulerName", "slacktide")
    name = plane.api.post(pods_path(namespace), body)["metadata"]["name"]

    def found() -> Any:
        return plane.api.get(f"{pods_path(namespace)}/{name}")["spec"].get("nodeName")

    return str(until(found, f"pod {name} is bound"))


@pytest.fixture
def cleaned(plane: ControlPlane) -> Iterator[ControlPlane]:
    yield plane
    for name, component in plane.components.items():
        if name.startswith(OURS):
            component.stop()
    without_objects(plane.api)
    plane.api.delete(ROWS)


def scheduler(plane: ControlPlane, config: Config, *words: str, name: str) -> Running:
    delays = {f"delay__{one}": getattr(config.delay, one) for one in DELAYS}
    return Running(plane, *words, name=f"{OURS}{name}", policy__name="delay-aware", **delays).wait_until_leading()


@pytest.mark.parametrize("name", ["scenario-1", "scenario-2"])
def test_a_published_scenario_is_placed_live_as_in_the_simulator(
    cleaned: ControlPlane, name: str, tmp_path: Path
) -> None:
    plane, scenario = cleaned, Scenario.read(name)
    plane.api.create_all("/api/v1/nodes", scenario.nodes())
    for place, peers in scenario.rows().items():
        write_row(plane, place, peers)
    record = tmp_path / "record"
    running = scheduler(plane, scenario.config, f"--record={record}", name=name)
    namespace = new_namespace(plane.api)
    found = [bound(plane, namespace, scenario.pod(row)) for row in range(len(scenario.workload))]
    assert found == scenario.simulated()
    assert len(set(found)) == len(scenario.hosts)  # there is something to decide
    running.stop()
    again = replay(record)
    assert again.equal, again.differences
    assert again.decisions == len(found)
    assert simulated_record(record, tmp_path / "workload") == found


def simulated_record(record: Path, folder: Path) -> list[str]:
    """Where the simulator places what was recorded."""
    (session,) = sessions(record)
    as_workload(session, folder)
    config = settings.load(folder / "settings.json")
    hosts = read_hosts(folder / "hosts.parquet")
    workload, hosts = align(read_workload(folder / "workload.parquet", classes=config.classes), hosts)
    decisions = run(workload, hosts, config, decisions=True).decisions
    assert decisions is not None
    return [hosts.names[h] for h in decisions["host"].tolist()]


def users(name: str, places: str, **annotations: str) -> Json:
    body = pod(name, annotations={"slacktide.io/users": places, **annotations})
    body["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "200m"}
    return body


async def would_place(plane: ControlPlane, config: Config, namespace: str) -> list[str]:
    """Where a dry run would put a pod, before and after a round-trip time changed. Nobody else places them."""
    places = []
    async with ReadOnly(await load_access(plane.kubeconfig)) as connection:
        watched = DryRun(connection, config, Starts(lambda: 0.1, measured=False, seed=0))
        task = asyncio.create_task(watched.run())
        try:
            for name, near in (("before", "n2"), ("after", "n1")):
                peers = {"n1": 100.0, "n2": 100.0, "n3": 90.0} | {near: 10.0}
                await asyncio.to_thread(write_row, plane, "master", peers)
                host, end = "", time.monotonic() + HANG_SECONDS
                while host != near and time.monotonic() < end:  # until it has heard of the row
                    body = users(f"{name}-{next(NUMBERS)}", "master")
                    body["spec"]["schedulerName"] = "default-scheduler"
                    made = await asyncio.to_thread(plane.api.post, pods_path(namespace), body)
                    async with asyncio.timeout(HANG_SECONDS):
                        while not (host := host_of(watched, made["metadata"]["uid"])):
                            await asyncio.sleep(0.05)
                    await asyncio.sleep(0.5 if host != near else 0.0)
                places.append(host)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    return places


def host_of(watched: DryRun, uid: str) -> str:
    """Where a dry run has put a pod; empty where it has not."""
    engine = watched.engine
    one = None if engine is None else engine.pods.get(uid)
    return "" if one is None or one.state != types.PLACED else one.host


def test_a_dry_run_hears_of_round_trip_times(cleaned: ControlPlane) -> None:
    plane = cleaned
    plane.api.create_all("/api/v1/nodes", [node(name) for name in ("n1", "n2", "n3")])
    for name, peers in (("n1", ("n2", "n3")), ("n2", ("n1", "n3")), ("n3", ("n1", "n2"))):
        write_row(plane, name, dict.fromkeys(peers, 50.0))
    beside = ["kube.scheduler_name=default-scheduler", "kube.all_nodes=true"]
    config = load_live(overrides=["policy.name=delay-aware", "delay.alpha=0.1", *beside])
    assert asyncio.run(would_place(plane, config, new_namespace(plane.api))) == ["n2", "n1"]


def test_pods_go_where_round_trip_times_say_now(cleaned: ControlPlane) -> None:
    plane = cleaned
    plane.api.create_all("/api/v1/nodes", [node(name) for name in ("n1", "n2", "n3")])
    write_row(plane, "master", {"n1": 100.0, "n2": 20.0, "n3": 90.0})
    for name, peers in (("n1", ("n2", "n3")), ("n2", ("n1", "n3")), ("n3", ("n1", "n2"))):
        write_row(plane, name, dict.fromkeys(peers, 50.0))
    running = scheduler(plane, replace(Config(), delay=replace(Config().delay, alpha=0.1)), name="moving")
    namespace = new_namespace(plane.api)
    assert bound(plane, namespace, users("first", "master")) == "n2"
    write_row(plane, "master", {"n1": 10.0, "n2": 200.0, "n3": 90.0})
    moved = lambda: bound(plane, namespace, users(f"later-{next(NUMBERS)}", "master")) == "n1"  # noqa: E731
    until(moved, "pods go to the place that is near now")
    # Malformed: the pod waits and says why; corrected, it goes.
    wrong = users("wrong", "n3", **{"slacktide.io/data": "much"})
    wrong["spec"]["schedulerName"] = "slacktide"
    plane.api.post(pods_path(namespace), wrong)

    def condition() -> Sequence[str]:
        status = plane.api.get(f"{pods_path(namespace)}/wrong")["status"]
        return [one["message"] for one in status.get("conditions", ()) if one["type"] == "PodScheduled"]

    (message,) = until(condition, "it says why it waits")
    assert "annotation slacktide.io/data: found 'much', expected a volume" in message
    plane.api.patch(f"{pods_path(namespace)}/wrong", {"metadata": {"annotations": {"slacktide.io/data": "0.5"}}})
    until(lambda: plane.api.get(f"{pods_path(namespace)}/wrong")["spec"].get("nodeName") == "n3", "it is placed")
    # Nobody knows the place: it is as far from all nodes, and the pod goes anywhere.
    assert bound(plane, namespace, users("unknown", "atlantis")) in ("n1", "n2", "n3")
    assert not running.complaints()
    running.stop()
