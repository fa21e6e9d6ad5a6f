"""The figures of a report, drawn for its page and as files of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slacktide import drawing
from slacktide.reporting import page
from slacktide.reporting.figure import Figure
from slacktide.results.directory import check_target, replaced_directory

KEYS = (
    "answer",
    "demand",
    "availability",
    r"pairs-\d+",
    "deficits",
    "violins",
    "windows",
    "penalties",
    "increments",
    "fairness",
    "queue",
    "operations",
    "preemptions-over-time",
    "passes",
    "preemptions",
)
"""Of all figures that a report may have, in their order (docs/report.md)."""
OURS = re.compile(rf"({'|'.join(KEYS)})(-({'|'.join(one.name for one in drawing.PAPERS)})\.(svg|pdf)|\.(svg|png|csv))")


def check(folder: Path) -> None:
    """Raises :class:`OutputError` where ``folder`` cannot become a directory of figures.

    That is also so where it holds anything but earlier figures: other pictures and tables are not ours to replace.
    """
    check_target(folder, _earlier(folder))


def _earlier(folder: Path) -> frozenset[str]:
    """Names of what an earlier export left in ``folder``."""
    if not folder.is_dir():
        return frozenset()
    return frozenset(one.name for one in folder.iterdir() if OURS.fullmatch(one.name) and one.is_file())


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """The figures by their names, in the place of earlier ones. Raises :class:`OutputError`."""
    with replaced_directory(folder, _earlier(folder)) as aside:
        for name, content in files.items():
            (aside / name).write_bytes(content)


def table(one: Figure) -> str:
    """The numbers of a figure as CSV; empty where there are none."""
    return page.as_csv(one.table) if one.table.num_rows else ""


def draw(one: Figure, files: dict[str, bytes] | None) -> tuple[str, str, int]:
    """A figure's drawings for wide screens and for slim ones, as SVG, and how much of the width the wide one takes,
    per cent; empty where nothing is drawn.

    ``files`` are added to: KEY.svg, KEY.png and KEY.csv, and for papers KEY-85mm and KEY-180mm, .svg and .pdf. Each
    size is drawn once, for the page and the files: drawing is most of what a report takes.
    """
    if files is not None and (numbers := table(one)):
        files[f"{one.key}.csv"] = numbers.encode()
    if one.draw is None:
        return "", "", 0
    wide, page_figure = _drawn(one, drawing.PAGE, one.key)
    slim, slim_figure = _drawn(one, drawing.SINGLE, f"{one.key}-slim")
    part = round(100 * page_figure.get_figwidth() / drawing.PAGE.width)
    if files is not None:
        files[f"{one.key}.svg"] = drawing.alone(wide).encode()
        files[f"{one.key}.png"] = drawing.png(page_figure)
        for sheet in drawing.PAPERS:
            paper = (slim, slim_figure) if sheet is drawing.SINGLE else _drawn(one, sheet, one.key)
            files[f"{one.key}-{sheet.name}.svg"] = drawing.alone(paper[0]).encode()
            files[f"{one.key}-{sheet.name}.pdf"] = drawing.pdf(paper[1])
    return wide, slim, part


def _drawn(one: Figure, sheet: drawing.Sheet, key: str) -> tuple[str, Any]:
    assert one.draw is not None  # noqa: S101  # asked before
    figure = one.draw(sheet)
    return drawing.svg(figure, key, one.title, one.description), figure
