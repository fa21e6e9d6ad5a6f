"""The Parquet tables of a run (docs/results.md), written in batches so that 25 million rows need no second copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.errors import OutputError
from slacktide.model import APPROACHES, Hosts, Workload, arrow
from slacktide.model.resting import let_go
from slacktide.model.workload import KINDS
from slacktide.qos.availability import ACCOUNTINGS, availability, fulfilled
from slacktide.qos.per_request import instance_numbers, measured_together
from slacktide.qos.windows import judged
from slacktide.results.directory import FORMAT, SCHEMA_VERSION

BATCH = 1 << 16
"""Rows converted and written at a time, and those of a row group: a million of them would take 180 MB."""
DICTIONARY = 1 << 17
"""Bytes of distinct values of a column in a row group beyond which values stand in their places: without that, so small
row groups of numbers that are all different would hold each twice."""

Columns = Mapping[str, NDArray[Any]]
TIMES = ("running", "pending", "startup_first", "startup_restarts", "discarded")


@dataclass(frozen=True, slots=True)
class Rows:
    """A table that is made part by part: ``count`` rows, the columns of a part of them, and arrays that are read for a
    part and not needed after it."""

    count: int
    columns: Callable[[slice], dict[str, Any]]
    read: Sequence[NDArray[Any]] = ()

    def table(self) -> Any:
        """All of them as an Arrow table."""
        import pyarrow as pa

        return pa.concat_tables([arrow.table(self.columns(part)) for part in _parts(self.count)])

    def write(self, path: Path) -> None:
        """All of them as a Parquet file, batch by batch; arrays that are read are let go after each.

        Raises :class:`OutputError`.
        """
        import pyarrow as pa  # here, because a run without --out needs none of it
        import pyarrow.parquet as pq

        writer: Any = None
        try:
            for part in _parts(self.count):
                table = arrow.table(self.columns(part))
                if writer is None:
                    options = {"compression": "zstd", "dictionary_pagesize_limit": DICTIONARY}
                    # without Arrow's own schema words are text to every reader, as in frames, and not categories
                    writer = pq.ParquetWriter(path, table.schema, store_schema=False, **options)
                    writer.add_key_value_metadata({"format": FORMAT, "schema_version": str(SCHEMA_VERSION)})
                writer.write_table(table)
                let_go(*self.read)
        except (OSError, pa.ArrowException) as error:
            raise OutputError(f"{path.name}: cannot be written: {error}") from error
        finally:
            if writer is not None:
                writer.close()


def request_rows(workload: Workload, columns: Columns, accounting: Accounting) -> Rows:
    """One row per request of the run, in order of admission; of several instances in the workload's order.

    ``columns`` are those of the simulator's result, shape (n,) each: ``row`` in the workload, ``completed``
    (seconds, NaN: not), :data:`TIMES`, ``wasted_startup``, ``preemptions``, ``starts``, ``hosts_used``; where the
    workload has requests of several instances, those of ``qos.per_request``. ``accounting`` is the one decisions used;
    ``slo_met`` follows it.
    """
    slos = np.array([one.slo for one in workload.classes])
    names = [one.name for one in workload.classes]
    called = _called_together(workload)

    def batch(part: slice) -> dict[str, Any]:
        rows = columns["row" if workload.requests is None else "first"][part]
        code = workload.service_class[rows]
        achieved = _achieved(columns, part)
        return {
            **_identity(workload, columns, part),
            **{name: _named(codes[columns["row"][part]], words) for name, (words, codes) in called.items()},
            "class": _named(code, names),
            "admission": workload.admission[rows],
            "completion": arrow.nullable(columns["completed"][part]),
            **_history(columns, part),
            **{f"availability_{one}": values for one, values in achieved.items()},
            **_worst(columns, part),
            "slo_met": fulfilled(judged(achieved[accounting], columns, part), slos[code]),
            **_asked(workload, columns, part),
        }

    return Rows(len(columns["row"]), batch, _resting(workload, columns))


def instance_rows(workload: Workload, columns: Columns, accounting: Accounting) -> Rows:
    """One row per instance of the run, for workloads with requests of several instances; in the order of ``columns``.

    ``columns``, shape (i,) each: as in :func:`request_rows`, with ``row`` in the workload, and ``admission`` (s; of a
    batch request's instance its release) and ``removed`` (s, NaN: not). Availability and ``slo_met``, in the
    ``accounting`` of decisions, are each instance's own. Raises ValueError where every row of the workload is a request
    of its own.
    """
    if workload.requests is None or workload.request is None:
        raise ValueError("workload.requests: found none, expected requests; instances have no table of their own then")
    slos = np.array([one.slo for one in workload.classes])
    whose, ids, numbers = workload.request, workload.requests.ids, instance_numbers(workload)
    called = _called(workload)

    def batch(part: slice) -> dict[str, Any]:
        rows = columns["row"][part]
        achieved = _achieved(columns, part)
        return {
            "request": ids[whose[rows]],
            "instance": numbers[rows],
            "id": workload.ids[rows],
            **{name: _named(codes[rows], words) for name, (words, codes) in called.items()},
            "admission": columns["admission"][part],
            "completion": arrow.nullable(columns["completed"][part]),
            "removed": arrow.nullable(columns["removed"][part]),
            **_history(columns, part),
            **{f"availability_{one}": values for one, values in achieved.items()},
            **_worst(columns, part),
            "slo_met": fulfilled(judged(achieved[accounting], columns, part), slos[workload.service_class[rows]]),
        }

    return Rows(len(columns["row"]), batch, _resting(workload, columns))


def rows_of(columns: Mapping[str, Any]) -> Rows:
    """One row for each entry of ``columns``, shape (n,) each, as they are."""
    count = len(next(iter(columns.values())))
    return Rows(count, lambda part: {name: values[part] for name, values in columns.items()})


def delay_rows(delays: Any) -> Rows:
    """What users saw: a table of :func:`slacktide.metrics.delay.placement_delays`."""
    return rows_of({name: delays[name].combine_chunks() for name in delays.column_names})


def interval_rows(columns: Columns, classes: Sequence[str]) -> Rows:
    """One row per interval and class: all of ``columns``, shape (rows,) each, ``class`` an index into ``classes``.

    NaN becomes null.
    """

    def batch(part: slice) -> dict[str, Any]:
        named = {name: _plain(values[part]) for name, values in columns.items()}
        return named | {"class": _named(columns["class"][part], list(classes))}

    return Rows(len(columns["time"]), batch)


def window_rows(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """What promises over windows came to: ``rows`` of ``metrics.window_summary``."""
    words, whole = ("class", "window"), ("requests",)
    columns: dict[str, Any] = {}
    for name in (*words, "length", "worst", *whole, "kept", "longest"):
        cells = [row[name] for row in rows]
        missing = np.array([one is None for one in cells], np.bool_)
        if name in words:
            columns[name] = arrow.texts([one or "" for one in cells], missing)
        else:
            kind = np.int64 if name in whole else np.float64
            columns[name] = arrow.column(np.array([0 if one is None else one for one in cells], kind), missing)
    return rows_of(columns)


def event_rows(workload: Workload, hosts: Hosts, columns: Columns, kinds: Sequence[str]) -> Rows:
    """One row per event, in the order in which they happened.

    ``columns``, shape (events,) each: ``time`` (s), ``kind`` (index into ``kinds``), ``row`` of the instance and
    ``by``, the row of the one that benefits, ``host`` (-1: none each), ``qos`` (s, NaN: none) and ``received`` (s, of
    outages). Requests and hosts are written by id and name, an instance by its number within its request (null where
    every row is a request, and of an outage of a request that is measured as a whole).
    """
    ids, numbers = workload.ids, None
    outage = list(kinds).index("outage")
    if workload.requests is not None:
        ids, numbers = workload.requests.ids[workload.request], instance_numbers(workload)
    whole = measured_together(workload)

    def batch(part: slice) -> dict[str, Any]:
        rows, ended = columns["row"][part], columns["kind"][part] == outage
        one = np.where(ended & whole[rows], -1, rows) if len(whole) else rows
        return {
            "time": columns["time"][part],
            "event": _named(columns["kind"][part], list(kinds)),
            "request": _looked_up(rows, ids),
            "instance": _none(len(rows)) if numbers is None else _looked_up(one, numbers),
            "host": _named(columns["host"][part], list(hosts.names)),
            "by": _looked_up(columns["by"][part], ids),
            "qos": arrow.nullable(columns["qos"][part]),
            "received": arrow.nullable(np.where(ended, columns["received"][part], np.nan)),
        }

    return Rows(len(columns["time"]), batch)


def _identity(workload: Workload, columns: Columns, part: slice) -> dict[str, Any]:
    """Which requests these are, and of what kind."""
    rows, requests = columns["row"][part], workload.requests
    if requests is None:
        kind = approach = np.zeros(len(rows), dtype=np.int8)  # a service, independent
        ids, instances = workload.ids[rows], np.ones(len(rows), dtype=np.int64)
    else:
        kind, approach = requests.batch[rows].astype(np.int8), requests.approach[rows]
        ids, instances = requests.ids[rows], columns["count"][part]
    return {
        "id": ids,
        "kind": _named(kind, list(KINDS)),
        "approach": _named(approach, list(APPROACHES)),
        "instances": instances,
        "parallelism": _at_once(workload, rows),
    }


def _called(workload: Workload) -> dict[str, tuple[list[str], NDArray[np.int32]]]:
    """What people call rows, where the input said it: words, and each row's place among them, -1: none."""
    if workload.label is None:
        return {}
    found = {}
    for name in ("namespace", "owner", "name"):
        of = [getattr(one, name) for one in workload.labels]
        words = [word for word in dict.fromkeys(of) if word]
        places = {word: place for place, word in enumerate(words)}
        codes = np.array([places.get(word, -1) for word in of], np.int32)
        if words:
            found[name] = words, codes[workload.label]
    return found


def _called_together(workload: Workload) -> dict[str, tuple[list[str], NDArray[np.int32]]]:
    """The same of requests: what all instances of one are called."""
    found = _called(workload)
    if workload.request is None or workload.requests is None:
        return found
    count = len(workload.requests)
    for name, (words, codes) in found.items():
        least, most = np.full(count, len(words), np.int32), np.full(count, -1, np.int32)
        np.minimum.at(least, workload.request, codes)
        np.maximum.at(most, workload.request, codes)
        found[name] = words, np.where(least == most, most, np.int32(-1))
    return found


def _at_once(workload: Workload, rows: NDArray[np.int64]) -> Any:
    """How many instances of each batch request may be at work at once; none known: all."""
    requests = workload.requests
    if requests is None:
        return _whole(np.full(len(rows), -1))
    return _whole(np.where(requests.batch & (requests.parallelism > 0), requests.parallelism, -1)[rows])


def _worst(columns: Columns, part: slice) -> dict[str, Any]:
    """The worst window, where any promise is over windows."""
    return {"worst_window": arrow.nullable(columns["worst_window"][part])} if "worst_window" in columns else {}


def _history(columns: Columns, part: slice) -> dict[str, Any]:
    """What happened to requests or instances, and how long."""
    first, restarts = columns["startup_first"][part], columns["startup_restarts"][part]
    return {
        "running": columns["running"][part],
        "pending": columns["pending"][part],
        "startup": first + restarts,
        "startup_restarts": restarts,
        "discarded": columns["discarded"][part],
        "wasted_startup": columns["wasted_startup"][part],
        "preemptions": columns["preemptions"][part].astype(np.int64),
        "starts": columns["starts"][part].astype(np.int64),
        "hosts_used": _whole(columns["hosts_used"][part]),
    }


def _asked(workload: Workload, columns: Columns, part: slice) -> dict[str, Any]:
    """What requests asked for: of one row as the workload says, of several as ``qos.per_request`` sums it up."""
    rows = columns["row"][part]
    if workload.requests is None:
        duration, demand = workload.duration[rows], workload.demand[rows]
        cpu = demand[:, workload.resources.index("cpu")]
        work = np.multiply(cpu, duration, out=np.full(len(rows), np.inf), where=np.isfinite(duration))
    else:
        duration, demand, work = (columns[name][part] for name in ("duration", "demand", "cpu_seconds"))
    amounts = {f"demand_{name}": demand[:, place] for place, name in enumerate(workload.resources)}
    return {"duration": _finite(duration), "cpu_seconds": _finite(work), **amounts}


def _achieved(columns: Columns, part: slice) -> dict[Accounting, NDArray[np.float64]]:
    """Availability in each accounting: that of a request where it is there, else that of the times."""
    if f"availability_{ACCOUNTINGS[0]}" in columns:
        return {one: columns[f"availability_{one}"][part] for one in ACCOUNTINGS}
    times = [columns[name][part] for name in TIMES]
    return {one: availability(one, *times) for one in ACCOUNTINGS}


def _resting(workload: Workload, columns: Columns) -> list[NDArray[Any]]:
    """What is read for a batch, and not needed after it."""
    of_rows = (workload.ids, workload.admission, workload.duration, workload.demand, workload.service_class)
    return [*of_rows, *columns.values()]


def _parts(rows: int) -> Iterator[slice]:
    """Slices over all rows; one empty slice where there are none, so that the file has its columns."""
    for start in range(0, max(rows, 1), BATCH):
        yield slice(start, min(start + BATCH, rows))


def _plain(values: NDArray[Any]) -> Any:
    return arrow.nullable(values) if values.dtype == np.float64 else values


def _finite(values: NDArray[np.float64]) -> Any:
    """Endless is null."""
    return arrow.column(values, np.isinf(values))


def _whole(values: NDArray[Any]) -> Any:
    """Counts; -1 is none known."""
    return arrow.column(values.astype(np.int32), values < 0)


def _looked_up(rows: NDArray[Any], values: NDArray[np.int64]) -> Any:
    """The value of each row; a row of -1 has none."""
    missing = rows < 0
    found = values[np.where(missing, 0, rows)] if len(values) else np.zeros(len(rows), np.int64)
    return arrow.column(found, missing)


def _none(count: int) -> Any:
    import pyarrow as pa

    return pa.nulls(count, pa.int64())


def _named(codes: NDArray[Any], names: list[str]) -> Any:
    """Codes as words, stored once; -1 is no word."""
    return arrow.named(codes, names, codes < 0)
