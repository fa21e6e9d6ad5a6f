"""What an agent can be told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PORT = 10360
HTTP_PORT = 10361


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of an agent; times in seconds.

    ``interval`` passes between two probes of a peer, ``timeout`` until one counts as lost; after ``silent`` without an
    answer a peer's mean is not told any more. Up to ``full_mesh`` peers are all measured; of more a sample of
    ``sample``, ``near`` of them the nearest, of which one is exchanged every ``rotate``. ``skew`` is how far another
    node's clock may be off. A row is written at most every ``at_least_apart`` on a change of ``change_share`` and
    ``change_seconds``, else every ``heartbeat``; it is stale ``stale_after`` its latest measurement.
    """

    interval: float = 5.0
    timeout: float = 2.0
    silent: float = 60.0
    full_mesh: int = 100
    sample: int = 32
    near: int = 8
    rotate: float = 300.0
    seed: int | None = None
    skew: float = 60.0
    change_share: float = 0.1
    change_seconds: float = 0.001
    change_lost: float = 0.1
    at_least_apart: float = 30.0
    heartbeat: float = 300.0
    stale_after: float = 900.0


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Who and where an agent is: the name of its node, where it takes probes (``host:port``), serves HTTP (empty: not),
    and at which address others reach it (empty: the node's InternalIP).
    """

    node: str
    bind: str = f"[::]:{PORT}"
    listen: str = f"127.0.0.1:{HTTP_PORT}"
    advertise: str = ""
    key_file: Path | None = None
