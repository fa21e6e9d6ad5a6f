"""What becomes of a workload's rows where a request ends, or demands something else from an instant on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from slacktide.api.configuring import plain
from slacktide.errors import ConfigError
from slacktide.inputs.columns.instances import LATEST, format_scale, parse_scale
from slacktide.inputs.columns.occasions import Amounts, format_resizing, parse_resizing

if TYPE_CHECKING:
    import polars as pl


def rows_of(rows: pl.DataFrame, number: object, request: object) -> pl.Expr:
    """Which rows are of the request of this number, that ``request`` names. Raises :class:`ConfigError` for none."""
    import polars as pl

    found: pl.Expr = pl.col("request" if "request" in rows.columns else "id").eq(pl.lit(number))
    if rows.filter(found).is_empty():
        raise ConfigError(f"found the request {request!r}, expected an id of the workload")
    return found


def ended(rows: pl.DataFrame, chosen: pl.Expr, at: float) -> pl.DataFrame:
    """Without instances of these rows from ``at`` on; those that were still to come do not come."""
    import polars as pl

    rows = _said(rows, chosen, "scale", lambda text: format_scale((*_before(parse_scale(text), at), (at, 0))))
    return rows.filter((pl.col("admission") < at) | ~chosen)


def resized(rows: pl.DataFrame, chosen: pl.Expr, at: float, amounts: Amounts, request: object) -> pl.DataFrame:
    """Each instance demands other amounts. Raises :class:`ConfigError` where the request is still to come."""

    def said(text: str) -> str:
        known = parse_resizing(text)
        return format_resizing((*_before(known, at), (at, amounts), *(one for one in known if one[0] > at)))

    if (rows.filter(chosen)["admission"] >= at).any():
        raise ConfigError(f"resize: found the request {request!r}, expected one that has come")
    return _said(rows, chosen, "resize", said)


def amounts_of(given: Mapping[str, object], resources: Sequence[str]) -> Amounts:
    """Amounts by resource. Raises :class:`ConfigError` for none, for no such resource, and for what is no amount."""
    for name, value in given.items():
        if name not in resources:
            raise ConfigError(f"resize: found {name!r}, expected {' or '.join(resources)}")
        found = plain(value)
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= LATEST:
            raise ConfigError(f"resize: {name}: found {value!r}, expected an amount, 0 or more and at most {LATEST:g}")
    if not given:
        raise ConfigError(f"resize: found no amounts, expected some of {' or '.join(resources)}")
    return tuple((name, float(plain(value))) for name, value in given.items())


def _before(steps: Any, at: float) -> list[Any]:
    return [one for one in steps if one[0] < at]


def _said(rows: pl.DataFrame, chosen: pl.Expr, column: str, change: Callable[[str], str]) -> pl.DataFrame:
    """With another text in a column of these rows."""
    import polars as pl

    if column not in rows.columns:
        rows = rows.with_columns(pl.lit("").alias(column))
    text = pl.col(column).cast(pl.String).fill_null("")
    return rows.with_columns(pl.when(chosen).then(text.map_elements(change, pl.String)).otherwise(text).alias(column))
