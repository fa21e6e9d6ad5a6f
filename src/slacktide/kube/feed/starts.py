"""How long the pods of each workload took to start, and what is held back for the next start by that.

A start is the time from a pod's binding until it was ready first. It is *hot* on a node where this scheduler saw the
workload run before, else *cold*: images are there, or are not. Where either kind has a high quantile above what the
class holds back, the workload holds that back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil
from typing import Any

from slacktide.config import Config
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.translate.service_classes import MOST_PROMISES, Promised

KEPT = 16
"""Starts of a workload that count, of either kind: the latest."""
ENOUGH = 4
"""From so many on they say something."""
QUANTILE = 0.9
STEPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600)
"""Seconds that may be held back. Few, as workloads that hold back alike share what is known of hosts."""
MOST_NODES = 256
"""Of a workload that are known to have run it."""
NAME = "starts"
"""In a ledger's books."""


@dataclass(slots=True)
class Known:
    """Of a workload: its starts, whole seconds, the latest last; the step that is held back by them, 0 for none; nodes
    that ran it, the latest last."""

    hot: list[int] = field(default_factory=list)
    cold: list[int] = field(default_factory=list)
    step: int = 0
    nodes: dict[str, None] = field(default_factory=dict)

    def runs_on(self, node: str) -> bool:
        """It runs on a node from now on; whether it ran there before."""
        known = node in self.nodes
        self.nodes.pop(node, None)
        self.nodes[node] = None
        if len(self.nodes) > MOST_NODES:
            del self.nodes[next(iter(self.nodes))]
        return known

    def took(self, seconds: float, *, hot: bool) -> None:
        """A start took so long. What is held back goes up at once, down by two steps or more, so that it does not
        waver."""
        latest = self.hot if hot else self.cold
        latest.append(ceil(max(0.0, seconds)))
        del latest[:-KEPT]
        slowest = max((quantile(some) for some in (self.hot, self.cold) if len(some) >= ENOUGH), default=0)
        place = min(bisect_left(STEPS, slowest), len(STEPS) - 1)
        if slowest and (STEPS[place] > self.step or place + 2 <= bisect_left(STEPS, self.step)):
            self.step = STEPS[place]


def quantile(seconds: Sequence[int]) -> int:
    """The QUANTILE of them, at least one: one of them."""
    return sorted(seconds)[ceil(QUANTILE * len(seconds)) - 1]


class Starts:
    """By the keys of controllers."""

    def __init__(self, config: Config) -> None:
        self._learns, self._longest = config.kube.learn_startup, config.kube.startup_allowance
        self._by_default = config.qos.alpha
        self._known: dict[str, Known] = {}

    def bound(self, pod: FedPod) -> None:
        """A pod of a known controller was bound to its node."""
        if self._learns:
            known = self._known.setdefault(pod.key, Known())
            pod.hot = known.runs_on(pod.pod.spec.node_name)

    def ready(self, pod: FedPod) -> bool:
        """A pod of a known controller is ready; whether that was a start which was measured: this replica saw both its
        binding and that it became ready, for the first time."""
        record = pod.record
        if not self._learns or pod.measured or not record.bound_at or record.unready_at or not record.ready_at:
            return False
        pod.measured = True
        self._known.setdefault(pod.key, Known()).took(record.ready_at - record.bound_at, hot=pod.hot)
        return True

    def held_back(self, key: str, promised: Promised) -> Promised:
        """What a workload is promised, with what its starts say in place of less that its class does.

        Never more than a start may take at the cluster's expense; nothing of one that says itself how long it takes.
        """
        known = self._known.get(key)
        if known is None or promised.own_alpha:
            return promised
        alpha = min(float(known.step), self._longest)
        return promised if alpha <= promised.service.alpha_or(self._by_default) else _holding(promised, alpha)

    def said(self, key: str) -> dict[str, Any]:
        """What a ledger's books say beside what the engine does: nothing where nothing was measured."""
        known = self._known.get(key)
        if known is None or not (known.hot or known.cold):
            return {}
        return {NAME: {"hot": known.hot.copy(), "cold": known.cold.copy(), "step": known.step}}

    def go_on(self, key: str, books: Mapping[str, Any]) -> None:
        """A controller goes on from a ledger, unless its starts are known; what cannot be read counts for nothing."""
        said = books.get(NAME)
        if not self._learns or key in self._known or not isinstance(said, Mapping):
            return
        hot, cold, step = _seconds(said.get("hot")), _seconds(said.get("cold")), said.get("step")
        if hot is not None and cold is not None and step in (0, *STEPS):
            self._known[key] = Known(hot, cold, int(step))

    def forget(self, key: str) -> None:
        """A controller is no more."""
        self._known.pop(key, None)


def _seconds(said: Any) -> list[int] | None:
    """The latest starts that a ledger tells of; None where it tells of none that can be."""
    if isinstance(said, list) and all(type(one) is int and 0 <= one < 2**31 for one in said):
        return said[-KEPT:]
    return None


@lru_cache(MOST_PROMISES)
def _holding(promised: Promised, alpha: float) -> Promised:
    """The same promise, with so many seconds held back; one for all workloads that are alike."""
    return replace(promised, service=replace(promised.service, alpha=alpha))
