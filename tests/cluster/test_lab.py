"""The lab: real programs, started, disturbed and ended."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cluster.judging import seconds
from cluster.labtools import bind, condition, deployment, job, pod, pods, pods_path, set_ready, until
from slacktide.kube.client.http import KubeError, Unreachable
from slacktide.lab import Api, ApiError, Binaries, ControlPlane, LabError
from slacktide.lab.manifests import own_manifests
from slacktide.lab.processes import born

DEFAULT = "default"

STRANGER = """\
-----BEGIN CERTIFICATE-----
MIIBfTCCASOgAwIBAgIUUsDVfuzbEKbRgK5VByTTjyuKLNUwCgYIKoZIzj0EAwIw
EzERMA8GA1UEAwwIc3RyYW5nZXIwIBcNMjYxMTIxMTQwMzMwWhgPMjEyNjEwMjgx
NDAzMzBaMBMxETAPBgNVBAMMCHN0cmFuZ2VyMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEAgVhLUhAJ3J5BmfAMu96JX1010kA3q3T8/PcEM2XOTFPrZI7KgDD/K8x
hm2ngPPndk2ytEe2ubbCjFxs6l46mqNTMFEwHQYDVR0OBBYEFIGu4T3BWb9OnY1k
7iEh9rG49v8/MB8GA1UdIwQYMBaAFIGu4T3BWb9OnY1k7iEh9rG49v8/MA8GA1Ud
EwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgO39LZPt7CSjTbuXq2a2hS0nC
JacjsweQtWulIsUsfEECIQCZXdlbLVUEqyvg/JEK7INB3ZhgcUsS/5wz52BEA0yg
aw==
-----END CERTIFICATE-----
"""
"""A certificate that nobody uses."""


def phase(api: Api, namespace: str, name: str) -> str:
    return str(api.get(f"{pods_path(namespace)}/{name}")["status"].get("phase"))


def place(lab: ControlPlane, namespace: str, *made: dict[str, Any], node: str = "node-0") -> None:
    for one in made:
        lab.api.post(pods_path(namespace), one)
        bind(lab.api, namespace, one["metadata"]["name"], node)


def gone(api: Api, namespace: str, name: str) -> bool:
    return all(one["metadata"]["name"] != name for one in pods(api, namespace))


def test_nodes_have_what_was_asked_for_and_say_whether_they_are_ready(lab: ControlPlane) -> None:
    names = lab.create_nodes(7, cpu="2500m", memory="3Gi", pods=17, labels={"disk": "fast"})
    nodes = {one["metadata"]["name"]: one for one in lab.api.get("/api/v1/nodes")["items"]}
    assert set(nodes) == set(names)
    for one in nodes.values():
        room = one["status"]["allocatable"]
        assert (room["cpu"], room["memory"], room["pods"]) == ("2500m", "3Gi", "17")
        assert condition(one, "Ready")["status"] == "True"
        assert one["metadata"]["labels"]["disk"] == "fast"
        assert one["metadata"]["labels"]["node-restriction.kubernetes.io/slacktide"] == "true"
        assert "taints" not in one["spec"]
    zones = [nodes[name]["metadata"]["labels"]["topology.kubernetes.io/zone"] for name in names]
    assert zones == ["zone-a", "zone-b", "zone-c", "zone-a", "zone-b", "zone-c", "zone-a"]

    lab.api.post("/api/v1/nodes", {"metadata": {"name": "bare"}})  # which says nothing about itself
    until(lambda: condition(lab.api.get("/api/v1/nodes/bare"), "Ready").get("status") == "True", "the node is ready")
    assert lab.api.get("/api/v1/nodes/bare")["status"]["allocatable"]["cpu"] == "4"

    def tainted() -> bool:
        taints = lab.api.get("/api/v1/nodes/node-0")["spec"].get("taints", [])
        return any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints)

    set_ready(lab.api, "node-0", False)
    until(tainted, "the node is tainted")
    set_ready(lab.api, "node-0", True)
    until(lambda: not tainted(), "the taint is gone")


def test_pods_of_controllers_are_made_and_run_where_they_are_bound(lab: ControlPlane, namespace: str) -> None:
    lab.create_nodes(2)
    paths = {kind: f"/apis/{kind}/v1/namespaces/{namespace}" for kind in ("apps", "batch")}
    lab.api.post(f"{paths['apps']}/deployments", deployment("web", 4))
    lab.api.post(f"{paths['batch']}/jobs", job("short", 1))
    made = until(lambda: len(found := pods(lab.api, namespace)) == 5 and found, "five pods")
    assert all("nodeName" not in one["spec"] for one in made)  # nobody schedules here
    for number, one in enumerate(made):
        bind(lab.api, namespace, one["metadata"]["name"], f"node-{number % 2}")
    until(lambda: lab.api.get(f"{paths['apps']}/deployments/web")["status"].get("readyReplicas") == 4, "all are ready")
    running = [one for one in pods(lab.api, namespace, "Running") if one["metadata"]["name"].startswith("web")]
    assert len({one["status"]["podIP"] for one in running}) == 4
    until(lambda: condition(lab.api.get(f"{paths['batch']}/jobs/short"), "Complete"), "the Job is complete")
    assert lab.api.get(f"{paths['batch']}/jobs/short")["status"]["succeeded"] == 1


def test_kubelets_do_what_annotations_of_pods_say(lab: ControlPlane, namespace: str) -> None:
    """How long a pod takes to start and to end, whether it fails, and whether it is taken at all."""
    lab.create_nodes(1)
    delay = 15.25  # so long that all else is over before
    ends = {"slacktide.io/run-seconds": "0", "slacktide.io/exit-code": "3"}
    brief = {"slacktide.io/shutdown-seconds": "0.5"}
    place(
        lab,
        namespace,
        pod("slow", annotations={"slacktide.io/startup-seconds": f"{delay}"}),
        pod("quick", terminationGracePeriodSeconds=60, annotations=brief),
        pod("lingers", terminationGracePeriodSeconds=4),
        pod("fails", annotations=ends, restartPolicy="Never"),
        pod("no", annotations={"slacktide.io/reject-reason": "OutOfcpu"}),
    )
    started = until(lambda: condition(lab.api.get(f"{pods_path(namespace)}/slow"), "Ready"), "the kubelet has it")
    assert started["status"] == "False"
    # A change of the pod, such as a scheduler's annotation, must not begin the delay anew.
    lab.api.patch(f"{pods_path(namespace)}/slow", {"metadata": {"annotations": {"changed": "meanwhile"}}})
    until(lambda: phase(lab.api, namespace, "fails") == phase(lab.api, namespace, "no") == "Failed", "both failed")
    fails = lab.api.get(f"{pods_path(namespace)}/fails")["status"]
    assert fails["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert lab.api.get(f"{pods_path(namespace)}/no")["status"]["reason"] == "OutOfcpu"
    until(lambda: len(pods(lab.api, namespace, "Running")) == 2, "two run")
    (quick,) = (one for one in pods(lab.api, namespace) if one["metadata"]["name"] == "quick")
    begun = time.monotonic()
    for name in ("lingers", "quick"):
        lab.api.delete(f"{pods_path(namespace)}/{name}")
    assert condition(lab.api.get(f"{pods_path(namespace)}/slow"), "Ready")["message"] == started["message"]
    until(lambda: gone(lab.api, namespace, "quick"), "the quick one is gone")
    until(lambda: gone(lab.api, namespace, "lingers"), "the other one is gone")
    assert time.monotonic() - begun >= 4 - 0.5
    until(lambda: phase(lab.api, namespace, "slow") == "Running", "the slow one runs")
    found = lab.api.get(f"{pods_path(namespace)}/slow")
    # By its own timestamps, which are whole seconds.
    took = seconds(condition(found, "Ready")["lastTransitionTime"]) - seconds(found["status"]["startTime"])
    assert took >= int(delay)
    soon = seconds(condition(quick, "Ready")["lastTransitionTime"]) - seconds(quick["status"]["startTime"])
    assert soon < took


def test_the_manifests_are_applied_without_what_only_real_kubelets_run(lab: ControlPlane) -> None:
    if not own_manifests():
        pytest.skip("no manifests")
    applied = lab.install()  # once more: applying is idempotent
    kinds = {label.split()[0] for label in applied}
    assert "CustomResourceDefinition" in kinds
    assert "Deployment" not in kinds
    served = {one["name"] for one in lab.api.get("/apis/slacktide.io/v1beta1")["resources"]}
    assert {"serviceclasses", "availabilities"} <= served


def test_a_service_account_has_a_kubeconfig_with_its_own_rights_only(lab: ControlPlane, namespace: str) -> None:
    lab.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "guest"}})
    path = lab.service_account_kubeconfig(namespace, "guest")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    guest = Api(lab.url, lab.service_account_token(namespace, "guest"), lab.ca_file)
    with pytest.raises(ApiError, match=f"system:serviceaccount:{namespace}:guest") as refused:
        guest.get("/api/v1/nodes")
    assert refused.value.status == 403


def test_an_api_server_with_another_certificate_is_not_trusted(lab: ControlPlane, tmp_path: Path) -> None:
    """A client that read half a file when the lab began is made anew."""
    stranger = tmp_path / "stranger.crt"
    stranger.write_text(STRANGER)
    plane = ControlPlane(lab.layout, {})
    plane._api = Api(lab.url, lab.token, stranger)
    with pytest.raises(Unreachable, match="certificate verify failed"):
        plane._api.get("/readyz")
    assert not plane._api_server_is_ready()
    assert plane._api_server_is_ready()
    plane.api.close()


def test_everything_listens_on_loopback_only(lab: ControlPlane) -> None:
    table = Path("/proc/net")
    if not table.exists():
        pytest.skip("needs /proc")
    sockets = {
        row.split()[9]: row.split()[1].rpartition(":")[0]
        for name in ("tcp", "tcp6")
        for row in (table / name).read_text().splitlines()[1:]
        if row.split()[3] == "0A"
    }
    heard = {}
    for component in lab.components.values():
        for entry in Path(f"/proc/{component.pid}/fd").iterdir():
            target = os.readlink(entry) if entry.is_symlink() else ""
            if target.startswith("socket:") and (inode := target[8:-1]) in sockets:
                heard[component.name, inode] = sockets[inode]
    assert {name for name, _inode in heard} >= {"etcd", "kube-apiserver"}
    assert set(heard.values()) == {"0100007F"}


def test_programs_that_end_are_started_again_and_nothing_is_lost(own_lab: ControlPlane) -> None:
    own_lab.create_nodes(3)
    place(own_lab, DEFAULT, pod("before", annotations={"slacktide.io/startup-seconds": "4"}))
    for kill in (False, True):
        old = own_lab.components["kube-apiserver"].pid
        own_lab.restart_api_server(kill=kill)
        assert born(old) is None
        assert own_lab.components["kube-apiserver"].pid != old
        assert len(own_lab.api.get("/api/v1/nodes")["items"]) == 3
    until(lambda: phase(own_lab.api, DEFAULT, "before") == "Running", "the pod from before runs")
    own_lab.restart("etcd", kill=True)
    until(lambda: _answers(own_lab), "the API server found etcd again")
    own_lab.restart("kube-controller-manager", kill=True)
    own_lab.restart_kwok()
    own_lab.api.post(f"/apis/apps/v1/namespaces/{DEFAULT}/deployments", deployment("web", 1))
    (made,) = until(lambda: waiting(own_lab), "the Deployment's pod")
    bind(own_lab.api, DEFAULT, made["metadata"]["name"], "node-2")
    until(lambda: len(pods(own_lab.api, DEFAULT, "Running")) == 2, "it runs")


def waiting(lab: ControlPlane) -> list[dict[str, Any]]:
    return [one for one in pods(lab.api, DEFAULT) if "nodeName" not in one["spec"]]


def _answers(lab: ControlPlane) -> bool:
    try:
        return bool(lab.api.get("/api/v1/nodes")["items"])
    except KubeError:
        return False


def test_kwok_that_dies_while_it_begins_and_programs_of_ones_own(own_lab: ControlPlane, tmp_path: Path) -> None:
    """The one is started again, but not for ever; the others end with the lab."""
    own_lab.create_nodes(1)
    kwok, deaths = own_lab.components["kwok"], tmp_path / "deaths"
    script = 'echo >> "$0"; [ "$(wc -l < "$0")" -gt "$1" ] || exit 2; shift; exec "$@"'
    command = list(kwok.command)
    kwok.command = ["sh", "-c", script, str(deaths), "2", *command]
    own_lab.restart_kwok()
    place(own_lab, DEFAULT, pod("after"))
    until(lambda: phase(own_lab.api, DEFAULT, "after") == "Running", "it plays kubelets again")
    kwok.command = ["sh", "-c", script, str(deaths), "9", *command]
    with pytest.raises(LabError, match="kwok ended 3 times while it began"):
        own_lab.restart_kwok()
    sleeper = own_lab.add("sleeper", [sys.executable, "-c", "print('here', flush=True); import time; time.sleep(600)"])
    until(lambda: sleeper.log_tail() == "here", "its output is in its log")
    pids = [one.pid for one in ControlPlane.attach(own_lab.directory).components.values()]
    assert sleeper.pid in pids
    ControlPlane.attach(own_lab.directory).stop()
    assert [born(pid) for pid in pids] == [None] * len(pids)


def test_a_lab_ends_when_the_process_that_started_it_is_killed(binaries: Binaries, tmp_path: Path) -> None:
    known = {name: str(path) for name, path in binaries.paths.items()}
    program = f"""
import sys, time
from pathlib import Path
from slacktide.lab import Binaries, ControlPlane
paths = {{name: Path(path) for name, path in {known!r}.items()}}
lab = ControlPlane.create(Path({str(tmp_path / "lab")!r}), Binaries(paths))
lab.start(guarded=True)
print(*(one.pid for one in lab.components.values()), flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pids = [int(pid) for pid in starter.stdout.readline().split()]
        assert len(pids) == 4
        assert all(born(pid) for pid in pids)
        starter.send_signal(signal.SIGKILL)
    until(lambda: not any(born(pid) for pid in pids), "all have ended")


def test_a_program_that_does_not_start_leaves_nothing_and_shows_its_log(binaries: Binaries, tmp_path: Path) -> None:
    lab = ControlPlane.create(tmp_path / "lab", binaries, flags={"kube-apiserver": ["--no-such-flag"]})
    with pytest.raises(LabError, match=r"(?s)kube-apiserver ended instead of starting.*no-such-flag"):
        lab.start()
    assert not any(one.running for one in lab.components.values())
    with pytest.raises(LabError, match="no lab in"):
        ControlPlane.attach(tmp_path / "lab")
