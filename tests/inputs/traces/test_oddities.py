"""What published traces have that a simple reading gets wrong: docs/traces.md lists it, reader by reader."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.converting import convert, rows, write_csv, write_json

S = 1_000_000  # microseconds in a second
SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL = range(6)
OF_2019 = {SUBMIT: 0, SCHEDULE: 3, EVICT: 4, FAIL: 5, FINISH: 6, KILL: 7}


def google(name: str, folder: Path, events: Sequence[tuple[float, int]], task: int = 0) -> Path:
    """The events (second, kind) of one task, in the format of 2011 or 2019."""
    if name == "google2011":
        table = [[int(at * S), "", 1, task, "", kind, "u", 2, 4, 0.5, 0.25, 0.001, ""] for at, kind in events]
        return write_csv(folder / "task_events.csv", table)
    request = {"cpus": 0.5, "memory": 0.25}
    objects = [
        {"time": str(int(at * S)), "type": OF_2019[kind], "collection_id": 1, "priority": 200}
        | {"instance_index": task, "resource_request": request}
        for at, kind in events
    ]
    return write_json(folder / "instance_events.json", objects)


VERSIONS = ["google2011", "google2019"]


@pytest.mark.parametrize("name", VERSIONS)
@pytest.mark.parametrize(
    ("events", "duration", "notes"),
    [
        (
            [(610, SUBMIT), (620, SCHEDULE), (630, EVICT), (630, SUBMIT), (930, KILL)],
            10,
            ["1 task ended once more, while waiting to run again: the duration is that of the run before"],
        ),
        (
            [(620, SCHEDULE), (630, EVICT), (630, SCHEDULE)],  # file order decides: it runs on
            None,
            ["1 task ran more than once: the duration is that of the last run"],
        ),
        (
            [(700, FINISH), (640, SCHEDULE), (630, EVICT), (620, SCHEDULE)],  # files need not be in order of time
            60,
            ["1 task ran more than once: the duration is that of the last run"],
        ),
        ([(620, SCHEDULE), (620, SCHEDULE), (630, FINISH), (630, FINISH)], 10, []),  # a row twice changes nothing
        ([(615, KILL), (620, SCHEDULE)], None, []),  # an end before the run is none of it
    ],
)
def test_a_run_lasts_from_its_schedule_to_the_first_end_after_it(
    name: str, events: list[tuple[float, int]], duration: float | None, notes: list[str], tmp_path: Path
) -> None:
    found = convert(name, [google(name, tmp_path / "trace", events)], tmp_path / "out")
    (row,) = rows(tmp_path / "out")
    assert row.get("duration") == duration
    assert [note for note in found.notes if "task " in note] == notes
