"""What an earlier release wrote is read and gone on from, what a later one wrote is left alone, and ledgers move.

The objects in ``tests/recorded/v1alpha1`` were written by the release before v1beta1, on a lab, and are read here on a
cluster that has only that release's definitions at first.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from cluster.kubectl import Json
from cluster.labtools import deployment, pod, pods, until
from cluster.running import Running
from slacktide.cli import app
from slacktide.engine.ledger.checkpoint import VERSION, read
from slacktide.errors import ConfigError, InputError
from slacktide.kube.client.credentials import load_access
from slacktide.kube.client.http import APPLY_PATCH, MERGE_PATCH, Connection
from slacktide.kube.client.kinds import encode
from slacktide.kube.publish.availability import MANAGER, load
from slacktide.kube.resources.node_latency import NODE_LATENCY
from slacktide.kube.resources.objects import API_VERSION, SERVICE_CLASS, Availability, ServiceClass
from slacktide.lab import ApiError, Binaries, ControlPlane
from slacktide.lab.manifests import apply_files
from support.repository import REPOSITORY

RECORDED = REPOSITORY / "tests" / "recorded" / "v1alpha1"
OLD, NEW = "/apis/slacktide.io/v1alpha1", f"/apis/{API_VERSION}"
LEDGERS = f"{NEW}/namespaces/default/availabilities"
DEPLOYMENTS = {"alone": ("bronze", 3), "mean": ("bronze", 3), "both": ("silver", 2), "front": ("gold", 2)}
APPROACHES = {"alone": "independent", "mean": "aggregated", "both": "concurrent", "front": "independent"}
JOB: Json = {
    "metadata": {"name": "digest"},
    "spec": {
        "completions": 3,
        "parallelism": 2,
        "template": {
            "metadata": {"labels": {"slacktide.io/class": "bronze"}},
            "spec": {
                "schedulerName": "slacktide",
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "250m"}}}],
            },
        },
    },
}


def recorded(kind: str) -> dict[str, Json]:
    """The objects of a kind, by name, as the release of before had them in the API server."""
    items = json.loads((RECORDED / "objects.json").read_text(encoding="utf-8"))["items"]
    return {one["metadata"]["name"]: one for one in items if one["kind"] == kind}


def bare(one: Json, **metadata: Any) -> Json:
    """An object to be created: without what the other API server gave it."""
    return one | {"metadata": {"name": one["metadata"]["name"]} | metadata}


def web(name: str) -> Json:
    """A Deployment as it was."""
    service, replicas = DEPLOYMENTS[name]
    body = deployment(name, replicas, cpu="500m", labels={"slacktide.io/class": service}, schedulerName="slacktide")
    body["spec"]["template"]["metadata"]["annotations"] = {"slacktide.io/approach": APPROACHES[name]}
    return body


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of the release before, with its objects; nothing of this release is applied yet."""
    found = ControlPlane.create(tmp_path_factory.mktemp("versions") / "plane", binaries)
    try:
        found.start(guarded=True)
        apply_files(found.api, sorted(RECORDED.glob("0*.yaml")))
        for one in recorded("ServiceClass").values():
            found.api.post(f"{OLD}/serviceclasses", bare(one))
        for one in recorded("NodeLatency").values():
            found.api.post(f"{OLD}/nodelatencies", bare(one))
        for name in DEPLOYMENTS:
            found.api.post("/apis/apps/v1/namespaces/default/deployments", web(name))
        found.api.post("/apis/batch/v1/namespaces/default/jobs", JOB)
        for one in recorded("Availability").values():
            target = one["status"]["target"]
            path = f"/apis/{target['apiVersion']}/namespaces/default/{target['kind'].lower()}s/{target['name']}"
            uid = found.api.get(path)["metadata"]["uid"]
            owner = {key: target[key] for key in ("apiVersion", "kind", "name")} | {"uid": uid}
            found.api.post(f"{OLD}/namespaces/default/availabilities", bare(one, ownerReferences=[owner]))
        yield found
    finally:
        found.kill()


def run(plane: ControlPlane, *words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words), "--kubeconfig", str(plane.kubeconfig)])


