"""Arrays that rest in files are arrays like all others, and take no memory while nobody looks at them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from slacktide.model import resting

resident_is_known = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="Linux says what is resident"
)


def shared_resident() -> int:
    """Bytes of files that this process has in its memory."""
    lines = dict(one.split(":", 1) for one in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return 1024 * int(lines["RssFile"].split()[0])


def test_what_was_let_go_is_still_there() -> None:
    array = resting.resting((1000, 3), np.float64)
    assert not array.any()
    array[:, 1] = np.arange(1000)
    resting.let_go(array[10:20, 1], None, np.zeros(3))
    assert np.array_equal(array[:, 1], np.arange(1000))
    array[7, 1] = -1.0
    resting.let_go(array)
    assert array[7, 1] == -1.0


@resident_is_known
def test_what_was_let_go_takes_no_memory() -> None:
    size = 64 << 20
    array = resting.resting(size, np.uint8)
    before = shared_resident()
    array[:] = 1
    assert shared_resident() - before > size // 2
    resting.let_go(array)
    assert shared_resident() - before < size // 8
    assert int(array[size // 2]) == 1


@resident_is_known
def test_what_is_around_a_row_takes_no_memory_where_rows_are_scattered() -> None:
    size = 64 << 20
    array = resting.scattered(size, np.uint8)
    for at in range(0, size, 5 << 20):
        array[at : at + (5 << 20)] = 1
        resting.let_go(array)
    before = shared_resident()
    assert int(array[:: 1 << 20].sum()) == 64
    array[:: 1 << 20] = 2
    assert shared_resident() - before < size // 8


def test_no_file_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    array = resting.resting(5000, np.int64)
    array[:] = 3
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_no_room_for_a_file_an_array_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    array = resting.resting(5, np.int64)
    assert array.tolist() == [0] * 5
    assert resting.room_beside(array) is resting.ordinary


def test_others_rest_where_the_first_does() -> None:
    assert resting.room_beside(resting.resting(5, np.int64)[1:3]) is resting.resting
    assert resting.room_beside(np.zeros(5)) is resting.ordinary
    assert resting.resting((0, 2), np.float64).shape == (0, 2)
