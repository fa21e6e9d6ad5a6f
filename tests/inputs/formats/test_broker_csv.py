"""Workloads of the papers' broker: what each column means, both brokers, files with and without a header."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from slacktide.errors import InputError
from slacktide.inputs import read_workload
from slacktide.model import AGGREGATED, CONCURRENT, ServiceClass
from support.converting import convert, hosts, rows
from support.published import need

PLAIN = "3,12,7,any,1,11,90,-1,0.5,0.25,prod,1\n0,10,7,any,0,1,60.5,-1,0.25,0.5,free,0.5\n"
HEADER = (
    "submitTime,jid,tid,user,schedulingClass,priority,runtime,endTime,cpuReq,memReq,userClass,slo,"
    "controller,replicaOrparalelism,completions,qosMeasuring\n"
)
SEVERAL = HEADER + (
    "0,9,0,u,3,9,15,-1,0.5,0.25,prod,1,deployment,2,0,concurrent\n"
    "5,9,1,u,3,9,15,-1,0.5,0.25,batch,0.9,job,3,6,task_aggregated\n"
)


def written(folder: Path, text: str) -> Path:
    path = folder / "broker.csv"
    path.write_text(text)
    return path


def test_columns_are_where_the_broker_has_them(tmp_path: Path) -> None:
    found = read_workload(written(tmp_path, PLAIN))
    assert found.ids.tolist() == [10, 12]
    assert found.job.tolist() == [7, 7]
    assert found.admission.tolist() == [0.0, 3.0]
    assert found.duration.tolist() == [60.5, 90.0]
    assert found.demand.tolist() == [[0.25, 0.5], [0.5, 0.25]]
    assert [found.classes[code].name for code in found.service_class] == ["bronze", "gold"]
    assert found.anti_affinity.tolist() == [False, True]


def test_the_thesis_list_has_no_end_time(tmp_path: Path) -> None:
    whole = read_workload(written(tmp_path, PLAIN))
    listed = read_workload(written(tmp_path, PLAIN.replace(",-1,", ",")))
    for one in fields(whole):
        assert np.array_equal(getattr(whole, one.name), getattr(listed, one.name))


def test_a_row_may_be_several_instances(tmp_path: Path) -> None:
    found = read_workload(written(tmp_path, SEVERAL))
    assert found.requests is not None
    assert found.requests.ids.tolist() == [0, 1]
    assert found.requests.batch.tolist() == [False, True]
    assert found.requests.approach.tolist() == [CONCURRENT, AGGREGATED]
    assert found.requests.parallelism.tolist() == [0, 3]
    assert found.request is not None
    assert np.bincount(found.request).tolist() == [2, 6]
    assert set(found.job.tolist()) == {9}  # of a file with a header the first number is the job
    assert not found.anti_affinity.any()  # and the fifth column Google's scheduling class


def test_classes_of_the_files_own_names(tmp_path: Path) -> None:
    classes = (ServiceClass("prod", 1.0, 1), ServiceClass("free", 0.5, 2))
    found = read_workload(written(tmp_path, PLAIN), classes=classes)
    assert [classes[code].name for code in found.service_class] == ["free", "prod"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (PLAIN.replace("free,0.5", "free,0.6"), ":2: slo: found '0.6', expected 0.5, as class bronze promises"),
        (PLAIN.replace("free,", "spot,"), ":2: userClass: found 'spot', expected one of gold, silver, bronze"),
        (PLAIN.replace("60.5", "long"), ":2: runtime: found 'long', expected seconds above 0"),
        (PLAIN.replace("any,0", "any,2"), ":2: affinity: found '2'"),
        (PLAIN.replace("0,10,7", "0,12,7"), "task: found '12', expected a whole number from 0, given once"),
        (PLAIN + "1,2,3\n", ":3: found '3 fields', expected 12 fields, as the first row has"),
        (SEVERAL.replace("job,", "pod,"), ":3: controller: found 'pod', expected deployment or job"),
        (SEVERAL.replace("concurrent", "none"), ":2: qosMeasuring: found 'none', expected one of independent"),
        (SEVERAL.replace("cpuReq,", "cpu,"), ": cpureq: expected this column"),
    ],
)
def test_what_is_broken_is_told_by_the_files_own_names(tmp_path: Path, broken: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_workload(written(tmp_path, broken))
    assert said in str(caught.value)


def test_conversion_keeps_numbers_and_tells_promises(tmp_path: Path) -> None:
    found = convert("broker", [written(tmp_path, PLAIN)], tmp_path / "out", hosts=3)
    assert [row["id"] for row in rows(tmp_path / "out")] == [10, 12]
    assert [row["class"] for row in rows(tmp_path / "out")] == ["bronze", "gold"]
    assert len(hosts(tmp_path / "out")) == found.hosts == 3
    assert any("it promises gold 1, bronze 0.5" in one for one in found.notes)


def test_conversion_by_another_map(tmp_path: Path) -> None:
    convert("broker", [written(tmp_path, PLAIN)], tmp_path / "out", "prod=silver,free=gold")
    assert [row["class"] for row in rows(tmp_path / "out")] == ["gold", "silver"]


def test_other_files_are_not_taken_for_the_brokers(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file of the broker"):
        convert("broker", [written(tmp_path, "id,admission\n1,2\n")], tmp_path / "out")


def test_the_published_file_is_the_published_workload() -> None:
    folder = need("validation1")
    terms, rows_ = read_workload(folder / "workload.erl"), read_workload(folder / "workload-broker.csv")
    for one in fields(terms):
        assert np.array_equal(getattr(terms, one.name), getattr(rows_, one.name)), one.name
