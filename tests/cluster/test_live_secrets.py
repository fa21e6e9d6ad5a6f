"""What the scheduler keeps to itself, whom it trusts, and where it listens."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.disturbing import BRONZE, Disturbance, brief, three_classes
from cluster.installation import ACCOUNT
from cluster.labtools import NUMBERS, pod, until
from cluster.running import LEADS_SECONDS, prepared
from slacktide.lab import Api, ApiError, Binaries, ControlPlane
from slacktide.lab.processes import Component

NAMESPACE = "secrets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
MOVED = """
import pathlib, sys
from slacktide.kube.client import credentials
credentials.SERVICE_ACCOUNT = pathlib.Path(sys.argv.pop(1))
credentials.FILE_CHECK_SECONDS = 1.0
from slacktide.cli import main
sys.exit(main())
"""
"""The scheduler in a pod whose service account is mounted elsewhere."""


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    found = prepared(binaries, tmp_path_factory.mktemp("secrets"))
    try:
        three_classes(found.api)
        found.create_nodes(2, cpu="4")
        found.api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        yield found
    finally:
        found.kill()


def secret_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])


def without_authority(plane: ControlPlane, path: Path, **settings: Any) -> Path:
    """The scheduler's kubeconfig without what verifies this API server."""
    config = yaml.safe_load(plane.service_account_kubeconfig(*ACCOUNT).read_text())
    cluster = config["clusters"][0]["cluster"]
    del cluster["certificate-authority-data"]
    cluster.update(settings)
    path.write_text(yaml.safe_dump(config))
    return path


def is_bound(plane: ControlPlane, name: str) -> bool:
    return any(one["metadata"]["name"] == name and one["spec"].get("nodeName") for one in plane.api.get(PODS)["items"])


def create(plane: ControlPlane, name: str) -> None:
    plane.api.post(PODS, pod(name, **brief(BRONZE)))


def works(plane: ControlPlane, name: str) -> None:
    """A new pod is bound."""
    create(plane, name)
    until(lambda: is_bound(plane, name), f"pod {name} is bound")


def parts_of(token: str) -> list[str]:
    """The token, and pieces of it of which one alone would give it away."""
    _, payload, signature = token.split(".")
    return [token, payload, signature, signature[:16], signature[-16:], payload[-40:]]


def started(plane: ControlPlane, kubeconfig: Path, name: str, *words: str, **environment: str) -> Component:
    """The scheduler with a kubeconfig of the test's own."""
    sets = ["--set=kube.leader_election=false", *([] if "kube.listen" in str(words) else ["--set=kube.listen="])]
    command = [sys.executable, "-m", "slacktide", "run", f"--kubeconfig={kubeconfig}", *sets, *words]
    return plane.add(name, command, {**_paths(), **environment})


def _paths() -> dict[str, str]:
    return {key: os.environ[key] for key in ("PYTHONPATH", "SLACKTIDE_CACHE") if key in os.environ}


def log_of(component: Component) -> str:
    return component.log.read_text(errors="replace")


def test_tokens_are_in_no_log_whatever_goes_wrong(plane: ControlPlane, tmp_path: Path) -> None:
    account = plane.service_account_kubeconfig(*ACCOUNT, tmp_path / "account")
    with Disturbance(account) as disturbance:
        way = disturbance.proxy.kubeconfig(tmp_path / "way")
        token = secret_of(way)
        record = tmp_path / "record"
        debug = {"PYTHONASYNCIODEBUG": "1", "SLACKTIDE_TRACEBACK": "1", "AIOHTTP_NO_EXTENSIONS": "1"}
        scheduler = started(plane, way, "debug", "--verbose", f"--record={record}", **debug)
        until(lambda: "leading as" in log_of(scheduler) or not scheduler.running, "it leads", LEADS_SECONDS)
        assert listening(scheduler.pid) == set(), "told to listen nowhere, it does not"
        faults: list[dict[str, Any]] = [{"status": status} for status in (401, 403, 429, 500)]
        faults += [{"reset": True}, {"lose_answer": True}, {"halve_answer": True}]
        for number, fault in enumerate(faults):
            disturbance.add(chance=0.5, **fault)
            disturbance.cut_watches()
            create(plane, f"fault-{number}")
            time.sleep(1)
            disturbance.heal()
        disturbance.outage(1)
        works(plane, "after")
        assert scheduler.running
        scheduler.signal(signal.SIGABRT)  # the last words of a crash
        until(lambda: not scheduler.running, "it ended")
    written = [log_of(scheduler)] + [one.read_bytes().decode("latin-1") for one in record.rglob("*") if one.is_file()]
    assert len(written) > 1
    assert len(log_of(scheduler).splitlines()) > 30
    told = json.dumps(plane.api.get("/api/v1/events")["items"]) + json.dumps(plane.api.get(PODS)["items"])
    for piece in parts_of(token):
        assert all(piece not in text for text in (*written, told))
    assert "Bearer" not in log_of(scheduler)


