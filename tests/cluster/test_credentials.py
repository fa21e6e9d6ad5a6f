"""Credentials of a service account and of an exec plugin; others: ``kube/client/test_credentials.py``."""

import asyncio
import base64
from pathlib import Path

import pytest

from kube.client.test_credentials import plugin, written
from slacktide.kube.client.credentials import Access, in_cluster, load_access
from slacktide.kube.client.http import Connection
from slacktide.lab import ControlPlane


@pytest.fixture
def access(lab: ControlPlane) -> Access:
    return asyncio.run(load_access(lab.kubeconfig))


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
