"""Marks, rules, preferences and budgets as text, and how many carry a mark.

::

    marks        web port:8080                                      (empty: none)
    rules        near web by zone; away port:8080 by host; spread web by zone 1 min 3 within (disk == ssd)
    preferences  +10 web by zone; -5 batch by host; +20 if disk == ssd; +1 if (disk == ssd; kernel > 4)
    counted      2 web; 0 port:8080                                 (so many carry a mark)
    budget       web                                                (its bound stands in another row)
                 web max-unavailable 1
                 web min-available 2

``by host`` makes every host a domain of its own and ``by cluster`` all of them one; any other word is
an attribute. Words with blanks, quotes, ``;``, ``(`` or ``)``, attributes named ``host`` or
``cluster``, and a mark ``if`` in preferences, stand in double quotes, with JSON's escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeVar, cast, get_args

from slacktide.inputs.columns.cells import parse_integer
from slacktide.inputs.columns.terms import QUOTED, format_term, parse_term
from slacktide.model import NO_CONSTRAINT, Budget, Preference, Rule, Term, Topology
from slacktide.model.host_events import Carried
from slacktide.model.placement import CLUSTER, HOST, RuleKind

T = TypeVar("T")

MOST_WEIGHT = 10_000
"""Largest weight of a preference, either sign: with it the points of 25 million neighbours fit into 64 bits."""
MOST = 100_000_000

EXPECTED_MARKS = "words with blanks between them, each once"
EXPECTED_COUNTED = f"how many carry a mark, such as '2 web; 0 port:8080', from 0 to {MOST:,}, every mark once"
EXPECTED_RULES = (
    "rules such as 'near web by zone; away web by host; spread web by zone 1 min 3 within (disk == ssd)', "
    f"numbers from 1 to {MOST:,}"
)
EXPECTED_PREFERENCES = (
    "preferences such as '+10 web by zone; -5 batch by host within (disk == ssd); +20 if disk == ssd', "
    f"weights from -{MOST_WEIGHT:,} to {MOST_WEIGHT:,}"
)
EXPECTED_BUDGET = f"a budget such as 'web', 'web max-unavailable 1' or 'web min-available 2', bounds from 0 to {MOST:,}"

Bound = tuple[str, int]
"""``max-unavailable`` or ``min-available``, and how many."""
NamedBudget = tuple[str, Bound | None]
"""Without a bound where the name stands alone."""

_TOPOLOGIES = {"host": HOST, "cluster": CLUSTER}
_BOUNDS = ("max-unavailable", "min-available")
_KINDS = get_args(RuleKind)
_PLAIN = r'[^\s";()]+'
_IS_PLAIN = re.compile(_PLAIN)
_WORD = re.compile(rf"\s*(?:({QUOTED})|({_PLAIN}))")
_IN_PARENTHESES = re.compile(rf'\s*\(((?:{QUOTED}|[^"()])*)\)')
_UP_TO_SEMICOLON = re.compile(rf'((?:{QUOTED}|[^";()])*)')


class _Text:
    """A cell, read word by word from its beginning."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What the pattern matches here, which is then behind."""
        match = pattern.match(self.text, self.position)
        self.position = self.position if match is None else match.end()
        return match

    def rest(self) -> str:
        return self.text[self.position :].strip()

    def unexpected(self) -> ValueError:
        return ValueError(f"not understood from {self.rest()!r} on")

    def word(self) -> tuple[str, bool]:
        """The next word, and whether it was quoted."""
        match = self.take(_WORD)
        if match is None:
            raise self.unexpected()
        quoted, plain = match.groups()
        word = plain if quoted is None else str(json.loads(quoted, strict=False))
        if not word:
            raise ValueError("a word is empty")
        return word, quoted is not None

    def plain(self, *expected: str) -> bool:
        """Whether one of these words, unquoted, is next; if so, it is behind."""
        before = self.position
        if self.rest() and self.rest()[0] not in ";()" and self.word() in [(word, False) for word in expected]:
            return True
        self.position = before
        return False

    def require(self, expected: str) -> None:
        if not self.plain(expected):
            raise self.unexpected()

    def number(self, least: int, most: int) -> int:
        word, quoted = self.word()
        number = parse_integer(word)
        if quoted or not least <= number <= most:
            raise ValueError(f"{word!r} is no whole number from {least} to {most}")
        return number

    def term(self) -> Term:
        """A term in parentheses."""
        match = self.take(_IN_PARENTHESES)
        if match is None:
            raise self.unexpected()
        return parse_term(match.group(1))

    def topology(self) -> tuple[str, bool]:
        """What stands behind ``by``."""
        self.require("by")
        word, quoted = self.word()
        if not quoted and word in _TOPOLOGIES:
            return _TOPOLOGIES[word], quoted
        if word == CLUSTER:
            raise ValueError(f"{word!r} is no attribute; 'by cluster' means all hosts")
        return word, quoted

    def within(self) -> Term:
        return self.term() if self.plain("within") else NO_CONSTRAINT


def _list(text: str, one: Callable[[_Text], T]) -> tuple[T, ...]:
    """Every ``;``-separated piece of ``text``; a semicolon at the end is harmless."""
    found, source = [], _Text(text)
    while source.rest():
        found.append(one(source))
        if source.rest() and source.take(re.compile(r"\s*;")) is None:
            raise source.unexpected()
    return tuple(found)


def parse_marks(text: str) -> tuple[str, ...]:
    """The marks written as ``text``. Raises :class:`ValueError` on bad syntax or a mark given twice."""
    found, source = [], _Text(text)
    while source.rest():
        mark, _ = source.word()
        if mark in found:
            raise ValueError(f"mark {mark!r} is given twice")
        found.append(mark)
    return tuple(found)