async def everything(plane: ControlPlane) -> tuple[list[ServiceClass], dict[str, Availability], list[Any]]:
    """Classes, ledgers and latencies as our client reads them."""
    async with Connection(await load_access(plane.kubeconfig)) as connection:
        ledgers = {one.metadata.name: one for one in (await load(connection)).values()}
        classes = SERVICE_CLASS.decode_list(await connection.get_list(SERVICE_CLASS.path())).items
        return classes, ledgers, NODE_LATENCY.decode_list(await connection.get_list(NODE_LATENCY.path())).items


def same_as_recorded(plane: ControlPlane) -> None:
    """Our client reads what was recorded, all of it."""
    classes, ledgers, latencies = asyncio.run(everything(plane))
    assert {one.metadata.name: (one.spec.slo, one.spec.rank) for one in classes} == {
        name: (one["spec"]["slo"], one["spec"]["rank"]) for name, one in recorded("ServiceClass").items()
    }
    assert [one.spec.window for one in classes] == [None] * 3
    assert {one.spec.counts for one in classes} == {"cluster"}
    written = recorded("Availability")
    assert set(ledgers) == set(written)
    approaches = set()
    for name, one in ledgers.items():
        books = read(one.status.accumulators)
        said = written[name]["status"]
        assert one.status.accumulators == said["accumulators"]
        assert one.status.state == said["state"]
        assert books.at == said["accumulators"]["at"]
        approaches.add(books.approach)
    assert len(approaches) == 3
    assert [(one.metadata.name, one.status.peers[0].mean_ms) for one in latencies] == [("n1", 12.5)]


def test_this_release_reads_and_writes_where_only_the_former_definitions_are(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ApiError):
        plane.api.get(NEW)
    same_as_recorded(plane)
    assert [one.getMessage() for one in caplog.records if "apply the manifests" in one.getMessage()] == [
        "the API server has our resources as slacktide.io/v1alpha1: apply the manifests of this release"
    ]

    async def write() -> None:
        async with Connection(await load_access(plane.kubeconfig)) as connection:
            body = {
                "apiVersion": API_VERSION,
                "kind": "ServiceClass",
                "metadata": {"name": "spare"},
                "spec": {"slo": 0.25, "rank": 9},
            }
            # The first request of a connection may already be a write.
            await connection.patch(SERVICE_CLASS.path(name="spare"), encode(body), APPLY_PATCH, query=MANAGER)

    asyncio.run(write())
    assert plane.api.get(f"{OLD}/serviceclasses/spare")["spec"]["slo"] == 0.25
    plane.api.delete(f"{OLD}/serviceclasses/spare")
    shown = run(plane, "top", "--once")
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith("5 workloads: ")


def test_with_the_new_definitions_all_of_it_is_there_in_both_versions(plane: ControlPlane) -> None:
    """What is applied here stays for the tests below."""
    plane.install()
    same_as_recorded(plane)
    window = {"spec": {"window": {"rolling": "30d"}, "disruptions": {"max": 2, "per": "1h"}}}
    plane.api.patch(f"{NEW}/serviceclasses/gold", window, MERGE_PATCH)
    # A client of before changes something else, by replacing what it has read.
    old = plane.api.get(f"{OLD}/serviceclasses/gold")
    old["spec"]["marginSeconds"] = 5
    plane.api.put(f"{OLD}/serviceclasses/gold", old)
    spec = plane.api.get(f"{NEW}/serviceclasses/gold")["spec"]
    whole = {"rolling": "30d", "budget": "whole"}  # the default, which the API server writes out
    assert (spec["window"], spec["disruptions"]) == (whole, window["spec"]["disruptions"])
    assert spec["marginSeconds"] == 5


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane) -> Iterator[Running]:
    """This release, going on from what is there; on room for all."""
    plane.create_nodes(3, cpu="4")
    found = Running(plane)
    found.wait_until_leading()
    yield found
    found.stop()


def ledger(plane: ControlPlane, name: str) -> Json:
    return dict(plane.api.get(f"{LEDGERS}/{name}"))


def written_by(plane: ControlPlane, name: str, before: Json) -> Json:
    """Wait until a ledger is written again."""

    def found() -> Json | None:
        one = ledger(plane, name)
        return one if one["status"]["accumulators"]["at"] > before["status"]["accumulators"]["at"] else None

    return dict(until(found, f"ledger {name} is written", 120))


