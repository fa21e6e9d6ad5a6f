"""Statistics of workloads and hosts, against sums done by hand or row by row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from slacktide.inputs import read_workload
from slacktide.inputs.rows import equal_hosts
from slacktide.inputs.statistics import demand_over_time, describe_hosts, describe_workload, unsatisfiable
from slacktide.metrics.demand import demand_at
from slacktide.model import Constraint, Hosts, Term, Workload
from slacktide.model.matching import matching_hosts

TERMS = (
    Term(),
    Term((Constraint("kernel", ">", "4"), Constraint("kernel", "<", "14"))),
    Term((Constraint("site", "==", "nowhere"),)),
    Term((Constraint("site", "/=", "x"),)),
)


def workload(
    admission: list[float], duration: list[float], cpu: list[float], term: list[int] | None = None
) -> Workload:
    count = len(admission)
    return Workload(
        ids=np.arange(1, count + 1),
        admission=np.array(admission, dtype=np.float64),
        duration=np.array(duration, dtype=np.float64),
        demand=np.stack([np.array(cpu, dtype=np.float64), np.ones(count)], axis=1),
        service_class=(np.arange(count) % 3).astype(np.int16),
        job=np.arange(count) // 2,
        anti_affinity=np.arange(count) < 1,
        term=np.array(term or [0] * count, dtype=np.int32),
        terms=TERMS,
    )


def some_hosts() -> Hosts:
    return Hosts(
        ids=np.arange(3),
        names=("a", "b", "c"),
        capacity=np.array([[4.0, 4.0], [1.0, 8.0], [4.0, 4.0]]),
        attributes=({"kernel": "3", "site": "x"}, {"kernel": "12"}, {"kernel": "20", "site": "y"}),
    )


def test_a_workload_is_described_in_numbers_that_json_takes() -> None:
    found = describe_workload(workload([0, 0, 5, 9], [1, np.inf, 3, 5], [1, 1, 2, 1], [0, 1, 1, 0]))
    json.dumps(found, allow_nan=False)
    assert found["requests"] == 4
    assert found["standing"] == 2
    assert found["instants"] == 3
    assert found["jobs"] == 2
    assert found["anti_affinity"] == 0.25
    assert found["constrained"] == 0.5
    assert found["distinct_demands"] == 2
    assert found["most_frequent_demand"] == 0.75
    assert found["never_complete"] == 0.25
    assert found["duration"]["mean"] == 3.0
    assert found["demand"]["cpu"]["max"] == 2.0
    assert {name: one["requests"] for name, one in found["classes"].items()} == {"gold": 2, "silver": 1, "bronze": 1}
    assert found["classes"]["silver"]["duration"] is None


def test_hosts_are_described_by_shape_and_attribute() -> None:
    found = describe_hosts(some_hosts())
    json.dumps(found, allow_nan=False)
    assert found["capacity"] == {"cpu": 9.0, "memory": 16.0}
    assert found["shapes"] == [{"capacity": [4.0, 4.0], "hosts": 2}, {"capacity": [1.0, 8.0], "hosts": 1}]
    assert found["attributes"] == {"kernel": {"hosts": 3, "values": 3}, "site": {"hosts": 2, "values": 2}}


def test_demand_is_the_mean_over_each_span() -> None:
    # 2 CPU during [0, 4), 1 CPU from 3 on; spans of 5 s.
    found = demand_over_time(workload([0, 3, 10], [4, np.inf, 1], [2, 1, 7]), some_hosts(), 2)
    assert found["start"].tolist() == [0.0, 5.0]
    assert found["end"].tolist() == [5.0, 10.0]
    assert found["cpu:all"] == pytest.approx([(2 * 4 + 1 * 2) / 5, 1.0])
    assert found["cpu:gold"] == pytest.approx([8 / 5, 0.0])
    assert found["cpu:most"].tolist() == [3.0, 8.0]  # what comes at the last instant, too
    assert found["cpu:capacity"].tolist() == [9.0, 9.0]


@settings(max_examples=60)
@given(st.data())
def test_demand_agrees_with_a_sum_over_requests(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    times = arrays.arrays(np.float64, count, elements=st.floats(0, 100))
    admission = np.sort(data.draw(times))
    duration = data.draw(times) + 0.001
    bins = data.draw(st.integers(1, 7))
    one = workload(admission.tolist(), duration.tolist(), data.draw(times).tolist())
    found = demand_over_time(one, some_hosts(), bins)
    for row in range(bins):
        start, end = found["start"][row], found["end"][row]
        shared = np.minimum(admission + duration, end) - np.maximum(admission, start)
        expected = (np.maximum(shared, 0) * one.demand[:, 0]).sum() / (end - start)
        # A span of nearly nothing between nearly equal instants is all rounding.
        assert found["cpu:all"][row] == pytest.approx(expected, rel=1e-6, abs=1e-6 + 1e-12 / (end - start))


def test_unequal_resources_and_no_bins_are_misuse() -> None:
    hosts = some_hosts()
    other = Hosts(hosts.ids, hosts.names, hosts.capacity, hosts.attributes, ("memory", "cpu"))
    with pytest.raises(ValueError, match="align"):
        demand_over_time(workload([0], [1], [1]), other, 3)
    with pytest.raises(ValueError, match="align"):
        unsatisfiable(workload([0], [1], [1]), other)
    with pytest.raises(ValueError, match="bins"):
        demand_over_time(workload([0], [1], [1]), hosts, 0)


def test_what_can_never_run_is_found() -> None:
    # Term 1 admits host b only, which has 1 CPU; term 2 admits none; nothing has more than 4 CPU.
    found = unsatisfiable(workload([0] * 7, [1] * 7, [1, 1, 2, 1, 4, 5, 1], [0, 1, 1, 2, 3, 0, 2]), some_hosts())
    assert found.terms == ((TERMS[2], 2),)
    assert found.too_large.tolist() == [3, 6]


@settings(max_examples=100)
@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), st.sampled_from(["1", "2", "10", "x"])), min_size=1, max_size=5),
    st.lists(
        st.builds(
            Constraint, st.sampled_from("ab"), st.sampled_from(["==", "/=", "<", ">"]), st.sampled_from(["2", "x"])
        ),
        max_size=3,
    ),
)
def test_matching_hosts_agrees_with_asking_every_host(
    attributes: list[dict[str, str]], constraints: list[Constraint]
) -> None:
    count = len(attributes)
    names = tuple(map(str, range(count)))
    hosts = Hosts(np.arange(count), names, np.ones((count, 2)), tuple(attributes))
    term = Term(tuple(constraints))
    assert matching_hosts([term], hosts)[0].tolist() == [term.holds(one) for one in attributes]


def test_a_batch_of_which_some_run_at_a_time_asks_for_those(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text(
        "id,admission,duration,cpu,memory,class,kind,completions,parallelism\n1,0,60,1,1,gold,batch,24,8\n"
    )
    batch = read_workload(tmp_path / "w.csv")
    machine = equal_hosts(1, {"cpu": 8.0, "memory": 64.0})
    found = demand_over_time(batch, machine, 6)
    assert found["end"][-1] == 180  # three times eight, a minute each
    assert (found["cpu:all"] / found["cpu:capacity"]).tolist() == pytest.approx([1.0] * 6)
    at = demand_at(batch, [0.0, 59.0, 60.0, 179.0, 180.0]).to_pylist()
    assert [row["demand_cpu"] for row in at if row["class"] == "gold"] == [8, 8, 8, 8, 0]
