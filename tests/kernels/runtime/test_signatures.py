"""The types of an entry follow from its annotations, and every entry has some that a library can be made for."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slacktide.kernels.runtime.compiling import ADDRESSED, ENTRIES
from slacktide.kernels.runtime.signatures import Signature, Value, signature_of
from slacktide.kernels.tables.schema import Records, State
from support.libraries import import_every_kernel

PAIR = np.dtype([("a", "f8"), ("b", "i4")], align=True)
WHOLE, FLOAT, FLAG = np.dtype("i8"), np.dtype("f8"), np.dtype("?")

import_every_kernel()


def test_numbers_arrays_and_records() -> None:
    def everything(
        tb: State,
        flag: bool,
        rows: NDArray[np.int8],
        table: Annotated[NDArray[np.float64], 2],
        them: Annotated[Records, PAIR],
    ) -> tuple[float, bool]:
        return float(tb + len(rows) + len(table) + len(them)), flag

    arguments = (Value(WHOLE), Value(FLAG), Value(np.dtype("i1"), 1), Value(FLOAT, 2), Value(PAIR, 1))
    assert signature_of(everything) == Signature(arguments, (FLOAT, FLAG))


def test_nothing_is_returned_where_it_says_none() -> None:
    def nothing(tb: State) -> None: ...

    assert signature_of(nothing) == Signature((Value(WHOLE),), ())


def test_what_has_no_fixed_type_is_refused() -> None:
    def some(tb: State, rows: NDArray[Any]) -> None: ...
    def other(tb: State, row: Any) -> None: ...
    def words(tb: State) -> str:
        return str(tb)

    for function, name in ((some, "rows"), (other, "row"), (words, "return")):
        with pytest.raises(TypeError, match=f"{function.__name__}: {name}: found"):
            signature_of(function)


def test_every_entry_has_a_signature() -> None:
    assert len(ENTRIES) > 30
    for one in ENTRIES:
        signature_of(getattr(one, "py_func", one))


def test_what_is_called_by_address_is_of_whole_numbers() -> None:
    assert len(ADDRESSED) == 10
    for one in ADDRESSED:
        signature = signature_of(one.py_func)
        assert {*signature.arguments} == {Value(WHOLE)}
        assert signature.returns == (WHOLE,)