def test_ledgers_of_the_former_release_are_gone_on_from(plane: ControlPlane, scheduler: Running) -> None:
    until(lambda: len(pods(plane.api, "default", "Running")) >= 12, "all pods run", 120)
    assert "cannot be read" not in scheduler.log
    for name, former in recorded("Availability").items():
        now = written_by(plane, name, former)
        sums, were = (one["status"]["accumulators"]["sums"] for one in (now, former))
        assert now["status"]["preemptions"] == former["status"]["preemptions"]
        if now["status"]["accumulators"]["approach"] != "independent":
            assert sums["lifetime"] > were["lifetime"] > 0
        (owned,) = (one for one in now["metadata"]["managedFields"] if one["manager"] == "slacktide")
        assert owned["fieldsV1"]["f:status"] == {}, "one who owns all of it, not each number"
    # What independent instances had is in their records.
    lifetimes = [
        float(read(one["status"]["accumulators"]).records["lifetime"].min())
        for one in (recorded("Availability")["deployment-alone"], ledger(plane, "deployment-alone"))
    ]
    assert lifetimes[1] > lifetimes[0] > 60


def test_a_ledger_of_a_later_release_is_not_written_and_its_workload_is_scheduled(
    plane: ControlPlane, scheduler: Running
) -> None:
    scheduler.stop()
    books = {"version": VERSION + 1, "novelty": {"kept": 1}}
    plane.api.patch(f"{LEDGERS}/deployment-mean", {"status": {"accumulators": books}}, MERGE_PATCH)
    before = ledger(plane, "deployment-mean")
    scheduler.restart()
    # Something happens to it, and to another afterwards, whose ledger is written.
    (victim, *_) = [one["metadata"]["name"] for one in mean(plane)]
    plane.api.delete(f"/api/v1/namespaces/default/pods/{victim}")
    until(lambda: victim not in [one["metadata"]["name"] for one in mean(plane)] and len(mean(plane)) == 3, "a new pod")
    labels = {"slacktide.io/class": "bronze"}
    plane.api.post("/api/v1/namespaces/default/pods", pod("later", labels=labels, schedulerName="slacktide"))
    until(lambda: "pod-later" in names(plane) and ledger(plane, "pod-later")["status"]["running"] == 1, "its ledger")
    assert ledger(plane, "deployment-mean") == before
    said = [line for line in scheduler.log.splitlines() if "left alone" in line]
    assert len(said) == 1
    assert "ledger default/deployment-mean is left alone" in said[0]
    with urlopen(f"http://127.0.0.1:{scheduler.port}/metrics", timeout=30) as answer:
        metrics = answer.read().decode()
    assert re.search(r"^slacktide_ledgers_left_alone 1\.0$", metrics, re.MULTILINE)
    shown = run(plane, "top", "--once").output
    assert "1 ledger is of a later release, and shown as written: default/deployment-mean" in shown


def mean(plane: ControlPlane) -> list[Json]:
    """Pods of the Deployment that run."""
    return [one for one in pods(plane.api, "default", "Running") if one["metadata"]["name"].startswith("mean-")]


def names(plane: ControlPlane) -> list[str]:
    return [one["metadata"]["name"] for one in plane.api.get(LEDGERS)["items"]]


def test_a_pod_without_a_known_class_is_listed(plane: ControlPlane, scheduler: Running) -> None:
    body = web("alone")
    body["metadata"]["name"] = "odd"
    body["spec"]["template"]["metadata"]["labels"]["slacktide.io/class"] = "platinum"
    path = "/apis/apps/v1/namespaces/default/deployments"
    plane.api.post(path, body)
    try:
        sentence = "3 pods wait without a class: service class 'platinum': does not exist (default/odd-"
        shown = until(
            lambda: sentence in (text := run(plane, "top", "--once", "--wide").output) and text, "it is listed"
        )
        row = next(line.split() for line in shown.splitlines() if " deployment-odd " in line)
        assert row == ["default", "deployment-odd", "platinum", *"---", "Unknown", *"--", "0", "3", "0", *"---"]
        with urlopen(f"http://127.0.0.1:{scheduler.port}/metrics", timeout=30) as answer:
            assert re.search(r"^slacktide_pods_without_class 3\.0$", answer.read().decode(), re.MULTILINE)
    finally:
        plane.api.delete(f"{path}/odd?propagationPolicy=Background")
    until(lambda: "without a class" not in run(plane, "top", "--once", "--wide").output, "it is gone")


