"""What happens in every cluster one day: no custom resources yet, an operator's own Job, an API server that does not
know our rights, a restart with ``--record``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from cluster.auditor import Auditor
from cluster.installation import ACCOUNT, MANIFESTS
from cluster.kubectl import Json, Kubectl
from cluster.labtools import HANG_SECONDS, deployment, pod, until
from cluster.running import (
    CLASSES,
    Cast,
    Place,
    Running,
    Stage,
    audit_log,
    nothing_wrong,
    prepared,
    scene,
    service_class,
)
from slacktide.engine.journal.replay import replay
from slacktide.lab import ApiError, Binaries, ControlPlane
from slacktide.lab.manifests import apply_files

CLASS = "slacktide.io/class"
GROUP = "training.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ALPHA = 1.0


def answer(port: int, path: str) -> tuple[int, str]:
    """Status and text."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=HANG_SECONDS) as found:
            return found.status, found.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def refused(plane: ControlPlane, *words: str) -> str:
    """What a command says that fails."""
    command = [sys.executable, "-m", "slacktide", *words, f"--kubeconfig={plane.kubeconfig}"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_SECONDS)
    assert ended.returncode, ended.stdout
    return ended.stderr


@dataclass
class Everyday(Stage):
    """A stage whose scheduler began before there were custom resources, and records."""

    record: Path
    before: tuple[str, tuple[int, str], list[str]]
    """What it had said by then, its readiness, and what commands said."""


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyday]:
    directory = tmp_path_factory.mktemp("everyday")
    plane = prepared(binaries, directory, install=False)
    try:
        apply_files(plane.api, [MANIFESTS / "10-namespace.yaml", MANIFESTS / "20-rbac.yaml"])
        scheduler = Running(plane, f"--record={directory / 'record'}", qos__alpha=ALPHA, scheduler__watchdog=15)
        until(lambda: "serviceclasses.slacktide.io" in scheduler.log, "it says what is missing")
        commands = [refused(plane, "top", "--once"), refused(plane, "ledger", "export", "--out=ledgers.json")]
        before = scheduler.log, answer(scheduler.port, "/readyz"), commands
        plane.install()
        for one in (
            service_class("silver", 0.9, 2, marginSeconds=1),
            service_class("gold", 0.999, 1),
            service_class("low", 0.05, 3, marginSeconds=0.5, overheadLimit=1.0),
        ):
            plane.api.post(CLASSES, one)
        plane.api.post(DEFINITIONS, definition())
        auditor = Auditor(plane.url, plane.token, plane.ca_file, audit_log(directory))
        auditor.start()
        scheduler.wait_until_leading()
        until(lambda: answer(scheduler.port, "/readyz")[0] == 200, "it is ready")
        kubectl = Kubectl(binaries["kubectl"], plane.kubeconfig)
        yield Everyday(plane, kubectl, scheduler, auditor, directory / "record", before)
        scheduler.stop()
    finally:
        plane.kill()


