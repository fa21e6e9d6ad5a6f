"""The search for the smallest size that will do: exact where larger is better, honest where it is not."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.experiment import prepare
from slacktide.experiment.planning import Bracket, bracket, next_sizes
from slacktide.model import Hosts


def searched(does: Callable[[int], bool], **how: int) -> dict[int, bool]:
    tested: dict[int, bool] = {}
    while sizes := next_sizes(tested, **how):
        assert len(sizes) <= max(how.get("at_once", 1), 1)
        assert not set(sizes) & set(tested), "a size is tested once"
        tested |= {size: does(size) for size in sizes}
    return tested


@given(
    threshold=st.integers(1, 300),
    start=st.integers(1, 200),
    at_once=st.integers(1, 5),
    beside=st.integers(0, 3),
)
def test_where_larger_is_never_worse_the_answer_is_exact(threshold: int, start: int, at_once: int, beside: int) -> None:
    tested = searched(lambda size: size >= threshold, start=start, most=400, at_once=at_once, beside=beside)
    assert bracket(tested) == Bracket(threshold - 1, threshold) or (threshold == 1 and bracket(tested).meets == 1)


@given(data=st.lists(st.booleans(), min_size=40, max_size=40), at_once=st.integers(1, 4), start=st.integers(1, 40))
def test_whatever_larger_sizes_do_all_tested_from_the_answer_on_do(data: list[bool], at_once: int, start: int) -> None:
    tested = searched(lambda size: data[size - 1], start=start, most=40, at_once=at_once)
    found = bracket(tested)
    if found.meets is None:
        assert not tested[40]
    else:
        assert all(does for size, does in tested.items() if size >= found.meets)
        assert found.fails == 0 or (found.meets == found.fails + 1 and not tested[found.fails])
        assert {one for one in (found.meets + 1, found.meets + 2) if one <= 40} <= set(tested)


def test_bisection_and_its_neighbours_step_by_step() -> None:
    # 620 hosts are given and 500 are enough: down, halves of what is left, then beside the answer.
    how = {"start": 620, "most": 4960}
    does: Callable[[int], bool] = lambda size: size >= 500  # noqa: E731
    assert next_sizes({}, **how) == [620]
    assert next_sizes({620: True}, **how) == [310]
    assert next_sizes({620: True, 310: False}, **how) == [465]
    tested = searched(does, **how)
    assert bracket(tested) == Bracket(499, 500)
    assert {498, 501, 502} <= set(tested)
    assert len(tested) <= 1 + 10 + 3  # one at the start, log2(620) halvings, three neighbours


def test_it_doubles_until_a_size_does_and_gives_up_at_the_most() -> None:
    assert sorted(searched(lambda _: False, start=3, most=20)) == [3, 6, 12, 20]
    assert bracket(searched(lambda _: False, start=3, most=20)) == Bracket(20, None)


def test_an_answer_may_be_as_rough_as_asked() -> None:
    tested = searched(lambda size: size >= 437, start=620, most=5000, within=10)
    found = bracket(tested)
    assert found.meets is not None
    assert found.fails < 437 <= found.meets
    assert found.meets - found.fails <= 10


def mix(*capacities: float) -> Hosts:
    count = len(capacities)
    return Hosts(
        ids=np.arange(10, 10 + count),
        names=tuple(f"h{index}" for index in range(count)),
        capacity=np.column_stack([capacities, capacities]),
        attributes=({},) * count,
    )


def test_sizes_are_nested_and_every_beginning_has_the_mix() -> None:
    hosts = mix(*[1.0] * 6, *[8.0] * 3)
    sets = [prepare.first(hosts, count) for count in range(1, 28)]
    for smaller, larger in pairwise(sets):
        assert larger.names[: len(smaller)] == smaller.names
        assert len(set(larger.names)) == len(larger)
    for count, one in enumerate(sets, 1):
        big = int((one.capacity[:, 0] == 8.0).sum())
        assert abs(big - count / 3) <= 1
    assert sorted(sets[8].names) == sorted(hosts.names)
    assert sorted(sets[26].names)[:3] == ["h0", "h0*2", "h0*3"]


@given(capacities=st.lists(st.sampled_from([1.0, 2.0, 4.0]), min_size=1, max_size=30), count=st.integers(1, 90))
def test_of_every_kind_there_are_as_many_as_its_part_or_one_beside(capacities: list[float], count: int) -> None:
    found = prepare.first(mix(*capacities), count).capacity[:, 0].tolist()
    for kind in set(capacities):
        part = capacities.count(kind) / len(capacities)
        assert found.count(kind) == pytest.approx(part * count, abs=len(set(capacities)))
