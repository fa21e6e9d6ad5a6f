"""Pods that wait because of what others, or they themselves, ask of their neighbours.

Of those that must keep apart from their own siblings, where there are more of them than places, the last are too many.
A Deployment of five replicas that may not share a node has three of them on three nodes, and two that wait for ever: by
what it asks for itself, and not for the cluster. So does one that must be near pods with a label that no pod has
(docs/causes.md).

Terms of one pod may be about all pods of a cluster. What they cost is paid by that pod: it waits until all whom they
are about were looked at, each in its turn, while everybody else goes on. Few are looked at at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
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


FEW = 32
"""So many are looked at at once."""
BEHIND = "its affinity terms and spread constraints select pods that are still being counted"


class CatchingUp:
    """``look`` looks at one of those who are behind, ``release`` at pods that waited for them, ``begins`` hears that
    there are some. Nothing is put off unless ``in_turn``: who sets it calls :meth:`one` until :attr:`is_over`."""

    def __init__(
        self, look: Callable[[str], None], release: Callable[[Iterable[str]], None], begins: Callable[[], None]
    ) -> None:
        self.in_turn = False
        self._look, self._release, self._begins = look, release, begins
        self._behind: dict[str, int] = {}
        """By UID, the number of each."""
        self._order: deque[Iterator[tuple[str, int]]] = deque()
        """The same in the order in which they came, with some who are not behind any more."""
        self._ahead: tuple[str, int] | None = None
        """The first of these."""
        self._count = 0
        self._by: dict[Hashable, int] = {}
        """By terms that put others behind: the number of the last of these."""
        self._batches: deque[tuple[int, tuple[Hashable, ...]]] = deque()
        """The same, in their order."""
        self._held: dict[str, int] = {}
        """Pods that wait, by UID: for all up to the one with this number."""

    @property
    def is_over(self) -> bool:
        """Whether nobody is behind, and nobody waits for those who were."""
        return not self._behind and not self._batches

    def later(self, uids: Iterable[str]) -> None:
        """Pods are to be looked at; one that is behind already has its place."""
        news = [uid for uid in uids if uid not in self._behind]
        if news:
            numbers = range(self._count + 1, self._count + 1 + len(news))
            self._count += len(news)
            self._behind.update(zip(news, numbers, strict=True))
            self._order.append(zip(news, numbers, strict=True))
            self._begins()

    def put_behind(self, terms: Iterable[Hashable]) -> None:
        """All who are behind now are that by these terms as well."""
        if self._behind:
            batch = tuple(terms)
            self._by.update(dict.fromkeys(batch, self._count))
            self._batches.append((self._count, batch))

    def holds(self, uid: str, terms: Iterable[Hashable]) -> bool:
        """Whether a new pod with these terms waits for those whom they put behind; whoever else has them does, too."""
        if self._by and uid not in self._held:
            last = max((self._by.get(one, 0) for one in terms), default=0)
            if last:
                self._held[uid] = last
        return uid in self._held

    def forget(self, uid: str) -> None:
        """A pod is no more."""
        self._behind.pop(uid, None)
        self._held.pop(uid, None)

    def one(self) -> None:
        """Look at who is behind for longest, then at those who waited for nobody else."""
        found = self._first()
        if found is not None:
            del self._behind[found[0]]
            self._look(found[0])
            found = self._first()
        first = self._count + 1 if found is None else found[1]
        if self._batches and self._batches[0][0] < first:
            self._over(first)

    def _first(self) -> tuple[str, int] | None:
        """Who is behind for longest; O(1), however many went before."""
        while self._ahead is None or self._behind.get(self._ahead[0]) != self._ahead[1]:
            self._ahead = next(self._order[0], None) if self._order else None
            if self._ahead is None:
                if not self._order:
                    return None
                self._order.popleft()
        return self._ahead

    def _over(self, first: int) -> None:
        """All before this number were looked at."""
        while self._batches and self._batches[0][0] < first:
            last, terms = self._batches.popleft()
            for term in terms:
                if self._by.get(term) == last:
                    del self._by[term]
        released = [one for one, last in self._held.items() if last < first]
        for one in released:
            del self._held[one]
        self._release(released)
