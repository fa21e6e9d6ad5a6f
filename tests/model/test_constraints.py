"""Conditions on hosts: one host at a time and all at once agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.model.constraint import (
    AnyOf,
    Condition,
    Constraint,
    Operator,
    Term,
    Tolerates,
    Toleration,
    integer,
    taint_attribute,
)
from slacktide.model.hosts import Hosts
from slacktide.model.matching import matches, matching_hosts

VALUES = st.sampled_from(["", "1", "2", "10", "1.5", "x", "9007199254740993", "-3"])
KEYS = st.sampled_from(["a", "b", taint_attribute("NoSchedule", "k"), taint_attribute("PreferNoSchedule", "k")])
ATTRIBUTES = st.dictionaries(KEYS, VALUES)
TOLERATION = st.builds(
    Toleration, st.sampled_from(["", "k", "j"]), st.sampled_from(["", "NoSchedule", "NoExecute"]), VALUES, st.booleans()
)
PLAIN: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Constraint, KEYS, st.sampled_from(["==", "/=", "<", ">", "gt", "lt", "exists", "absent"]), VALUES),
    st.builds(Constraint, KEYS, st.sampled_from(["in", "not in"]), st.just(""), st.lists(VALUES).map(tuple)),
    st.builds(Tolerates, st.lists(TOLERATION, max_size=2).map(tuple)),
)
CONDITION = st.recursive(
    PLAIN,
    lambda inner: st.lists(st.lists(inner, max_size=2).map(lambda some: Term(tuple(some))), max_size=2).map(
        lambda terms: AnyOf(tuple(terms))
    ),
    max_leaves=5,
)
TERMS = st.lists(st.lists(CONDITION, max_size=3).map(lambda some: Term(tuple(some))), max_size=4)


@given(TERMS, st.lists(ATTRIBUTES, max_size=5))
def test_all_hosts_at_once_and_one_by_one_agree(terms: list[Term], attributes: list[dict[str, str]]) -> None:
    count = len(attributes)
    hosts = Hosts(np.arange(count), tuple(map(str, range(count))), np.zeros((count, 2)), tuple(attributes))
    expected = [[matches(term, one) for one in attributes] for term in terms]
    assert matching_hosts(terms, hosts).tolist() == expected


@pytest.mark.parametrize(
    ("op", "missing", "equal", "other"),
    [
        ("==", False, True, False),
        ("/=", True, False, True),
        ("in", False, True, False),
        ("not in", True, False, True),
        ("exists", False, True, True),
        ("absent", True, False, False),
    ],
)
def test_what_a_missing_attribute_satisfies(op: Operator, missing: bool, equal: bool, other: bool) -> None:
    constraint = Constraint("a", op, "1", ("1", "2"))
    assert [constraint.holds(one) for one in ({}, {"a": "1"}, {"a": "3"})] == [missing, equal, other]


def test_only_some_taints_refuse() -> None:
    soft, hard = {taint_attribute("PreferNoSchedule", "k"): ""}, {taint_attribute("NoExecute", "k"): "v"}
    assert Tolerates().holds(soft)
    assert not Tolerates().holds(hard)
    assert not Tolerates(effects=("PreferNoSchedule",)).holds(soft)
    assert Tolerates((Toleration("k", value="v"),)).holds(hard)
    assert not Tolerates((Toleration("k", value="w"),)).holds(hard)


@pytest.mark.parametrize(
    ("text", "found"),
    [("7", 7), ("+7", 7), ("-7", -7), ("7.0", None), ("1_0", None), (" 7", None), ("", None), (str(2**63), None),
     (str(-(2**63)), -(2**63)), ("\u0667", None), ("9" * 5000, None)],
)  # fmt: skip
def test_whole_numbers_of_64_bits(text: str, found: int | None) -> None:
    assert integer(text) == found


def test_conditions_read_well() -> None:
    term = Term(
        (Constraint("zone", "in", "", ("a", "b")), Constraint("gpu", "exists"), AnyOf((Term(), Term())), AnyOf(()))
    )
    assert str(term) == "zone in (a, b) and gpu exists and (anywhere) or (anywhere) and nowhere"
