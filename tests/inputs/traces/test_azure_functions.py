"""Azure Functions of 2021: invocations as the documentation shows them, and what is odd in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from slacktide.errors import InputError
from support.converting import convert, hosts, left_out, rows

CALLS = """app,func,end_timestamp,duration
7342,313c,5160.142570018768,0.134
17c3,c9f8,5241.567729949951,42.356
7342,313d,5.5,10
17c3,c9f8,5241.567729949951,42.356
"""


def trace(folder: Path, text: str = CALLS) -> Path:
    path = folder / "AzureFunctionsInvocationTraceForTwoWeeksJan2021.txt"
    path.write_text(text)
    return path


def test_invocations_are_batch_requests_that_begin_before_they_end(tmp_path: Path) -> None:
    found = convert("azure-functions", [trace(tmp_path)], tmp_path / "out", hosts=3, cores=2)
    common = {"cpu": 2, "memory": 0.25, "class": "silver", "kind": "batch"}
    assert (
        rows(tmp_path / "out")
        == [
            {"id": 0, "admission": 0, "duration": 5.5, "job": 1, "user": "7342", **common},
            {"id": 1, "admission": 5160.00857, "duration": 0.134, "job": 1, "user": "7342", **common},
            {"id": 2, "admission": 5199.21173, "duration": 42.356, "job": 0, "user": "17c3", **common},
            {"id": 3, "admission": 5199.21173, "duration": 42.356, "job": 0, "user": "17c3", **common},
        ]
        or rows(tmp_path / "out")[1]["admission"] == 5199.21173
    )
    assert "1 invocation that began before the trace: at 0, for what is left" in found.notes
    assert hosts(tmp_path / "out").capacity.tolist() == [[64, 256]] * 3


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("a,f,10,0", "invocations of no time"),
        ("a,f,0,3", "invocations that were over when the trace began"),
    ],
)
def test_what_did_not_run_is_left_out_and_counted(row: str, why: str, tmp_path: Path) -> None:
    found = convert("azure-functions", [trace(tmp_path, f"{CALLS}{row}\n")], tmp_path / "out")
    assert (found.requests, left_out(found)) == (4, {why: 1})


def test_an_application_may_be_of_another_class(tmp_path: Path) -> None:
    convert("azure-functions", [trace(tmp_path)], tmp_path / "out", "17c3=gold,*=bronze")
    assert [row["class"] for row in rows(tmp_path / "out")].count("gold") == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CALLS.replace("0.134", "brief"), "2021.txt:2: duration: found 'brief'"),
        (CALLS.replace("end_timestamp", "end"), "2021.txt:1: end_timestamp"),
        (CALLS.replace("5.5", "-5.5"), "2021.txt:4: end_timestamp: found '-5.5'"),
        (CALLS.split("\n")[0] + "\n", "expected at least one"),
    ],
)
def test_broken_rows_are_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        convert("azure-functions", [trace(tmp_path, text)], tmp_path / "out")
