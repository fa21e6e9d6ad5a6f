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
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Codes, parse_integer
from slacktide.inputs.columns.terms import QUOTED, format_term, parse_term, pieces, unquote
from slacktide.inputs.problems import Problems
from slacktide.model import NO_CONSTRAINT, Budget, Preference, Rule, Topology
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
_PLAIN = r'[^\s";()]+'
_IS_PLAIN = re.compile(_PLAIN)
_WORD = rf"(?:{QUOTED}|{_PLAIN})"
_NUMBER = r"[-+]?[0-9]+"
_BY = rf"by\s+({_WORD})"
_WITHIN = rf'(?:\s+within\s*\(((?:{QUOTED}|[^"()])*)\))?\s*'
_MARKS = re.compile(rf"\s*(?:{_WORD}(?:\s+{_WORD})*)?\s*")
_COUNTED = re.compile(rf"\s*({_NUMBER})\s+({_WORD})\s*")
_RULE = re.compile(rf"\s*(near|away|spread)\s+({_WORD})\s+{_BY}(?:\s+([0-9]+))?(?:\s+min\s+({_NUMBER}))?{_WITHIN}")
_PREFERENCE = re.compile(
    rf'\s*({_NUMBER})\s+(?:if(?=[\s("])\s*(?:\(((?:{QUOTED}|[^"()])*)\)|((?:{QUOTED}|[^";()])*))\s*'
    rf"|({_WORD})\s+{_BY}{_WITHIN})"
)
_BUDGET = re.compile(rf"\s*({_WORD})(?:\s+({'|'.join(_BOUNDS)})\s+({_NUMBER}))?\s*")


def _named(word: str) -> str:
    """A word of a cell. Raises :class:`ValueError` for an empty one."""
    if not (found := unquote(word)):
        raise ValueError("a word is empty")
    return found


def _number(text: str, least: int, most: int) -> int:
    if not least <= (number := parse_integer(text)) <= most:
        raise ValueError(f"{text!r} is no whole number from {least} to {most}")
    return number


def _topology(word: str, within: str | None) -> Topology:
    """What stands behind ``by``, and in the parentheses behind ``within``."""
    key = _TOPOLOGIES[word] if word in _TOPOLOGIES else _named(word)
    if key == CLUSTER and word not in _TOPOLOGIES:
        raise ValueError(f"{word!r} is no attribute; 'by cluster' means all hosts")
    return Topology(key, NO_CONSTRAINT if within is None else parse_term(within))


def parse_marks(text: str) -> tuple[str, ...]:
    """The marks written as ``text``. Raises :class:`ValueError` on bad syntax or a mark given twice."""
    if _MARKS.fullmatch(text) is None:
        raise ValueError(f"not understood: {text!r}")
    found = tuple(map(_named, re.findall(_WORD, text)))
    if len(set(found)) < len(found):
        raise ValueError("a mark is given twice")
    return found


def parse_counted(text: str) -> Carried:
    """How many carry each mark, written as ``text``, one mark at least. Raises :class:`ValueError`."""
    found = tuple((_named(mark), _number(count, 0, MOST)) for count, mark in pieces(text, _COUNTED))
    if not found or len(dict(found)) < len(found):
        raise ValueError("no mark, or one twice")
    return found


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules written as ``text``. Raises :class:`ValueError` when they are none."""
    found = []
    for kind, mark, key, skew, domains, within in pieces(text, _RULE):
        if (skew or domains) and kind != "spread":
            raise ValueError(f"{kind} has no numbers")
        numbers = [1 if one is None else _number(one, 1, MOST) for one in (skew, domains)]
        found.append(Rule(cast(RuleKind, kind), _named(mark), _topology(key, within), *numbers))
    return tuple(found)


def parse_preferences(text: str) -> tuple[Preference, ...]:
    """The preferences written as ``text``. Raises :class:`ValueError` when they are none."""
    found = []
    for number, several, one, mark, key, within in pieces(text, _PREFERENCE):
        weight = _number(number, -MOST_WEIGHT, MOST_WEIGHT)
        if mark is not None:
            found.append(Preference(weight, _named(mark), _topology(key, within)))
        elif several is None and not one.strip():
            raise ValueError("no constraint behind if")
        else:
            found.append(Preference(weight, term=parse_term(one if several is None else several)))
    return tuple(found)


def parse_budget(text: str) -> NamedBudget | None:
    """The budget written as ``text``, ``None`` where nothing is. Raises :class:`ValueError` when it is none."""
    if not text.strip():
        return None
    match = _BUDGET.fullmatch(text)
    if match is None:
        raise ValueError(f"not understood: {text!r}")
    name, bound, number = match.groups()
    return _named(name), None if bound is None else (bound, _number(number, 0, MOST))


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


def budgets(
    codes: Codes, values: Sequence[NamedBudget | None], lines: NDArray[np.int64] | None, problems: Problems
) -> tuple[Codes, tuple[Budget, ...]] | None:
    """Each row's index among the budgets, -1 for none; ``None`` where nobody has one.

    Adds to ``problems`` every cell that gives a name another bound than another row does, and every
    name that has no bound in any row.
    """
    if not codes.any():
        return None
    known: dict[str, tuple[int, Budget]] = {}
    texts = [_text(one) for one in values]
    index = np.full(len(texts), -1, np.int32)

    def refuse(code: int, expected: str) -> None:
        problems.add_rows(codes == code, lines, "budget", [texts[code]] * len(codes), expected)

    for code, one in enumerate(values):
        if one is None or one[1] is None:
            continue
        name, bound = one[0], one[1]
        if name in known:
            expected = f"{format_budget(known[name][1])!r}, as in another row, or {name!r} alone"
            refuse(code, expected)
        else:
            known[name] = len(known), budget_of(name, bound)
            index[code] = known[name][0]
    for code, one in enumerate(values):
        if one is not None and one[1] is None:
            if one[0] in known:
                index[code] = known[one[0]][0]
            else:
                refuse(code, f"a bound in one of the rows, such as '{texts[code]} max-unavailable 1'")
    return index[codes], tuple(budget for _, budget in known.values())


def _text(one: NamedBudget | None) -> str:
    if one is None:
        return ""
    name, bound = one
    return name if bound is None else format_budget(budget_of(name, bound))
