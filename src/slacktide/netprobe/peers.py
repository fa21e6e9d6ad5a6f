"""Other agents: their names and addresses, from the command line, a file or the rows of a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from slacktide.errors import ConfigError, InputError, Problem, fail
from slacktide.kube.client.addresses import split_address

EXPECTED = "NAME=HOST:PORT, such as n1=10.0.0.1:10360 or n1=[fd00::1]:10360"


@dataclass(frozen=True, slots=True)
class Peer:
    """An agent by its node's name, and where it takes probes: the first address of a usable family counts."""

    name: str
    addresses: tuple[tuple[str, int], ...]


def parse_peer(word: str) -> Peer:
    """A peer of the form ``NAME=HOST:PORT``. Raises ``ValueError``."""
    name, equals, address = word.partition("=")
    if not equals or not name.strip():
        raise ValueError(f"found {word!r}, expected {EXPECTED}")
    return Peer(name.strip(), (split_address(address.strip()),))


def peers_of(words: Iterable[str], file: Path | None) -> tuple[Peer, ...]:
    """Peers of ``--peer`` options and of a file with one a line (``#`` begins a comment).

    Raises :class:`ConfigError` and :class:`InputError`, also for a name that stands twice.
    """
    found: dict[str, Peer] = {}
    for word in words:
        try:
            peer = parse_peer(word)
        except ValueError as error:
            raise ConfigError(f"--peer: {error}") from None
        if peer.name in found:
            raise ConfigError(f"--peer: found {peer.name!r} twice, expected each name once")
        found[peer.name] = peer
    if file is not None:
        for peer in _in_file(file):
            if peer.name in found:
                raise ConfigError(f"--peer: {peer.name!r} stands in {file} too, expected each name once")
            found[peer.name] = peer
    return tuple(found.values())


def _in_file(file: Path) -> list[Peer]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "text that is not UTF-8"
        raise fail(file, "a file with one peer a line", value=str(said)) from None
    found: dict[str, Peer] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        word = line.partition("#")[0].strip()
        if not word:
            continue
        try:
            peer = parse_peer(word)
        except ValueError:
            problems.append(Problem(str(file), number, "", word, EXPECTED))
            continue
        if peer.name in found:
            problems.append(Problem(str(file), number, "", peer.name, "each name once"))
        found[peer.name] = peer
    if problems:
        raise InputError(problems)
    return list(found.values())
