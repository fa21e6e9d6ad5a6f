"""Some rows of a file as columns, and the one way in which cells get their types, whatever the format.

CSV and Erlang terms bring texts, Parquet has types; both are Arrow arrays here, in which null is an empty cell.
pyarrow is imported on use, and its functions (``pyarrow.compute``) only for texts and empty cells: both take longer to
start than a small workload takes to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import SHOWN_PROBLEMS
from slacktide.inputs.columns.cells import Floats, Integers, parse_flag, parse_float, parse_integer
from slacktide.inputs.problems import Problems
from slacktide.model import arrow

N = TypeVar("N", bound=np.generic)

GOOD = 1.0
"""Stands in for a broken number: in range, so that it is reported once and not twice."""
SPARE_ID = 2**62
"""Plus the line stands in for a broken id: else the check for ids given twice would report it too."""


class ColumnBatch:
    """Rows of one file: Arrow arrays by column, and the line of each row, from 1. What is broken goes to ``problems``.

    Of every method ``expected`` says in a problem what the column may hold.
    """

    def __init__(self, columns: Mapping[str, Any], lines: Sequence[int] | Integers, problems: Problems) -> None:
        self.columns, self.problems = columns, problems
        self.lines = np.asarray(lines, dtype=np.int64)

    @classmethod
    def of_texts(cls, columns: Mapping[str, Sequence[str]], lines: Sequence[int], problems: Problems) -> ColumnBatch:
        """Columns of texts; one without letters is an empty cell."""
        arrays = {}
        for name, texts in columns.items():
            empty = np.fromiter((not text for text in texts), np.bool_, len(texts))
            arrays[name] = arrow.texts(texts, empty)
        return cls(arrays, lines, problems)

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def filled(self, name: str) -> NDArray[np.bool_]:
        """Which cells are not empty."""
        return ~arrow.empty_cells(self.columns[name])

    def texts(self, name: str) -> list[str]:
        """A column of words; "" for empty cells, and where the file has no such column."""
        return [text or "" for text in worded(self.columns[name]).to_pylist()] if name in self else [""] * len(self)

    def floats(
        self, name: str, expected: str, empty: float | None = None, parse: Callable[[str], float] = parse_float
    ) -> Floats:
        """A column as float64; an empty cell is ``empty``, or a problem where that is ``None``."""
        typed = numbers(self.columns[name], parse, whole=False)
        return self._values(name, typed, expected, empty, np.full(len(self), GOOD))

    def integers(self, name: str, expected: str, empty: int | None = None) -> Integers:
        """A column as int64, as :meth:`floats`."""
        typed = numbers(self.columns[name], parse_integer, whole=True)
        return self._values(name, typed, expected, empty, self.lines + SPARE_ID)

    def flags(self, name: str, expected: str = "true or false", parse: Callable[[str], bool] = parse_flag) -> Any:
        """A column as bools; an empty cell is false."""
        if is_text(self.columns[name]):
            return self.coded(name, expected, parse).astype(np.bool_)
        return arrow.as_numpy(self.columns[name], False)

    def coded(
        self, name: str, expected: str | Callable[[str], str], parse: Callable[[str], int], spare: int = 0
    ) -> Integers:
        """A column of few distinct words as numbers: ``parse`` is asked once for each; ``spare`` is for broken ones.

        It is asked in the order of their first rows: equal data gives equal numbers, whatever holds it. An empty cell
        is parsed as "". ``parse`` raises :class:`ValueError` or :class:`KeyError`.
        """
        column = worded(self.columns[name])
        if is_text(column):
            column = column.dictionary_encode()
        texts = [*column.dictionary.to_pylist(), ""]
        # Indices may be of a type that has no number left for the empty cell, as those of pandas.
        empty = arrow.empty_cells(column.indices)
        codes = np.where(empty, len(texts) - 1, arrow.as_numpy(column.indices, 0).astype(np.int64))
        found = np.full(len(texts), spare, dtype=np.int64)
        wrong: dict[int, str] = {}
        first = np.full(len(texts), len(codes), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal codes the last one to be written is the first row
        for code in np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))].tolist():
            text = texts[code] or ""
            try:
                found[code] = parse(text)
            except (ValueError, KeyError):
                wrong[code] = expected if isinstance(expected, str) else expected(text)
        for code, right in wrong.items():
            self.refuse(codes == code, name, right)
        return np.take(found, codes)

    def refuse(self, wrong: NDArray[np.bool_], name: str, expected: str) -> None:
        """A problem for every row marked in ``wrong``."""
        given = {row: self.columns[name][row].as_py() for row in np.flatnonzero(wrong)[:SHOWN_PROBLEMS].tolist()}
        shown = {row: "nothing" if value in (None, "") else str(value) for row, value in given.items()}
        self.problems.add_rows(wrong, self.lines, name, shown, expected)

    def _values(self, name: str, typed: Any, expected: str, empty: float | None, stand_in: NDArray[N]) -> NDArray[N]:
        if not typed.null_count:
            return arrow.as_numpy(typed).astype(stand_in.dtype)
        missing, filled = arrow.empty_cells(typed), self.filled(name)
        self.refuse(missing if empty is None else missing & filled, name, expected)
        found = arrow.as_numpy(typed, 0).astype(stand_in.dtype)
        found[missing] = stand_in[missing]
        if empty is not None:
            found[~filled] = empty
        return found


def is_text(column: Any) -> bool:
    """Whether an Arrow array holds texts, each in its place."""
    import pyarrow.types as kinds

    return bool(kinds.is_string(column.type) or kinds.is_large_string(column.type))


def worded(column: Any) -> Any:
    """An Arrow array of texts: of whole numbers those that say them."""
    import pyarrow.types as kinds

    return column.cast("string") if kinds.is_integer(column.type) else column


def stripped(column: Any) -> Any:
    """An Arrow array of texts without blanks around them, null where nothing is left."""
    import pyarrow.compute as pc

    texts = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.equal(texts, ""), None, texts)


def numbers(column: Any, parse: Callable[[str], float], *, whole: bool) -> Any:
    """An Arrow array of numbers (texts: float64, or int64 where ``whole``), null where a cell is empty or no number.

    ``parse`` is the rule: it is asked of each text, unless Arrow reads the whole column with the same outcome.
    """
    if not is_text(column):
        return column
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = pa.int64() if whole else pa.float64()
    if parse in (parse_float, parse_integer):
        try:
            found = column.cast(kind)
            # Of what Arrow takes, parse_integer refuses 0x10, and parse_float 1e999 and nan(1).
            odd = pc.match_substring_regex(column, "[xX]") if whole else pc.invert(pc.is_finite(found))
            if not pc.any(odd).as_py():
                return found
        except pa.ArrowInvalid:
            pass
    return pa.array([None if text is None else _parsed(parse, text) for text in column.to_pylist()], kind)


def _parsed(parse: Callable[[str], float], text: str) -> float | None:
    try:
        return parse(text)
    except ValueError:
        return None
