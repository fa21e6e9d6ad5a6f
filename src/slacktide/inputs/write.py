"""Writing workloads and hosts, so that no reader ever sees half a file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import OutputError
from slacktide.inputs.collapse import collapse
from slacktide.inputs.columns import access
from slacktide.inputs.columns.cells import format_float
from slacktide.inputs.columns.header import LABEL_COLUMNS, LIMIT_PREFIX, column_name
from slacktide.inputs.columns.instances import KINDS, RequestColumns
from slacktide.inputs.columns.terms import format_attributes
from slacktide.inputs.columns.texts import TEXTS
from slacktide.inputs.rows import TABLES, columns_of, join, select
from slacktide.model import APPROACHES, Hosts, Workload, arrow
from slacktide.whole_file import whole_file

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
    _write_csv(path, lambda: [_table(rows, requests, path)])


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
    _write_csv(path, lambda: (_table(piece, None, path) for piece in pieces))


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


def write_hosts(hosts: Hosts, path: Path | str) -> None:
    """The hosts as ``.csv`` or ``.parquet``, as :func:`write_workload` writes."""
    path = Path(path)
    if path.suffix.lower() != ".parquet":
        _write_csv(path, lambda: [hosts_table(hosts)])
        return
    import pyarrow.parquet as pq

    with whole_file(path) as aside:
        pq.write_table(hosts_table(hosts), aside, write_page_checksum=True)


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
    return _table(rows, requests, IN_MEMORY)


class WorkloadParquetWriter:
    """Writes a workload piece by piece, in row groups, in the memory of one piece.

    ::

        with WorkloadParquetWriter("workload.parquet") as writer:
            for chunk in chunks:
                writer.append(chunk)

    All pieces share classes, terms, resources, placements, budgets, resizings, losses and labels; all have ``requests``
    (``placement``, ``budget``, ``resize``) or none has, and a request's instances are in one piece. ``rows`` counts
    the rows of the file.
    The file appears under its name when the block ends well; after an exception (Ctrl-C too) nothing is left.
    Raises :class:`OutputError`.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.rows = 0
        self._stack = ExitStack()
        self._writer: Any = None
        self._shared: tuple[object, ...] | None = None

    def __enter__(self) -> Self:
        return self

    def append(self, workload: Workload) -> None:
        """Add rows behind those already written."""
        rows, requests = collapse(workload, self.path)
        shared = (
            *(getattr(workload, name) for name in TABLES),
            *(columns_of(workload), requests is None, requests is not None and requests.member is None),
        )
        if self._shared not in (None, shared):
            raise OutputError(
                f"{self.path}: expected pieces with the same classes, terms, resources, placements, budgets and "
                "resizings, all of them with requests of several instances or none"
            )
        table = _table(rows, requests, self.path)
        if self._shared is None:
            self._open(table.schema)
            self._shared = shared
        self._writer.write_table(table, row_group_size=ROW_GROUP)
        self.rows += len(rows)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if self._writer is None and kind is None:
            raise OutputError(f"{self.path}: expected at least one piece of a workload")

    def _open(self, schema: Any) -> None:
        import pyarrow.parquet as pq

        aside = self._stack.enter_context(whole_file(self.path))
        options = {"compression": "zstd", "write_page_checksum": True}
        writer = pq.ParquetWriter(aside, schema, store_schema=False, **options)  # words are text to every reader
        self._writer = self._stack.enter_context(writer)


def _named(path: Path, name: str, index: NDArray[Any], values: Sequence[Any]) -> Any:
    """A column of texts: of each row that of the value at its index, nothing where that is -1.

    Raises :class:`OutputError` for a value that cannot be said.
    """
    try:
        texts = [*map(TEXTS[name].format, values), ""]
    except ValueError as error:
        raise OutputError(f"{path}: {name}: {error}") from error
    return arrow.named(np.where(index < 0, len(values), index), texts if (index < 0).any() else texts[:-1])


