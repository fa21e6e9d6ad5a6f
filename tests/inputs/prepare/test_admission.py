"""Offline admission: what hosts could carry, against sums done by hand and the slow twin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.admission import admitted as slow
from slacktide.errors import ConfigError
from slacktide.inputs.prepare import spans
from slacktide.kernels.offline_admission import ADMITTED, OVER_LIMIT, within_limits
from slacktide.model import Constraint, Hosts, Term, Workload
from support import small
from support.preparing import admit
from support.small import Request, Several, workload

GOLD = small.GOLD


def hosts(*sizes: float, attributes: tuple[dict[str, str], ...] = ()) -> Hosts:
    return Hosts(
        ids=np.arange(len(sizes)),
        names=tuple(f"h{number}" for number in range(len(sizes))),
        capacity=np.array([[size, size] for size in sizes]),
        attributes=attributes or ({},) * len(sizes),
    )


def test_a_request_is_refused_while_the_active_ones_fill_the_limit() -> None:
    # Capacity 10, limit 1, at the first instant .8: of three of 4 at second 0 two come in (8), the third would make 12.
    # At 5 there are 10 - 8 = 2 left: 2 comes in. At 6 nothing is left. At 10 the first two have gone.
    found = admit(
        workload(
            [
                Request(GOLD, 0, 10, 4),
                Request(GOLD, 0, 10, 4),
                Request(GOLD, 0, 10, 4),
                Request(GOLD, 5, 100, 2),
                Request(GOLD, 6, 1, 0.5),
                Request(GOLD, 10, 1, 8),
            ]
        ),
        hosts(8, 2),
        limit=1.0,
    )
    assert found.workload.ids.tolist() == [0, 1, 3, 5]
    assert (found.refused, found.at_first, found.over_limit) == (2, 1, {"cpu": 2, "memory": 0})


def test_the_limit_at_the_first_instant_is_twenty_points_lower_unless_said() -> None:
    requests = workload([Request(GOLD, 0, 10, 1) for _ in range(10)])
    assert len(admit(requests, hosts(10), limit=0.9).workload) == 7
    assert len(admit(requests, hosts(10), limit=0.9, first_limit=0.5).workload) == 5
    assert len(admit(requests, hosts(10), first_limit=1.0).workload) == 10


def test_who_fits_nowhere_is_refused_and_says_why() -> None:
    ssd, none = Term((Constraint("disk", "==", "ssd"),)), Term((Constraint("disk", "==", "tape"),))
    requests = workload(
        [
            Request(GOLD, 0, 10, 1),
            Request(GOLD, 0, 10, 1, term=none),
            Request(GOLD, 1, 10, 3, term=ssd),  # fits on h1 alone, which has no such disk
            Request(GOLD, 1, 10, 2, term=ssd),
        ]
    )
    found = admit(requests, hosts(2, 4, attributes=({"disk": "ssd"}, {})))
    assert found.workload.ids.tolist() == [0, 3]
    assert (found.no_host, found.too_large, found.over_limit) == (1, 1, {"cpu": 0, "memory": 0})
    assert found.workload.terms == requests.terms


def test_a_request_of_several_instances_comes_whole_or_not_at_all() -> None:
    # Three instances of 2 make 6: with 5 active there is no room in 10, with 4 there is.
    several = [Several("concurrent")]
    rows = [Request(GOLD, 0, 100, 5)] + [Request(GOLD, 1, 10, 2, of=0)] * 3
    refused = admit(workload(rows, several), hosts(10), first_limit=1.0)
    assert (len(refused.workload), refused.refused) == (1, 1)
    rows[0] = Request(GOLD, 0, 100, 4)
    taken = admit(workload(rows, several), hosts(10), first_limit=1.0)
    assert (len(taken.workload), taken.refused) == (4, 0)


def test_what_scaling_will_add_is_held_from_the_beginning() -> None:
    # One instance of 4 becomes two at second 10: 8 of 10 are held from 0 on, so 3 at second 1 have no room.
    scaled = workload(
        [Request(GOLD, 0, 50, 4, of=0), Request(GOLD, 1, 5, 3), Request(GOLD, 10, 50, 4, of=0)],
        [Several("independent")],
        [(10.0, 0, 2)],
    )
    found = admit(scaled, hosts(10), first_limit=1.0)
    assert found.refused == 1
    assert found.workload.admission.tolist() == [0, 10]
    assert found.workload.requests is not None
    assert found.workload.requests.scale_replicas.tolist() == [2]


def test_of_a_job_of_which_two_run_at_once_two_are_held() -> None:
    # Four instances of 4, two at once: 8 of 10.
    job = workload([Request(GOLD, 0, 10, 4, of=0)] * 4, [Several("batch", 2)])
    assert spans(job).start.tolist() == [0, 0, 10, 10]
    assert len(admit(job, hosts(10), first_limit=1.0).workload) == 4


@pytest.mark.parametrize(("limit", "first"), [(0.0, None), (0.2, None), (1.0, 0.0), (float("nan"), 0.5)])
def test_limits_that_admit_nothing_are_refused(limit: float, first: float | None) -> None:
    with pytest.raises(ConfigError, match="limit: found"):
        admit(workload([Request(GOLD)]), hosts(10), limit=limit, first_limit=first)


def test_a_limit_too_small_for_everybody_is_refused() -> None:
    with pytest.raises(ConfigError, match="none of 1 was"):
        admit(workload([Request(GOLD, size=9)]), hosts(10), limit=0.5)


# Binary fractions add up exactly, so that the twin's exact sums and the kernel's are the same.
steps = st.integers(0, 40).map(lambda number: number / 4)
rows = st.lists(
    st.tuples(steps, st.integers(1, 60).map(lambda n: n / 4), st.tuples(steps, steps)), min_size=1, max_size=30
)


@given(rows, st.integers(1, 40), st.integers(1, 40))
def test_admission_of_kernel_and_twin_are_equal(
    drawn: list[tuple[float, float, tuple[float, float]]], first: int, most: int
) -> None:
    requests = sorted((start, start + length, demand) for start, length, demand in drawn)
    start = np.array([one[0] for one in requests])
    end = np.array([one[1] for one in requests])
    demand = np.array([one[2] for one in requests])
    verdict = np.zeros(len(requests), np.int8)
    of = np.arange(len(requests))
    order = np.argsort(end, kind="stable")
    limits = np.full(2, float(first)), np.full(2, float(most))
    within_limits(start, demand, end, of, demand, order, start[0], *limits, np.zeros(2), verdict)
    expected = slow(requests, [first, first], [most, most])
    assert [ADMITTED if one < 0 else OVER_LIMIT + one for one in expected] == verdict.tolist()


def made(drawn: list[tuple[float, float, tuple[float, float]]]) -> Workload:
    ordered = sorted(drawn)
    found = workload([Request(GOLD, start, length) for start, length, _ in ordered])
    return replace(found, demand=np.array([demand for _, _, demand in ordered], np.float64))


@given(rows, st.sampled_from([1.0, 0.95, 0.9]))
def test_the_admitted_sum_never_exceeds_the_limit(
    drawn: list[tuple[float, float, tuple[float, float]]], limit: float
) -> None:
    machines = hosts(10, 7.5)
    try:
        found = admit(made(drawn), machines, limit=limit).workload
    except ConfigError:
        return  # nobody was admitted
    ends = found.admission + found.duration
    for instant in found.admission:  # the sum rises only where somebody is admitted
        active = found.demand[(found.admission <= instant) & (ends > instant)].sum(axis=0)
        part = limit - 0.2 if instant == min(start for start, _, _ in drawn) else limit
        assert (active <= part * machines.capacity.sum(axis=0) * (1 + 1e-6)).all()


@given(
    st.lists(st.tuples(steps, st.integers(1, 5), st.integers(0, 2), st.integers(1, 12)), min_size=1, max_size=8),
    st.integers(2, 40),
)
def test_requests_of_several_instances_never_exceed_the_limit_either(
    drawn: list[tuple[float, int, int, int]], capacity: int
) -> None:
    # Services that run for 6 s, jobs one after the other, and services that get one instance more after 2 s.
    several, scales, rows = [], [], []
    for number, (start, instances, kind, size) in enumerate(drawn):
        several.append(Several(("concurrent", "batch", "independent")[kind], 1 if kind == 1 else 0))
        rows += [Request(GOLD, start, 6, size / 4, of=number)] * instances
        if kind == 2:
            rows.append(Request(GOLD, start + 2, 6, size / 4, of=number))
            scales.append((start + 2, number, instances + 1))
    made = workload(sorted(rows, key=lambda row: (row.admission, row.of)), several, sorted(scales))
    try:
        found = admit(made, hosts(capacity), first_limit=1.0).workload
    except ConfigError:
        return  # nobody was admitted
    lives = spans(found)
    for instant in lives.start:
        active = found.demand[(lives.start <= instant) & (lives.end > instant)].sum(axis=0)
        assert (active <= capacity * (1 + 1e-6)).all()
