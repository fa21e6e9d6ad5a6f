"""Columns of Arrow by their buffers are those that pyarrow makes, whatever is in them, and pandas stays out."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from slacktide.model import arrow

KINDS = [np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, np.float32, np.float64]
WORDS = st.lists(st.text(max_size=8) | st.sampled_from(["", "ä", "\u4e3b\u673a", "\U0001f680 x"]), max_size=40)


def same(mine: Any, theirs: Any) -> None:
    """Equal in type, in what is null and in every value; NaN is NaN."""
    mine.validate(full=True)
    assert mine.type == theirs.type
    assert mine.null_count == theirs.null_count
    # As text: NaN is equal to itself there, and numpy compares two objects that are NaN as different.
    assert list(map(repr, mine.to_pylist())) == list(map(repr, theirs.to_pylist()))


@given(st.data(), st.sampled_from(KINDS), st.integers(0, 40))
def test_numbers_go_to_arrow_and_back(data: st.DataObject, kind: Any, count: int) -> None:
    values = data.draw(arrays.arrays(kind, count))
    missing = data.draw(st.none() | arrays.arrays(np.bool_, count))
    column, theirs = arrow.column(values, missing), pa.array(values, mask=missing)
    same(column, theirs)
    gaps = np.zeros(count, np.bool_) if missing is None else missing
    start, stop = sorted(data.draw(st.tuples(st.integers(0, count), st.integers(0, count))))
    pieces = pa.chunked_array([column[:start], column[start:]])
    for array, part in ((column, slice(None)), (column[start:stop], slice(start, stop)), (pieces, slice(None))):
        assert arrow.empty_cells(array).tolist() == gaps[part].tolist()
        found = arrow.as_numpy(array, 1)
        assert found.dtype == kind
        np.testing.assert_array_equal(found, np.where(gaps, kind(1), values)[part])


@given(WORDS, st.data())
def test_texts_go_to_arrow(words: list[str], data: st.DataObject) -> None:
    missing = data.draw(st.none() | arrays.arrays(np.bool_, len(words)))
    gaps = [False] * len(words) if missing is None else missing.tolist()
    theirs = pa.array([None if gap else one for one, gap in zip(words, gaps, strict=True)], pa.string())
    same(arrow.texts(words, missing), theirs)


@given(st.lists(st.none() | st.integers(-9, 9), min_size=1) | st.lists(st.none() | st.text(max_size=3), min_size=1))
def test_none_in_a_sequence_is_null(values: list[Any]) -> None:
    if any(one is not None for one in values):
        same(arrow.column(values), pa.array(values))
        same(arrow.column(np.array(values, object)), pa.array(values))


@given(st.data(), st.lists(st.text(max_size=3), min_size=1, max_size=5))
def test_codes_become_words_that_are_stored_once(data: st.DataObject, names: list[str]) -> None:
    codes = np.array(data.draw(st.lists(st.integers(-1, len(names) - 1), max_size=20)), np.int8)
    column = arrow.named(codes, names, codes < 0)
    assert column.dictionary.to_pylist() == names
    assert column.to_pylist() == [None if code < 0 else names[code] for code in codes]


def test_a_table_takes_all_of_it_and_copies_nothing_that_lies_in_one_piece() -> None:
    numbers = np.arange(6.0)
    words = pa.array(["a", "b", "c"])
    made = arrow.table({"x": numbers[:3], "y": np.arange(6)[::2], "z": words, "w": ["p", None, "q"]})
    assert made.to_pydict() == {"x": [0, 1, 2], "y": [0, 2, 4], "z": ["a", "b", "c"], "w": ["p", None, "q"]}
    assert made["x"].chunk(0).buffers()[1].address == numbers.ctypes.data
    assert arrow.as_numpy(made["x"]).ctypes.data == numbers.ctypes.data


def test_an_empty_cell_is_no_number_unless_it_is_said_which() -> None:
    with pytest.raises(ValueError, match="found 1 empty cells"):
        arrow.as_numpy(pa.array([1, None]))
    assert arrow.as_numpy(pa.array([1, None]), 4).tolist() == [1, 4]


def test_no_pandas_is_imported_for_it() -> None:
    pytest.importorskip("pandas")
    program = (
        "import sys, numpy as np\n"
        "from slacktide.model import arrow\n"
        "missing = np.array([True, False])\n"
        "made = arrow.table({'a': arrow.column(np.ones(2), missing), 'b': ['x', None], 'c': np.array([True, False]),\n"
        "                    'd': arrow.named(np.array([0, 1]), ['p', 'q'])})\n"
        "assert arrow.as_numpy(made['a'], 7).tolist() == [7, 1]\n"
        "assert 'pyarrow' in sys.modules and 'pandas' not in sys.modules\n"
        "made['a'].to_numpy()\n"
        "assert 'pandas' in sys.modules, 'pyarrow itself has ceased to import it: this module is not needed any more'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
