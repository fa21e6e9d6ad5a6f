"""Operations of an engine as lines of JSON, and back.

A line is a list: the operation's name, then its arguments in the order of the method's. :mod:`.operations` declares
them; specs and outcomes, which are not plain JSON, are written as what is declared here.
The first is ``begin``; what follows a ``run`` is ``decided``, with its outcome.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias, Union

import msgspec
import numpy as np

from slacktide.engine.core.operations import OPERATIONS, Decided, Operation, Spec
from slacktide.engine.core.types import Decision, Outcome, Victim
from slacktide.errors import ConfigError
from slacktide.model import Access, Placement, Preference, Rule, ServiceClass, Term, Topology
from slacktide.model.constraint import AnyOf, Condition, Constraint, Operator, Tolerates, Toleration
from slacktide.model.network import NO_ACCESS
from slacktide.model.placement import RuleKind
from slacktide.state import spec as specs

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
    spared: bool = False
    grace: float = 0.0
    bare: bool = False


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


def _from_spec(spec: specs.Spec) -> _Spec:
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
        spared=spec.spared,
        grace=spec.grace,
        bare=spec.bare,
    )


def _to_spec(wire: _Spec) -> specs.Spec:
    rules = tuple(Rule(one.kind, one.mark, _to_topology(one.topology), one.skew, one.min_domains) for one in wire.rules)
    wishes = tuple(
        Preference(one.weight, one.mark, _to_topology(one.topology), _to_term(one.term)) for one in wire.preferences
    )
    placement = Placement(wire.marks, rules, wishes)
    access = _to_access(wire.access)
    term = _to_term(wire.term)
    return specs.Spec(wire.demand, wire.service, term, placement, wire.never, wire.limit, access, wire.application,
                      wire.spared, wire.grace, wire.bare)  # fmt: skip


def _number(metric: float) -> float | str:
    """JSON has no infinity."""
    return metric if math.isfinite(metric) else repr(metric)


_Metric = float | str
_Victims = tuple[tuple[str, _Metric], ...]


class _SpecLine(Operation, tag="spec"):
    number: int
    spec: _Spec


class _DecidedLine(Operation, tag="decided"):
    number: int
    waiting: int
    operations: int
    decisions: tuple[tuple[str, str, _Metric, _Victims], ...]


def _from_outcome(outcome: Outcome) -> _DecidedLine:
    decisions = tuple(
        (one.uid, one.host, _number(one.metric), tuple((v.uid, _number(v.metric)) for v in one.victims))
        for one in outcome.decisions
    )
    return _DecidedLine(outcome.number, outcome.waiting, outcome.operations, decisions)


def _to_outcome(line: _DecidedLine) -> Outcome:
    made = tuple(
        Decision(uid, host, float(metric), tuple(Victim(victim, float(its)) for victim, its in victims))
        for uid, host, metric, victims in line.decisions
    )
    return Outcome(line.number, made, line.waiting, line.operations)


_LINES: dict[str, type[Operation]] = {**OPERATIONS, "spec": _SpecLine, "decided": _DecidedLine}


def _plain(value: object) -> object:
    """Numbers out of arrays, instants out of objects and their like, as what JSON has: operations are told with any."""
    if isinstance(value, np.generic):
        return value.item()
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    raise NotImplementedError(f"{type(value).__name__} in a record")


_encode = msgspec.json.Encoder(enc_hook=_plain).encode
_decode: Callable[[bytes], Operation] = msgspec.json.Decoder(Union[tuple(_LINES.values())]).decode  # noqa: UP007


def encode(operation: Operation) -> bytes:
    """The line of an operation, its end included."""
    if type(operation) is Spec:
        operation = _SpecLine(operation.number, _from_spec(operation.spec))
    elif type(operation) is Decided:
        operation = _from_outcome(operation.outcome)
    return _encode(operation) + b"\n"


def decode(line: bytes) -> Operation:
    """The operation of a line. Raises :class:`ValueError` saying what is wrong with it."""
    try:
        read = _decode(line)
        if isinstance(read, _SpecLine):
            return Spec(read.number, _to_spec(read.spec))
        return Decided(_to_outcome(read)) if isinstance(read, _DecidedLine) else read
    except (msgspec.MsgspecError, ConfigError) as error:
        raise ValueError(_problem(line) or str(error)) from error
    except RecursionError as error:
        raise ValueError("not a line of a record: it is nested too deeply") from error


def _problem(line: bytes) -> str:
    """What is wrong with a line: that it is no list, the name of its operation, or the arguments."""
    try:
        name, *arguments = msgspec.json.decode(line, type=list[Any])
    except (msgspec.MsgspecError, ValueError) as error:
        return f"not a JSON list: {error}"
    if not isinstance(name, str) or name not in OPERATIONS:
        return f"found operation {name!r}, expected one of {', '.join(OPERATIONS)}"
    known = msgspec.structs.fields(_LINES[name])
    needed = sum(field.required for field in known)  # records of before lack what was added since
    fields = tuple(field.type for field in known[: max(needed, len(arguments))])
    try:
        read = msgspec.convert(arguments, tuple[fields])  # type: ignore[valid-type]
        if name == "spec":
            _to_spec(read[1])
    except (msgspec.MsgspecError, ConfigError) as error:
        return f"{name}: {error}"
    return ""
