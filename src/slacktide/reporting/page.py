"""The page: one HTML file with everything in it. All names are escaped by the template, whatever they are."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from slacktide.for_people import percent, unbroken
from slacktide.palette import css

SHOWN_ROWS = 300
"""Rows of a table in the page; the rest is in its CSV."""


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column; numbers stand to the right."""

    text: str
    numeric: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, and for sorting the number that it stands for."""

    text: str
    value: float | None = None
    numeric: bool = False

    @property
    def attributes(self) -> Any:
        """Of its element, safe as they are: a class and a number."""
        from markupsafe import Markup

        if not self.numeric:
            return Markup("")
        value = "" if self.value is None else f"{self.value:.12g}"
        return Markup(f' class="n" data-v="{value}"')


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page; ``hidden`` rows are left out. Only what has rows to sort gets buttons."""

    key: str
    caption: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    hidden: int = 0

    @property
    def sortable(self) -> bool:
        """Whether there is anything to sort."""
        return len(self.rows) > 1


def shown(value: object, is_share: bool = False) -> Cell:
    """A value as a table shows it; shares, in per cent, are cut as everywhere."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Cell("-", None, numeric=True)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return Cell(str(value))
    if isinstance(value, int):
        return Cell(f"{value:,}", float(value), numeric=True)
    if math.isinf(value):
        return Cell("∞" if value > 0 else "-∞", None, numeric=True)
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if is_share:
        text = percent(value / 100.0).removesuffix(" %")
    return Cell(text, value, numeric=True)


def table(
    key: str, caption: str, found: Any, units: Mapping[str, str] | None = None, *, limit: int = SHOWN_ROWS
) -> Table:
    """A table of the page from a pyarrow one."""
    units = units or {}
    names = list(found.column_names)
    rows = [[shown(row[name], name.endswith(", %")) for name in names] for row in found.slice(0, limit).to_pylist()]
    numeric = [bool(rows) and all(row[place].numeric for row in rows) for place in range(len(names))]
    heads = [
        Head(f"{name.replace('_', ' ')}{f', {units[name]}' if name in units else ''}", right)
        for name, right in zip(names, numeric, strict=True)
    ]
    return Table(key, caption, heads, rows, max(found.num_rows - limit, 0))


def as_csv(found: Any) -> str:
    """A pyarrow table as CSV, numbers in full. What a spreadsheet would take for a formula gets a quote in front."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(found.column_names)
    for row in found.to_pylist():
        writer.writerow([_plain(value) for value in row.values()])
    return out.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, str) and value[:1] in "=+-@\t\r":
        return "'" + value
    return "" if value is None else repr(value) if isinstance(value, float) else value


def render(content: Mapping[str, Any]) -> str:
    """The page. ``content``: what ``page.html.j2`` names. Texts are escaped; only our own drawings are markup."""
    import jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, finalize=_unbroken)
    script = "\n" + _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    from markupsafe import Markup

    page = environment.from_string(_file("page.html.j2"))
    return page.render({**content, "css": Markup(_css()), "script": Markup(script), "policy": policy})


def _unbroken(value: object) -> object:
    return unbroken(value) if type(value) is str else value  # markup stays as it is


def _css() -> str:
    light, dark = css("light"), css("dark")
    return (
        f":root{{color-scheme:light dark;{light}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
        + _file("page.css")
    )


def _file(name: str) -> str:
    return resources.files("slacktide.reporting").joinpath(name).read_text(encoding="utf-8")
