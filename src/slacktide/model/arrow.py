"""Arrow's columns from numpy's arrays and back, by their buffers: no pandas is imported for them.

``pyarrow.array``, ``pyarrow.scalar`` and ``to_numpy`` ask whether they deal with something of pandas, and import it for
that wherever it is installed. That takes longer than all else that a small simulation does. pyarrow is imported on use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


def column(values: Any, missing: Bools | None = None) -> Any:
    """An Arrow array of an array or a sequence of numbers, truth values or texts, shape (n,); null where ``missing``,
    or, without that, where a sequence has None.

    What is Arrow's already stays as it is. An array of numbers that lies in one piece is not copied.
    """
    import pyarrow as pa

    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if not isinstance(values, np.ndarray) or values.dtype.kind in "OU":
        there = [one for one in values if one is not None]
        nothing: Any = "" if there and isinstance(there[0], str) else 0
        if len(there) < len(values):
            missing = np.array([one is None for one in values])
        values = [nothing if one is None else one for one in values]
        if nothing == "":
            return texts(values, missing)
        values = np.array(values)
    if values.dtype == np.bool_:
        return pa.Array.from_buffers(pa.bool_(), len(values), [_bits(missing), pa.py_buffer(_packed(values))])
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [_bits(missing), pa.py_buffer(np.ascontiguousarray(values))])


def nullable(values: NDArray[np.float64]) -> Any:
    """As a column in which NaN is null."""
    return column(values, np.isnan(values))


def texts(words: Sequence[str], missing: Bools | None = None) -> Any:
    """An Arrow array of strings; null where ``missing``. Raises OverflowError where they have 2 GiB or more."""
    import pyarrow as pa

    data = "".join(words).encode()
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    if len(data) != lengths.sum():  # there are others than those of ASCII
        lengths = np.fromiter((len(one.encode()) for one in words), np.int64, len(words))
    if len(data) >= 2**31:
        raise OverflowError(f"texts: found {len(data)} bytes in one column, expected fewer than 2^31")
    offsets = np.zeros(len(words) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [_bits(missing), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.string(), len(words), buffers)


def named(codes: NDArray[Any], names: Sequence[str], missing: Bools | None = None) -> Any:
    """An Arrow array of words, each stored once: ``codes`` are indices into ``names``, shape (n,)."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(column(codes.astype(np.int32), missing), texts(names))


def table(columns: Mapping[str, Any]) -> Any:
    """An Arrow table of what :func:`column` takes."""
    import pyarrow as pa

    return pa.table({name: column(values) for name, values in columns.items()})


def empty_cells(array: Any) -> Bools:
    """Which cells of an Arrow array are null, shape (n,)."""
    array = _whole(array)
    bits = array.buffers()[0] if array.null_count else None
    return np.zeros(len(array), np.bool_) if bits is None else ~_unpacked(bits, array)


def as_numpy(array: Any, empty: float | None = None) -> NDArray[Any]:
    """The numbers or truth values of an Arrow array, shape (n,), ``empty`` where it is null; of a column in one piece
    and without null they are not copied, and must not be changed. Raises ValueError for a null without ``empty``."""
    import pyarrow.types as kinds

    array = _whole(array)
    data = array.buffers()[1]
    if data is None:
        values = np.zeros(len(array), array.type.to_pandas_dtype())
    elif kinds.is_boolean(array.type):
        values = _unpacked(data, array)
    else:
        values = np.frombuffer(data, array.type.to_pandas_dtype(), len(array), array.offset * array.type.byte_width)
    if not array.null_count:
        return values
    if empty is None:
        raise ValueError(f"found {array.null_count} empty cells, expected a value in each")
    return np.where(empty_cells(array), values.dtype.type(empty), values)


def _whole(array: Any) -> Any:
    """A column that has several pieces as one."""
    if not hasattr(array, "chunks"):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _packed(values: Bools) -> NDArray[np.uint8]:
    return np.packbits(values, bitorder="little")


def _bits(missing: Bools | None) -> Any:
    """The buffer that says which cells are there; None: all."""
    import pyarrow as pa

    return None if missing is None or not missing.any() else pa.py_buffer(_packed(~missing))


def _unpacked(bits: Any, array: Any) -> Bools:
    """A buffer of bits of an Arrow array."""
    found = np.unpackbits(np.frombuffer(bits, np.uint8), count=array.offset + len(array), bitorder="little")
    return found[array.offset :].astype(np.bool_)
