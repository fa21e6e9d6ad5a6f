"""From priorities and QoS classes to service classes."""

from __future__ import annotations

import polars as pl
import pytest

from slacktide.errors import ConfigError
from slacktide.inputs.traces import ClassMap

NAMES = ("gold", "silver", "bronze")


def mapped(rules: str, values: list[int | str]) -> list[str | None]:
    """The class of each value."""
    frame = pl.DataFrame({"value": values})
    return frame.select(ClassMap.parse(rules, NAMES).classes_of("value").alias("class"))["class"].to_list()


def test_numbers_fall_into_ranges() -> None:
    assert mapped("9-=gold,2-8=silver,0-1=bronze", [11, 9, 8, 2, 1, 0, -1]) == [
        *("gold", "gold", "silver", "silver", "bronze", "bronze", None)
    ]
    assert mapped("7=gold,-1=bronze", [7, 8, -1]) == ["gold", None, "bronze"]
    assert mapped("-5--2=gold", [-6, -5, -2, -1]) == [None, "gold", "gold", None]


def test_words_must_be_equal_and_a_star_takes_the_rest() -> None:
    assert mapped("LS=gold, BE = bronze", ["LS", "BE", "ls"]) == ["gold", "bronze", None]
    assert mapped("Delay-insensitive=bronze,*=silver", ["Delay-insensitive", "", "x"]) == ["bronze", "silver", "silver"]


def test_the_first_rule_that_holds_decides() -> None:
    assert mapped("5=gold,0-9=silver,*=bronze", [5, 6, 10]) == ["gold", "silver", "bronze"]


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("LS", "found 'LS', expected rules such as"),
        ("", "found '', expected rules such as"),
        ("=gold", "found '=gold'"),
        ("LS=gold,", "found '', expected"),
        ("LS=golden", r"class: found 'golden', expected one of gold, silver, bronze \(did you mean 'gold'\?\)"),
    ],
)
def test_rules_that_are_none_are_refused(rules: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"--map: {said}"):
        ClassMap.parse(rules, NAMES)
