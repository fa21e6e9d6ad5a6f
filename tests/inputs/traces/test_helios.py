"""SenseTime's Helios: logs as their documentation shows them, and what is odd in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import ConfigError, InputError
from slacktide.settings import load
from support.converting import convert, hosts, left_out, rows

LOG = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uVMrF,vchbv,16,64,2,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:45:36,239,10
1425513,uzqls,vcpDC,0,3,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0
"""
GPUS = "date,vchbv,vc4om,total\n2020-09-01,64,96,1144\n2020-09-02,64,96,1152\n2020-09-03,,,\n"


def trace(folder: Path, log: str = LOG, gpus: str | None = GPUS) -> Path:
    folder = folder / "Venus"
    folder.mkdir()
    (folder / "cluster_log.csv").write_text(log)
    if gpus is not None:
        (folder / "cluster_gpu_number.csv").write_text(gpus)
    return folder


def test_jobs_are_batch_requests_of_their_nodes(tmp_path: Path) -> None:
    found = convert("helios", [trace(tmp_path)], tmp_path / "out", "vcJkd=gold,*=bronze")
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "duration": 36848, "cpu": 1, "memory": 0, "resource:gpu": 1, "class": "gold",
         "user": "uXBbc", "kind": "batch", "completions": 1, "parallelism": 1},
        {"id": 1, "admission": 26, "duration": 239, "cpu": 32, "memory": 0, "resource:gpu": 8, "class": "bronze",
         "user": "uVMrF", "kind": "batch", "completions": 2, "parallelism": 2},
        {"id": 2, "admission": 27, "duration": 675233, "cpu": 3, "memory": 0, "resource:gpu": 0, "class": "bronze",
         "user": "uzqls", "kind": "batch", "completions": 1, "parallelism": 1},
    ]  # fmt: skip
    assert left_out(found) == {}
    assert found.hosts == 144
    assert "1,152 GPUs on the day on which there were most: 144 hosts" in found.notes
    assert hosts(tmp_path / "out").capacity[0].tolist() == [48, 0, 8]


def test_the_first_submission_is_the_epoch_in_the_zone_that_is_said(tmp_path: Path) -> None:
    folder = trace(tmp_path)
    convert("helios", [folder], tmp_path / "out", zone="Asia/Singapore")
    assert load(tmp_path / "out" / "settings.toml").simulation.epoch == "2020-06-09T10:41:01Z"
    with pytest.raises(ConfigError, match="zone: found 'Singapur', expected a name"):
        convert("helios", [folder], tmp_path / "no", zone="Singapur")


ROW = "9,u,vc,{gpus},4,{nodes},{state},{submit},{start},{end},1,0\n"
USUAL: dict[str, object] = {"gpus": 8, "nodes": 1, "state": "COMPLETED", "submit": "2020-06-09 19:00:00",
         "start": "2020-06-09 19:00:00", "end": "2020-06-09 19:01:00"}  # fmt: skip


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"state": "SUSPENDED"}, "jobs that were suspended"),
        ({"submit": ""}, "jobs of an unknown submission"),
        ({"start": "Unknown"}, "jobs that never started"),
        ({"end": "2020-06-09 19:00:00"}, "jobs that ran for less than a second, by which the log counts"),
        ({"nodes": 0}, "jobs of no node"),
        ({"nodes": ""}, "jobs of no node"),
        ({"gpus": ""}, "jobs of an unknown demand"),
    ],
)
def test_what_says_too_little_is_left_out_and_counted(said: dict[str, object], why: str, tmp_path: Path) -> None:
    found = convert("helios", [trace(tmp_path, LOG + ROW.format(**USUAL | said))], tmp_path / "out")
    assert (found.requests, left_out(found)) == (3, {why: 1})


def test_what_is_odd_is_counted_in_notes(tmp_path: Path) -> None:
    odd: list[dict[str, object]] = [{"end": "None"}, {"nodes": 3}, {"state": "OUT_OF_MEMORY"}]
    log = LOG + "".join(ROW.format(**USUAL | one).replace("9,", f"{90 + i},", 1) for i, one in enumerate(odd))
    found = convert("helios", [trace(tmp_path, log, None)], tmp_path / "out")
    assert found.requests == 6
    assert "1 job without an end: they never complete" in found.notes
    assert "1 job whose GPUs do not divide by their nodes: each node has the same part" in found.notes
    assert "1 job of a state that the documentation does not name" in found.notes
    repeated = convert("helios", [trace(tmp_path / "out", LOG + LOG.partition("\n")[2])], tmp_path / "again")
    assert left_out(repeated) == {"rows that are there a second time": 3}


@pytest.mark.parametrize(
    ("log", "gpus", "message"),
    [
        (LOG.replace("2020-06-09 18:41:27", "yesterday"), GPUS, "cluster_log.csv:3: submit_time: found 'yesterday'"),
        (LOG.replace("18:45:36", "25:45:36"), GPUS, "cluster_log.csv:3: end_time: found '2020-06-09 25:45:36'"),
        (LOG.replace("node_num", "nodes"), GPUS, "cluster_log.csv:1: node_num"),
        (LOG, GPUS.replace("total", "sum"), "cluster_gpu_number.csv:1: found .* expected the columns date and total"),
        (LOG, "date,total\n2020-09-01,\n", "at least one day with a total"),
    ],
)
def test_broken_tables_are_named(log: str, gpus: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        convert("helios", [trace(tmp_path, log, gpus)], tmp_path / "out")


def test_one_cluster_is_converted_at_a_time(tmp_path: Path) -> None:
    trace(tmp_path)
    (tmp_path / "Earth").mkdir()
    (tmp_path / "Earth" / "cluster_log.csv").write_text(LOG)
    with pytest.raises(InputError, match=r"2 files.*expected one file of cluster_log: name it, or its own folder"):
        convert("helios", [tmp_path], tmp_path / "out")
