"""Sorts of waiting pods, by what their claims without devices ask for: for how many of each a node has devices.

Each sort has a resource of the core that stands for its devices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache

import msgspec

from slacktide.kube.mirror.device_reservations import NOTHING, DevicesInUse
from slacktide.kube.resources.objects import DeviceClass, Metadata, ResourceClaim
from slacktide.kube.translate.devices.allocation import CannotAllocate, Effort, allocate, how_many
from slacktide.kube.translate.devices.claims import MOST_CONSUMERS, ExtendedAsk, Wish, wish_of
from slacktide.kube.translate.devices.pools import NodeDevices
from slacktide.kube.translate.pod_terms import EVEN
from slacktide.model.constraint import Constraint, Term
from slacktide.model.hosts import DEVICES
from slacktide.model.placement import Preference

MOST_COUNTED = 128
"""A node has no more devices in a slice, and so rarely room for more pods with devices."""
MOST_UNUSED = 8
MOST_STEPS_WEIGHED = 16
"""Where alternatives could be better by more steps than so many, all nodes are worth the same."""
MOST_ALTERNATIVES = 8
"""A request has no more, as Kubernetes takes no more."""

_encode = msgspec.msgpack.Encoder().encode
Key = tuple[bytes, tuple[tuple[str, str], ...], str]
"""What is asked for, the classes with their versions, and the UID of a claim that is shared."""
Wishes = tuple[Wish, ...]


@dataclass(slots=True)
class Sort:
    """Waiting pods whose claims without devices ask for the same."""

    resource: str
    wishes: Callable[[frozenset[str]], Wishes]
    """What is asked for on a node that has these extended resources itself."""
    claim: str = ""
    """UID of the claim that pods of the sort share; empty: each has claims of its own."""
    is_local: bool | None = None
    """Whether the devices that the shared claim could get are of one node only; ``None``: there are none."""
    users: set[str] = field(default_factory=set)
    effort: Effort = field(default_factory=Effort)
    counts: dict[str, int] = field(default_factory=dict)
    """For how many of them devices are free, by node."""
    somewhere: int = 0
    """On so many nodes there are devices for one of them at least."""
    problem: str = ""
    """Why the claims cannot have devices on some node, whoever else has some."""
    hopeless: str = ""
    """The same, where there are devices on no node; pods of the sort know it."""

    steps: dict[str, int] = field(default_factory=dict)
    """By how much the alternatives that one of them would get on a node are better than the worst; 0 is left out."""

    def note(self, node: str, count: int, steps: int = 0) -> None:
        """For so many of them devices are free on a node, of which nothing was known."""
        self.counts[node] = count
        self.somewhere += count > 0
        if steps:
            self.steps[node] = steps

    @property
    def liked(self) -> tuple[Preference, ...]:
        """What a node is worth by that: as much for each step as in kube-scheduler, where this alone counts."""
        wishes = self.wishes(NOTHING)
        most = sum(wish.steps for wish in wishes)
        if not 0 < most <= MOST_STEPS_WEIGHED:
            return ()
        requests = sum(len(asks) > 1 for wish in wishes for asks in wish.choices)
        return tuple(
            Preference(max(1, round(EVEN * step / (MOST_ALTERNATIVES * requests))), term=Term((self._mark(step),)))
            for step in range(1, most + 1)
        )

    def _mark(self, step: int) -> Constraint:
        return Constraint(self.resource, "==", f"{step}")

    def forget(self, node: str) -> None:
        """What was known of a node is not so any more."""
        self.somewhere -= self.counts.pop(node, 0) > 0
        self.steps.pop(node, None)

    def forget_all(self) -> None:
        """The same, of all nodes."""
        self.counts.clear()
        self.steps.clear()
        self.somewhere = 0


class Sorts:
    """All sorts of pods that wait, or waited not long ago. ``tell`` is called where there is a new one."""

    def __init__(self, in_use: DevicesInUse, classes: Mapping[str, DeviceClass], tell: Callable[[], None]) -> None:
        self._in_use, self._classes, self._tell = in_use, classes, tell
        self._sorts: dict[Key, Sort] = {}

    def __len__(self) -> int:
        return len(self._sorts)

    def __getitem__(self, key: Key) -> Sort:
        return self._sorts[key]

    def enter(
        self, pod: Metadata, claims: list[ResourceClaim], shared: str = "", extended: ExtendedAsk | None = None
    ) -> Key:
        """A pod is of the sort of those with these claims and extended resources, or of those that share a claim.

        Raises :class:`.Unschedulable`.
        """
        uid, wishes = pod.uid, self._wishes(pod, claims, extended)
        names = tuple(dict.fromkeys(name for wish in wishes(NOTHING) for name in wish.classes))
        asked = [(one.spec.devices.requests or (), one.spec.devices.constraints) for one in claims], extended
        key = _encode(asked), tuple((name, self._classes[name].metadata.resource_version) for name in names), shared
        if key not in self._sorts:
            self._forget_unused()
            self._sorts[key] = Sort(self._unused("+".join(names)), wishes, shared)
            self._tell()
        self._sorts[key].users.add(uid)
        return key

    def _wishes(
        self, pod: Metadata, claims: list[ResourceClaim], extended: ExtendedAsk | None
    ) -> Callable[[frozenset[str]], Wishes]:
        """What is asked for, by the extended resources that a node has itself; each is worked out once."""
        own = tuple(wish_of(claim, self._classes) for claim in claims)
        backing = () if extended is None else extended.classes
        classes = {name: self._classes[name] for _, name in backing if name in self._classes}  # as they are now

        @cache
        def on(given: frozenset[str]) -> Wishes:
            claim = None if extended is None else extended.claim(pod, given)
            return own if claim is None else (*own, wish_of(claim, classes))

        return on

    def _unused(self, name: str) -> str:
        """A resource that nothing stands for now; names come again, as the core keeps a column for each."""
        taken = {one.resource for one in self._sorts.values()}
        wanted, number = f"{DEVICES}{name}", 1
        while wanted in taken:
            number += 1
            wanted = f"{DEVICES}{name}~{number}"
        return wanted

    def _forget_unused(self) -> None:
        """Sorts that nobody is of are kept for a while: the next pod of a template comes soon after the last one."""
        unused = [key for key, sort in self._sorts.items() if not sort.users]
        for key in unused[: max(0, len(unused) - MOST_UNUSED)]:
            del self._sorts[key]

    def leave(self, uid: str, but: Collection[Key] = ()) -> None:
        """A pod is of no sorts any more, ``but`` of these; O(sorts)."""
        for key, sort in self._sorts.items():
            if key not in but:
                sort.users.discard(uid)

    def amounts(self, node: str, devices: NodeDevices, given: frozenset[str] = NOTHING) -> dict[str, int]:
        """For how many waiting pods of each sort a node has devices; those that are kept for such pods count.

        ``given``: extended resources that it has itself. Who needs nothing else is not counted here.
        """
        found = {}
        for one in self._sorts.values():
            count, kept = self._count(one, node, devices, given), self._in_use.on(node, one.resource)
            if kept:
                count = MOST_CONSUMERS if one.claim else count + kept
            if count:
                found[one.resource] = count
        return found

    def _count(self, sort: Sort, node: str, devices: NodeDevices, given: frozenset[str]) -> int:
        if node not in sort.counts:
            count = steps = 0
            wishes = sort.wishes(given)
            try:
                count = (self._for_sharers if sort.claim else self._for_each)(sort, wishes, devices)
                steps = self._steps(wishes, devices) if count and wishes else 0
            except CannotAllocate as problem:
                sort.problem = sort.problem or str(problem)
            sort.note(node, count, steps)
        return sort.counts[node]

    def _steps(self, wishes: Wishes, devices: NodeDevices) -> int:
        """By how much the alternatives that the next pod would get are better than the worst."""
        most = sum(wish.steps for wish in wishes)
        if not 0 < most <= MOST_STEPS_WEIGHED:
            return 0
        found = allocate(wishes, devices, self._in_use)
        if found is None:
            return 0
        pairs = zip(wishes, found, strict=True)
        return most - sum(wish.steps_down({one.ask.name for one in given}) for wish, given in pairs)

    def marks(self, node: str) -> dict[str, str]:
        """Attributes of a node that say which alternatives pods of each sort would get there."""
        return {one.resource: f"{one.steps[node]}" for one in self._sorts.values() if node in one.steps}

    def _for_each(self, sort: Sort, wishes: Wishes, devices: NodeDevices) -> int:
        if not wishes:
            return MOST_CONSUMERS
        return how_many(wishes, devices, self._in_use, MOST_COUNTED, sort.effort)

    def _for_sharers(self, sort: Sort, wishes: Wishes, devices: NodeDevices) -> int:
        """For all pods that share a claim, or for none."""
        found = allocate(wishes, devices, self._in_use, sort.effort)
        if found is None:
            return 0
        sort.is_local = any(one.offered.local for given in found for one in given)
        return MOST_CONSUMERS

    def forget(self, node: str) -> None:
        """On a node other devices are free than before."""
        for sort in self._sorts.values():
            sort.forget(node)

    def forget_all(self) -> None:
        """On all nodes other devices are free than before."""
        for sort in self._sorts.values():
            sort.forget_all()

    def forget_problems(self) -> None:
        """Other devices are to be had than before."""
        for sort in self._sorts.values():
            sort.problem = ""

    def look_for_hopeless(self) -> list[str]:
        """Nodes have devices for others than before: UIDs of pods that can have devices on no node by now, or can
        again."""
        found = []
        for sort in [one for one in self._sorts.values() if one.problem or one.hopeless]:
            somewhere = sort.somewhere or self._in_use.anywhere(sort.resource)
            hopeless = "" if somewhere else sort.problem
            if hopeless != sort.hopeless:
                sort.hopeless = hopeless
                found += sorted(sort.users)
        return found
