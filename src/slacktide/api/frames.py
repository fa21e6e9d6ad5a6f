"""Arrow tables of ours as polars frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slacktide.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

EXTRA = "slacktide[experiments]"


def frame_of(table: Any) -> pl.DataFrame:
    """A polars frame of an Arrow table; words are text. Raises :class:`ConfigError` where polars is missing."""
    try:
        import polars as pl
    except ImportError as error:
        raise ConfigError(f"frames need polars: pip install '{EXTRA}'") from error
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)  # noqa: S101  what a table becomes
    return found.with_columns(pl.col(pl.Categorical).cast(pl.String))
