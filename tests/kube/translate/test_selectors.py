"""Selectors of labels and nodes, by the tables of Kubernetes' documentation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.kube.client.metadata import LabelSelector, NodeSelector
from slacktide.kube.translate.selectors import EVERYTHING, NOTHING, compiled, node_conditions
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model.constraint import AnyOf, Constraint, Term
from support import filters


def selector(**fields: Any) -> LabelSelector:
    return msgspec.convert(fields, LabelSelector)


def nodes(*terms: Any) -> Term:
    found = msgspec.convert({"nodeSelectorTerms": list(terms)}, NodeSelector)
    return Term(node_conditions(found, "required node affinity"))


def needs(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_an_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert compiled(None, "here") is NOTHING
    assert compiled(None, "here", [("a", "In", ("1",))]) is NOTHING
    assert compiled(selector(), "here") is EVERYTHING
    assert not NOTHING.matches({})
    assert EVERYTHING.matches({})


@pytest.mark.parametrize(
    ("operator", "values", "absent", "one", "three"),
    [
        ("In", ["1", "2"], False, True, False),
        ("NotIn", ["1", "2"], True, False, True),
        ("Exists", [], False, True, True),
        ("DoesNotExist", [], True, False, False),
    ],
)
def test_operators_on_labels(operator: str, values: list[str], absent: bool, one: bool, three: bool) -> None:
    found = compiled(selector(matchExpressions=[{"key": "a", "operator": operator, "values": values}]), "here")
    assert [found.matches(labels) for labels in ({}, {"a": "1"}, {"a": "3"})] == [absent, one, three]


def test_equal_selectors_are_one_object_however_they_are_written() -> None:
    first = compiled(selector(matchLabels={"a": "1", "b": "2"}), "here")
    in_other_words = [
        {"key": "b", "operator": "In", "values": ["2", "2"]},
        {"key": "a", "operator": "In", "values": ["1"]},
    ]
    assert compiled(selector(matchExpressions=in_other_words), "there") is first


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ({"key": "a", "operator": "Near", "values": ["1"]}, "found operator 'Near', expected one of In, NotIn"),
        ({"key": "a", "operator": "Gt", "values": ["1"]}, "found operator 'Gt'"),
        ({"key": "a", "operator": "In", "values": []}, r"In: found \(\), expected at least one value"),
        ({"key": "a", "operator": "Exists", "values": ["1"]}, r"Exists: found \(1\), expected no value"),
    ],
)
def test_a_malformed_requirement_is_refused_by_place_key_and_value(expression: dict[str, Any], problem: str) -> None:
    with pytest.raises(Unschedulable, match=f"here: key 'a': {problem}"):
        compiled(selector(matchExpressions=[expression]), "here")


@pytest.mark.parametrize(
    ("operator", "limit", "found", "holds"),
    [
        ("Gt", "3", "4", True),
        ("Gt", "3", "3", False),
        ("Gt", "3", "3.5", False),
        ("Gt", "3", "four", False),
        ("Gt", "-5", "-4", True),
        ("Lt", "3", "+2", True),
        ("Lt", "9007199254740993", "9007199254740992", True),
        ("Lt", "3", "9223372036854775808", False),
        ("Lt", "3", "-9223372036854775809", False),
    ],
)
def test_greater_and_less_compare_whole_numbers_of_64_bits(operator: str, limit: str, found: str, holds: bool) -> None:
    assert nodes(needs("size", operator, limit)).holds({"size": found}) == holds
    assert not nodes(needs("size", operator, limit)).holds({})


def test_terms_of_a_node_selector_are_alternatives_and_an_empty_one_matches_no_node() -> None:
    either = nodes(needs("zone", "In", "a"), needs("rack", "Exists"), {})
    assert either.holds({"zone": "a"})
    assert either.holds({"rack": ""})
    assert not either.holds({"zone": "b"})
    assert not nodes({}).holds({"zone": "a"})
    assert not nodes().holds({})


def test_alternatives_of_one_key_become_one_condition() -> None:
    found = nodes(*(needs("host", "In", f"h{k}") for k in range(1000)))
    assert found.constraints == (
        AnyOf((Term((Constraint("host", "in", "", tuple(sorted(f"h{k}" for k in range(1000)))),)),)),
    )


def test_fields_are_the_name_of_the_node_alone() -> None:
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    assert nodes(by_name) == Term((Constraint("metadata.name", "==", "n1"),))
    for wrong in (
        {"key": "metadata.namespace", "operator": "In", "values": ["n1"]},
        {"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]},
    ):
        with pytest.raises(Unschedulable, match=r"expected metadata\.name and one value"):
            nodes({"matchFields": [wrong]})
    with pytest.raises(Unschedulable, match="found operator 'Exists', expected one of In, NotIn"):
        nodes({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]})


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2", "x"]), max_size=3)
EXPRESSION = st.one_of(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["In", "NotIn"]), st.lists(st.sampled_from("12x"), min_size=1)),
    st.tuples(st.sampled_from("abc"), st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
).map(lambda one: {"key": one[0], "operator": one[1], "values": list(one[2])})


@given(st.lists(EXPRESSION, max_size=3), LABELS, LABELS)
def test_a_compiled_selector_is_the_selector(
    expressions: list[Any], wanted: dict[str, str], labels: dict[str, str]
) -> None:
    plain = {"matchLabels": wanted, "matchExpressions": expressions}
    assert compiled(selector(**plain), "here").matches(labels) == filters.selected(plain, labels)
