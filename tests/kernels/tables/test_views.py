"""What kernels see of arrays where they run as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from slacktide.kernels.tables.views import Checked


@pytest.mark.uncompiled
@pytest.mark.parametrize("key", [-1, np.int64(-2), (0, -1), (slice(None), np.int64(-1))])
def test_an_index_below_0_is_refused(key: object) -> None:
    """A library does not look for one: it would read or write what lies before the array."""
    array = np.zeros((3, 2)).view(Checked)
    with pytest.raises(IndexError, match="below 0"):
        array[key]
    with pytest.raises(IndexError, match="below 0"):
        array[key] = 1.0


@pytest.mark.uncompiled
def test_parts_of_an_array_are_checked_as_well() -> None:
    array = np.arange(6).reshape(3, 2).view(Checked)
    assert array[1, 1] == 3
    assert array[1:][0, 0] == 2
    with pytest.raises(IndexError, match="below 0"):
        array[1][-1]
