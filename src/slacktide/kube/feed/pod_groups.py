"""Pods of a group wait until there are enough of them; the engine is told which start together.

Until then they take part in no pass. After that it is the engine's to find places for enough of them at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from slacktide.engine.core.engine import Engine
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.indexes import one_less, take_out
from slacktide.kube.translate.pod_groups import KUBERNETES, KUEUE, Groups, Membership, membership
from slacktide.kube.translate.unschedulable import Unschedulable


@dataclass(slots=True)
class _Group:
    one: Membership
    pods: dict[str, FedPod] = field(default_factory=dict)
    """All that are of it, by UID."""
    there: set[str] = field(default_factory=set)
    """Those that run, or could if they had a node."""
    done: set[str] = field(default_factory=set)
    """Those that have succeeded, of groups whose number is that of all their pods."""
    totals: Counter[int] = field(default_factory=Counter)
    """Of such a group: how many pods it has, and how many of its pods say so."""
    told: int = 0
    """How many the engine has start together; 0: each starts by itself."""
    whole: bool = False
    """Whether the engine has them preempted together only."""
    problem: str | None = None
    """Why its pods wait; empty: they do not. ``None``: nobody has asked yet."""

    @property
    def is_known(self) -> bool:
        """Whether the engine knows it."""
        return self.whole or self.told > 0


class PodGroups:
    """The groups of a feed's pods."""

    def __init__(self, known: Groups, engine: Engine) -> None:
        self._known, self._engine = known, engine
        self._groups: dict[str, _Group] = {}
        self._by_object: dict[tuple[str, str, str], dict[str, None]] = {}
        """Groups by what says how many start together."""
        self._said: dict[str, int] = {}
        """Of pods whose groups have a number in all: which one they say."""
        self._of: dict[str, str] = {}
        """The group of each pod that has one, by UID."""

    def of_kubernetes(self) -> Iterator[tuple[tuple[str, str], list[FedPod], int]]:
        """Kubernetes' own groups: namespace and name, the pods, and how many start together (0: each by itself, or
        it is not known, or too few are there)."""
        for group in self._groups.values():
            if group.one.source == KUBERNETES:
                yield (group.one.namespace, group.one.name), list(group.pods.values()), group.told

    def key_of(self, uid: str) -> str:
        """The group of a pod; empty: it has none, or its pods start each by itself."""
        key = self._of.get(uid, "")
        return key if key and self._groups[key].is_known else ""

    def problem_of(self, pod: FedPod) -> str:
        """Why a pod waits for others of its group; empty where it does not, or runs."""
        key = "" if pod.pod.spec.node_name else self._of.get(pod.uid, "")
        return (self._groups[key].problem or "") if key else ""

    def see(self, pod: FedPod) -> list[str]:
        """A pod as it is now; those of its group that are to be looked at again, perhaps with itself."""
        one = membership(pod.pod) if pod.ours else None
        key = "" if one is None else one.key
        others = self.forget(pod.uid) if self._of.get(pod.uid, key) != key else []
        if one is None:
            return others
        group = self._groups.setdefault(key, _Group(one))
        self._by_object.setdefault(one.object, {})[key] = None
        self._take_out(group, pod.uid)
        group.pods[pod.uid] = pod
        self._of[pod.uid] = key
        if one.source == KUEUE:
            self._said[pod.uid] = one.total
            group.totals[one.total] += 1
        if not (pod.record.is_final or pod.stands_aside):  # it runs, or would if it had a node
            group.there.add(pod.uid)
        elif one.source == KUEUE and pod.pod.status.phase == "Succeeded":
            group.done.add(pod.uid)
        return others + self._settle(key)

    def forget(self, uid: str) -> list[str]:
        """A pod is no more; those of its group that are to be looked at again."""
        key = self._of.pop(uid, "")
        if not key:
            return []
        group = self._groups[key]
        self._take_out(group, uid)
        del group.pods[uid]
        if group.pods:
            return self._settle(key)
        self._tell(key, 0, whole=False)
        del self._groups[key]
        take_out(self._by_object, group.one.object, key)
        return []

    def _take_out(self, group: _Group, uid: str) -> None:
        """A pod of a group is not counted any more."""
        group.there.discard(uid)
        group.done.discard(uid)
        if uid in group.pods and (total := self._said.pop(uid, None)) is not None:
            one_less(group.totals, total)

    def changed(self, source: str, namespace: str, name: str) -> list[str]:
        """What is known of a group, or where no name is given of all of a source, is other than before; those that are
        to be looked at again."""
        keys = list(self._by_object.get((source, namespace, name), ()))
        if not name:
            keys = [key for key, group in self._groups.items() if group.one.source == source]
        return [uid for key in keys for uid in self._settle(key)]

    def _settle(self, key: str) -> list[str]:
        group = self._groups[key]
        least, problem = 0, ""
        # Of its pods who says the most is right: so a group does not start too early.
        one = group.one._replace(total=max(group.totals)) if group.totals else group.one
        try:
            least = max(0, self._known.least(one) - len(group.done))
        except Unschedulable as found:
            problem = found.reason
        if len(group.there) < least:
            problem = f"waiting for {least} pods of pod group {key} to be created"
        told = self._tell(key, least, whole=self._known.is_whole(one))
        if problem == group.problem and not told:
            return []
        group.problem = problem
        return list(group.pods)

    def _tell(self, key: str, least: int, *, whole: bool) -> bool:
        """The engine hears how many start together, where that is more than one, and whether they are preempted
        together only; whether that is new."""
        group, least = self._groups[key], least if least > 1 else 0
        if (least, whole) == (group.told, group.whole):
            return False
        if least or whole:
            self._engine.pod_group(key, least, whole)
        else:
            self._engine.pod_group_gone(key)
        group.told, group.whole = least, whole
        return True
