"""Constraints and attributes as text.

::

    constraints   Ql > 4; wN == 2; "a key" /= "a;value"     (empty: anywhere)
    attributes    Ql=4; wN=2; "a key"="a;value"             (empty: none)

Words with blanks, quotes, ``;``, ``=``, ``<`` or ``>`` in them stand in double
quotes, with JSON's escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from slacktide.model import Constraint, Term
from slacktide.model.constraint import OPERATORS, Operator

EXPECTED_CONSTRAINTS = f"constraints such as 'key > 4; other == x', operators {' '.join(OPERATORS)}"
EXPECTED_ATTRIBUTES = "attributes such as 'key=4; other=x', every key once"

QUOTED = r'"(?:[^"\\]|\\.)*"'
"""A word in double quotes, as a regular expression without groups."""
_PLAIN = r'[^\s";=<>]+'
# The key is lazy so that the slash of '/=' belongs to the operator and that of 'o/ == 0' to the key.
_CONSTRAINT = re.compile(rf"\s*({QUOTED}|{_PLAIN}?)\s*(==|/=|<|>)\s*({QUOTED}|{_PLAIN})\s*")
_ATTRIBUTE = re.compile(rf"\s*({QUOTED}|{_PLAIN})\s*=\s*({QUOTED}|{_PLAIN})\s*")
_IS_PLAIN = re.compile(_PLAIN)


def parse_term(text: str) -> Term:
    """The term written as ``text``. Raises :class:`ValueError` when it is not one."""
    found = [
        Constraint(unquote(key), cast(Operator, operator), unquote(value))
        for key, operator, value in pieces(text, _CONSTRAINT)
    ]
    return Term(tuple(found))


def parse_attributes(text: str) -> dict[str, str]:
    """The attributes written as ``text``. Raises :class:`ValueError` on bad syntax or a key given twice."""
    found: dict[str, str] = {}
    for key, value in pieces(text, _ATTRIBUTE):
        if (word := unquote(key)) in found:
            raise ValueError(f"attribute {word!r} is given twice")
        found[word] = unquote(value)
    return found


def format_term(term: Term, in_parentheses: bool = False) -> str:
    """Text from which :func:`parse_term` makes an equal term; ``in_parentheses`` quotes words that have some.

    Raises :class:`ValueError` for a condition that is not ``key op value`` with one of ``OPERATORS``.
    """
    found = []
    for one in term.constraints:
        if not isinstance(one, Constraint) or one.op not in OPERATORS:
            raise ValueError(f"found {str(one)!r}, expected {EXPECTED_CONSTRAINTS}")
        key, value = (_quote(word, in_parentheses) for word in (one.key, one.value))
        found.append(f"{key} {one.op} {value}")
    return "; ".join(found)


def format_attributes(attributes: Mapping[str, str]) -> str:
    """Text from which :func:`parse_attributes` makes equal attributes."""
    return "; ".join(f"{_quote(key)}={_quote(value)}" for key, value in attributes.items())


def pieces(text: str, piece: re.Pattern[str]) -> list[tuple[str | Any, ...]]:
    """Every ``;``-separated piece of ``text``, split into its parts."""
    if not text.strip():
        return []
    found = []
    position = 0
    while True:
        match = piece.match(text, position)
        if match is None:
            raise ValueError(f"not understood from {text[position:].strip()!r} on")
        found.append(match.groups())
        position = match.end()
        if position == len(text):
            return found
        if text[position] != ";":
            raise ValueError(f"not understood from {text[position:]!r} on")
        position += 1
        if not text[position:].strip():  # a semicolon at the end is harmless
            return found


def _quote(word: str, in_parentheses: bool = False) -> str:
    plain = _IS_PLAIN.fullmatch(word) and not (in_parentheses and ("(" in word or ")" in word))
    return word if plain else json.dumps(word, ensure_ascii=False)


def unquote(word: str) -> str:
    """A word of a cell without its quotes. Raises :class:`ValueError`."""
    return str(json.loads(word, strict=False)) if word.startswith('"') else word
