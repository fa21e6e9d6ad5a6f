"""Workload files in order of admission, read piece by piece: in the memory of a piece, however long they are.

A file is read twice. The first reading finds out whether pieces tell all: rows are in order, every row is a request
of its own, nothing is broken, and which terms there are. A file of which that is not so is read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import InputError, fail
from slacktide.inputs.columns.cells import Integers
from slacktide.inputs.columns.texts import Tables
from slacktide.inputs.formats import tables
from slacktide.inputs.formats.csv_files import StreamedCsvFile
from slacktide.inputs.formats.tables import TableFile
from slacktide.inputs.rows import OPTIONAL
from slacktide.inputs.validation import to_workload
from slacktide.model import ServiceClass, Workload

SMALL_ROWS, SMALL_BYTES = 131_072, 16_000_000
"""Rows of a Parquet file, and bytes of a CSV file, that are no more than pieces: they are read whole, and once."""
MOST_IDS = 2**26
"""Numbers below this may come in any order: a byte for each says whether it has been there."""

UNSORTED = (
    "its rows are not in order of admission; sort it once ('slacktide trace scale FILE --out SORTED.parquet' does "
    "that), and give the sorted file"
)
UNNUMBERED = (
    f"its ids do not increase, and some are {MOST_IDS:,} or more, so equal ones could be anywhere; number the rows "
    "from 0 on in their order"
)
SEVERAL = (
    "it has requests of several instances, or columns about neighbours, users, limits or resizes that say something; "
    "where that is too much, cut it into files by time"
)

Tell = Callable[[float], None]


class NotInPiecesError(Exception):
    """A file that has to be read whole; the text says why, and is empty where nobody needs to know."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A workload file that can be read piece by piece: its ``rows`` are in order, each is a request of its own."""

    path: Path
    classes: tuple[ServiceClass, ...]
    rows: int
    tables: Tables

    def read(self, tell: Tell = lambda _: None) -> Iterator[Workload]:
        """The pieces, all with the terms of the whole file; ``tell`` hears which part of it has been read.

        Raises :class:`InputError` where the file has changed since it was looked through.
        """
        done, last = 0, -np.inf
        terms = self.tables["constraints"].values
        try:
            for piece in _pieces(_opened(self.path, self.classes), self.classes, self.tables):
                done += len(piece)
                changed = done > self.rows or piece.admission[0] < last or not _is_plain(piece)
                if changed or len(piece.terms) != len(terms):
                    raise self._changed()
                last = float(piece.admission[-1])
                tell(done / self.rows)
                yield replace(piece, terms=terms)
        except (NotInPiecesError, UnicodeError) as error:
            raise self._changed() from error
        if done != self.rows:
            raise self._changed()

    def _changed(self) -> InputError:
        return fail(self.path, "a file that nobody changes while it is read", value="other rows than at first")


def in_pieces(path: Path, classes: tuple[ServiceClass, ...], tell: Tell = lambda _: None) -> Pieces:
    """Looks through a workload file; raises :class:`NotInPiecesError` where it must be read whole.

    A broken file is one of these: reading it whole says what is broken.
    """
    kind = path.suffix.lower()
    try:
        if kind not in (".csv", ".parquet") or (kind == ".csv" and path.stat().st_size <= SMALL_BYTES):
            raise NotInPiecesError
        file = _opened(path, classes)
        if kind == ".parquet" and file.rows <= SMALL_ROWS:
            raise NotInPiecesError
        return _looked_through(path, file, classes, tell)
    except (InputError, OSError, UnicodeError, MemoryError) as error:
        raise NotInPiecesError from error


def _looked_through(path: Path, file: TableFile, classes: tuple[ServiceClass, ...], tell: Tell) -> Pieces:
    known, ids, rows, last = Tables(), _Ids(), 0, -np.inf
    for piece in _pieces(file, classes, known):
        if not _is_plain(piece):
            raise NotInPiecesError(SEVERAL)
        if piece.admission[0] < last:
            raise NotInPiecesError(UNSORTED)
        ids.add(piece.ids)
        last = float(piece.admission[-1])
        rows += len(piece)
        tell(rows / file.rows if file.rows else 0.0)
    if not rows:
        raise NotInPiecesError  # at least one row is expected
    return Pieces(path, classes, rows, known)


def _opened(path: Path, classes: tuple[ServiceClass, ...]) -> TableFile:
    return tables.opened(path, classes, StreamedCsvFile)


def _pieces(file: TableFile, classes: tuple[ServiceClass, ...], known: Tables) -> Iterator[Workload]:
    """Each batch as a workload. Raises :class:`InputError`, :class:`NotInPiecesError` where rows are not in order."""
    for batch in file.batches():
        if not len(batch) and not file.problems.total:
            continue
        columns = tables.empty_columns(file, len(batch), known)
        tables.fill(columns, slice(0, len(batch)), batch, classes)
        admission = columns.admission
        piece = to_workload(columns, classes, file.problems)
        if bool((admission[1:] < admission[:-1]).any()):
            raise NotInPiecesError(UNSORTED)
        yield piece
    file.problems.raise_if_any()


def _is_plain(piece: Workload) -> bool:
    return all(getattr(piece, name) is None for name in ("requests", *OPTIONAL))


class _Ids:
    """Whether every id comes once. Raises :class:`NotInPiecesError` where one comes again, or nobody knows."""

    def __init__(self) -> None:
        self._last = -1
        self._increasing = True
        # Zeros take no memory until something is written to them.
        self._seen: NDArray[np.bool_] | None = np.zeros(MOST_IDS, np.bool_)

    def add(self, ids: Integers) -> None:
        """The ids of a piece, in which each stands once."""
        self._increasing &= int(ids[0]) > self._last and bool((ids[1:] > ids[:-1]).all())
        self._last = int(ids[-1])
        if int(ids.max()) >= MOST_IDS:
            self._seen = None
        if self._seen is not None:
            if not self._increasing and self._seen[ids].any():
                raise NotInPiecesError
            self._seen[ids] = True
        elif not self._increasing:
            raise NotInPiecesError(UNNUMBERED)
