"""The Parquet tables of a run (docs/results.md), written in batches so that 25 million rows need no second copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.errors import OutputError
from slacktide.model import Hosts, Workload
from slacktide.qos.availability import ACCOUNTINGS, availability, fulfilled
from slacktide.results.manifest import FORMAT, SCHEMA_VERSION

BATCH = 1 << 20
"""Rows converted and written at a time."""

Columns = Mapping[str, NDArray[Any]]
TIMES = ("running", "pending", "startup_first", "startup_restarts", "discarded")


def write_requests(path: Path, workload: Workload, columns: Columns, accounting: Accounting) -> None:
    """One row per request of the run, in order of admission.

    ``columns`` are those of the simulator's result, shape (n,) each: ``row`` in the workload, ``completed``
    (seconds, NaN: not), :data:`TIMES`, ``wasted_startup``, ``preemptions``, ``starts``, ``hosts_used``.
    ``accounting`` is the one decisions used; ``slo_met`` follows it. Raises :class:`OutputError`.
    """
    slos = np.array([one.slo for one in workload.classes])
    names = [one.name for one in workload.classes]

    def batch(part: slice) -> dict[str, Any]:
        rows = columns["row"][part]
        code = workload.service_class[rows]
        times = [columns[name][part] for name in TIMES]
        achieved = {one: availability(one, *times) for one in ACCOUNTINGS}
        return {
            "id": workload.ids[rows],
            "class": _named(code, names),
            "admission": workload.admission[rows],
            "completion": _nullable(columns["completed"][part]),
            "running": times[0],
            "pending": times[1],
            "startup": times[2] + times[3],
            "startup_restarts": times[3],
            "discarded": times[4],
            "wasted_startup": columns["wasted_startup"][part],
            "preemptions": columns["preemptions"][part],
            "starts": columns["starts"][part],
            "hosts_used": columns["hosts_used"][part],
            **{f"availability_{one}": achieved[one] for one in ACCOUNTINGS},
            "slo_met": fulfilled(achieved[accounting], slos[code]),
        }

    _write(path, len(columns["row"]), batch)


def write_passes(path: Path, columns: Columns) -> None:
    """One row per scheduling pass: all of ``columns``, shape (passes,) each. Raises :class:`OutputError`."""
    _write(path, len(columns["time"]), lambda part: {name: values[part] for name, values in columns.items()})


def write_events(path: Path, workload: Workload, hosts: Hosts, columns: Columns, kinds: Sequence[str]) -> None:
    """One row per event, in the order in which they happened.

    ``columns``, shape (events,) each: ``time`` (s), ``kind`` (index into ``kinds``), ``row`` of the request and
    ``by``, the row of the one that benefits, ``host`` (-1: none each) and ``qos`` (s, NaN: none). Requests and
    hosts are written by id and name. Raises :class:`OutputError`.
    """

    def batch(part: slice) -> dict[str, Any]:
        return {
            "time": columns["time"][part],
            "event": _named(columns["kind"][part], list(kinds)),
            "request": _ids(columns["row"][part], workload.ids),
            "host": _named(columns["host"][part], list(hosts.names)),
            "by": _ids(columns["by"][part], workload.ids),
            "qos": _nullable(columns["qos"][part]),
        }

    _write(path, len(columns["time"]), batch)


def _write(path: Path, rows: int, batch: Callable[[slice], dict[str, Any]]) -> None:
    import pyarrow as pa  # here, because a run without --out needs none of it
    import pyarrow.parquet as pq

    schema: Any = None
    writer: Any = None
    try:
        for part in _parts(rows):
            table = pa.table(batch(part))
            if writer is None:
                marks = {"format": FORMAT, "schema_version": str(SCHEMA_VERSION)}
                schema = table.schema.with_metadata(marks)
                writer = pq.ParquetWriter(path, schema, compression="zstd")
            writer.write_table(table.replace_schema_metadata(schema.metadata))
    except (OSError, pa.ArrowException) as error:
        raise OutputError(f"{path.name}: cannot be written: {error}") from error
    finally:
        if writer is not None:
            writer.close()


def _parts(rows: int) -> Iterator[slice]:
    """Slices over all rows; one empty slice where there are none, so that the file has its columns."""
    for start in range(0, max(rows, 1), BATCH):
        yield slice(start, min(start + BATCH, rows))


def _nullable(values: NDArray[np.float64]) -> Any:
    import pyarrow as pa

    return pa.array(values, mask=np.isnan(values))


def _ids(rows: NDArray[Any], ids: NDArray[np.int64]) -> Any:
    import pyarrow as pa

    missing = rows < 0
    found = ids[np.where(missing, 0, rows)] if len(ids) else np.zeros(len(rows), np.int64)
    return pa.array(found, mask=missing)


def _named(codes: NDArray[Any], names: list[str]) -> Any:
    """Codes as words, stored once; -1 is no word."""
    import pyarrow as pa

    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))
