"""What all who act and publish during a leader's session have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slacktide.config import KubeSettings
from slacktide.kube.client.http import Connection
from slacktide.kube.client.turns import Gate
from slacktide.kube.feed.feed import Feed
from slacktide.kube.publish.events import EventRecorder


@dataclass(frozen=True)
class SessionContext:
    """A session's connection, feed and clock; ``leading`` is asked before every act, and only while ``gate`` is open
    may the engine be told or asked about what a pass changes."""

    connection: Connection
    settings: KubeSettings
    feed: Feed
    recorder: EventRecorder
    clock: Callable[[], float]
    leading: Callable[[], bool]
    gate: Gate
