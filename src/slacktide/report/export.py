"""The figures of a report as files of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slacktide import drawing
from slacktide.report import page
from slacktide.report.figure import Figure
from slacktide.results.directory import check_target, replaced_directory

KEYS = (
    "answer",
    "demand",
    "availability",
    r"pairs-\d+",
    "deficits",
    "windows",
    "penalties",
    "increments",
    "fairness",
    "queue",
    "operations",
    "preemptions-over-time",
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


def write(folder: Path, figures: Sequence[Figure]) -> None:
    """Each figure as KEY.svg, KEY.png and KEY.csv, and as KEY-85mm and KEY-180mm, .pdf and .svg, for papers.

    What there is no drawing of has KEY.csv alone. Raises :class:`OutputError`.
    """
    with replaced_directory(folder, _earlier(folder)) as aside:
        for one in figures:
            if one.draw is not None:
                figure = one.draw(drawing.PAGE)
                _svg(aside / f"{one.key}.svg", figure, one)
                (aside / f"{one.key}.png").write_bytes(drawing.png(figure))
                for sheet in drawing.PAPERS:
                    figure = one.draw(sheet)
                    (aside / f"{one.key}-{sheet.name}.pdf").write_bytes(drawing.pdf(figure))
                    _svg(aside / f"{one.key}-{sheet.name}.svg", figure, one)
            if one.table.num_rows:
                (aside / f"{one.key}.csv").write_text(page.as_csv(one.table), encoding="utf-8", newline="")


def _svg(path: Path, figure: Any, one: Figure) -> None:
    text = drawing.alone(drawing.svg(figure, one.key, one.title, one.description))
    path.write_text(text, encoding="utf-8", newline="\n")