def _table(workload: Workload, requests: RequestColumns | None, path: Path) -> Any:
    """The Arrow table of the columns of docs/formats.md, as far as the workload says anything in them."""
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
    columns["constraints"] = _named(path, "constraints", workload.term, workload.terms)
    if requests is not None:
        columns |= _request_columns(requests, path)
    return arrow.table(columns | _further_columns(workload, path))


def _further_columns(workload: Workload, path: Path) -> dict[str, Any]:
    """Those that say something of this workload only."""
    columns: dict[str, Any] = {}
    if workload.placement is not None:
        for name in ("marks", "rules", "preferences"):
            columns[name] = _named(path, name, workload.placement, [getattr(one, name) for one in workload.placements])
    others: dict[str, Sequence[Any]] = {
        "resize": workload.resizings,
        "lost": workload.losses,
        "unready": workload.spells,
    }
    for name, values in {**others, "budget": _budgets(workload, path)}.items():
        if getattr(workload, name) is not None:
            columns[name] = _named(path, name, getattr(workload, name), values)
    if workload.grace is not None:
        columns["grace"] = workload.grace
    if workload.access is not None:
        for name, part in zip(access.WORDS, ("logins", "image", "preferred"), strict=True):
            columns[name] = _named(path, name, workload.access, [getattr(one, part) for one in workload.accesses])
        for name in access.AMOUNTS:
            columns[name] = np.array([getattr(one, name) for one in workload.accesses], np.float64)[workload.access]
    if workload.limit is not None:
        for index, resource in enumerate(workload.resources):
            columns[LIMIT_PREFIX + resource] = workload.limit[:, index]
    return columns | _label_columns(workload, path)


def _label_columns(workload: Workload, path: Path) -> dict[str, Any]:
    if workload.label is None:
        return {}
    words = {name: [getattr(one, name) for one in workload.labels] for name in LABEL_COLUMNS}
    return {name: _named(path, name, workload.label, said) for name, said in words.items() if any(said)}


def _budgets(workload: Workload, path: Path) -> Sequence[Any]:
    """The budgets; raises :class:`OutputError` where two that differ have one name."""
    names = [budget.name for budget in dict.fromkeys(workload.budgets)]
    for name in names:
        if names.count(name) > 1:
            raise OutputError(f"{path}: budget: found two named {name!r}, expected one bound for each name")
    return workload.budgets


def _request_columns(requests: RequestColumns, path: Path) -> dict[str, Any]:
    columns: dict[str, Any] = {"kind": arrow.named(requests.kind, KINDS)}
    for name in ("instances", "completions", "parallelism"):
        given = getattr(requests, name)
        columns[name] = arrow.column(given.astype(np.int64), given == 0)
    columns["approach"] = arrow.named(requests.approach, APPROACHES)
    columns["scale"] = _named(path, "scale", requests.scale, requests.scales)
    if requests.member is not None:
        columns["request"] = requests.member
    return columns


def _cells(column: Any) -> list[str]:
    """The cells of an Arrow column as a CSV file has them; what is null or endless is empty."""
    words = {True: "true", False: "false", None: "", np.inf: ""}
    return [
        words[one] if isinstance(one, bool) or one in (None, np.inf) else format_float(one) if isinstance(one, float)
        else str(one)
        for one in column.to_pylist()
    ]  # fmt: skip


def _csv_rows(tables: Iterable[Any]) -> Iterator[Sequence[str]]:
    """The head of the first table, then the rows of all."""
    for number, table in enumerate(tables):
        if not number:
            yield table.column_names
        for batch in table.to_batches(max_chunksize=ROW_GROUP):
            yield from zip(*map(_cells, batch.columns), strict=True)


def _write_csv(path: Path, tables: Callable[[], Iterable[Any]]) -> None:
    if path.suffix.lower() != ".csv":
        raise OutputError(f"{path}: expected a name ending in .csv or .parquet")
    with whole_file(path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(_csv_rows(tables()))
