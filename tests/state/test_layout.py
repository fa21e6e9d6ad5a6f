"""From a workload to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.combinations import numbered
from slacktide.model import resting
from slacktide.state import layout

numbers = st.integers(-(2**62), 2**62) | st.integers(-2, 2)


@pytest.mark.uncompiled
@given(rows=st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[numbers] * width), min_size=1, max_size=60)))
def test_combinations_of_kernel_and_twin_are_equal(rows: list[tuple[int, ...]]) -> None:
    first, code = layout.distinct(*np.array(rows, np.int64).T)
    assert (first.tolist(), code.tolist()) == numbered(rows)


def test_as_many_combinations_as_rows_in_several_parts(monkeypatch: Any) -> None:
    """More than there was room for at first, of which some come again in a later part."""
    monkeypatch.setattr(layout, "PART", 1000)
    rng = np.random.default_rng(1)
    columns = rng.integers(0, 60, 9000), rng.integers(-40, 40, 9000).astype(np.int32), np.broadcast_to(-1, 9000)
    first, code = layout.distinct(*columns)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert len(first) > 2048
    assert (first.tolist(), code.tolist()) == numbered(rows)


def test_no_rows_have_no_combinations() -> None:
    first, code = layout.distinct(np.zeros(0, np.int64), np.zeros(0, np.int32))
    assert len(first) == len(code) == 0


def test_codes_rest_where_columns_do() -> None:
    column = resting.resting(3000, np.int64)
    column[:] = np.arange(3000) % 7
    first, code = layout.distinct(column)
    assert first.tolist() == list(range(7))
    assert (code == column).all()
    assert resting._pages(code) is not None
