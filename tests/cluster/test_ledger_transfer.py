"""Ledgers move to workloads of the same name; what a later release wrote is left alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from cluster.kubectl import Json
from cluster.labtools import deployment, pod, pods, until
from cluster.running import Running
from slacktide.cli import app
from slacktide.engine.ledger.checkpoint import VERSION
from slacktide.errors import ConfigError, InputError
from slacktide.kube.client.http import MERGE_PATCH
from slacktide.kube.resources.objects import API_VERSION
from slacktide.lab import Binaries, ControlPlane

LEDGERS = f"/apis/{API_VERSION}/namespaces/default/availabilities"
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


def web(name: str) -> Json:
    """A Deployment as it was."""
    service, replicas = DEPLOYMENTS[name]
    body = deployment(name, replicas, cpu="500m", labels={"slacktide.io/class": service}, schedulerName="slacktide")
    body["spec"]["template"]["metadata"]["annotations"] = {"slacktide.io/approach": APPROACHES[name]}
    return body


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster with workloads, which a scheduler is to take over."""
    found = ControlPlane.create(tmp_path_factory.mktemp("ledgers") / "plane", binaries)
    try:
        found.start(guarded=True)
        found.install()
        for name, slo, rank in (("gold", 0.999, 1), ("silver", 0.95, 2), ("bronze", 0.5, 3)):
            spec = {"slo": slo, "rank": rank, "namespaces": ["*"]}
            body = {"apiVersion": API_VERSION, "kind": "ServiceClass", "metadata": {"name": name}, "spec": spec}
            found.api.post(f"/apis/{API_VERSION}/serviceclasses", body)
        for name in DEPLOYMENTS:
            found.api.post("/apis/apps/v1/namespaces/default/deployments", web(name))
        found.api.post("/apis/batch/v1/namespaces/default/jobs", JOB)
        yield found
    finally:
        found.kill()


def run(plane: ControlPlane, *words: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, words), "--kubeconfig", str(plane.kubeconfig)])


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane) -> Iterator[Running]:
    """A scheduler with room for all; once all pods run."""
    plane.create_nodes(3, cpu="4")
    found = Running(plane)
    found.wait_until_leading()
    until(lambda: len(pods(plane.api, "default", "Running")) >= 12, "all pods run", 120)
    until(lambda: {f"deployment-{name}" for name in DEPLOYMENTS} <= set(names(plane)), "all have their ledgers")
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
    for name in lost:
        plane.api.delete(f"{LEDGERS}/deployment-{name}")
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
    assert lived[0] > lived[1] > 0, "it goes on from what was imported"


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
