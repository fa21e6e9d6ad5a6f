"""What there is to be named: policies, generators, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slacktide.inputs.generators.registry import GENERATORS
from slacktide.policy.loader import available
from slacktide.settings_page import describe

if TYPE_CHECKING:
    import polars as pl


def list_policies() -> pl.DataFrame:
    """Policies, scores and costs that can be named.

    Returns
    -------
    polars.DataFrame
        Columns name, kind ("policies", "scores" or "costs"), description, source.
    """
    import polars as pl

    names = ("name", "kind", "description", "source")
    return pl.DataFrame([{name: getattr(one, name) for name in names} for one in available()])


def list_generators() -> pl.DataFrame:
    """Generators that :func:`generate` knows.

    Returns
    -------
    polars.DataFrame
        A row per parameter: generator, description of that, parameter (null where it has none), default, meaning.
    """
    import polars as pl

    rows = []
    for name, one in GENERATORS.items():
        for each in one.parameters or (None,):
            about = (None, None, None) if each is None else (each.name, str(each.default), each.help)
            rows.append((name, one.summary, *about))
    names = ("generator", "description", "parameter", "default", "meaning")
    return pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row")


def list_settings() -> pl.DataFrame:
    """Settings, as keywords.

    Returns
    -------
    polars.DataFrame
        Columns name, default, published (in the papers), allowed, meaning.
    """
    import polars as pl

    rows = [(one.key.replace(".", "_", 1), str(one.default), str(one.published), one.allowed, one.meaning)
            for one in describe()]  # fmt: skip
    return pl.DataFrame(rows, ("name", "default", "published", "allowed", "meaning"), orient="row")
