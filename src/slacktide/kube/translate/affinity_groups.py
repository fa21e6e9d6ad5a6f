"""Which pods an affinity term selects, and what the term does to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

from slacktide.kube.resources.objects import Pod, PodAffinityTerm
from slacktide.kube.translate.selectors import NOTHING, Compiled, Selector, compiled
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.placement import Topology

_LONGEST_MARK = 200


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The pods with these labels in some namespaces: those named, and those that the selector selects."""

    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector = NOTHING

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels, in a namespace with those, is meant."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)

    def __str__(self) -> str:
        places = list(self.namespaces)
        if not self.namespace_selector.nothing:
            places.append("*" if self.namespace_selector.everything else f"({self.namespace_selector})")
        return f"{'|'.join(places)}/{self.selector}"


Group = tuple[PodSelection, ...]
"""The pods that all of these mean."""

Role = Literal["member", "counted", "avoids", "drawn"]
_MARKS: dict[Role, str] = {"member": "pods:", "counted": "counted:", "avoids": "avoids:", "drawn": "drawn"}


@dataclass(frozen=True, slots=True)
class TermEffect:
    """What a pod's term does to each pod of a group.

    member   it carries the mark (affinity and anti-affinity look for it)
    counted  it carries the mark unless it is being deleted (topology spread)
    avoids   it must not come near those who carry the mark: they asked for that (anti-affinity)
    drawn    it is worth ``weight`` points to be near one who carries the mark: they would rather (preferences)
    """

    role: Role
    group: Group
    key: str = ""
    weight: int = 0
    mark: str = field(init=False, compare=False, repr=False)
    """The mark in question; equal effects have equal marks, and no others. It is asked for by each pod of the group."""

    def __post_init__(self) -> None:
        group = " & ".join(map(str, self.group))
        weight = f"{self.weight:+d}:" if self.role == "drawn" else ""
        mark = f"{_MARKS[self.role]}{weight}{group}" + (f" @{self.key}" if self.key else "")
        object.__setattr__(self, "mark", shortened(mark))

    def __hash__(self) -> int:
        return hash(self.mark)  # known already, where that of all fields takes long


def shortened(mark: str) -> str:
    """The mark itself, or where it is very long its beginning and a digest: selectors can be huge."""
    if len(mark) <= _LONGEST_MARK:
        return mark
    return f"{mark[: _LONGEST_MARK - 40]}... #{blake2b(mark.encode(), digest_size=16).hexdigest()}"


@lru_cache(maxsize=4096)
def domains(key: str) -> Topology:
    """Nodes with the same value of a label."""
    return Topology(key)


def grouped(peers: tuple[PodSelection, ...]) -> Group:
    """The same pods, written the same way for any order of the terms."""
    return tuple(sorted(dict.fromkeys(peers), key=str))


def selection_of(pod: Pod, term: PodAffinityTerm, where: str) -> PodSelection:
    """The pods that an affinity term selects. Raises :class:`Unschedulable` naming ``where`` it stands."""
    check_key(term.topology_key, where)
    # The API server writes these requirements into the selector when it makes the pod. A server that did not
    # (or a pod from elsewhere) is handled as well.
    labels = pod.metadata.labels
    expressions = term.label_selector.match_expressions if term.label_selector is not None else ()
    present = {(one.key, one.operator) for one in expressions}
    further: list[Compiled] = []
    for keys, operator in ((term.match_label_keys, "In"), (term.mismatch_label_keys, "NotIn")):
        for key in keys:
            if key in labels and (key, operator) not in present:
                further.append((key, operator, (labels[key],)))  # noqa: PERF401  # two loops read better apart
    selector = compiled(term.label_selector, f"{where}.labelSelector", further)
    among = compiled(term.namespace_selector, f"{where}.namespaceSelector")
    named = term.namespaces
    if not named and term.namespace_selector is None:
        named = (pod.metadata.namespace,)
    return PodSelection(selector, tuple(sorted(set(named))), among)


def check_key(key: str, where: str) -> None:
    """Raises :class:`Unschedulable` where a topology key is none."""
    if not key or key == "*":
        raise Unschedulable(f"{where}.topologyKey: found {key!r}, expected a node label's key")
