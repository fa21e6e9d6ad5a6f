"""Groups of pods as the API server last described them, and whether it knows any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slacktide.kube.client.kinds import Kind
from slacktide.kube.mirror.changes import Changes
from slacktide.kube.resources import pod_groups as kinds
from slacktide.kube.resources.pod_groups import CoschedulingGroup, PodGroup, Workload
from slacktide.kube.translate.pod_groups import COSCHEDULING, KUBERNETES, WORKLOADS, Groups

SOURCES: dict[str, Kind[Any]] = {
    KUBERNETES: kinds.POD_GROUP,
    WORKLOADS: kinds.WORKLOAD,
    COSCHEDULING: kinds.COSCHEDULING,
}
"""What is watched where the API server serves it."""


class PodGroupMirror:
    """Tells ``followers`` what changed."""

    def __init__(self, followers: Sequence[Changes]) -> None:
        self.known = Groups()
        self._followers = followers

    def see(self, source: str, found: PodGroup | Workload | CoschedulingGroup) -> None:
        """A group's object, new or changed."""
        self.known.see(found)
        self._tell(source, found.metadata.namespace, found.metadata.name)

    def drop(self, source: str, namespace: str, name: str) -> None:
        """A group's object is gone."""
        self.known.drop(source, namespace, name)
        self._tell(source, namespace, name)

    def listed(self, source: str) -> None:
        """All objects of a source are known."""
        self.known.listed.add(source)
        self.known.absent.discard(source)
        self._tell(source)

    def absent(self, source: str) -> None:
        """The API server does not serve a source."""
        if source not in self.known.absent:
            self.known.absent.add(source)
            self.known.listed.discard(source)
            self._tell(source)

    def _tell(self, source: str, namespace: str = "", name: str = "") -> None:
        for one in self._followers:
            one.pod_groups(source, namespace, name)
