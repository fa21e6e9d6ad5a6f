"""What every reader writes: a workload in order of admission, and hosts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl

from slacktide.errors import ConfigError, fail
from slacktide.for_people import counted
from slacktide.inputs.columns import header
from slacktide.inputs.generators.api import Parameter
from slacktide.inputs.prepare import peak
from slacktide.inputs.problems import Problems
from slacktide.inputs.read import read_workload
from slacktide.inputs.rows import equal_hosts
from slacktide.inputs.traces.api import Converted, Job
from slacktide.inputs.traces.tables import spool
from slacktide.inputs.validation import to_hosts
from slacktide.inputs.write import write_hosts
from slacktide.model import Hosts, ServiceClass

WORKLOAD, HOSTS, ALL_HOSTS, HOST_EVENTS = "workload.parquet", "hosts.parquet", "all-hosts.parquet", "host-events.csv"
SETTINGS = "settings.toml"
FILES = frozenset({WORKLOAD, HOSTS, ALL_HOSTS, HOST_EVENTS, SETTINGS, "manifest.json"})

PIECE = 2_000_000
"""Requests that are sorted and written at once."""
FORM = "%Y-%m-%d %H:%M:%S"
NO_TIME = ("None", "Unknown", "NULL", "N/A")
ENDLESS = 1e15
"""Seconds (or amounts) above this are no times: the trace means 'later than all this'."""


def write_requests(rows: pl.LazyFrame, job: Job, order: Sequence[str]) -> int:
    """Writes the columns of docs/formats.md, numbered in order of admission, then of ``order``; says how many rows.

    ``order`` names columns that tell equal admissions apart; those that are no columns of a workload are not
    written. Raises :class:`InputError` where there is nothing to write.
    """
    unordered = job.scratch / "unordered.parquet"
    rows.sink_parquet(unordered)
    table = pl.scan_parquet(unordered)
    kept = [name for name in table.collect_schema().names() if _is_column(name)]
    bounds = _bounds(table.select("admission").collect()["admission"])
    done = 0

    def pieces() -> Iterator[pl.DataFrame]:
        nonlocal done
        for number, (low, high) in enumerate(pairwise(bounds)):
            job.tell("sorting and writing", number / len(bounds))
            inside = (pl.col("admission") >= low) & (pl.col("admission") < high)
            piece = table.filter(inside).sort("admission", *order, maintain_order=True).select(kept).collect()
            if piece.height:
                ids = pl.Series("id", np.arange(done, done + piece.height, dtype=np.int64))
                yield piece.insert_column(0, ids)
            done += piece.height

    spool(pieces(), job.folder / WORKLOAD, job.sources, "at least one request that can be simulated")
    return done


def _bounds(admission: pl.Series) -> list[float]:
    """Times between which there are about ``PIECE`` admissions; the last is inf."""
    ordered = np.unique(np.sort(admission.to_numpy())[::PIECE])
    return [*ordered.tolist(), math.inf]


_COLUMNS = (
    *("admission", "duration", "cpu", "memory", "class", "job", "anti_affinity", "constraints"),
    *("kind", "instances", "completions", "parallelism", "approach", "user"),
    *header.LABEL_COLUMNS,
)


def _is_column(name: str) -> bool:
    return name in _COLUMNS or name.startswith("resource:")


def uniform_hosts(
    job: Job, capacity: Mapping[str, float | str], count: int | None = None, attributes: Mapping[str, str] | None = None
) -> Hosts:
    """Equal hosts: as many as the parameter ``hosts`` says, if not ``count``; 0: as many as take the workload's peak.

    What a host has is an amount, or the parameter that says it; the workload has just been written.
    """
    amounts = {name: float(job.values[one] if isinstance(one, str) else one) for name, one in capacity.items()}
    wanted = int(job.values["hosts"]) if count is None else count
    if not wanted:
        needed = peak(read_workload(job.folder / WORKLOAD, classes=classes_of(job)))
        parts = [
            amount / amounts[name]
            for name, amount in zip(needed.resources, needed.amount.tolist(), strict=True)
            if amounts.get(name)
        ]
        wanted = max(math.ceil(max(parts, default=1.0) * (1 - 1e-9)), 1)
    return equal_hosts(wanted, amounts, attributes)


def listed_hosts(path: Path, names: Sequence[str], capacity: Mapping[str, Any], **attributes: pl.Series) -> Hosts:
    """Hosts that a table with a header names, each with its amounts, and with attributes where its cell has one."""
    numbers = np.arange(1, len(names) + 1, dtype=np.int64)
    amounts = np.stack([np.broadcast_to(np.asarray(one, np.float64), len(names)) for one in capacity.values()], axis=1)
    cells = zip(*(one.to_list() for one in attributes.values()), strict=True)
    own = [{key: one for key, one in zip(attributes, row, strict=True) if one} for row in cells]
    return to_hosts(numbers, list(names), amounts, own, tuple(capacity), numbers + 1, Problems(str(path)))


def classes_of(job: Job) -> tuple[ServiceClass, ...]:
    """Classes with the names of the map, for reading the workload back; what they promise does not matter here."""
    return tuple(ServiceClass(name, 1.0, 1) for name in dict.fromkeys(name for _, name in job.classes.rules))


def write_machines(hosts: Hosts, job: Job) -> int:
    """Writes hosts.parquet and says how many. Raises :class:`InputError` for none."""
    if not len(hosts):
        raise fail(", ".join(map(str, job.sources)), "at least one", value="no machine")
    write_hosts(hosts, job.folder / HOSTS)
    return len(hosts)


def write_host_events(events: Iterable[tuple[float, str, str]], folder: Path) -> int:
    """Writes (seconds, host, fail or repair) as docs/formats.md has it, in order of time; none: no file."""
    rows = sorted(events)
    if rows:
        text = "".join(f"{repr(time).removesuffix('.0')},{host},{event}\n" for time, host, event in rows)
        (folder / HOST_EVENTS).write_text("time,host,event\n" + text, encoding="utf-8")
    return len(rows)


def said_of_size(hosts: Hosts, job: Job) -> list[str]:
    """What is to be said of the requests just written of which an instance is larger than every one of the hosts."""
    rows = pl.scan_parquet(job.folder / WORKLOAD)
    places = {name if name in ("cpu", "memory") else f"resource:{name}": i for i, name in enumerate(hosts.resources)}
    asked = [
        name for name in rows.collect_schema().names() if name in ("cpu", "memory") or name.startswith("resource:")
    ]
    shapes = np.unique(hosts.capacity, axis=0).tolist()
    fits = pl.any_horizontal(
        pl.all_horizontal(pl.col(name).fill_null(0) <= (shape[places[name]] if name in places else 0) for name in asked)
        for shape in shapes
    )
    large = rows.select((~fits).sum()).collect().item()
    return [f"{counted(large, 'request')} larger than every host: they find no place"] if large else []


def converted(
    job: Job,
    rows: pl.LazyFrame,
    order: Sequence[str],
    hosts: Callable[[], Hosts],
    dropped: Mapping[str, int],
    files: Sequence[Path],
    notes: list[str],
) -> Converted:
    """Writes requests, as :func:`write_requests`, then ``hosts``, which may look at them and add to ``notes``."""
    count = write_requests(rows, job, order)
    made = hosts()
    notes += said_of_size(made, job)
    return Converted(count, write_machines(made, job), dropped, files, notes)


def at_once(column: str) -> tuple[pl.Expr, ...]:
    """A batch request of as many instances as the column says, none of which waits for another."""
    many = pl.col(column).cast(pl.Int64)
    return pl.lit("batch").alias("kind"), many.alias("completions"), many.alias("parallelism")


def start(job: Job, second_0: float | None) -> list[str]:
    """Writes settings in which ``simulation.epoch`` is the instant of second 0 (Unix time), and says so.

    None: nobody knows it, which is said.
    """
    if second_0 is None:
        return ["nobody knows when second 0 was: hours and calendars of classes see simulation.epoch"]
    text = datetime.fromtimestamp(second_0, UTC).isoformat().replace("+00:00", "Z")
    (job.folder / SETTINGS).write_text(f'[simulation]\nepoch = "{text}"\n', encoding="utf-8")
    return [f"second 0 was {text}: --config {SETTINGS}, or --set simulation.epoch={text}, tells hours and calendars"]


def last(usual: str) -> Parameter:
    """The parameter of every reader whose trace says when lives end."""
    told = "what ends at the trace's last instant: still there then (alive), or over (ended)"
    return Parameter("last", usual, told, choices=("alive", "ended"))


def still_there(rows: pl.LazyFrame, column: str, job: Job, noun: str) -> tuple[pl.LazyFrame, list[str]]:
    """The rows, without an end in ``column`` where it is the trace's last one and the parameter ``last`` says alive.

    The end of the trace is not the end of a life: who wrote it down at its last instant wrote that.
    """
    latest = rows.select(pl.col(column).max()).collect().item()
    if latest is None:
        return rows, []
    number = rows.select((pl.col(column) == latest).sum()).collect().item()
    who = f"{counted(number, noun)} with an end at the trace's last instant"
    if job.values["last"] == "ended":
        return rows, [f"{who}, taken for one: --set last=alive takes them for still there"] if number > 1 else []
    cut = rows.with_columns(pl.when(pl.col(column) != latest).then(column).alias(column))
    return cut, [f"{who}: taken for still there, without an end (--set last=ended: over)"]


def told_apart(rows: pl.LazyFrame, key: Sequence[str], noun: str) -> tuple[pl.LazyFrame, dict[str, int], list[str]]:
    """The rows without those that are there a second time, how many these were, and what is to be said.

    ``key`` names whose life a row is. Rows of one key that differ are several lives, as of a machine started again.
    """
    once = rows.unique(maintain_order=True)
    number = pl.len()
    repeated = rows.select(number).collect().item() - once.select(number).collect().item()
    again = once.group_by(key).agg(number.alias("lives")).filter(pl.col("lives") > 1).select(number).collect().item()
    notes = [f"{counted(again, noun)} with several rows that differ: each row is a request"] if again else []
    return once, {"rows that are there a second time": repeated}, notes


def numbered(column: str, rows: pl.LazyFrame, prefix: str) -> pl.Expr:
    """A number for each text of a column: that behind ``prefix`` where all have one, else their order."""
    text = pl.col(column)
    plain = text.str.contains(f"^{prefix}[0-9]{{1,12}}$").fill_null(value=True).all()
    if rows.select(plain).collect().item():
        return text.str.slice(len(prefix)).cast(pl.Int64)
    return (text.rank("dense") - 1).cast(pl.Int64)


def remarks(rows: pl.LazyFrame, noun: str, said: Mapping[str, pl.Expr]) -> list[str]:
    """Of how many of the rows each is to be said, where it is of any."""
    numbers = rows.select(holds.fill_null(value=False).sum().alias(what) for what, holds in said.items()).collect()
    return [f"{counted(number, noun)} {what}" for what, number in zip(said, numbers.row(0), strict=True) if number]


def drop(rows: pl.LazyFrame, reasons: Mapping[str, pl.Expr]) -> tuple[pl.LazyFrame, dict[str, int]]:
    """The rows for which no reason holds, and how many each reason (the first that holds) left out."""
    reason = pl.lit(len(reasons), pl.Int64)
    for number, holds in reversed(list(enumerate(reasons.values()))):
        reason = pl.when(holds.fill_null(value=False)).then(pl.lit(number, pl.Int64)).otherwise(reason)
    marked = rows.with_columns(reason.alias("reason"))
    counts = dict(marked.group_by("reason").len().collect().iter_rows())
    kept = marked.filter(pl.col("reason") == len(reasons)).drop("reason")
    return kept, {name: int(counts.get(number, 0)) for number, name in enumerate(reasons)}


def zone_of(name: str) -> str:
    """The name of a time zone that there is. Raises :class:`ConfigError`."""
    try:
        return ZoneInfo(name).key
    except (KeyError, OSError, ValueError) as error:
        raise ConfigError(f"zone: found {name!r}, expected a name of the time zone database, such as UTC") from error


def seconds_of(column: str, zone: str, file: Path, spooled: Path) -> pl.Expr:
    """The column of dates and times as seconds of Unix time; of an hour that comes twice the first is meant.

    Raises :class:`InputError` for a text that is no time, with its line: that of the column ``line`` of ``spooled``,
    else by its row below a header.
    """
    text = pl.when(~pl.col(column).is_in(NO_TIME)).then(column)
    naive = text.str.to_datetime(FORM, strict=False)
    known = "line" in pl.read_parquet_schema(spooled)
    broken = (
        pl.scan_parquet(spooled)
        .with_row_index("row", offset=2)
        .filter(text.is_not_null() & naive.is_null())
        .select("line" if known else "row", column)
        .head(1)
        .collect()
    )
    if broken.height:
        line, value = broken.row(0)
        raise fail(file, "a time such as 2020-06-09 18:41:01, or nothing", line=line, column=column, value=value)
    placed = naive.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return (placed.dt.timestamp("us") / 1_000_000).alias(column)
