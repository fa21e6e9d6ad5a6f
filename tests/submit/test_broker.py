"""What a row of a workload file becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.errors import InputError
from slacktide.inputs import group_by_job, read_workload
from slacktide.model import Workload
from slacktide.submit.manifests import RUN_LABEL, Manner, Submission, submissions

HEAD = "id,admission,duration,cpu,memory,class,job,anti_affinity,constraints"

MANY = "id,admission,duration,cpu,memory,class,kind,instances,completions,parallelism,approach,scale"


def workload(tmp_path: Path, *rows: str) -> Workload:
    file = tmp_path / "w.csv"
    file.write_text("\n".join(rows) + "\n")
    return read_workload(file)


def only(found: list[Submission]) -> Submission:
    assert len(found) == 1
    return found[0]


def template(item: Submission) -> dict[str, Any]:
    found: dict[str, Any] = item.body["spec"]["template"]
    return found


def test_a_row_becomes_a_deployment_of_one_replica(tmp_path: Path) -> None:
    rows = workload(tmp_path, HEAD, '7,30,inf,0.25,1.5,gold,3,1,"zone == a; cores > 4"')
    item = only(submissions(rows, Manner("w", speed=10), "w.csv"))
    assert (item.at, item.name, item.batch, item.needs) == (30.0, "w-7", False, float("inf"))
    spec = template(item)["spec"]
    assert item.body["kind"] == "Deployment"
    assert item.body["spec"]["replicas"] == 1
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "250m", "memory": str(3 * 2**29)}
    assert template(item)["metadata"]["labels"]["slacktide.io/class"] == "gold"
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [
        {
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a"]},
                {"key": "cores", "operator": "Gt", "values": ["4"]},
            ]
        }
    ]
    apart = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert apart["labelSelector"]["matchLabels"] == {"slacktide.io/job": "3", RUN_LABEL: "w"}


def test_a_workload_of_the_papers_broker_is_submitted_as_any_other(tmp_path: Path) -> None:
    theirs = workload(
        tmp_path,
        "0,12,12,any,0,1,7200,-1,0.375,0.375,free,0.5,deployment,2,0,concurrent",
        "4,13,13,any,1,11,60,-1,0.375,0.375,prod,1,job,3,6,task_aggregated",
    )
    ours = workload(
        tmp_path,
        f"{MANY},job,anti_affinity",
        "12,0,7200,0.375,0.375,bronze,service,2,,,concurrent,,12,0",
        "13,4,60,0.375,0.375,gold,batch,,6,3,aggregated,,13,1",
    )
    first, second = (submissions(one, Manner("w"), "w.csv") for one in (theirs, ours))
    assert first == second
    assert [(one.name, one.batch) for one in first] == [("w-12", False), ("w-13", True)]


def test_a_demand_is_rounded_up_in_the_unit_that_was_named(tmp_path: Path) -> None:
    rows = workload(tmp_path, HEAD, "1,0,inf,0.3,0.1,gold,1,0,", "2,0,inf,0.0001,0.1,gold,1,0,")
    made = submissions(rows, Manner("w", units={"cpu": "1", "memory": "10"}), "w.csv")
    assert [template(one)["spec"]["containers"][0]["resources"]["requests"] for one in made] == [
        {"cpu": "300m", "memory": "1"},
        {"cpu": "1m", "memory": "1"},
    ]


def test_a_batch_request_becomes_a_job_and_a_service_keeps_its_scale_events(tmp_path: Path) -> None:
    rows = workload(
        tmp_path,
        MANY,
        "1,5,40,1,1,bronze,batch,,6,2,aggregated,",
        "2,0,60,1,1,gold,service,2,,,concurrent,10=4; 20=1",
    )
    service, batch = submissions(rows, Manner("w", speed=10), "w.csv")
    assert (batch.body["kind"], batch.at, batch.scale) == ("Job", 5.0, ())
    assert (batch.body["spec"]["completions"], batch.body["spec"]["parallelism"]) == (6, 2)
    assert template(batch)["metadata"]["annotations"]["slacktide.io/run-seconds"] == "4"
    assert service.body["spec"]["replicas"] == 2
    assert service.scale == ((10.0, 4), (20.0, 1))
    assert template(service)["metadata"]["annotations"]["slacktide.io/approach"] == "concurrent"


def test_start_up_times_are_drawn_and_shortened_like_all_others(tmp_path: Path) -> None:
    rows = workload(tmp_path, HEAD, *(f"{n},0,inf,1,1,gold,1,0," for n in range(200)))
    manner = Manner("w", speed=10, delays=np.array([2.0, 6.0]), seed=5)
    said = [
        template(one)["metadata"]["annotations"]["slacktide.io/startup-seconds"]
        for one in submissions(rows, manner, "")
    ]
    assert set(said) == {"0.2", "0.6"}
    assert 60 < said.count("0.2") < 140
    assert said == [
        template(one)["metadata"]["annotations"]["slacktide.io/startup-seconds"]
        for one in submissions(rows, manner, "")
    ]


def test_instances_that_differ_are_refused_by_column(tmp_path: Path) -> None:
    rows = workload(tmp_path, HEAD, "1,0,inf,1,1,gold,1,0,", "2,0,inf,2,1,gold,1,0,")
    with pytest.raises(InputError, match=r"w\.csv: demand: .*the same for all instances of request 1"):
        submissions(group_by_job(rows), Manner("w"), "w.csv")
