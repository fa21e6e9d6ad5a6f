"""The small parts of a leeway that are right or wrong by themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slacktide.kernels.feasible import leeway
from slacktide.kernels.runtime.compiling import callable_from_python

next_above = callable_from_python(leeway.next_above)


SIZES = st.floats(2.0**-900, 2.0**900)


@given(st.sampled_from([0.0, np.inf]) | SIZES | SIZES.map(lambda size: -size))
def test_the_next_number_above_is_the_next(value: float) -> None:
    assert next_above(value) == np.nextafter(value, np.inf)


@pytest.mark.parametrize("power", [-900, -53, -20, 0, 10, 52, 900])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_so_it_is_at_powers_of_two(power: int, sign: float) -> None:
    value = sign * 2.0**power
    assert next_above(value) == np.nextafter(value, np.inf)
    assert next_above(np.nextafter(value, -np.inf)) == value
