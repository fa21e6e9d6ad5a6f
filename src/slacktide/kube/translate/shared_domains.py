"""Domains of a topology that have nodes of ours and others: there pods on nodes that are not ours count for a spread.

kube-scheduler places on all nodes, and counts all. Where only some are ours, a domain without any of these is none to
which a pod could go: if it counted, empty as it is for us, no other domain could have more than ``maxSkew`` pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from slacktide.kube.translate.nodes import NodeView
from slacktide.kube.translate.selectors import any_of, one_of
from slacktide.model.constraint import FOREIGN, Condition, Constraint, Term

OURS = Constraint(FOREIGN, "absent")


class SharedDomains:
    """How many nodes have which label, ours and others, kept by events."""

    def __init__(self) -> None:
        self._ours: Counter[tuple[str, str]] = Counter()
        self._others: Counter[tuple[str, str]] = Counter()
        self._keys: Counter[str] = Counter()
        self._shared: dict[str, set[str]] = {}

    def knows(self, key: str) -> bool:
        """Whether a node of ours has a label with this key."""
        return key in self._keys

    def see(self, before: NodeView | None, now: NodeView | None) -> set[str]:
        """A node is new, another than before, or gone: the keys of labels whose shared domains are others now."""
        if before is not None and now is not None and (before.attributes, before.ours) == (now.attributes, now.ours):
            return set()
        touched: set[tuple[str, str]] = set()
        for view, sign in ((before, -1), (now, 1)):
            if view is not None and view.ours:
                self._keys.update(dict.fromkeys(view.attributes, sign))
        for key in () if before is None else before.attributes:
            if not self._keys[key]:
                del self._keys[key]
        for view, sign in ((before, -1), (now, 1)):
            if view is not None:
                counts = self._ours if view.ours else self._others
                for label in view.attributes.items():
                    counts[label] += sign
                    touched.add(label)
        return {key for key, _ in self._changed(touched)}

    def _changed(self, touched: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
        for label in touched:
            key, value = label
            is_shared = self._ours[label] > 0 and self._others[label] > 0
            for counts in (self._ours, self._others):
                if not counts[label]:
                    del counts[label]
            known = self._shared.get(key, set())
            if is_shared == (value in known):
                continue
            if is_shared:
                self._shared.setdefault(key, set()).add(value)
            else:
                known.discard(value)
                if not known:
                    del self._shared[key]
            yield label

    def condition(self, key: str) -> Condition:
        """The nodes whose pods count for a spread over the values of a label."""
        values = self._shared.get(key)
        return any_of((Term((OURS,)), Term((one_of(key, values),)))) if values else OURS
