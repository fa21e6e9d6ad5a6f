"""Credentials of a service account and of an exec plugin; others: ``kube/client/test_credentials.py``."""

import asyncio
import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from slacktide.kube.client.credentials import Access, in_cluster, load_access
from slacktide.kube.client.http import Connection
from slacktide.lab import ControlPlane


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


def written(path: Path, user: dict[str, Any] | None = None, server: str = "http://127.0.0.1:1", **more: Any) -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        "clusters": [{"name": "one", "cluster": {"server": server}}],
        "users": [{"name": "one", "user": user or {}}],
    } | more
    path.write_text(json.dumps(config))
    return path


def plugin(path: Path, body: str) -> dict[str, Any]:
    path.write_text(f"import json, os, sys\n{body}\n")
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(path)],
            "env": [{"name": "GIVEN", "value": "yes"}],
            "interactiveMode": "Never",
            "installHint": "Get it from your provider.",
        }
    }


def test_a_pod_uses_its_service_account(tmp_path: Path, access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    host, port = access.server.removeprefix("https://").rsplit(":", 1)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    assert access.context is not None
    authority = access.context.get_ca_certs(binary_form=True)[0]
    pem = base64.encodebytes(authority).decode()
    (tmp_path / "ca.crt").write_text(f"-----BEGIN CERTIFICATE-----\n{pem}-----END CERTIFICATE-----\n")
    (tmp_path / "token").write_text((access.credentials.header() or "").removeprefix("Bearer "))

    async def run() -> bytes:
        async with Connection(in_cluster(tmp_path)) as connection:
            return await connection.get("/api/v1/namespaces/default")

    assert b'"default"' in asyncio.run(run())


def test_an_exec_plugin_is_asked_again_when_its_token_is_refused(tmp_path: Path, access: Access) -> None:
    right = (access.credentials.header() or "").removeprefix("Bearer ")
    count = tmp_path / "count"
    body = f"""
path = {str(count)!r}
n = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, 'w').write(str(n))
token = 'expired-token' if n == 1 else {right!r}
print(json.dumps({{'apiVersion': 'client.authentication.k8s.io/v1', 'status': {{'token': token}}}}))
"""
    authority = tmp_path / "ca.crt"
    assert access.context is not None
    pem = base64.encodebytes(access.context.get_ca_certs(binary_form=True)[0]).decode()
    authority.write_text(f"-----BEGIN CERTIFICATE-----\n{pem}-----END CERTIFICATE-----\n")
    path = written(
        tmp_path / "a",
        plugin(tmp_path / "p.py", body),
        clusters=[{"name": "one", "cluster": {"server": access.server, "certificate-authority": "ca.crt"}}],
    )

    async def run() -> None:
        async with Connection(await load_access(path)) as connection:
            # All are refused at first; one of them asks the plugin for all.
            await asyncio.gather(*(connection.get("/api/v1/namespaces") for _ in range(20)))

    asyncio.run(run())
    assert count.read_text() == "2"
