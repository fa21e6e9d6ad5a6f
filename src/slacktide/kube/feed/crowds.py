"""Pods whose rules about neighbours nobody can satisfy: the last of those that must keep apart from their own siblings,
where there are more of them than places, and those that must be near somebody who is not there.

A Deployment of five replicas that may not share a node has three of them on three nodes, and two that wait for ever:
by what it asks for itself, and not for the cluster. So does one that must be near pods with a label that no pod has
(docs/causes.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slacktide.kube.feed.specs import Specs
from slacktide.kube.translate.pod_constraints import ConstraintIndex

Group = tuple[str, str]
"""A controller's key, and the mark that its pods keep away from."""


@dataclass(slots=True)
class _Members:
    most: float
    """So many can be on nodes at a time."""
    crowded: dict[str, bool] = field(default_factory=dict)
    """Of each pod, by UID: whether it is one too many."""
    placed: set[str] = field(default_factory=set)
    """Those on nodes: none of them is one too many, however many they are."""
    others: int = 0
    """How many are not one too many."""


class Crowds:
    """The last ones that come are too many, and who is placed is not. When one goes, one of them is not any more."""

    def __init__(self, specs: Specs) -> None:
        self._specs = specs
        self._groups: dict[Group, _Members] = {}
        self._of: dict[str, Group] = {}

    def waits(self, uid: str, key: str, number: int) -> bool:
        """Whether a pod of a controller, of spec ``number``, that waits is one too many; O(1)."""
        return self._see(uid, key, number, waits=True)

    def placed(self, uid: str, key: str, number: int) -> list[str]:
        """A pod is on a node; its siblings that may be too many now; O(1) where there are none."""
        self._see(uid, key, number, waits=False)
        group = self._of.get(uid)
        return [] if group is None else _unsettled(self._groups[group])

    def forget(self, uid: str) -> list[str]:
        """A pod is no more; its siblings that may not be too many any more; O(1) where there are none."""
        group = self._of.pop(uid, None)
        if group is None:
            return []
        members = self._groups[group]
        members.others -= not members.crowded.pop(uid)
        members.placed.discard(uid)
        if not members.crowded:
            del self._groups[group]
        return _unsettled(members)

    def all_crowded(self) -> list[str]:
        """All that are too many: they are to be looked at again when nodes are others than before."""
        return [uid for members in self._groups.values() for uid, crowded in members.crowded.items() if crowded]

    def _see(self, uid: str, key: str, number: int, *, waits: bool) -> bool:
        apart = self._specs.apart(number)
        group = None if apart is None else (key, apart.mark)
        if self._of.get(uid, group) != group:
            self.forget(uid)
        if apart is None or group is None:
            return False
        members = self._groups.setdefault(group, _Members(apart.most))
        members.most = apart.most
        members.others -= members.crowded.get(uid) is False
        crowded = waits and members.others >= members.most
        members.crowded[uid] = crowded
        (members.placed.discard if waits else members.placed.add)(uid)
        members.others += not crowded
        self._of[uid] = group
        return crowded


class Lonely:
    """Pods that wait to be near somebody who is not there."""

    def __init__(self, specs: Specs, constraints: ConstraintIndex) -> None:
        self._specs, self._constraints = specs, constraints
        self._uids: dict[str, None] = {}
        self._looked = -1

    def waits(self, uid: str, number: int) -> bool:
        """Whether a pod of spec ``number`` that waits is one of them."""
        self._uids.pop(uid, None)
        if not self._specs.is_lonely(number):
            return False
        self._uids[uid] = None
        return True

    def forget(self, uid: str) -> None:
        """A pod is no more."""
        self._uids.pop(uid, None)

    def perhaps_met(self) -> list[str]:
        """All of them, where pods are of other kinds than when this was last asked; O(1) else."""
        if not self._uids or self._looked == self._constraints.version:
            return []
        self._looked = self._constraints.version
        return list(self._uids)


def _unsettled(members: _Members) -> list[str]:
    """Those who are to be looked at again: too few are one too many, or too many."""
    if members.others > members.most:
        return [uid for uid, crowded in members.crowded.items() if not crowded and uid not in members.placed]
    if members.others < min(members.most, len(members.crowded)):
        return [uid for uid, crowded in members.crowded.items() if crowded]
    return []
