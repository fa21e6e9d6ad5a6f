"""Columns per request against the same, request by request, in plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from slacktide.model import AGGREGATED, CONCURRENT, INDEPENDENT, Requests, Workload
from slacktide.qos.availability import ACCOUNTINGS, TIMES
from slacktide.qos.per_request import COUNTS, instance_numbers, per_request

NAN = float("nan")
GIVEN = (*TIMES, "wasted_startup", *COUNTS, "hosts_used", "completed", "removed")


def workload(request: list[int] | None, batch: list[bool], approach: list[int]) -> Workload:
    count = 3 if request is None else len(request)
    requests = Requests(
        ids=100 + np.arange(len(batch)),
        batch=np.array(batch, dtype=np.bool_),
        approach=np.array(approach, dtype=np.int8),
        parallelism=np.zeros(len(batch), dtype=np.int64),
        scale_time=np.zeros(0),
        scale_request=np.zeros(0, dtype=np.int32),
        scale_replicas=np.zeros(0, dtype=np.int64),
    )
    return Workload(
        ids=np.arange(count),
        admission=np.zeros(count),
        duration=np.arange(count, dtype=np.float64) % 3 + 1,
        demand=np.stack([np.arange(count) + 0.5, np.full(count, 2.0)], axis=1),
        service_class=np.zeros(count, dtype=np.int16),
        job=np.arange(count),
        anti_affinity=np.zeros(count, dtype=np.bool_),
        term=np.zeros(count, dtype=np.int32),
        request=None if request is None else np.array(request, dtype=np.int32),
        requests=None if request is None else requests,
    )


def columns(rows: list[dict[str, Any]]) -> dict[str, NDArray[Any]]:
    """From a row per instance; what is not given is 0, or NaN where it is an instant."""
    types = dict.fromkeys((*COUNTS, "hosts_used"), np.int32)
    found = {
        name: np.array(
            [row.get(name, NAN if name in ("completed", "removed") else 0) for row in rows],
            dtype=types.get(name, np.float64),
        )
        for name in GIVEN
    }
    return {"row": np.array([row["row"] for row in rows], dtype=np.int64), **found}


def slowly(work: Workload, rows: list[dict[str, Any]], together: NDArray[np.float64]) -> list[dict[str, Any]]:
    """The contract, one request after the other."""
    assert work.request is not None
    assert work.requests is not None
    found = []
    for number in range(len(work.requests)):
        mine = [row for row in rows if work.request[row["row"]] == number]
        if not mine:
            continue
        in_all = int((work.request == number).sum())
        one: dict[str, Any] = {"row": number, "first": min(row["row"] for row in mine), "count": len(mine)}
        for name in (*TIMES, "wasted_startup", *COUNTS):
            one[name] = sum(row[name] for row in mine)
        asked = [(work.demand[row["row"]], float(work.duration[row["row"]])) for row in mine]
        one["duration"] = max(duration for _, duration in asked)
        one["cpu_seconds"] = sum(demand[0] * duration for demand, duration in asked)
        one["demand"] = [sum(demand[place] for demand, _ in asked) for place in range(2)]
        one["hosts_used"] = mine[0]["hosts_used"] if len(mine) == 1 else -1
        instants = [row["completed"] for row in mine if not math.isnan(row["completed"])]
        over = all(not (math.isnan(row["completed"]) and math.isnan(row["removed"])) for row in mine)
        waits = bool(work.requests.batch[number]) and len(mine) < in_all
        one["completed"] = max(instants) if instants and over and not waits else NAN
        how = int(work.requests.approach[number])
        if in_all == 1 and not work.requests.batch[number]:
            how = INDEPENDENT
        for index, accounting in enumerate(ACCOUNTINGS):
            up = [
                row["running"]
                + (accounting != "always") * row["startup_first"]
                + (accounting == "never") * row["startup_restarts"]
                for row in mine
            ]
            lives = [sum(row[name] for name in TIMES) for row in mine]
            if how == INDEPENDENT:
                value = min(u / life if life else 1.0 for u, life in zip(up, lives, strict=True))
            else:
                e = together[number, index] if how == CONCURRENT else sum(up)
                value = e / sum(lives) if sum(lives) else 1.0
            one[f"availability_{accounting}"] = value
        found.append(one)
    return found


@st.composite
def runs(draw: st.DrawFn) -> tuple[Workload, list[dict[str, Any]], NDArray[np.float64]]:
    size = draw(st.integers(1, 5))
    batch = draw(st.lists(st.booleans(), min_size=size, max_size=size))
    approach = [AGGREGATED if one else draw(st.sampled_from((INDEPENDENT, CONCURRENT, AGGREGATED))) for one in batch]
    request = draw(st.lists(st.integers(0, size - 1), max_size=10))
    quarters = st.integers(0, 12).map(lambda n: n / 4)
    rows = []
    for row in draw(st.permutations(range(len(request)))):
        if draw(st.integers(0, 3)) == 0:
            continue  # not admitted before the end
        one: dict[str, Any] = {name: draw(quarters) for name in (*TIMES, "wasted_startup")}
        one |= {name: draw(st.integers(0, 3)) for name in (*COUNTS, "hosts_used")}
        how = draw(st.sampled_from(("live", "completed", "removed")))
        one |= {name: draw(quarters) if name == how else NAN for name in ("completed", "removed")}
        rows.append({"row": row, **one})
    together = [[draw(quarters) for _ in ACCOUNTINGS] for _ in range(size)]
    return workload(request, batch, approach), rows, np.array(together)


@given(runs())
def test_it_is_what_loops_say(run: tuple[Workload, list[dict[str, Any]], NDArray[np.float64]]) -> None:
    work, rows, together = run
    found = per_request(work, columns(rows), together)
    expected = slowly(work, rows, together)
    assert len(found["row"]) == len(expected)
    for name, values in found.items():
        slow = np.array([one[name] for one in expected]).reshape(values.shape)
        np.testing.assert_array_equal(values, slow, err_msg=name)
    assert expected == [] or set(found) == set(expected[0])


def test_a_batch_request_is_done_when_all_its_rows_are() -> None:
    work = workload([0, 0, 1, 1], [True, False], [AGGREGATED, AGGREGATED])
    rows = [{"row": row, "completed": 5.0 + row} for row in (0, 2)]
    assert np.isnan(per_request(work, columns(rows), np.zeros((2, 3)))["completed"][0])
    assert per_request(work, columns(rows), np.zeros((2, 3)))["completed"][1] == 7.0
    rows.append({"row": 1, "completed": 20.0})
    assert per_request(work, columns(rows), np.zeros((2, 3)))["completed"].tolist() == [20.0, 7.0]


def test_a_removed_instance_keeps_nothing_from_being_done_but_completes_nothing() -> None:
    work = workload([0, 0], [False], [AGGREGATED])
    gone = {"row": 0, "removed": 3.0}
    assert per_request(work, columns([gone, {"row": 1, "completed": 2.0}]), np.zeros((1, 3)))["completed"] == 2.0
    assert np.isnan(per_request(work, columns([gone, {"row": 1, "removed": 4.0}]), np.zeros((1, 3)))["completed"]).all()


def test_a_concurrent_service_of_one_instance_is_measured_by_that_instance() -> None:
    work = workload([0], [False], [CONCURRENT])
    found = per_request(work, columns([{"row": 0, "running": 3.0, "pending": 1.0}]), np.zeros((1, 3)))
    assert found["availability_always"].tolist() == [0.75]


def test_integers_stay_integers() -> None:
    found = per_request(workload([0], [False], [0]), columns([{"row": 0, "starts": 2}]), np.zeros((1, 3)))
    whole = {name for name, values in found.items() if values.dtype == np.int64}
    assert whole == {"row", "first", "count", "preemptions", "starts", "hosts_used"}


def test_what_a_request_asked_for_is_that_of_its_admitted_instances() -> None:
    work = workload([0, 0, 0, 1], [False, True], [0, AGGREGATED])
    work.demand[:] = [[1.0, 5.0], [2.0, 6.0], [4.0, 7.0], [8.0, 9.0]]
    work.duration[:] = [10.0, 30.0, 99.0, np.inf]
    found = per_request(work, columns([{"row": 0}, {"row": 1}, {"row": 3}]), np.zeros((2, 3)))
    assert found["duration"].tolist() == [30.0, np.inf]
    assert found["cpu_seconds"].tolist() == [1.0 * 10.0 + 2.0 * 30.0, np.inf]
    assert found["demand"].tolist() == [[3.0, 11.0], [8.0, 9.0]]


def test_where_rows_are_requests_there_is_nothing_to_sum_up() -> None:
    with pytest.raises(ValueError, match="expected requests"):
        per_request(workload(None, [], []), columns([]), np.zeros((0, 3)))


def test_instances_are_numbered_within_their_request() -> None:
    assert instance_numbers(workload([1, 0, 1, 1, 0], [False] * 2, [0] * 2)).tolist() == [0, 0, 1, 2, 1]
    assert instance_numbers(workload(None, [], [])).tolist() == [0, 0, 0]
    assert instance_numbers(workload([], [], [])).tolist() == []
