"""The pieces of a user's policy as what kernels call: which numbers each asks for, and its machine code.

Kernels call every piece with the same arguments (:func:`.plugin_calls.piece_of`): metric, overhead, the arrays of
numbers of the instance, of its class and of that of who waits, and room for more. A wrapper takes out of these what the
piece asks for, and puts in what it answers.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from slacktide.errors import PluginError
from slacktide.kernels.policies import pieces as kernel
from slacktide.kernels.policies.pieces import OF_CLASS, OF_INSTANCE, OF_STATE
from slacktide.policy.pieces import PIECES, STATE, Metric, Pieces
from slacktide.state.cluster import PieceCode

BITS = dict(zip(PIECES, (kernel.QUEUE, kernel.LEVEL, kernel.LEAVES, kernel.COST), strict=True))
WAITING = "waiting_"
WHOLE = ("rank", "level", "levels", "preemptions", "instances", "others")
"""Numbers that functions are given as whole ones."""
MOVING = ("metric", "slack", "overhead", "age")
"""Numbers that change while nothing happens."""

Make = Callable[[Callable[..., Any], str], tuple[int, Any]]
"""Machine code of a wrapper, from a user's function and the wrapper's source: its address, and what keeps it alive."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece: what it asks for, as expressions of the wrapper's arguments, and how it answers."""

    name: str
    function: Callable[..., Any]
    asked: tuple[str, ...]
    answer: str

    def asks(self, *names: str) -> bool:
        """Whether it asks for one of these numbers."""
        return any(one in names for one in self.asked)

    @property
    def source(self) -> str:
        """A wrapper around the function ``own``; NaN says that it raised, as no exception leaves machine code."""
        first = OF_STATE if self.name in STATE else OF_INSTANCE
        width = f"{_expression('levels')} + 1" if self.name == "cost" else "1"
        expression = _of_state if self.name in STATE else _expression
        called = f"own({', '.join(expression(one) for one in self.asked)})"
        return (
            "def call(metric, overhead, one, its, other, out):\n"
            f"    one, its = array(one, ({len(first)},)), array(its, ({len(OF_CLASS)},))\n"
            f"    other = array(other, ({len(OF_CLASS)},))\n"
            f"    out = array(out, ({width},))\n"
            "    try:\n"
            f"        {ANSWERS[self.answer].format(called)}\n"
            "    except Exception:\n"
            "        return nan\n"
        )


ANSWERS = {
    "number": "out[0] = 0.0; return float({})",
    "pair": "first, out[0] = {}; return float(first)",
    "bool": "return inf if {} else -inf",
    "level": "return float({})",
    "cost": "{}; return 0.0",
}


def _expression(name: str) -> str:
    if name in ("metric", "overhead", "out"):
        return name
    if name == "slack":
        return f"metric - its[{OF_CLASS.index('margin')}]"
    array, names, bare = "one", list(OF_INSTANCE), name
    if name.startswith(WAITING):
        array, names, bare = "other", list(OF_CLASS), name.removeprefix(WAITING)
    elif name in OF_CLASS:
        array, names = "its", list(OF_CLASS)
    text = f"{array}[{names.index(bare)}]"
    return f"int({text})" if bare in WHOLE else text


def _of_state(name: str) -> str:
    """Of a metric: what was received, and lifetime, stand in place of metric and overhead."""
    if name in OF_STATE:
        return f"int(one[{OF_STATE.index(name)}])"
    return {"received": "metric", "lifetime": "overhead"}.get(name) or _expression(name)


def numbers_for(piece: str) -> tuple[str, ...]:
    """What a piece may ask for."""
    common = ("metric", "slack", *OF_CLASS, *OF_INSTANCE)
    if piece in STATE:
        return ("received", "lifetime", *OF_STATE, *OF_CLASS)
    if piece == "queue":
        return common
    if piece == "gives_way":
        return (*common, "overhead", *(WAITING + one for one in OF_CLASS))
    return (*common, "overhead") if piece == "leaves" else ("out", *common, "overhead")