def test_ledgers_move_to_workloads_of_the_same_name(plane: ControlPlane, scheduler: Running, tmp_path: Path) -> None:
    file = exported(plane, tmp_path / "ledgers.json")
    kept = {one["name"]: one for one in json.loads(file.read_text())["ledgers"]}
    assert {"alone", "mean", "both", "front", "digest"} <= set(kept)
    assert kept["mean"]["status"]["accumulators"]["version"] == VERSION + 1
    broken = run(plane, "ledger", "import", file)
    assert isinstance(broken.exception, InputError), "the one of a later release is that release's"
    line = next(i for i, text in enumerate(file.read_text().splitlines(), 1) if '"mean"' in text)
    assert f"{file}:{line}: ledgers[" in str(broken.exception)
    assert f"accumulators.version: found '{VERSION + 1}', expected at most {VERSION}" in str(broken.exception)
    of_this_release(file)
    led = run(plane, "ledger", "import", file)
    assert isinstance(led.exception, ConfigError)
    assert "lease slacktide-system/slacktide: found held by " in str(led.exception)
    scheduler.stop()

    counting = run(plane, "ledger", "import", file)
    assert counting.output.startswith(f"0 of {len(kept) - 1} ledgers written\n")
    assert "as they count already" in counting.output
    # The cluster is restored: the same names, other UIDs, and no ledger. One workload is not there yet.
    path, lost = "/apis/apps/v1/namespaces/default/deployments", {"both", "alone", "front"}
    for name in lost:
        plane.api.delete(f"{path}/{name}?propagationPolicy=Foreground")
    until(lambda: not lost & {one["metadata"]["name"] for one in plane.api.get(path)["items"]}, "they are gone")
    until(lambda: not {f"deployment-{name}" for name in lost} & set(names(plane)), "and so are their ledgers")
    for name in ("both", "alone"):
        plane.api.post(path, web(name))
    result = run(plane, "ledger", "import", file)
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"2 of {len(kept) - 1} ledgers written\n")
    assert "1 not, as there is no such workload: Deployment default/front" in result.output
    found = {name: ledger(plane, f"deployment-{name}") for name in ("both", "alone")}
    for name, one in found.items():
        uid = plane.api.get(f"/apis/apps/v1/namespaces/default/deployments/{name}")["metadata"]["uid"]
        assert one["status"]["target"]["uid"] == uid
        assert one["status"]["accumulators"]["at"] > kept[name]["status"]["accumulators"]["at"]
        same = {**one["status"]["accumulators"], "at": None}
        assert same == {**kept[name]["status"]["accumulators"], "at": None}
    scheduler.restart()
    until(
        lambda: len([one for one in pods(plane.api, "default", "Running") if "both-" in one["metadata"]["name"]]) == 2
    )
    both = written_by(plane, "deployment-both", found["both"])
    lived = [one["status"]["accumulators"]["sums"]["lifetime"] for one in (both, found["both"])]
    assert lived[0] > lived[1] > 100, "it goes on from what was imported"


def exported(plane: ControlPlane, file: Path) -> Path:
    result = run(plane, "ledger", "export", "-A", "--out", file)
    assert result.exit_code == 0, result.output
    assert [one.name for one in file.parent.iterdir()] == [file.name]
    assert json.loads(run(plane, "ledger", "export", "-n", "kube-system").stdout)["ledgers"] == []
    return file


def of_this_release(file: Path) -> None:
    """Take out what another release must import."""
    content = json.loads(file.read_text())
    content["ledgers"] = [one for one in content["ledgers"] if one["name"] != "mean"]
    file.write_text(json.dumps(content))


def test_a_ledger_that_counts_is_written_over_only_if_wanted(
    plane: ControlPlane, scheduler: Running, tmp_path: Path
) -> None:
    file = exported(plane, tmp_path / "ledgers.json")
    of_this_release(file)
    scheduler.stop()
    before = ledger(plane, "deployment-alone")
    assert run(plane, "ledger", "import", file).output.startswith("0 of ")
    assert ledger(plane, "deployment-alone") == before
    result = run(plane, "ledger", "import", file, "--replace")
    total = len(json.loads(file.read_text())["ledgers"])
    assert result.output == f"{total} of {total} ledgers written\n"
    assert ledger(plane, "deployment-alone")["status"]["accumulators"]["at"] > before["status"]["accumulators"]["at"]
    scheduler.restart()
