"""Kubeconfigs, exec plugins and service accounts, read from real files and programs."""

import asyncio
import base64
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from slacktide.errors import ConfigError
from slacktide.kube.client.credentials import Access, load_access
from slacktide.lab import ControlPlane

SECRET = "abcdefghijklmnopqrstuvwxyz-0123456789-secret"


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


def credential(status: dict[str, str]) -> str:
    found = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    return f"print({json.dumps(json.dumps(found))})"


def header(path: Path, context: str | None = None) -> str | None:
    return asyncio.run(load_access(path, context)).credentials.header()


def test_tokens_names_and_nobody(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file\n")
    assert header(written(tmp_path / "a", {"token": "inline"})) == "Bearer inline"
    assert header(written(tmp_path / "b", {"tokenFile": "token"})) == "Bearer from-file"
    basic = base64.b64encode(b"me:pass").decode()
    assert header(written(tmp_path / "c", {"username": "me", "password": "pass"})) == f"Basic {basic}"
    assert header(written(tmp_path / "d")) is None


def test_a_context_is_chosen_by_name(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a",
        contexts=[
            {"name": "one", "context": {"cluster": "one", "user": "one"}},
            {"name": "two", "context": {"cluster": "one", "user": "other"}},
        ],
        users=[{"name": "one", "user": {"token": "first"}}, {"name": "other", "user": {"token": "second"}}],
    )
    assert header(path) == "Bearer first"
    assert header(path, "two") == "Bearer second"
    with pytest.raises(ConfigError, match="context: found no 'three', expected one of one, two"):
        header(path, "three")


def test_of_several_files_the_first_that_defines_a_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = written(tmp_path / "a", {"token": "first"}, clusters=None)
    second = written(tmp_path / "b", {"token": "second"}, server="http://127.0.0.1:2")
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path / 'absent'}:{first}:{second}")
    access = asyncio.run(load_access())
    assert (access.server, access.credentials.header()) == ("http://127.0.0.1:2", "Bearer first")


def test_an_exec_plugin_gets_its_request_and_gives_a_token(tmp_path: Path) -> None:
    check = "info = json.loads(os.environ['KUBERNETES_EXEC_INFO']); assert os.environ['GIVEN'] == 'yes'\n"
    check += "assert info['kind'] == 'ExecCredential' and info['spec']['interactive'] is False\n"
    path = written(tmp_path / "a", plugin(tmp_path / "p.py", check + credential({"token": SECRET})))
    assert header(path) == f"Bearer {SECRET}"


def test_an_expired_credential_is_renewed_before_it_is_used(tmp_path: Path) -> None:
    count = tmp_path / "count"
    body = f"open({str(count)!r}, 'a').write('x')\n"
    body += credential({"token": "short-lived", "expirationTimestamp": "2001-01-01T00:00:00Z"})
    path = written(tmp_path / "a", plugin(tmp_path / "p.py", body))

    async def run() -> None:
        access = await load_access(path)
        access.credentials.valid_until = 0.0
        await access.credentials.renew(None, force=False)
        await access.credentials.renew(None, force=False)

    asyncio.run(run())
    assert count.read_text() == "xx"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("sys.exit(3)", "ended with 3"),
        (f"sys.stderr.write('denied for {SECRET}'); sys.exit(1)", "ended with 1: denied for ..."),
        (f"print('{SECRET}')", "expected an ExecCredential"),
        (credential({"clientCertificateData": SECRET}), "expected an ExecCredential"),
        (credential({"token": SECRET, "expirationTimestamp": "soon"}), "expected an ExecCredential"),
        (credential({"token": SECRET + " and more"}), "expected a token of one line"),
        (credential({}), "expected an ExecCredential"),
    ],
)
def test_a_failing_plugin_is_reported_without_what_it_printed(tmp_path: Path, body: str, expected: str) -> None:
    path = written(tmp_path / "a", plugin(tmp_path / "p.py", body))
    with pytest.raises(ConfigError, match=expected) as caught:
        header(path)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_missing_plugin_says_where_to_get_it(tmp_path: Path) -> None:
    entry = plugin(tmp_path / "p.py", "")
    entry["exec"]["command"] = "no-such-program"
    with pytest.raises(ConfigError, match=r"exec no-such-program: No such file.*Get it from your provider\."):
        header(written(tmp_path / "a", entry))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "current-context: expected the name of a context"),
        ("users: [{name: one, user: {token: " + SECRET, "expected a kubeconfig in YAML"),
        ("users: [{name: one, user: {token: [" + SECRET + "]}}]", r"Expected `str`, got `array` - at `\$.users\[0\]"),
        ("current-context: gone", "context: found no 'gone', expected one of none"),
        ("[]", "Expected `object`, got `array`"),
    ],
)
def test_a_broken_kubeconfig_is_reported_without_its_tokens(tmp_path: Path, content: str, expected: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigError, match=expected) as caught:
        header(path)
    text = "".join(traceback.format_exception(caught.value))
    assert str(path) in text
    assert SECRET not in text


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "two words"}, "expected a token of one line"),
        ({"tokenFile": "absent"}, "No such file"),
        ({"client-certificate": "absent", "client-key": "absent"}, "No such file"),
        ({"client-certificate-data": "####", "client-key-data": "####"}, "expected base64"),
        ({"client-certificate-data": "aGFsbG8="}, "expected both"),
        ({"client-certificate-data": "aGFsbG8=", "client-key-data": "aGFsbG8="}, "expected a client certificate"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider is no longer supported"),
        ({"as": "somebody"}, "impersonation is not supported"),
    ],
)
def test_users_that_cannot_be_used(tmp_path: Path, user: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        header(written(tmp_path / "a", user, server="https://127.0.0.1:1"))


def test_a_token_does_not_travel_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected https"):
        header(written(tmp_path / "a", {"token": SECRET}, server="http://cluster.example:8080"))
    assert header(written(tmp_path / "b", {"token": SECRET}, server="http://localhost:8080"))
