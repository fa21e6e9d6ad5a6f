"""Files of what happens to hosts: failures, what they have, and who else is there (docs/formats.md, 'Host events')."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns import affinity_text, header
from slacktide.inputs.columns.cells import Distinct, expected_name
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.columns.occasions import Amounts, parse_amounts
from slacktide.inputs.formats.csv_files import CsvFile
from slacktide.inputs.problems import Problems
from slacktide.inputs.validation import SECONDS, check_range
from slacktide.model import Hosts
from slacktide.model.host_events import CAPACITY, EVENT_KINDS, MARKS, OF_AMOUNTS, OTHERS, Carried, HostEvents

EXPECTED = "amounts such as 'cpu=2 memory=4', 0 or more and at most 1e15, every resource once"
NEEDED = f"{EXPECTED}, for {EVENT_KINDS[CAPACITY]!r} and {EVENT_KINDS[OTHERS]!r}"
NONE = f"nothing: amounts go with {EVENT_KINDS[CAPACITY]!r} and {EVENT_KINDS[OTHERS]!r} only"
NEEDED_MARKS = f"{affinity_text.EXPECTED_COUNTED}, for {EVENT_KINDS[MARKS]!r}"
NO_MARKS = f"nothing: marks go with {EVENT_KINDS[MARKS]!r} only"


def read_host_events(path: Path | str, hosts: Hosts) -> HostEvents:
    """What happens to ``hosts``, from CSV, in order of time; equal times keep the file's order.

    A host is given by its name or, where no host has that name, by its id. Raises :class:`InputError` with every
    broken value.
    """
    file = CsvFile(Path(path), header.EVENTS_REQUIRED, header.EVENTS_OPTIONAL, resources=False)
    rows = {str(number): row for row, number in enumerate(hosts.ids.tolist())}
    rows |= {name: row for row, name in enumerate(hosts.names)}
    known: Distinct[Amounts] = Distinct(lambda text: parse_amounts(text) if text else ())
    carried: Distinct[Carried] = Distinct(lambda text: affinity_text.parse_counted(text) if text else ())
    times, found, kinds = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int8)]
    amounts, marks = [np.zeros(0, int)], [np.zeros(0, int)]
    for batch in file.batches():
        times.append(batch.floats("time", SECONDS))
        found.append(batch.coded("host", lambda text: expected_name(text, hosts.names), rows.__getitem__))
        events = batch.coded("event", lambda text: expected_name(text, EVENT_KINDS), EVENT_KINDS.index)
        kinds.append(events.astype(np.int8))
        amounts.append(_codes(batch, kinds[-1], known, hosts.resources, file.problems))
        marks.append(_marks(batch, kinds[-1], carried))
        check_range(times[-1], batch.lines, "time", SECONDS, file.problems)
    file.problems.raise_if_any()
    order = np.argsort(np.concatenate(times), kind="stable")
    table = np.array([_row(one, hosts.resources) for one in known.values])
    counted = np.concatenate(marks)[order]
    return HostEvents(
        np.concatenate(times)[order],
        np.concatenate(found)[order],
        np.concatenate(kinds)[order],
        table[np.concatenate(amounts)[order]],
        {event: carried.values[counted[event]] for event in np.flatnonzero(counted).tolist()},
    )


def _row(amounts: Amounts, resources: tuple[str, ...]) -> list[float]:
    named = dict(amounts)
    return [named.get(name, np.nan) for name in resources]


def _codes(
    batch: ColumnBatch,
    kinds: NDArray[np.int8],
    known: Distinct[Amounts],
    resources: tuple[str, ...],
    problems: Problems,
) -> NDArray[np.int64]:
    """The numbers of a batch's amounts; a problem for each that does not go with its event."""
    of_amounts = np.isin(kinds, OF_AMOUNTS)
    before = problems.total
    codes = _only_with(batch, of_amounts, "amounts", known, (EXPECTED, NEEDED, NONE))
    if problems.total == before:
        odd = [any(name not in resources for name, _ in one) for one in known.values]
        batch.refuse(np.array(odd)[codes], "amounts", f"resources of the hosts ({', '.join(resources)})")
    return codes


def _marks(batch: ColumnBatch, kinds: NDArray[np.int8], known: Distinct[Carried]) -> NDArray[np.int64]:
    """The numbers of what a batch says of marks; a problem for each that does not go with its event."""
    return _only_with(batch, kinds == MARKS, "marks", known, (affinity_text.EXPECTED_COUNTED, NEEDED_MARKS, NO_MARKS))


def _only_with(
    batch: ColumnBatch, wanted: NDArray[np.bool_], column: str, known: Distinct[Any], expected: tuple[str, str, str]
) -> NDArray[np.int64]:
    """The numbers of a column's values, 0 where there is none; a problem where one is missing, or is not ``wanted``.

    ``expected`` is said of a broken one, of one that is missing, and of one that should not be there."""
    broken, needed, none = expected
    if column not in batch:
        batch.problems.add_rows(wanted, batch.lines, column, [""] * len(batch), needed)
        return np.zeros(len(batch), np.int64)
    codes = batch.coded(column, broken, known.number)
    filled = batch.filled(column)
    batch.refuse(~filled & wanted, column, needed)
    batch.refuse(filled & ~wanted, column, none)
    return np.asarray(codes)
