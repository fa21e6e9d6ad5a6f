"""Whatever an engine may be told can be written down and read again: the types of all operations, gone through."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from slacktide.engine.core.operations import OPERATIONS, Operation
from slacktide.engine.core.types import Decision, Victim
from slacktide.engine.journal import codec
from slacktide.errors import ConfigError
from slacktide.kube.client.metadata import Instant
from slacktide.model import Access, DisruptionLimits, Hours, ServiceClass, Window
from slacktide.model.hours import DAYS

Some = some.SearchStrategy[Any]


class Text(str):
    """A text with a type of its own, as an enumeration's are."""

    __slots__ = ()


class Count(int):
    """A number with a type of its own."""


ZONES = some.sampled_from(["UTC", "Europe/Berlin", "America/Adak"])
SECONDS = some.floats(0.0, 2.0**33)
NUMBERS = some.floats(allow_nan=False, allow_infinity=False)
WHOLE = some.integers(-(2**63), 2**63 - 1)
WORDS = some.text(some.characters(codec="utf-8"))
PLAIN: dict[Any, Some] = {
    bool: some.booleans() | some.booleans().map(np.bool_),
    int: WHOLE | WHOLE.map(np.int64) | WHOLE.map(Count),
    float: NUMBERS | NUMBERS.map(np.float64) | NUMBERS.map(Instant) | some.integers(-(2**53), 2**53),
    str: WORDS | WORDS.map(Text),  # arrays hold no texts: numpy would drop zeros at their ends
}
JSON: Some = some.recursive(
    some.none() | some.one_of(*PLAIN.values()),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
PLAIN[Any] = JSON
WITHIN: dict[tuple[type, str], Some] = {
    (Decision, "metric"): some.floats(allow_nan=False),
    (Victim, "metric"): some.floats(allow_nan=False),
    (Access, "deadline"): some.floats(min_value=0.0, allow_nan=False),
    (Hours, "days"): some.lists(some.sampled_from(DAYS), min_size=1, unique=True).map(tuple),
    (Hours, "begin"): some.integers(0, 1439),
    (Hours, "end"): some.integers(1, 1440),
    (Hours, "time_zone"): ZONES,
    (DisruptionLimits, "most"): some.none() | some.integers(0, 64),
    (DisruptionLimits, "per"): some.floats(0.001, 2.0**33),
    (DisruptionLimits, "cooldown"): SECONDS,
    (DisruptionLimits, "min_running"): some.none() | SECONDS,
    (ServiceClass, "name"): some.text(some.characters(codec="utf-8"), min_size=1),
    (ServiceClass, "slo"): some.floats(0.001, 1.0),
    (ServiceClass, "rank"): some.integers(1, 2**31),
    (ServiceClass, "margin"): some.floats(0.0, sys.float_info.max),
    (ServiceClass, "overhead_limit"): some.none() | some.floats(0.0, 1.0),
    (ServiceClass, "alpha"): some.none() | some.floats(0.0, 3600.0),
}
"""Fields that take less than their types say, or more: JSON has no infinity."""
WINDOWS = some.builds(Window, rolling=some.floats(60.0, 400 * 86_400.0), budget=some.sampled_from(["accrued", "whole"]))
WINDOWS |= some.builds(Window, calendar=some.sampled_from(["1d", "3M"]), time_zone=ZONES,
                       start=some.sampled_from([None, "2026-01-01T00:00:00"]))  # fmt: skip


def possible(make: Callable[..., Any], fields: dict[str, Some]) -> Some:
    """What can be made of these fields."""

    def made(said: dict[str, Any]) -> Any:
        try:
            return make(**said)
        except ConfigError:
            return None

    return some.fixed_dictionaries(fields).map(made).filter(lambda one: one is not None)


@cache
def values(kind: Any) -> Some:
    """Values of a type, as somebody who calls the engine may have them."""
    if kind in PLAIN:
        return PLAIN[kind]
    if kind is Window:
        return WINDOWS
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Literal:
        return some.sampled_from(inner)
    if kind is type(None):
        return some.none()
    if origin in (Union, types.UnionType):
        return some.one_of(*map(values, inner))
    if origin is tuple and inner[-1:] == (...,):
        return some.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is tuple:
        return some.tuples(*map(values, inner))
    if origin is list:
        return some.lists(values(inner[0]), max_size=3)
    if origin is dict:
        return some.dictionaries(values(inner[0]), values(inner[1]), max_size=3)
    assert isinstance(kind, type), f"{kind}: say what its values are"
    assert dataclasses.is_dataclass(kind), f"{kind}: say what its values are"
    hints = get_type_hints(kind)

    def of_field(name: str) -> Some:
        found = WITHIN.get((kind, name))
        return some.deferred(lambda: values(hints[name])) if found is None else found  # terms hold terms

    return possible(kind, {one.name: of_field(one.name) for one in dataclasses.fields(kind)})


def told(name: str) -> Some:
    """Operations of a name."""
    struct = OPERATIONS[name]
    hints = get_type_hints(struct)
    return possible(struct, {one: values(hints[one]) for one in struct.__struct_fields__})


@pytest.mark.parametrize("name", OPERATIONS)
def test_whatever_is_told_is_read_as_it_was_told(name: str) -> None:
    @settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
    @given(told(name))
    def is_read(operation: Operation) -> None:
        line = codec.encode(operation)
        assert codec.decode(line) == operation
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1

    is_read()


def test_what_json_does_not_have_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="object in a record"):
        codec.encode(OPERATIONS["restore"]("k", {"at": object()}, [], 8.0))
    assert msgspec.json.decode(codec.encode(OPERATIONS["run"](Instant(8.5)))) == ["run", 8.5]
