"""Operations of an engine as lines of JSON, and back.

A line is a list: the operation's name, then its arguments in the order of the method's.
The first is ``begin``; what follows a ``run`` is ``decided``, with its outcome.
docs/record.md has them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from slacktide.errors import ConfigError
from slacktide.live.parts import Decision, Outcome, Victim
from slacktide.model import Access, Placement, Preference, Rule, ServiceClass, Term, Topology
from slacktide.model.constraint import AnyOf, Condition, Constraint, Operator, Tolerates, Toleration
from slacktide.model.network import NO_ACCESS
from slacktide.model.placement import RuleKind
from slacktide.state.spec import Spec

VERSION = 1
"""Of the lines; another one is refused."""


class _Is(msgspec.Struct, tag="is", tag_field="what", omit_defaults=True):
    key: str
    op: Operator
    value: str = ""
    values: tuple[str, ...] = ()


class _AnyOf(msgspec.Struct, tag="any-of", tag_field="what", omit_defaults=True):
    terms: tuple[tuple[_Condition, ...], ...]


class _Tolerates(msgspec.Struct, tag="tolerates", tag_field="what", omit_defaults=True):
    tolerations: tuple[Toleration, ...]
    effects: tuple[str, ...]


_Condition: TypeAlias = "_Is | _AnyOf | _Tolerates"
_Term: TypeAlias = tuple[_Condition, ...]


class _Topology(msgspec.Struct, omit_defaults=True):
    key: str = ""
    within: _Term = ()


class _Rule(msgspec.Struct, omit_defaults=True):
    kind: RuleKind
    mark: str
    topology: _Topology = msgspec.field(default_factory=_Topology)
    skew: int = 1
    min_domains: int = 1


class _Preference(msgspec.Struct, omit_defaults=True):
    weight: int
    mark: str = ""
    topology: _Topology = msgspec.field(default_factory=_Topology)
    term: _Term = ()


class _Access(msgspec.Struct, omit_defaults=True):
    data: float = 0.0
    image: str = ""
    logins: tuple[tuple[str, float], ...] = ()
    preferred: str = ""
    deadline: float | None = None  # JSON has no infinity


class _Spec(msgspec.Struct, omit_defaults=True):
    demand: tuple[tuple[str, int], ...]
    service: ServiceClass
    term: _Term = ()
    marks: tuple[str, ...] = ()
    rules: tuple[_Rule, ...] = ()
    preferences: tuple[_Preference, ...] = ()
    never: bool = False
    limit: tuple[tuple[str, int], ...] = ()
    access: _Access | None = None
    application: str = ""


def _from_access(one: Access) -> _Access | None:
    if one == NO_ACCESS:
        return None
    deadline = one.deadline if math.isfinite(one.deadline) else None
    return _Access(one.data, one.image, one.logins, one.preferred, deadline)


def _to_access(one: _Access | None) -> Access:
    if one is None:
        return NO_ACCESS
    deadline = math.inf if one.deadline is None else one.deadline
    return Access(one.data, one.image, one.logins, one.preferred, deadline)


def _from_term(term: Term) -> _Term:
    return tuple(map(_from_condition, term.constraints))


def _from_condition(one: Condition) -> _Is | _AnyOf | _Tolerates:
    if isinstance(one, Constraint):
        return _Is(one.key, one.op, one.value, one.values)
    if isinstance(one, AnyOf):
        return _AnyOf(tuple(map(_from_term, one.terms)))
    return _Tolerates(one.tolerations, one.effects)


def _to_term(conditions: _Term) -> Term:
    return Term(tuple(map(_to_condition, conditions)))


def _to_condition(one: _Is | _AnyOf | _Tolerates) -> Condition:
    if isinstance(one, _Is):
        return Constraint(one.key, one.op, one.value, one.values)
    if isinstance(one, _AnyOf):
        return AnyOf(tuple(map(_to_term, one.terms)))
    return Tolerates(one.tolerations, one.effects)


def _from_topology(one: Topology) -> _Topology:
    return _Topology(one.key, _from_term(one.within))


def _to_topology(one: _Topology) -> Topology:
    return Topology(one.key, _to_term(one.within))


def _from_spec(spec: Spec) -> _Spec:
    placement = spec.placement
    return _Spec(
        demand=spec.demand,
        service=spec.service,
        term=_from_term(spec.term),
        marks=placement.marks,
        rules=tuple(
            _Rule(one.kind, one.mark, _from_topology(one.topology), one.skew, one.min_domains)
            for one in placement.rules
        ),
        preferences=tuple(
            _Preference(one.weight, one.mark, _from_topology(one.topology), _from_term(one.term))
            for one in placement.preferences
        ),
        never=spec.never,
        limit=spec.limit,
        access=_from_access(spec.access),
        application=spec.application,
    )


def _to_spec(wire: _Spec) -> Spec:
    rules = tuple(Rule(one.kind, one.mark, _to_topology(one.topology), one.skew, one.min_domains) for one in wire.rules)
    wishes = tuple(
        Preference(one.weight, one.mark, _to_topology(one.topology), _to_term(one.term)) for one in wire.preferences
    )
    placement = Placement(wire.marks, rules, wishes)
    access = _to_access(wire.access)
    term = _to_term(wire.term)
    return Spec(wire.demand, wire.service, term, placement, wire.never, wire.limit, access, wire.application)


def _number(metric: float) -> float | str:
    """JSON has no infinity."""
    return metric if math.isfinite(metric) else repr(metric)


_Metric = float | str
_Victims = tuple[tuple[str, _Metric], ...]
_Outcome = tuple[int, int, int, tuple[tuple[str, str, _Metric, _Victims], ...]]


def _from_outcome(outcome: Outcome) -> list[Any]:
    decisions = [
        (one.uid, one.host, _number(one.metric), [(v.uid, _number(v.metric)) for v in one.victims])
        for one in outcome.decisions
    ]
    return [outcome.number, outcome.waiting, outcome.operations, decisions]


def _to_outcome(number: int, waiting: int, operations: int, decisions: Any) -> Outcome:
    made = tuple(
        Decision(uid, host, float(metric), tuple(Victim(victim, float(its)) for victim, its in victims))
        for uid, host, metric, victims in decisions
    )
    return Outcome(number, made, waiting, operations)


_Amounts: TypeAlias = dict[str, int]
ARGUMENTS: dict[str, Any] = {
    "begin": tuple[()],
    "host": tuple[str, _Amounts, dict[str, str], bool],
    "host_gone": tuple[str],
    "other": tuple[str, str, _Amounts, tuple[str, ...]],
    "other_gone": tuple[str],
    "network": tuple[tuple[str, ...], str, list[tuple[int, int, float]]],
    "image": tuple[str, float, float],
    "images": tuple[str, list[str]],
    "spec": tuple[int, _Spec],
    "spec_gone": tuple[int],
    "budget": tuple[str, int],
    "budget_gone": tuple[str],
    "controller": tuple[str, ServiceClass, int, bool],
    "desired": tuple[str, int, float],
    "retire": tuple[str, float, float],
    "controller_gone": tuple[str, float],
    "arrive": tuple[str, str, str, int, float, str],
    "found": tuple[str, str, str, int, str, float, str],
    "bound_elsewhere": tuple[str, str, float],
    "nominated": tuple[str, str, float],
    "restore": tuple[str, dict[str, Any] | None, list[dict[str, Any]], float],
    "respec": tuple[str, int],
    "protect": tuple[str, str],
    "doomed": tuple[str],
    "wake": tuple[str],
    "sleep": tuple[str],
    "ready": tuple[str, float],
    "unready": tuple[str, float],
    "bound": tuple[str, float],
    "refused": tuple[str, float],
    "spared": tuple[str, float],
    "gone": tuple[str, float, bool],
    "run": tuple[float],
    "decided": _Outcome,
}
"""Every operation, and the types of its arguments."""

_DECODERS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "spec": lambda number, wire: (number, _to_spec(wire)),
    "decided": lambda *parts: (_to_outcome(*parts),),
}
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


def encode(name: str, arguments: tuple[Any, ...]) -> bytes:
    """The line of an operation, its end included."""
    if name == "spec":
        arguments = (arguments[0], _from_spec(arguments[1]))
    elif name == "decided":
        arguments = tuple(_from_outcome(arguments[0]))
    return _encode((name, *arguments)) + b"\n"


def decode(line: bytes) -> tuple[str, tuple[Any, ...]]:
    """The operation of a line. Raises :class:`ValueError` saying what is wrong with it."""
    try:
        name, *arguments = _decode(line)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not a JSON list: {error}") from error
    if name not in ARGUMENTS:
        raise ValueError(f"found operation {name!r}, expected one of {', '.join(ARGUMENTS)}")
    try:
        converted = msgspec.convert(arguments, ARGUMENTS[name])
        return name, _DECODERS[name](*converted) if name in _DECODERS else converted
    except (msgspec.MsgspecError, ConfigError) as error:
        raise ValueError(f"{name}: {error}") from error
