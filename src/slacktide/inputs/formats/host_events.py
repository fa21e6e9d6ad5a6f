"""Files of what happens to hosts: failures, and what they have or others take (docs/formats.md, 'Host events')."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns import header
from slacktide.inputs.columns.cells import Distinct, expected_name
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.columns.resizes import Amounts, parse_amounts
from slacktide.inputs.formats.csv_files import CsvFile
from slacktide.inputs.problems import Problems
from slacktide.inputs.validation import SECONDS, check_range
from slacktide.model import Hosts
from slacktide.model.host_events import CAPACITY, EVENT_KINDS, HostEvents

EXPECTED = "amounts such as 'cpu=2 memory=4', 0 or more and at most 1e15, every resource once"
NEEDED = f"{EXPECTED}, for {EVENT_KINDS[CAPACITY]!r} and {EVENT_KINDS[-1]!r}"
NONE = "nothing: a host fails, drains and is repaired as a whole"


def read_host_events(path: Path | str, hosts: Hosts) -> HostEvents:
    """What happens to ``hosts``, from CSV, in order of time; equal times keep the file's order.

    A host is given by its name or, where no host has that name, by its id. Raises :class:`InputError` with every
    broken value.
    """
    file = CsvFile(Path(path), header.EVENTS_REQUIRED, header.EVENTS_OPTIONAL, resources=False)
    rows = {str(number): row for row, number in enumerate(hosts.ids.tolist())}
    rows |= {name: row for row, name in enumerate(hosts.names)}
    known = Distinct(_amounts)
    times, found, kinds, amounts = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int8)], [np.zeros(0, int)]
    for batch in file.batches():
        times.append(batch.floats("time", SECONDS))
        found.append(batch.coded("host", lambda text: expected_name(text, hosts.names), rows.__getitem__))
        events = batch.coded("event", lambda text: expected_name(text, EVENT_KINDS), EVENT_KINDS.index)
        kinds.append(events.astype(np.int8))
        amounts.append(_codes(batch, kinds[-1], known, hosts.resources, file.problems))
        check_range(times[-1], batch.lines, "time", SECONDS, file.problems)
    file.problems.raise_if_any()
    order = np.argsort(np.concatenate(times), kind="stable")
    table = np.array([_row(one, hosts.resources) for one in known.values])
    return HostEvents(
        np.concatenate(times)[order],
        np.concatenate(found)[order],
        np.concatenate(kinds)[order],
        table[np.concatenate(amounts)[order]],
    )


def _amounts(text: str) -> Amounts:
    return parse_amounts(text) if text else ()


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
    if "amounts" not in batch:
        problems.add_rows(kinds >= CAPACITY, batch.lines, "amounts", [""] * len(batch), NEEDED)
        return np.zeros(len(batch), np.int64)
    before = problems.total
    codes = batch.coded("amounts", EXPECTED, known.number)
    filled = batch.filled("amounts")
    batch.refuse(~filled & (kinds >= CAPACITY), "amounts", NEEDED)
    batch.refuse(filled & (kinds < CAPACITY), "amounts", NONE)
    if problems.total == before:
        odd = [any(name not in resources for name, _ in one) for one in known.values]
        batch.refuse(np.array(odd)[codes], "amounts", f"resources of the hosts ({', '.join(resources)})")
    return np.asarray(codes)