def parse_counted(text: str) -> Carried:
    """How many carry each mark, written as ``text``, one mark at least. Raises :class:`ValueError`."""
    found = _list(text, _counted)
    if not found or len(dict(found)) < len(found):
        raise ValueError("no mark, or one twice")
    return found


def _counted(source: _Text) -> tuple[str, int]:
    count = source.number(0, MOST)
    return source.word()[0], count


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules written as ``text``. Raises :class:`ValueError` when they are none."""
    return _list(text, _rule)


def _rule(source: _Text) -> Rule:
    for kind in _KINDS:
        if source.plain(kind):
            break
    else:
        raise source.unexpected()
    mark, _ = source.word()
    key, _ = source.topology()
    skew = least_domains = 1
    if kind == "spread":
        if source.rest()[:1].isdecimal():
            skew = source.number(1, MOST)
        if source.plain("min"):
            least_domains = source.number(1, MOST)
    return Rule(kind, mark, Topology(key, source.within()), skew, least_domains)


def parse_preferences(text: str) -> tuple[Preference, ...]:
    """The preferences written as ``text``. Raises :class:`ValueError` when they are none."""
    return _list(text, _preference)


def _preference(source: _Text) -> Preference:
    weight = source.number(-MOST_WEIGHT, MOST_WEIGHT)
    if source.plain("if"):
        if source.rest().startswith("("):
            return Preference(weight, term=source.term())
        match = source.take(_UP_TO_SEMICOLON)
        if match is None or not match.group(1).strip():
            raise source.unexpected()
        return Preference(weight, term=parse_term(match.group(1)))
    mark, _ = source.word()
    key, _ = source.topology()
    return Preference(weight, mark, Topology(key, source.within()))


def parse_budget(text: str) -> NamedBudget | None:
    """The budget written as ``text``, ``None`` where nothing is. Raises :class:`ValueError` when it is none."""
    source = _Text(text)
    if not source.rest():
        return None
    name, _ = source.word()
    bound: Bound | None = None
    for word in _BOUNDS:
        if source.plain(word):
            bound = word, source.number(0, MOST)
            break
    if source.rest():
        raise source.unexpected()
    return name, bound


def budget_of(name: str, bound: Bound) -> Budget:
    """The budget of this name and bound."""
    word, number = bound
    return Budget(name, max_unavailable=number) if word == _BOUNDS[0] else Budget(name, min_available=number)


def format_marks(marks: tuple[str, ...]) -> str:
    """Text from which :func:`parse_marks` makes equal marks; raises :class:`ValueError` where there is none."""
    return _checked(" ".join(map(_quote, marks)), marks, parse_marks)


def format_counted(carried: Carried) -> str:
    """Text from which :func:`parse_counted` makes an equal one; raises :class:`ValueError` where there is none."""
    return _checked("; ".join(f"{count} {_quote(mark)}" for mark, count in carried), carried, parse_counted)


def format_rules(rules: tuple[Rule, ...]) -> str:
    """Text from which :func:`parse_rules` makes equal rules; raises :class:`ValueError` where there is none."""
    return _checked("; ".join(map(_format_rule, rules)), rules, parse_rules)


def format_preferences(preferences: tuple[Preference, ...]) -> str:
    """Text from which :func:`parse_preferences` makes equal ones; raises :class:`ValueError` where there is none."""
    return _checked("; ".join(map(_format_preference, preferences)), preferences, parse_preferences)


def format_budget(budget: Budget) -> str:
    """Text from which :func:`parse_budget` makes an equal one; raises :class:`ValueError` where there is none."""
    number = budget.min_available if budget.max_unavailable is None else budget.max_unavailable
    text = f"{_quote(budget.name)} {_BOUNDS[budget.max_unavailable is None]} {number}"
    said: NamedBudget | None = budget.name, (_BOUNDS[budget.max_unavailable is None], cast(int, number))
    return _checked(text, said, parse_budget)


def _format_rule(rule: Rule) -> str:
    numbers = f" {rule.skew}" + (f" min {rule.min_domains}" if rule.min_domains != 1 else "")
    by, within = _format_topology(rule.topology)
    return f"{rule.kind} {_quote(rule.mark)} {by}{numbers if rule.kind == 'spread' else ''}{within}"


def _format_preference(one: Preference) -> str:
    if one.mark:
        mark = json.dumps(one.mark) if one.mark == "if" else _quote(one.mark)
        return f"{one.weight:+d} {mark} {''.join(_format_topology(one.topology))}"
    term = format_term(one.term, in_parentheses=True)
    return f"{one.weight:+d} if {term}" if len(one.term.constraints) == 1 else f"{one.weight:+d} if ({term})"


def _format_topology(topology: Topology) -> tuple[str, str]:
    """``by KEY`` and, with a blank before it, ``within (TERM)`` where it has one."""
    words = {key: word for word, key in _TOPOLOGIES.items()}
    key = topology.key
    word = words.get(key) or (json.dumps(key, ensure_ascii=False) if key in _TOPOLOGIES else _quote(key))
    within = f" within ({format_term(topology.within, in_parentheses=True)})" if topology.within.constraints else ""
    return f"by {word}", within


def _quote(word: str) -> str:
    return word if _IS_PLAIN.fullmatch(word) else json.dumps(word, ensure_ascii=False)


def _checked(text: str, value: T, parse: Callable[[str], T]) -> str:
    """``text`` if it says ``value``; what is never looked at, as the skew of an ``away``, cannot be said."""
    try:
        if parse(text) == value:
            return text
    except ValueError:
        pass
    raise ValueError(f"found {value!r}, which a file cannot say")
