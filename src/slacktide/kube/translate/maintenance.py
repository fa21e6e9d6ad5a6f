"""Declared times of work on nodes: MaintenanceWindows, kept by events."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from slacktide.kube.resources.objects import MaintenanceWindow
from slacktide.kube.translate.selectors import Selector, compiled
from slacktide.kube.translate.unschedulable import Unschedulable

LOG = logging.getLogger(__name__)


class Maintenance:
    """Windows by name."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[MaintenanceWindow, Selector | None]] = {}

    def see(self, found: MaintenanceWindow) -> None:
        """A window, new or changed. One that cannot be read is about no node, and a warning says why."""
        name, spec = found.metadata.name, found.spec
        self._windows.pop(name, None)
        if spec.end <= spec.start:
            LOG.warning(
                "MaintenanceWindow %s: spec.end: found a time that is not after spec.start; it covers no nodes: give "
                "it a later end", name,
            )  # fmt: skip
            return
        try:
            where = "spec.nodeSelector"
            selector = None if spec.node_selector is None else compiled(spec.node_selector, where)
        except Unschedulable as problem:
            LOG.warning("MaintenanceWindow %s: %s; it covers no nodes: correct its selector", name, problem.reason)
            return
        self._windows[name] = found, selector

    def drop(self, name: str) -> None:
        """A window is gone."""
        self._windows.pop(name, None)

    def until(self, labels: Mapping[str, str], now: float) -> float:
        """The end of the longest window that is about a node of these labels now, seconds since 1970; 0: none is."""
        if not self._windows:
            return 0.0
        ends = (
            float(found.spec.end)
            for found, selector in self._windows.values()
            if found.spec.start <= now < found.spec.end and (selector is None or selector.matches(labels))
        )
        return max(ends, default=0.0)

    def latest(self, now: float) -> float:
        """The end of the longest window that is open now; 0: none is."""
        return max((float(self._windows[name][0].spec.end) for name in self.active(now)), default=0.0)

    def active(self, now: float) -> frozenset[str]:
        """Names of the windows that are open now."""
        return frozenset(name for name, (found, _) in self._windows.items() if found.spec.start <= now < found.spec.end)
