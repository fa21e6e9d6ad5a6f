"""Alibaba's spot GPUs of 2026: jobs and nodes as their documentation shows them, and what is odd in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import InputError
from support.converting import convert, hosts, left_out, rows

JOBS = """job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
239255,13,A10,20,1,1,0,2764799,HP
437260,57,A100-SXM4-80GB,15,1,16,9589663,41060,Spot
437261,57,,15.0,0.5,94.0,9589663,71718,Spot
"""
NODES = """node_name,gpu_model,gpu_capacity_num,cpu_num
0,GPU-series-1,4,192
2,A10,1,128
3,A100-SXM4-80GB,8,128
"""


def trace(folder: Path, jobs: str = JOBS, nodes: str = NODES) -> list[Path]:
    (folder / "job_info_df.csv").write_text(jobs)
    (folder / "node_info_df.csv").write_text(nodes)
    return [folder / "job_info_df.csv", folder / "node_info_df.csv"]


def test_jobs_are_batch_requests_of_their_workers(tmp_path: Path) -> None:
    found = convert("alibaba-spot", trace(tmp_path), tmp_path / "out", last="ended")
    assert rows(tmp_path / "out") == [
        {"id": 0, "admission": 0, "duration": 2764799, "cpu": 20, "memory": 0, "resource:gpu": 1, "class": "gold",
         "constraints": "model == A10", "user": "13", "kind": "batch", "completions": 1, "parallelism": 1},
        {"id": 1, "admission": 9589663, "duration": 41060, "cpu": 15, "memory": 0, "resource:gpu": 1,
         "class": "bronze", "constraints": "model == A100-SXM4-80GB", "user": "57", "kind": "batch",
         "completions": 16, "parallelism": 16},
        {"id": 2, "admission": 9589663, "duration": 71718, "cpu": 15, "memory": 0, "resource:gpu": 0.5,
         "class": "bronze", "user": "57", "kind": "batch", "completions": 94, "parallelism": 94},
    ]  # fmt: skip
    assert left_out(found) == {}
    assert "the trace says nothing of memory: none is demanded" in found.notes
    machines = hosts(tmp_path / "out")
    assert machines.capacity.tolist() == [[192, 0, 4], [128, 0, 1], [128, 0, 8]]
    assert machines.attributes == ({"model": "GPU-series-1"}, {"model": "A10"}, {"model": "A100-SXM4-80GB"})


def test_who_ends_at_the_last_instant_is_still_there(tmp_path: Path) -> None:
    found = convert("alibaba-spot", trace(tmp_path), tmp_path / "out")
    assert [row.get("duration") for row in rows(tmp_path / "out")] == [2764799, 41060, None]
    assert "1 job with an end at the trace's last instant: taken for still there" in found.notes[0]


def test_an_index_that_was_saved_with_the_table_is_passed_over(tmp_path: Path) -> None:
    jobs = "\n".join(f"{number if number else ''},{one}" for number, one in enumerate(JOBS.strip().split("\n"))) + "\n"
    assert convert("alibaba-spot", trace(tmp_path, jobs), tmp_path / "out").requests == 3


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("1,1,A10,1,1,1,5,,HP", "jobs of an unknown duration"),
        ("1,1,A10,1,1,1,5,0,HP", "jobs that lasted no time"),
        ("1,1,A10,1,1,0,5,9,HP", "jobs of no worker"),
        ("1,1,A10,1,1,,5,9,HP", "jobs of no worker"),
        ("1,1,A10,,1,1,5,9,HP", "jobs of an unknown demand"),
        ("239255,13,A10,20,1,1,0,2764799,HP", "rows that are there a second time"),
    ],
)
def test_what_says_too_little_is_left_out_and_counted(row: str, why: str, tmp_path: Path) -> None:
    found = convert("alibaba-spot", trace(tmp_path, f"{JOBS}{row}\n"), tmp_path / "out")
    assert (found.requests, left_out(found)) == (3, {why: 1})


def test_models_that_no_node_has_are_counted(tmp_path: Path) -> None:
    found = convert("alibaba-spot", trace(tmp_path, f"{JOBS}9,1,H800,1,1,1,5,9,HP\n"), tmp_path / "out")
    assert "1 job asking for a model that no node has" in found.notes


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        (JOBS.replace("2764799", "long"), "job_info_df.csv:2: duration: found 'long'"),
        (JOBS.replace("worker_num", "workers"), "job_info_df.csv:1: worker_num: expected this column"),
        (JOBS.replace("57,A100", "57,A100,more"), "job_info_df.csv:3: found"),
    ],
)
def test_broken_tables_are_named(jobs: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        convert("alibaba-spot", trace(tmp_path, jobs), tmp_path / "out")
    with pytest.raises(InputError, match=r"a file node_info\*"):
        convert("alibaba-spot", trace(tmp_path)[:1], tmp_path / "alone")