SAMPLE = {"metric": 1.0, "slack": 1.0, "overhead": 0.5, "slo": 0.9, "margin": 1.0, "overhead_limit": 0.5}
"""What a function is given when it is asked how it answers; all that is not here is 1."""


def piece(name: str, function: Any, where: str) -> Piece:
    """A piece of the policy ``where``. Raises :class:`PluginError` where it asks for what there is not, or answers what
    says nothing."""
    where = f"{where}: {name}"
    if not callable(function):
        raise PluginError(f"{where}: found {type(function).__name__}, expected a function of numbers")
    asked = tuple(inspect.signature(function).parameters)
    known = numbers_for(name)
    if odd := [one for one in asked if one not in known]:
        raise PluginError(f"{where}: found the parameter {odd[0]!r}, expected names among {', '.join(known)}")
    if name == "cost" and "out" not in asked:
        raise PluginError(f"{where}: found no parameter 'out', expected one: the cost is added to it")
    return Piece(name, function, asked, _answer(name, function, asked, where))


def _answer(name: str, function: Callable[..., Any], asked: tuple[str, ...], where: str) -> str:
    sample: dict[str, Any] = {one: SAMPLE.get(one.removeprefix(WAITING), 1) for one in asked}
    if name == "cost":
        sample["out"] = [0.0, 0.0]
    if "levels" in sample:
        sample["levels"] = 2
    try:
        found = function(**sample)
    except Exception as problem:
        raise PluginError(f"{where}: {type(problem).__name__}: {problem}, for {_told(sample)}") from problem
    if name == "cost":
        if found is not None:
            raise PluginError(f"{where}: found {found!r}, expected nothing: the cost is added to 'out'")
        return "cost"
    if name == "gives_way" and isinstance(found, bool):
        return "bool"
    if name in STATE and not _is_number(found):
        raise PluginError(f"{where}: found {found!r}, expected a number, for {_told(sample)}")
    if _is_number(found):
        return "level" if name == "gives_way" else "number"
    if name != "gives_way" and isinstance(found, tuple) and len(found) == 2 and all(map(_is_number, found)):
        return "pair"
    wanted = "True, False, or a number" if name == "gives_way" else "a number, or two"
    raise PluginError(f"{where}: found {found!r}, expected {wanted}, for {_told(sample)}")


def _is_number(found: object) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and not math.isnan(found)


def _told(sample: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sample.items())


def compiled(policy: Pieces, where: str, make: Make) -> tuple[PieceCode, tuple[Any, ...]]:
    """A policy from pieces as kernels know it, and what keeps its code alive. Raises :class:`PluginError`."""
    found = {name: piece(name, function, where) for name, function in policy.functions().items()}
    made = {name: make(one.function, one.source) for name, one in found.items()}
    eligibility = found["gives_way"]
    weighed = _metric(policy.metric, where, make)
    code = PieceCode(
        queue=made["queue"][0],
        gives_way=made["gives_way"][0],
        leaves=made["leaves"][0],
        cost=made["cost"][0],
        look=sum(BITS[name] for name, one in found.items() if one.asks(*OF_INSTANCE)),
        overhead=sum(BITS[name] for name, one in found.items() if one.asks("overhead")),
        move=BITS["gives_way"] * eligibility.asks("age") + BITS["leaves"] * found["leaves"].asks(*MOVING),
        by_metric=eligibility.answer == "level" or any(one.asks(*MOVING) for one in found.values()),
        metric=weighed[0][0],
        falls=weighed[1][0],
    )
    return code, tuple(alive for _, alive in (*made.values(), *weighed))


def _metric(metric: Metric | None, where: str, make: Make) -> tuple[tuple[int, Any], tuple[int, Any]]:
    if metric is None:
        return (0, None), (0, None)
    if not isinstance(metric, Metric):
        raise PluginError(f"{where}: metric: found {type(metric).__name__}, expected a Metric of two functions")
    slack, falls = (piece(name, getattr(metric, name), f"{where}: metric") for name in STATE)
    return make(slack.function, slack.source), make(falls.function, falls.source)
