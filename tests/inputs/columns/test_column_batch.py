"""Cells of a column, whatever Arrow holds them in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from slacktide.errors import InputError
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.problems import Problems


def test_words_with_as_many_codes_as_their_type_has_and_an_empty_cell() -> None:
    names = [f"name-{number}" for number in range(128)]
    column = pa.DictionaryArray.from_arrays(pa.array([127, None, 0, 127], pa.int8()), pa.array(names))
    batch = ColumnBatch({"name": column}, range(1, 5), Problems("a frame"))
    asked: list[str] = []

    def parse(text: str) -> int:
        asked.append(text)
        return 10 * len(asked)

    assert batch.coded("name", "a name", parse).tolist() == [10, 20, 30, 10]
    assert asked == ["name-127", "", "name-0"]  # once each, in the order of their first rows


def test_empty_cells_of_numbers_and_flags() -> None:
    problems = Problems("a frame")
    columns = {
        "cpu": pa.array([1.5, None, 2.5]),
        "job": pa.array([None, 7, 8], pa.int32()),
        "flag": pa.array([True, None, False]),
    }
    batch = ColumnBatch(columns, range(1, 4), problems)
    assert batch.floats("cpu", "a number", empty=9.0).tolist() == [1.5, 9.0, 2.5]
    assert batch.integers("job", "a number", empty=-1).tolist() == [-1, 7, 8]
    assert batch.flags("flag").tolist() == [True, False, False]
    assert batch.filled("cpu").tolist() == [True, False, True]
    found = batch.floats("cpu", "a number")
    found[0] = np.pi  # what is given is the caller's, not the file's
    assert columns["cpu"][0].as_py() == 1.5
    with pytest.raises(InputError, match=r"a frame.*2.*cpu.*nothing.*a number"):
        problems.raise_if_any()
