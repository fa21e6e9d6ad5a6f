"""Selectors of labels, of nodes and of pods, compiled: equal ones are one object, and asking is cheap."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Literal

from slacktide.kube.client.metadata import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from slacktide.kube.resources.objects import Pod, PodAffinityTerm
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import AnyOf, Condition, Constraint, Operator, Term, integer
from slacktide.model.placement import Topology

NODE_NAME = "metadata.name"
"""Attribute of a host with its node's name."""

Compiled = tuple[str, str, tuple[str, ...]]
"""A requirement: key, operator (In, NotIn, Exists, DoesNotExist), values in order."""

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS: dict[str, Operator] = {
    "In": "in",
    "NotIn": "not in",
    "Exists": "exists",
    "DoesNotExist": "absent",
    "Gt": "gt",
    "Lt": "lt",
}


@dataclass(frozen=True, slots=True)
class Selector:
    """Which labels are selected: those for which all requirements hold, whose values are in order; none at all where
    ``nothing``."""

    requirements: tuple[Compiled, ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        """Whether it selects all labels (the empty selector)."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        if self.nothing:
            return False
        for key, operator, values in self.requirements:
            found = labels.get(key)
            if operator == "In":
                holds = found is not None and _has(values, found)
            elif operator == "NotIn":
                holds = found is None or not _has(values, found)
            else:
                holds = (found is None) == (operator == "DoesNotExist")
            if not holds:
                return False
        return True

    def __str__(self) -> str:
        return "nothing" if self.nothing else ",".join(map(_text, self.requirements)) or "everything"


def _has(values: tuple[str, ...], value: str) -> bool:
    """Whether a value is among others, which are in order: there may be ten thousand, and as many who are asked."""
    at = bisect_left(values, value)
    return at < len(values) and values[at] == value


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compiled(selector: LabelSelector | None, where: str, further: Iterable[Compiled] = ()) -> Selector:
    """The selector with ``further`` requirements added; absent selects nothing, whatever is added.

    Raises :class:`Unschedulable` naming ``where`` it stands, the operator and the values.
    """
    if selector is None:
        return NOTHING
    found: list[Compiled] = [(key, "In", (value,)) for key, value in selector.match_labels.items()]
    for one in selector.match_expressions:
        _check(one, where, _LABEL_OPERATORS)
        found.append((one.key, one.operator, tuple(sorted(set(one.values)))))
    return _interned(tuple(sorted({*found, *further})))


@lru_cache(maxsize=16384)
def _interned(requirements: tuple[Compiled, ...]) -> Selector:
    return Selector(requirements) if requirements else EVERYTHING


def node_term(term: NodeSelectorTerm, where: str, *, fields: bool = True) -> Term | None:
    """The term of a node selector, or ``None`` where it is empty and so matches no node.

    Without ``fields`` its matchFields are taken to hold, as for the nodes of a volume.
    Raises :class:`Unschedulable` naming ``where`` it stands, the operator and the values.
    """
    if not term.match_expressions and not term.match_fields:
        return None
    found: list[Condition] = []
    for one in term.match_expressions:
        _check(one, where, tuple(_NODE_OPERATORS))
        found.append(_constraint(one))
    for one in term.match_fields:
        _check(one, f"{where}: matchFields", ("In", "NotIn"))
        if one.key != NODE_NAME or len(one.values) != 1:
            shown = f"{one.key} {one.operator} ({', '.join(one.values)})"
            raise Unschedulable(f"{where}: matchFields: found {shown}, expected {NODE_NAME} and one value")
        if fields:
            found.append(_constraint(one))
    return Term(tuple(found))


def node_conditions(selector: NodeSelector, where: str, *, fields: bool = True) -> tuple[Condition, ...]:
    """What a node must satisfy for one of the selector's terms to match; see :func:`node_term`."""
    found = [node_term(one, where, fields=fields) for one in selector.node_selector_terms]
    terms = tuple(dict.fromkeys(one for one in found if one is not None))
    if len(terms) == 1:
        return terms[0].constraints
    return (AnyOf(_merged(terms)),)


def _merged(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Terms of one ``key == value`` or ``key in values`` of the same key become one term: there may be thousands of
    local volumes, each of one node."""
    among: dict[str, list[str]] = {}
    others: list[Term] = []
    for term in terms:
        only = term.constraints[0] if len(term.constraints) == 1 else None
        if isinstance(only, Constraint) and only.op in ("==", "in"):
            among.setdefault(only.key, []).extend(only.values or (only.value,))
        else:
            others.append(term)
    return (*(Term((one_of(key, values),)) for key, values in among.items()), *others)


def any_of(terms: Iterable[Term]) -> Condition:
    """One short condition that holds where one of the terms does."""
    merged = _merged(tuple(dict.fromkeys(terms)))
    only = merged[0].constraints if len(merged) == 1 else ()
    return only[0] if len(only) == 1 else AnyOf(merged)


def one_of(key: str, values: Iterable[str]) -> Constraint:
    """The attribute has one of the values."""
    found = tuple(sorted(set(values)))
    return Constraint(key, "==", found[0]) if len(found) == 1 else Constraint(key, "in", values=found)


def _constraint(one: Requirement) -> Constraint:
    operator = _NODE_OPERATORS[one.operator]
    if operator == "in":
        return one_of(one.key, one.values)
    if operator == "not in":
        values = tuple(sorted(set(one.values)))
        return Constraint(one.key, "/=", values[0]) if len(values) == 1 else Constraint(one.key, operator, "", values)
    return Constraint(one.key, operator, one.values[0] if one.values else "")


def _check(one: Requirement, where: str, operators: tuple[str, ...]) -> None:
    """Raises :class:`Unschedulable` for an operator that is none, and for values that do not go with it."""
    if one.operator not in operators:
        expected = ", ".join(operators)
        raise Unschedulable(f"{where}: key {one.key!r}: found operator {one.operator!r}, expected one of {expected}")
    given = len(one.values)
    if one.operator in ("In", "NotIn"):
        problem = "" if given else "at least one value"
    elif one.operator in ("Exists", "DoesNotExist"):
        problem = "no value" if given else ""
    else:
        problem = "" if given == 1 and integer(one.values[0]) is not None else "one whole number"
    if problem:
        shown = ", ".join(one.values)
        raise Unschedulable(f"{where}: key {one.key!r}: {one.operator}: found ({shown}), expected {problem}")


def _text(one: Compiled) -> str:
    key, operator, values = one
    if operator in ("In", "NotIn"):
        if len(values) == 1:
            return f"{key}{'=' if operator == 'In' else '!='}{values[0]}"
        return f"{key} {'in' if operator == 'In' else 'notin'} ({','.join(values)})"
    return key if operator == "Exists" else f"!{key}"


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
