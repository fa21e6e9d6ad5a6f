"""Pod groups of a live cluster: pods of which none starts before so many of them can."""

from __future__ import annotations

from slacktide.engine.core import types
from slacktide.engine.core.types import Pod
from slacktide.kernels.tables.request_records import GOES_ANYWAY
from slacktide.state.growing_arrays import make_room_for_companions
from slacktide.state.growth import Growing


class PodGroups:
    """``numbers`` are the groups' in the tables, by name; ``members`` the pods that name each, by uid, known or not."""

    def __init__(self, tables: Growing) -> None:
        self.tables = tables
        self.numbers: dict[str, int] = {}
        self.members: dict[str, dict[str, Pod]] = {}
        self._free: list[int] = []

    def put(self, name: str, least: int, whole: bool = False) -> None:
        """So many pods of a group must be on hosts before any starts; ``whole``: they are preempted together only."""
        g = self.numbers.get(name)
        if g is None:
            g = self.numbers[name] = self._free.pop() if self._free else len(self.numbers)
            self.tables.make_pod_groups(g + 1)
            self.tables.tb["pod_groups"][g] = (0, 0, 0, 0, -1, 0)
            for pod in self.members.get(name, {}).values():
                self.enter(pod)
        record = self.tables.tb["pod_groups"][g]
        record["least"] = least
        if bool(record["whole"]) != whole:
            record["whole"] = whole
            self._count_members(len(self.members.get(name, ())) * (1 if whole else -1))
            self._line_up(name)

    def remove(self, name: str) -> None:
        """A group is no more: its pods start alone, where they are awake."""
        if self.is_whole(name):
            self._count_members(-len(self.members.get(name, ())))
        for pod in self.members.get(name, {}).values():
            self.tables.tb["pod_group"][pod.row] = -1
        self._free.append(self.numbers.pop(name))

    def join(self, pod: Pod, name: str) -> None:
        """A pod is of a group from now on; empty: of none."""
        self.part(pod)
        pod.group = name
        if name:
            self.members.setdefault(name, {})[pod.uid] = pod
            if self.is_whole(name):
                self._count_members(1)
            self.enter(pod)

    def part(self, pod: Pod) -> None:
        """A pod is of no group any more."""
        if not pod.group:
            return
        name, members = pod.group, self.members[pod.group]
        g = self.tables.tb["pod_group"][pod.row]
        if g >= 0 and pod.state == types.PLACED:
            self.tables.tb["pod_groups"]["placed"][g] -= 1
        self.tables.tb["pod_group"][pod.row] = -1
        del members[pod.uid]
        pod.group = ""
        if self.is_whole(name):
            self._count_members(-1)
            self._line_up(name)
        if not members:
            del self.members[name]

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
            if self.is_whole(pod.group):
                self._line_up(pod.group)

    def doom(self, pod: Pod) -> None:
        """Somebody else ends a pod: its group may go without it, so that a pod which does not come to its end does not
        keep the others of its group."""
        pod.doomed = True
        if pod.group:
            self._line_up(pod.group)

    def is_whole(self, name: str) -> bool:
        """Whether the pods of a group that are on hosts are preempted together only."""
        g = self.numbers.get(name)
        return g is not None and bool(self.tables.tb["pod_groups"]["whole"][g])

    def is_mixed(self, name: str) -> bool:
        """Whether pods of a group that are on hosts differ in importance, so that each is preempted by itself."""
        return self.is_whole(name) and bool(self.tables.tb["pod_groups"]["mixed"][self.numbers[name]])

    def _count_members(self, by: int) -> None:
        """So many pods more are of whole groups: a choice of victims may have all of them."""
        control = self.tables.tb.control
        control["whole_members"] += by
        control["loosened"] += 1
        make_room_for_companions(self.tables.tb)

    def _line_up(self, name: str) -> None:
        """Which pods of a group are on hosts, by row, where it is a whole one."""
        if not self.is_whole(name):
            return
        members = self.members.get(name, {}).values()
        rows = sorted(pod.row for pod in members if pod.state == types.PLACED and not pod.doomed)
        following, record = self.tables.tb["next_in_group"], self.tables.tb["pod_groups"][self.numbers[name]]
        following[[pod.row for pod in members if pod.doomed]] = GOES_ANYWAY
        record["first"] = rows[0] if rows else -1
        for row, then in zip(rows, [*rows[1:], -1], strict=False):
            following[row] = then
        kinds, classes = self.tables.tb["kinds"], self.tables.tb["classes"]
        ranks = classes["rank"][kinds["cls"][self.tables.tb["instances"]["kind"][rows]]]
        record["mixed"] = len(set(ranks.tolist())) > 1
        self.tables.tb.control["loosened"] += 1

    def least(self, name: str) -> int:
        """How many pods of a group must be on hosts before any starts; 0 where it is not known."""
        g = self.numbers.get(name)
        return 0 if g is None else int(self.tables.tb["pod_groups"]["least"][g])

    def placed(self, name: str) -> int:
        """How many pods of a group are on hosts, or have a place there by a decision; 0 where it is not known."""
        g = self.numbers.get(name)
        return 0 if g is None else int(self.tables.tb["pod_groups"]["placed"][g])
