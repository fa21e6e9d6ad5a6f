"""``slacktide netprobe`` says what is wrong with its words."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from slacktide.cli import main

KEY = "k" * 40


def failed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code and message."""
    code = main(["netprobe", "run", "--node", "n1", *words])
    return code, capsys.readouterr().err


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACKTIDE_NETPROBE_KEY", KEY)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--peer", "n2"], "--peer: found 'n2', expected NAME=HOST:PORT"),
        (["--peer", "n2=h:1", "--peer", "n2=h:2"], "found 'n2' twice"),
        (["--peer", "n2=h:1", "--bind", "nonsense"], "--bind: found 'nonsense', expected HOST:PORT"),
        (["--peer", "n2=h:1", "--bind", "nonsense:1"], "expected an IP address of this machine"),
        (["--peer", "n2=h:1", "--advertise", "10.0.0.1"], "--advertise: found '10.0.0.1', expected HOST:PORT"),
        (["--peer", "n2=h:1", "--kubeconfig", "k"], "take the place of a cluster"),
        (["--peer", "n2=h:1", "--timeout", "100"], "--timeout must be below --silent"),
        (["--peer", "n2=h:1", "--heartbeat", "1000"], "--heartbeat below --stale-after"),
        (["--peer", "n2=h:1", "--interval", "0"], "--interval"),
        (["--peer", "n2=h:1", "--full-mesh", "2000"], "--full-mesh"),
        (["--peer", "n2=h:1", "--key-file", "/nonexistent"], "/nonexistent: cannot be read"),
    ],
)
def test_wrong_words_are_named(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    code, error = failed(capsys, *words)
    assert code == 2
    assert says in " ".join(error.split())


def test_a_broken_file_of_peers_is_an_input_that_cannot_be_used(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "peers").write_text("n2=10.0.0.2:10360\nn3=10.0.0.3\n")
    code, error = failed(capsys, "--peers", str(tmp_path / "peers"))
    assert code == 3
    assert "peers:2: found 'n3=10.0.0.3', expected NAME=HOST:PORT" in error


@pytest.mark.parametrize(("option", "kind"), [("--bind", socket.SOCK_DGRAM), ("--listen", socket.SOCK_STREAM)])
def test_a_taken_port_is_named(capsys: pytest.CaptureFixture[str], option: str, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_INET, kind) as taken:
        taken.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            taken.listen()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            free = probe.getsockname()[1]
        place = {"--bind": f"127.0.0.1:{free}", "--listen": "", option: f"127.0.0.1:{taken.getsockname()[1]}"}
        words = [word for pair in place.items() for word in pair]
        code, error = failed(capsys, "--peer", "n2=127.0.0.1:9", *words)
    assert code == 2
    assert option in error
    assert "in use" in error
