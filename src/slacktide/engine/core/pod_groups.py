"""Pod groups of a live cluster: pods of which none starts before so many of them can."""

from __future__ import annotations

from slacktide.engine.core import types
from slacktide.engine.core.types import Pod
from slacktide.state.growth import Growing


class PodGroups:
    """``numbers`` are the groups' in the tables, by name; ``members`` the pods that name each, by uid, known or not."""

    def __init__(self, tables: Growing) -> None:
        self.tables = tables
        self.numbers: dict[str, int] = {}
        self.members: dict[str, dict[str, Pod]] = {}
        self._free: list[int] = []

    def put(self, name: str, least: int) -> None:
        """So many pods of a group must be on hosts before any starts."""
        g = self.numbers.get(name)
        if g is None:
            g = self.numbers[name] = self._free.pop() if self._free else len(self.numbers)
            self.tables.make_pod_groups(g + 1)
            self.tables.tb["pod_groups"][g] = (0, 0, 0)
            for pod in self.members.get(name, {}).values():
                self.enter(pod)
        self.tables.tb["pod_groups"]["least"][g] = least

    def remove(self, name: str) -> None:
        """A group is no more: its pods start alone, where they are awake."""
        for pod in self.members.get(name, {}).values():
            self.tables.tb["pod_group"][pod.row] = -1
        self._free.append(self.numbers.pop(name))

    def join(self, pod: Pod, name: str) -> None:
        """A pod is of a group from now on; empty: of none."""
        self.part(pod)
        pod.group = name
        if name:
            self.members.setdefault(name, {})[pod.uid] = pod
            self.enter(pod)

    def part(self, pod: Pod) -> None:
        """A pod is of no group any more."""
        if not pod.group:
            return
        g, members = self.tables.tb["pod_group"][pod.row], self.members[pod.group]
        if g >= 0 and pod.state == types.PLACED:
            self.tables.tb["pod_groups"]["placed"][g] -= 1
        self.tables.tb["pod_group"][pod.row] = -1
        del members[pod.uid]
        if not members:
            del self.members[pod.group]
        pod.group = ""

    def rename(self, pod: Pod, before: str) -> None:
        """A pod had another uid before."""
        if pod.group:
            members = self.members[pod.group]
            members[pod.uid] = members.pop(before)

    def enter(self, pod: Pod) -> None:
        """The instance of a pod is of its group, where that is known, and counts in it where it is on a host."""
        g = self.numbers.get(pod.group, -1)
        self.tables.tb["pod_group"][pod.row] = g
        if g >= 0 and pod.state == types.PLACED:
            self.tables.tb["pod_groups"]["placed"][g] += 1

    def least(self, name: str) -> int:
        """How many pods of a group must be on hosts before any starts; 0 where it is not known."""
        g = self.numbers.get(name)
        return 0 if g is None else int(self.tables.tb["pod_groups"]["least"][g])

    def placed(self, name: str) -> int:
        """How many pods of a group are on hosts, or have a place there by a decision; 0 where it is not known."""
        g = self.numbers.get(name)
        return 0 if g is None else int(self.tables.tb["pod_groups"]["placed"][g])
