"""Columns whose cells are texts of few distinct values: what each may hold, and how it is read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from slacktide.inputs.columns import access, affinity_text, instances, occasions, terms
from slacktide.inputs.columns.cells import Distinct
from slacktide.inputs.columns.header import LABEL_COLUMNS
from slacktide.model.logins import EXPECTED as USERS

T = TypeVar("T")


class TextColumn(NamedTuple, Generic[T]):
    """A column: what a problem says that it may hold, the value of a cell, and the text of a value.

    Both functions raise :class:`ValueError`.
    """

    expected: str
    parse: Callable[[str], T]
    format: Callable[[T], str]


TEXTS: dict[str, TextColumn[Any]] = {
    "constraints": TextColumn(terms.EXPECTED_CONSTRAINTS, terms.parse_term, terms.format_term),
    "scale": TextColumn(instances.SCALE, instances.parse_scale, instances.format_scale),
    "marks": TextColumn(affinity_text.EXPECTED_MARKS, affinity_text.parse_marks, affinity_text.format_marks),
    "rules": TextColumn(affinity_text.EXPECTED_RULES, affinity_text.parse_rules, affinity_text.format_rules),
    "preferences": TextColumn(
        affinity_text.EXPECTED_PREFERENCES, affinity_text.parse_preferences, affinity_text.format_preferences
    ),
    "resize": TextColumn(occasions.RESIZE, occasions.parse_resizing, occasions.format_resizing),
    "lost": TextColumn(occasions.LOST, occasions.parse_past, occasions.format_past),
    "unready": TextColumn(occasions.UNREADY, occasions.parse_unreadiness, occasions.format_unreadiness),
    "budget": TextColumn(affinity_text.EXPECTED_BUDGET, affinity_text.parse_budget, affinity_text.format_budget),
    **{name: TextColumn("text", str, str) for name in LABEL_COLUMNS},
    "users": TextColumn(USERS, access.parse_users, access.format_users),
    "image": TextColumn(access.NAME, access.parse_name, str),
    "preferred": TextColumn(access.NAME, access.parse_name, str),
}
"""By name."""


class Tables(dict[str, Distinct[Any]]):
    """By column what its cells say, of one file; the number of a value is its code."""

    def __missing__(self, name: str) -> Distinct[Any]:
        self[name] = Distinct(TEXTS[name].parse)
        return self[name]
