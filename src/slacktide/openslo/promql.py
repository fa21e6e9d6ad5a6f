"""PromQL as far as indicators of availability need it: text to a tree of selectors, calls and operations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
    |(?P<range>\[[^\]]*\])
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])|[+-]?(?:Inf|NaN)\b)
    |(?P<duration>\d+(?:ms|[smhdwy]))
    |(?P<name>[a-zA-Z_:][\w:]*)
    |(?P<sign>=~|!~|!=|==|>=|<=|[-+*/%^(){},=<>@])""",
    re.VERBOSE,
)
_LEVELS = (("or",), ("and", "unless"), ("==", "!=", ">", "<", ">=", "<="), ("+", "-"), ("*", "/", "%", "atan2"), ("^",))
"""Operators, those that bind least first."""
AGGREGATIONS = ("sum", "avg", "min", "max", "count", "group", "stddev", "stdvar", "topk", "bottomk", "quantile")
MATCHES = ("=", "!=", "=~", "!~")


class NotUnderstood(Exception):  # noqa: N818  # expected, and told with the place of the query
    """A query that is no PromQL, or none of the kind that is asked for; the text says why."""


@dataclass(frozen=True, slots=True)
class Matcher:
    """What a label of a series must be."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    """Series of a name, those whose labels match."""

    name: str
    matchers: tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an aggregation; ``by`` are the labels that an aggregation keeps, None where it names none."""

    name: str
    arguments: tuple[Tree, ...]
    by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """Two sides and what joins them."""

    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Text:
    """An argument of label_replace, say."""

    value: str


Tree = Number | Selector | Call | Operation | Text


def parse(query: str) -> Tree:
    """The tree of a query, in which ranges such as ``[5m]`` or ``[{{.window}}]`` are left out.

    Raises :class:`NotUnderstood`, with what was found and what was expected, for what is no PromQL.
    """
    reader = _Reader(query)
    try:
        found = reader.level(0)
    except RecursionError:
        raise NotUnderstood("nested too deeply, expected an indicator that people can read") from None
    if reader.at < len(reader.tokens):
        reader.fail("an operator or the end")
    return found


class _Reader:
    """Descends by the levels of operators."""

    def __init__(self, query: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        at = 0
        while at < len(query):
            token = _TOKEN.match(query, at)
            if token is None:
                raise NotUnderstood(f"found {query[at : at + 20]!r}, expected PromQL")
            if token.lastgroup not in ("space", None):
                self.tokens.append((str(token.lastgroup), token[0]))
            at = token.end()

    @property
    def next(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def fail(self, expected: str) -> NoReturn:
        raise NotUnderstood(f"found {self.next or 'the end'!r}, expected {expected}")

    def take(self, *expected: str) -> str:
        found = self.next
        if expected and found not in expected:
            self.fail(" or ".join(repr(one) for one in expected))
        self.at += 1
        return found

    def level(self, number: int) -> Tree:
        if number == len(_LEVELS):
            return self.unary()
        left = self.level(number + 1)
        while self.next in _LEVELS[number] and self.kind in ("sign", "name"):
            operator = self.take()
            if self.next == "bool":
                operator += f" {self.take()}"
            while self.next in ("on", "ignoring", "group_left", "group_right"):
                self.take()
                if self.next == "(":
                    self.labels()
            left = Operation(operator, left, self.level(number + 1))
        return left

    def unary(self) -> Tree:
        if self.next in ("+", "-") and self.kind == "sign":
            sign = self.take()
            inner = self.unary()
            return inner if sign == "+" else Operation("-", Number(0.0), inner)
        found = self.primary()
        while self.kind == "range" or self.next in ("offset", "@"):
            if self.take() in ("offset", "@"):
                if self.next == "-":
                    self.take()
                while self.kind in ("duration", "number"):
                    self.take()
        return found

    def primary(self) -> Tree:
        if self.kind == "number":
            return Number(float(self.take()))
        if self.kind == "text":
            return Text(_unquoted(self.take()))
        if self.next == "(":
            self.take()
            found = self.level(0)
            self.take(")")
            return found
        if self.next == "{":
            return self.selector("")
        if self.kind != "name":
            self.fail("a metric, a function or a number")
        name = self.take()
        if name in AGGREGATIONS and self.next in ("(", "by", "without"):
            return self.aggregation(name)
        if self.next == "(":
            return Call(name, self.arguments())
        return self.selector(name)

    def aggregation(self, name: str) -> Tree:
        by = self.grouping()
        arguments = self.arguments()
        return Call(name, arguments, self.grouping() if by is None else by)

    def grouping(self) -> tuple[str, ...] | None:
        if self.next not in ("by", "without"):
            return None
        kept = self.take() == "by"
        labels = self.labels()
        return labels if kept else None

    def labels(self) -> tuple[str, ...]:
        self.take("(")
        found = []
        while self.next != ")":
            found.append(_unquoted(self.take()))
            if self.next != ")":
                self.take(",")
        self.take(")")
        return tuple(found)

    def arguments(self) -> tuple[Tree, ...]:
        self.take("(")
        found = []
        while self.next != ")":
            found.append(self.level(0))
            if self.next != ")":
                self.take(",")
        self.take(")")
        return tuple(found)

    def selector(self, name: str) -> Selector:
        matchers = []
        if self.next == "{":
            self.take()
            while self.next != "}":
                if self.kind not in ("name", "text"):
                    self.fail("a label")
                label = _unquoted(self.take())
                operator = self.take(*MATCHES)
                if self.kind != "text":
                    self.fail(f"a text in quotes behind {label}{operator}")
                matchers.append(Matcher(label, operator, _unquoted(self.take())))
                if self.next != "}":
                    self.take(",")
            self.take("}")
        named = next((one.value for one in matchers if (one.label, one.operator) == ("__name__", "=")), name)
        return Selector(name or named, tuple(one for one in matchers if one.label != "__name__"))


def _unquoted(token: str) -> str:
    if token[:1] == "`":
        return token[1:-1]
    if token[:1] not in ("'", '"'):
        return token
    return re.sub(r"\\(.)", lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), token[1:-1])
