"""Dates and times of traces that have no zone: as seconds of Unix time in a zone that a parameter names."""

from __future__ import annotations

from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from slacktide.errors import ConfigError, fail

FORM = "%Y-%m-%d %H:%M:%S"
NONE = ("None", "Unknown", "NULL", "N/A")
"""What stands for no time."""


def zone_of(name: str) -> str:
    """The name of a time zone that there is. Raises :class:`ConfigError`."""
    try:
        return ZoneInfo(name).key
    except (KeyError, OSError, ValueError) as error:
        raise ConfigError(f"zone: found {name!r}, expected a name of the time zone database, such as UTC") from error


def seconds_of(column: str, zone: str, file: Path, spooled: Path) -> pl.Expr:
    """The column of texts as seconds, null where there is none; of an hour that comes twice the first is meant.

    Raises :class:`InputError` for a text that is no time, with its line: that of the column ``line`` of ``spooled``,
    else by its row below a header.
    """
    text = pl.when(~pl.col(column).is_in(NONE)).then(column)
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
