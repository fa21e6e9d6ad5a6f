"""Selectors of devices, written in CEL, as k8s.io/dynamic-resource-allocation/cel has them.

``device.driver``, ``device.attributes[DOMAIN].NAME`` and ``device.capacity[DOMAIN].NAME``, with quantities and semantic
versions as Kubernetes has them, the functions of strings, ``cel.bind`` and optional values. What else Kubernetes adds
to CEL (lists, sets, regular expressions with groups, URLs, addresses, formats) is not known, and said to be so.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from slacktide.errors import SlacktideError
from slacktide.kube.client.quantities import NANO, nanos
from slacktide.kube.resources.objects import Device, DeviceAttribute

PACKAGE = "cel-expr-python"
KEPT = 1024
"""So many expressions are kept compiled."""
MOST_SECONDS = 0.005
"""An expression may take so long for a device on average. The API server lets through what takes ten times as long, and
there may be thousands of devices, while nothing else is decided."""
TRIED_SECONDS = 0.25
"""So long is tried before that is judged."""
LONGEST = 200

_TEXT = r"""(?:"([^"\\]*)"|'([^'\\]*)')"""
_DOMAINS = r"device\s*\.\s*(?:attributes|capacity)\b"
_INDEX = re.compile(rf"\[\s*{_TEXT}\s*\]")
_ASKS_FOR = re.compile(rf"{_TEXT}\s+in\s+{_DOMAINS}(?!\s*\[)")
_ASKS_WHICH = re.compile(
    rf"\bin\s+{_DOMAINS}(?!\s*\[)|\bsize\s*\(\s*{_DOMAINS}\s*\)"
    rf"|{_DOMAINS}\s*\.\s*(?:all|exists|exists_one|existsOne|filter|map|size|transform\w+)\s*\("
)
_PART = r"(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)"
_SEMVER = re.compile(
    rf"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-({_PART}(?:\.{_PART})*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_QUANTITY, _VERSION = "quantity", "semver"

Fields = dict[str, Any]


class SelectorError(SlacktideError):
    """A selector cannot be read, or says nothing of a device."""


def matches(expression: str, device: Device, driver: str) -> bool:
    """Whether a selector means a device. Raises :class:`SelectorError` naming the expression and what is wrong."""
    selector = _compiled(expression)
    if selector.problem:
        raise SelectorError(selector.problem)
    if selector.is_dear:
        raise _wrong(
            expression, f"evaluating it takes more than {MOST_SECONDS * 1000:.0f} ms for a device; simplify it"
        )
    began = time.thread_time()
    try:
        found = selector.program.eval(data={"device": _fields(device, driver, selector)})
    except (RuntimeError, ValueError, TypeError) as error:
        raise _wrong(expression, error) from error
    finally:
        selector.times, selector.seconds = selector.times + 1, selector.seconds + time.thread_time() - began
    value = found.value()
    if not isinstance(value, bool):
        raise _wrong(expression, value if "ERROR" in str(found.type()) else "its result is neither true nor false")
    return value


def attribute(device: Device, driver: str, name: str) -> DeviceAttribute | None:
    """A device's attribute by its full name, DOMAIN/NAME; a driver may leave its own domain out."""
    found = device.attributes.get(name)
    domain, _, short = name.partition("/")
    return device.attributes.get(short) if found is None and short and domain == driver else found


def _wrong(expression: str, problem: object) -> SelectorError:
    text = " ".join(str(problem).split())
    shown, text = (one if len(one) <= LONGEST else f"{one[: LONGEST - 3]}..." for one in (expression, text))
    return SelectorError(f"CEL expression {shown!r}: {text}")


@dataclass(slots=True)
class _Selector:
    """An expression, compiled. A domain that a device has nothing of is absent, but empty where it is indexed: those of
    ``defaults``, and with ``own`` that of the device's driver. ``times`` and ``seconds`` (of processor time): how often
    it was asked, and what that took. ``problem``: why it cannot be asked; remembered, too, as each node would ask."""

    program: Any = None
    defaults: frozenset[str] = frozenset()
    own: bool = False
    problem: str = ""
    times: int = 0
    seconds: float = 0.0

    @property
    def is_dear(self) -> bool:
        """Whether it takes so long that it may not be asked any more."""
        return self.seconds > TRIED_SECONDS and self.seconds > MOST_SECONDS * self.times


@lru_cache(maxsize=KEPT)
def _compiled(expression: str) -> _Selector:
    try:
        program = _environment().compile(expression)
    except ImportError:
        needed = f"selectors of devices need the package {PACKAGE}, which is not installed: install slacktide[devices]"
        return _Selector(problem=needed)
    except (RuntimeError, ValueError) as error:
        return _Selector(problem=str(_wrong(expression, error)))
    if _ASKS_WHICH.search(_ASKS_FOR.sub("", expression)):
        return _Selector(program, frozenset(), own=False)
    indexed, asked = ({one or other for one, other in form.findall(expression)} for form in (_INDEX, _ASKS_FOR))
    return _Selector(program, frozenset(indexed - asked), own=not asked)


def _fields(device: Device, driver: str, selector: _Selector) -> Fields:
    domains = {*selector.defaults, driver} if selector.own else selector.defaults
    attributes: dict[str, Fields] = {domain: {} for domain in domains}
    capacity: dict[str, Fields] = {domain: {} for domain in domains}
    for name, found in device.attributes.items():
        domain, short = _qualified(name, driver)
        attributes.setdefault(domain, {})[short] = _value(name, found)
    for name, amount in device.capacity.items():
        domain, short = _qualified(name, driver)
        capacity.setdefault(domain, {})[short] = _quantity(amount.value)
    return {
        "driver": driver,
        "attributes": attributes,
        "capacity": capacity,
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, _, short = name.rpartition("/")
    return domain or driver, short


def _value(name: str, found: DeviceAttribute) -> object:
    if found.version is not None:
        return _version(found.version)
    value = next((one for one in (found.whole, found.truth, found.string) if one is not None), None)
    if value is None:
        expected = "int, bool, string or version"
        raise SelectorError(f"attribute {name}: found a value of a kind that is not known, expected {expected}")
    return value


# -- quantities and versions, which CEL itself has not: maps of one text --------------------------------------------


def _quantity(text: str) -> dict[str, str]:
    return {_QUANTITY: str(nanos(text))}


def _version(text: str) -> dict[str, str]:
    if _SEMVER.fullmatch(text) is None:
        raise ValueError(f"found {text!r}, expected a semantic version such as 1.2.3")
    return {_VERSION: text.partition("+")[0]}  # what was built counts for nothing, also where two are equal


def _loose_version(text: str, normalize: bool) -> dict[str, str]:
    """A version; with ``normalize`` one that begins with v, has no minor or patch number, or zeros before a number."""
    if normalize:
        core, mark, rest = re.fullmatch(r"v?([^+-]*)([+-]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        numbers = [one.lstrip("0") or "0" if one.isascii() and one.isdigit() else one for one in core.split(".")]
        text = ".".join([*numbers, *["0"] * (3 - len(numbers))]) + mark + rest
    return _version(text)


def _is_loose_version(text: str, normalize: bool) -> bool:
    return _is(lambda one: _loose_version(one, normalize), text)


def _is(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _amount(one: Mapping[str, str]) -> int:
    return int(one[_QUANTITY])


def _parts(one: Mapping[str, str]) -> tuple[object, ...]:
    """What versions are ordered by: one without a pre-release comes after those with; numbers come before words."""
    form = _SEMVER.fullmatch(one[_VERSION])
    assert form is not None  # noqa: S101  # it was read before
    major, minor, patch, before = form.groups()
    words = () if before is None else before.split(".")
    order = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in words)
    return int(major), int(minor), int(patch), before is None, order


def _compare(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    """Less than, equal to or larger than 0, for two quantities or two versions."""
    if _QUANTITY in one and _QUANTITY in other:
        return (_amount(one) > _amount(other)) - (_amount(one) < _amount(other))
    if _VERSION in one and _VERSION in other:
        first, second = _parts(one), _parts(other)
        return (first > second) - (first < second)
    raise ValueError("expected two quantities, or two versions")


def _plus(one: Mapping[str, str], other: Mapping[str, str] | int, sign: int) -> dict[str, str]:
    amount = other * NANO if isinstance(other, int) else _amount(other)
    return {_QUANTITY: str(_amount(one) + sign * amount)}


def _whole(one: Mapping[str, str]) -> int:
    amount, rest = divmod(_amount(one), NANO)
    if rest:
        raise ValueError("the quantity is not whole")
    return amount


def _sign(one: Mapping[str, str]) -> int:
    return (_amount(one) > 0) - (_amount(one) < 0)


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Imported when the first selector is read: it takes 50 MB."""
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings

    kinds = cel.Type
    number, truth, text, any_map = kinds.INT, kinds.BOOL, kinds.STRING, kinds.Map(kinds.STRING, kinds.STRING)

    def function(name: str, *overloads: tuple[Any, tuple[Any, ...], Callable[..., Any]], member: bool = True) -> Any:
        made = [
            cel.Overload(f"{name}_{at}", gives, list(takes), member, body)
            for at, (gives, takes, body) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, made)

    def part(at: int) -> Callable[[Mapping[str, str]], Any]:
        return lambda one: _parts(one)[at]

    pair = (any_map, any_map)
    functions = [
        function("quantity", (any_map, (text,), _quantity), member=False),
        function("isQuantity", (truth, (text,), lambda one: _is(nanos, one)), member=False),
        function("semver", (any_map, (text,), _version), (any_map, (text, truth), _loose_version), member=False),
        function(
            "isSemver",
            (truth, (text,), lambda one: _is(_version, one)),
            (truth, (text, truth), _is_loose_version),
            member=False,
        ),
        function("compareTo", (number, pair, _compare)),
        function("isGreaterThan", (truth, pair, lambda one, other: _compare(one, other) > 0)),
        function("isLessThan", (truth, pair, lambda one, other: _compare(one, other) < 0)),
        function("sign", (number, (any_map,), _sign)),
        function("isInteger", (truth, (any_map,), lambda one: not _amount(one) % NANO)),
        function("asInteger", (number, (any_map,), _whole)),
        function("asApproximateFloat", (kinds.DOUBLE, (any_map,), lambda one: _amount(one) / NANO)),
        function(
            "add",
            (any_map, pair, lambda one, other: _plus(one, other, 1)),
            (any_map, (any_map, number), lambda one, other: _plus(one, other, 1)),
        ),
        function(
            "sub",
            (any_map, pair, lambda one, other: _plus(one, other, -1)),
            (any_map, (any_map, number), lambda one, other: _plus(one, other, -1)),
        ),
        function("major", (number, (any_map,), part(0))),
        function("minor", (number, (any_map,), part(1))),
        function("patch", (number, (any_map,), part(2))),
    ]
    extensions = [ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    return cel.NewEnv(variables={"device": kinds.Map(text, kinds.DYN)}, extensions=extensions, functions=functions)
