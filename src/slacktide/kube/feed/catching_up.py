"""Pods whose placement changed through another pod's terms: where they are many, each is looked at in its turn.

Terms of one pod may be about all pods of a cluster. What they cost is paid by that pod: it waits until all whom they
are about were looked at, while everybody else goes on. Few are looked at at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator

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