def test_an_unknown_authority_is_refused_and_an_unchecked_one_warned_of(plane: ControlPlane, tmp_path: Path) -> None:
    path = without_authority(plane, tmp_path / "kubeconfig")
    scheduler = started(plane, path, "wrong-authority")
    until(lambda: "CERTIFICATE_VERIFY_FAILED" in log_of(scheduler) or not scheduler.running, "it says what is wrong")
    until(lambda: plane.url.removeprefix("https://") in log_of(scheduler), "it says where")
    time.sleep(1)
    assert "leading as" not in log_of(scheduler)
    assert secret_of(path) not in log_of(scheduler)
    scheduler.stop()
    path = without_authority(plane, tmp_path / "unchecked", **{"insecure-skip-tls-verify": True})
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    scheduler = started(plane, path, "insecure", f"--set=kube.listen=0.0.0.0:{port}")
    until(lambda: "leading as" in log_of(scheduler), "it leads", LEADS_SECONDS)
    assert listening(scheduler.pid) == {(ANYWHERE, port)}, "at that address, and no other"
    warnings = [line for line in log_of(scheduler).splitlines() if " W " in line]
    assert any("insecure-skip-tls-verify" in line and "not checked" in line for line in warnings)
    works(plane, "unchecked")
    scheduler.stop()


def listening(pid: int) -> set[tuple[str, int]]:
    """Addresses, in hexadecimal as the kernel shows them, and ports at which a process takes connections or packets."""
    own = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(os.readlink(entry))
        except FileNotFoundError:
            continue
    found = set()
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and f"socket:[{fields[9]}]" in own:
                address, _, port = fields[1].partition(":")
                found.add((address, int(port, 16)))
    return found


ANYWHERE = "00000000"


def bound_token(plane: ControlPlane, secret: str) -> str:
    """A token that is void as soon as a Secret is deleted."""
    path = f"/api/v1/namespaces/{ACCOUNT[0]}/secrets"
    made = plane.api.post(path, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}})
    reference = {"apiVersion": "v1", "kind": "Secret", "name": secret, "uid": made["metadata"]["uid"]}
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 3600, "boundObjectRef": reference},
    }
    account = f"/api/v1/namespaces/{ACCOUNT[0]}/serviceaccounts/{ACCOUNT[1]}/token"
    return str(plane.api.post(account, request)["status"]["token"])


def is_void(plane: ControlPlane, token: str) -> bool:
    """Whether the API server takes a token no more."""
    guest = Api(plane.url, token, plane.ca_file)
    try:
        guest.get(PODS)
    except ApiError as error:
        return error.status == HTTPStatus.UNAUTHORIZED
    finally:
        guest.close()
    return False


def test_in_a_pod_a_renewed_token_is_taken_up(plane: ControlPlane, tmp_path: Path) -> None:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(plane.ca_file.read_bytes())
    (folder / "namespace").write_text(ACCOUNT[0])
    first = bound_token(plane, "first")
    (folder / "token").write_text(first)
    host, _, port = plane.url.removeprefix("https://").partition(":")
    environment = {**_paths(), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    settings = ("--set=kube.leader_election=false", "--set=kube.listen=")
    command = [sys.executable, "-c", MOVED, str(folder), "run", *settings]
    scheduler = plane.add("in-a-pod", command, environment)
    until(lambda: "leading as" in log_of(scheduler), "it leads", LEADS_SECONDS)
    works(plane, "first")
    second = folder / "next"
    second.write_text(bound_token(plane, "second"))
    second.rename(folder / "token")  # as the kubelet does
    plane.api.delete(f"/api/v1/namespaces/{ACCOUNT[0]}/secrets/first")
    until(lambda: is_void(plane, first), "the API server does not remember any more that the token was good")
    works(plane, "second")
    assert "Unauthorized" not in log_of(scheduler)
    (folder / "token").unlink()

    def has_looked() -> bool:
        """It looks for another at requests, but not at each."""
        works(plane, f"third-{next(NUMBERS)}")
        return "the last token stays in use" in log_of(scheduler)

    until(has_looked, "it looked for another")
    works(plane, "last")
    scheduler.stop()