def definition() -> Json:
    """Jobs of another group."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Job", "plural": "jobs", "singular": "job"}
    spec = {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"jobs.{GROUP}"}, "spec": spec}  # fmt: skip


def web(service: str, name: str = "web") -> Json:
    return deployment(name, 1, labels={CLASS: service})


def running(place: Place, name: str, count: int = 1) -> Json:
    return place.status(name, lambda s: (s["running"], s["waiting"]) == (count, 0), f"{count} running")


# -- scenes ------------------------------------------------------------------------------------------------------------


def test_without_its_custom_resources_it_says_what_to_apply_and_is_not_ready(stage: Everyday) -> None:
    said, (status, text), commands = stage.before
    wanted = "no serviceclasses.slacktide.io and no availabilities.slacktide.io"
    assert said.count(wanted) == 1
    assert "kubectl apply -f src/slacktide/kube/manifests (00-serviceclasses.yaml, 01-availabilities.yaml)" in said
    assert status == 503
    assert wanted in text
    for one in commands:
        assert wanted in one
        assert "Traceback" not in one
    assert "leading as" not in said
    assert "the custom resource definitions are installed now" in stage.scheduler.log


@scene
def test_jobs_of_two_groups_have_a_ledger_each(place: Place) -> None:
    place.nodes(1)
    body = pod("train", labels={CLASS: "silver"})
    template = {"metadata": body["metadata"] | {"name": None}, "spec": body["spec"] | {"restartPolicy": "Never"}}
    place.create("jobs", {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
                          "spec": {"template": template}})  # fmt: skip
    custom(place, "train", "piece", "gold")
    batch, other = running(place, "job-train"), running(place, f"job.{GROUP}-train")
    assert (batch["class"], batch["target"]["apiVersion"]) == ("silver", "batch/v1")
    assert (other["class"], other["target"]["apiVersion"]) == ("gold", f"{GROUP}/v1")
    assert batch["target"]["uid"] != other["target"]["uid"]


def custom(place: Place, name: str, piece: str, service: str) -> None:
    """A Job of another group, and its pod."""
    body: Json = {"apiVersion": f"{GROUP}/v1", "kind": "Job", "metadata": {"name": name}}
    made = until(lambda: _posted(place, body), "the API server serves the definition")
    owner = {"apiVersion": f"{GROUP}/v1", "kind": "Job", "name": name, "uid": made["metadata"]["uid"]}
    one = pod(piece, labels={CLASS: service})
    one["metadata"]["ownerReferences"] = [owner | {"controller": True}]
    place.create("pods", one)


def _posted(place: Place, body: Json) -> Any:
    try:
        return place.api.post(f"/apis/{GROUP}/v1/namespaces/{place.namespace}/jobs", body)
    except ApiError as error:
        if error.status != 404:
            raise
        return None


# -- one after the other, as all scenes would feel them ----------------------------------------------------------------


def test_an_api_server_that_does_not_know_our_rights_yet(stage: Everyday, cast: Cast) -> None:
    """What could not be written is written later, and nothing is taken as refused."""
    cast.over()
    place, log = Place(stage, "rights"), stage.scheduler
    place.nodes(1, cpu="2", pods=110)
    place.create("pods", pod("low", cpu="1500m", labels={CLASS: "low"}))
    place.ready("low")
    rights = place.api.get(f"{BINDINGS}/slacktide-scheduler")
    place.api.delete(f"{BINDINGS}/slacktide-scheduler")
    who = f"--as=system:serviceaccount:{ACCOUNT[0]}:{ACCOUNT[1]}"
    until(lambda: place.kubectl("auth", "can-i", "create", "pods/binding", who).code, "its rights are gone")
    labels = {CLASS: "gold"}
    place.create("pods", pod("small", cpu="200m", labels=labels))
    place.create("pods", pod("high", cpu="1500m", labels=labels))
    place.create("pods", pod("huge", cpu="64", labels=labels))
    until(lambda: {"binding", "status"} <= forbidden(place), "bindings and conditions are answered 403")
    place.api.post(BINDINGS, {"metadata": {"name": "slacktide-scheduler"}} | {
        key: rights[key] for key in ("roleRef", "subjects")
    })  # fmt: skip
    place.bound("small")
    place.bound("high")
    place.waits("huge", "Insufficient cpu")
    assert "goes back to the queue" not in log.log
    assert "is not evicted" not in log.log
    until(lambda: place.auditor.events(place.namespace, "Preempted", "low"), "an event says so")


def forbidden(place: Place) -> set[str]:
    """Of which subresources of pods writes in a scene were answered 403."""
    acts = [act for act in place.auditor.acts() if act["objectRef"].get("namespace") == place.namespace]
    return {act["objectRef"].get("subresource", "") for act in acts if act["responseStatus"]["code"] == 403}


def test_a_restart_with_a_record(stage: Everyday, cast: Cast) -> None:
    """Pods of ours that are there are found and recorded, ledgers go on, and a promise holds whose class is gone."""
    cast.over()
    place = Place(stage, "restart")
    place.nodes(1)
    place.api.post(CLASSES, service_class("passing", 0.4, 2))
    place.heard()
    place.create("deployments", web("passing"))
    custom(place, "solo", "piece", "silver")
    (old,) = place.ready("web")
    running(place, "deployment-web")
    before = running(place, f"job.{GROUP}-solo")
    place.api.delete(f"{CLASSES}/passing")
    place.status("deployment-web", lambda s: "keeps its promise" in s.get("message", ""), "it says so")
    stage.scheduler.kill()
    stage.scheduler.restart()
    after = place.status(f"job.{GROUP}-solo", lambda s: s["running"] == 1, "its ledger goes on")
    assert after["goodSeconds"] >= before["goodSeconds"]
    place.delete("pods", old["metadata"]["name"])
    until(lambda: place.get("pods", old["metadata"]["name"]) is None, "the old pod is gone")
    place.ready("web")
    status = running(place, "deployment-web")
    assert (status["class"], status["promised"]) == ("passing", 0.4)
    found = replay(stage.record)
    assert (found.sessions, found.equal) == (2, True)
    assert found.decisions > 0


def test_nothing_was_wrong(cast: Cast) -> None:
    nothing_wrong(cast)
