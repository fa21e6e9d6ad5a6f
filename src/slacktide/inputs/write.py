"""Writing workloads and hosts, so that no reader ever sees half a file."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np

from slacktide.errors import OutputError
from slacktide.inputs.collapse import collapse
from slacktide.inputs.columns.access import format_users
from slacktide.inputs.columns.affinity_text import format_budget, format_marks, format_preferences, format_rules
from slacktide.inputs.columns.cells import format_float
from slacktide.inputs.columns.header import LIMIT_PREFIX, MEMBER_COLUMNS, REQUEST_COLUMNS, column_name
from slacktide.inputs.columns.instances import BATCH, KINDS, RequestColumns, format_scale
from slacktide.inputs.columns.losses import format_past
from slacktide.inputs.columns.resizes import format_resizing
from slacktide.inputs.columns.terms import format_attributes, format_term
from slacktide.inputs.columns.unreadiness import format_unreadiness
from slacktide.inputs.rows import join, select
from slacktide.model import APPROACHES, Hosts, Workload, arrow

T = TypeVar("T")

ROW_GROUP = 131_072
IN_MEMORY = Path("workload")
"""What errors name of a table that is no file."""


def write_workload(workload: Workload, path: Path | str) -> None:
    """The workload as ``.csv`` or ``.parquet``; reading it gives an equal one.

    A request of several instances is one row, or one for each instance where they differ; these need ids of their
    own, or :class:`OutputError` is raised. So it is for terms, placements, budgets and resources that a file cannot
    say. Where all requests are independent services of one instance, ``requests`` is read back as ``None``, and
    ``placement``, ``budget``, ``resize`` and ``lost`` where nobody has any.
    Written beside ``path`` and renamed at the end. Raises :class:`OutputError`.
    """
    path = Path(path)
    if path.suffix.lower() == ".parquet":
        with WorkloadParquetWriter(path) as writer:
            writer.append(workload)
        return
    rows, requests = collapse(workload, path)
    _write_csv(path, lambda: _workload_rows(rows, requests, path))


def write_pieces(pieces: Iterable[Workload], path: Path | str) -> None:
    """What :func:`write_workload` writes for all pieces behind each other, to the byte, in the memory of a few of them.

    Pieces share classes, terms and resources; every row is a request, without neighbours, limits, accesses or resizes.
    If ``pieces`` raises, nothing is left. Raises :class:`OutputError`.
    """
    path = Path(path)
    if path.suffix.lower() == ".parquet":
        with WorkloadParquetWriter(path) as writer:
            for one in _row_groups(pieces):
                writer.append(one)
        return
    _write_csv(path, lambda: _rows_of_pieces(pieces, path))


def _row_groups(pieces: Iterable[Workload]) -> Iterator[Workload]:
    """The same rows in pieces of ``ROW_GROUP``, the last of what is left."""
    held: list[Workload] = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) < ROW_GROUP:
            continue
        rows = join(held)
        full = len(rows) - len(rows) % ROW_GROUP
        yield select(rows, slice(0, full))
        held = [select(rows, slice(full, len(rows)))]
    if held and (last := join(held)):
        yield last


def _rows_of_pieces(pieces: Iterable[Workload], path: Path) -> Iterator[list[str]]:
    for number, piece in enumerate(pieces):
        yield from islice(_workload_rows(piece, None, path), 1 if number else 0, None)


def write_hosts(hosts: Hosts, path: Path | str) -> None:
    """The hosts as ``.csv`` or ``.parquet``, as :func:`write_workload` writes."""
    path = Path(path)
    if path.suffix.lower() != ".parquet":
        _write_csv(path, lambda: _host_rows(hosts))
        return
    import pyarrow.parquet as pq

    _set_aside(path, lambda aside: pq.write_table(hosts_table(hosts), aside, write_page_checksum=True))


def hosts_table(hosts: Hosts) -> Any:
    """The Arrow table that :func:`write_hosts` writes as Parquet."""
    columns: dict[str, Any] = {"id": hosts.ids, "name": arrow.texts(hosts.names)}
    for index, resource in enumerate(hosts.resources):
        columns[column_name(resource)] = hosts.capacity[:, index]
    columns["attributes"] = arrow.texts([format_attributes(one) for one in hosts.attributes])
    return arrow.table(columns)


def workload_table(workload: Workload) -> Any:
    """The Arrow table that :func:`write_workload` writes as Parquet. Raises :class:`OutputError` as that does."""
    rows, requests = collapse(workload, IN_MEMORY)
    return arrow.table(_arrow_columns(rows, requests, IN_MEMORY))


class WorkloadParquetWriter:
    """Writes a workload piece by piece, in row groups, in the memory of one piece.

    ::

        with WorkloadParquetWriter("workload.parquet") as writer:
            for chunk in chunks:
                writer.append(chunk)

    All pieces share classes, terms, resources, placements, budgets, resizings and losses; all have ``requests``
    (``placement``, ``budget``, ``resize``) or none has, and a request's instances are in one piece. ``rows`` counts
    the rows of the file.
    The file appears under its name when the block ends well; after an exception (Ctrl-C too) nothing is left.
    Raises :class:`OutputError`.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.rows = 0
        self._aside = _aside(self.path)
        self._writer: Any = None
        self._shared: tuple[object, ...] | None = None

    def __enter__(self) -> Self:
        return self

    def append(self, workload: Workload) -> None:
        """Add rows behind those already written."""
        rows, requests = collapse(workload, self.path)
        shared = (
            *(workload.classes, workload.terms, workload.resources, requests is None),
            *(workload.placement is None, workload.placements, workload.budget is None, workload.budgets),
            *(workload.resize is None, workload.resizings, workload.lost is None, workload.losses),
            *(workload.access is None, workload.accesses, workload.limit is None, workload.grace is None),
            *(workload.unready is None, workload.spells),
            requests is not None and requests.member is None,
        )
        if self._shared not in (None, shared):
            raise OutputError(
                f"{self.path}: expected pieces with the same classes, terms, resources, placements, budgets and "
                "resizings, all of them with requests of several instances or none"
            )
        table = arrow.table(_arrow_columns(rows, requests, self.path))
        if self._shared is None:
            self._open(table.schema)
            self._shared = shared
        try:
            self._writer.write_table(table, row_group_size=ROW_GROUP)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error}") from error
        self.rows += len(rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
                if kind is None:
                    os.replace(self._aside, self.path)
            elif kind is None:
                raise OutputError(f"{self.path}: expected at least one piece of a workload")
        except OSError as failure:
            raise OutputError(f"{self.path}: cannot be written: {failure}") from failure
        finally:
            self._aside.unlink(missing_ok=True)

    def _open(self, schema: Any) -> None:
        import pyarrow.parquet as pq

        try:
            self._writer = pq.ParquetWriter(self._aside, schema, compression="zstd", write_page_checksum=True)
        except OSError as error:
            raise OutputError(f"{self.path}: cannot be written: {error}") from error


def _texts(path: Path, column: str, values: Sequence[T], say: Callable[[T], str]) -> list[str]:
    """What stands in the column for each of the values; raises :class:`OutputError` for one that cannot be said."""
    try:
        return [say(value) for value in values]
    except ValueError as error:
        raise OutputError(f"{path}: {column}: {error}") from error


def _affinity_texts(workload: Workload, path: Path) -> dict[str, tuple[Any, list[str]]]:
    """By column about affinity, budgets and changes of demand, as far as there are any: rows' indices, and texts."""
    found: dict[str, tuple[Any, list[str]]] = {}
    if workload.placement is not None:
        index, made = workload.placement, workload.placements
        found["marks"] = index, _texts(path, "marks", [one.marks for one in made], format_marks)
        found["rules"] = index, _texts(path, "rules", [one.rules for one in made], format_rules)
        preferences = [one.preferences for one in made]
        found["preferences"] = index, _texts(path, "preferences", preferences, format_preferences)
    if workload.resize is not None:
        found["resize"] = workload.resize, _texts(path, "resize", workload.resizings, format_resizing)
    if workload.lost is not None:
        found["lost"] = workload.lost, _texts(path, "lost", workload.losses, format_past)
    if workload.unready is not None:
        found["unready"] = workload.unready, _texts(path, "unready", workload.spells, format_unreadiness)
    if workload.budget is not None:
        texts = _texts(path, "budget", workload.budgets, format_budget)
        names = [budget.name for budget in dict.fromkeys(workload.budgets)]
        for name in names:
            if names.count(name) > 1:
                raise OutputError(f"{path}: budget: found two named {name!r}, expected one bound for each name")
        found["budget"] = workload.budget, [*texts, ""]  # -1, for none, is the last
    return found


def _access_columns(workload: Workload) -> dict[str, list[Any]]:
    """By column about grace periods, limits, users, images and data, as far as the workload has any: a value or "" for
    each row."""
    found: dict[str, list[Any]] = {} if workload.grace is None else {"grace": workload.grace.tolist()}
    if workload.access is not None:
        listed = [workload.accesses[number] for number in workload.access.tolist()]
        found["users"] = [format_users(one.logins) for one in listed]
        found["image"], found["preferred"] = [one.image for one in listed], [one.preferred for one in listed]
        found["data"], found["deadline"] = [one.data for one in listed], [one.deadline for one in listed]
    if workload.limit is not None:
        for index, resource in enumerate(workload.resources):
            found[LIMIT_PREFIX + resource] = workload.limit[:, index].tolist()
    return found


def _arrow_columns(workload: Workload, requests: RequestColumns | None, path: Path) -> dict[str, Any]:
    columns: dict[str, Any] = {
        "id": workload.ids,
        "admission": workload.admission,
        "duration": workload.duration,
    }
    for index, resource in enumerate(workload.resources):
        columns[column_name(resource)] = workload.demand[:, index]
    columns["class"] = arrow.named(workload.service_class, [one.name for one in workload.classes])
    columns["job"] = workload.job
    columns["anti_affinity"] = workload.anti_affinity
    columns["constraints"] = arrow.named(workload.term, _texts(path, "constraints", workload.terms, format_term))
    if requests is not None:
        columns |= _request_columns(requests)
    for name, (index, texts) in _affinity_texts(workload, path).items():
        columns[name] = arrow.named(np.where(index < 0, len(texts) - 1, index), texts)
    for name, values in _access_columns(workload).items():
        columns[name] = values if isinstance(values[0], str) else np.array(values, np.float64)
    return columns


def _request_columns(requests: RequestColumns) -> dict[str, Any]:
    columns: dict[str, Any] = {"kind": arrow.named(requests.kind, KINDS)}
    for name in ("instances", "completions", "parallelism"):
        given = getattr(requests, name)
        columns[name] = arrow.column(given.astype(np.int64), given == 0)
    columns["approach"] = arrow.named(requests.approach, APPROACHES)
    columns["scale"] = arrow.named(requests.scale, [format_scale(one) for one in requests.scales])
    if requests.member is not None:
        columns["request"] = requests.member
    return columns


def _workload_rows(workload: Workload, requests: RequestColumns | None, path: Path) -> Iterator[list[str]]:
    amounts = [column_name(resource) for resource in workload.resources]
    nearby = _affinity_texts(workload, path)
    access = _access_columns(workload)
    of_requests: tuple[str, ...] = () if requests is None else REQUEST_COLUMNS
    if requests is not None and requests.member is not None:
        of_requests = (*REQUEST_COLUMNS, *MEMBER_COLUMNS)
    further = [*of_requests, *nearby, *access]
    yield ["id", "admission", "duration", *amounts, "class", "job", "anti_affinity", "constraints", *further]
    terms = _texts(path, "constraints", workload.terms, format_term)
    for row in range(len(workload)):
        yield [
            str(workload.ids[row]),
            format_float(workload.admission[row]),
            format_float(workload.duration[row]) if np.isfinite(workload.duration[row]) else "",
            *map(format_float, workload.demand[row].tolist()),
            workload.classes[workload.service_class[row]].name,
            str(workload.job[row]),
            "true" if workload.anti_affinity[row] else "false",
            terms[workload.term[row]],
            *(() if requests is None else _request_cells(requests, row)),
            *(texts[index[row]] for index, texts in nearby.values()),
            *(one[row] if isinstance(one[row], str) else format_float(one[row]) for one in access.values()),
        ]


def _request_cells(requests: RequestColumns, row: int) -> list[str]:
    batch = requests.kind[row] == BATCH
    return [
        KINDS[requests.kind[row]],
        "" if batch else str(requests.instances[row]),
        str(requests.completions[row]) if batch else "",
        str(requests.parallelism[row]) if batch else "",
        APPROACHES[requests.approach[row]],
        format_scale(requests.scales[requests.scale[row]]),
        *(() if requests.member is None else (str(requests.member[row]),)),
    ]


def _host_rows(hosts: Hosts) -> Iterator[list[str]]:
    yield ["id", "name", *map(column_name, hosts.resources), "attributes"]
    for row in range(len(hosts)):
        capacity = map(format_float, hosts.capacity[row].tolist())
        yield [str(hosts.ids[row]), hosts.names[row], *capacity, format_attributes(hosts.attributes[row])]


def _write_csv(path: Path, rows: Callable[[], Iterator[list[str]]]) -> None:
    if path.suffix.lower() != ".csv":
        raise OutputError(f"{path}: expected a name ending in .csv or .parquet")

    def write(aside: Path) -> None:
        with aside.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows())

    _set_aside(path, write)


def _set_aside(path: Path, write: Callable[[Path], None]) -> None:
    """Write beside the file and rename: it is there whole or not at all."""
    aside = _aside(path)
    try:
        write(aside)
        os.replace(aside, path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error}") from error
    finally:
        aside.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")
