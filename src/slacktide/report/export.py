"""The figures of a report as files of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from slacktide.report import drawing, page
from slacktide.report.figure import Figure
from slacktide.results.directory import check_target, replaced_directory

KEYS = (
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
OURS = re.compile(rf"({'|'.join(KEYS)})\.(svg|png|csv)")


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
    """Each figure as KEY.svg, KEY.png and KEY.csv; what there is no drawing of as KEY.csv alone.

    Raises :class:`OutputError`.
    """
    with replaced_directory(folder, _earlier(folder)) as aside:
        for one in figures:
            if one.drawing is not None:
                svg = drawing.alone(drawing.svg(one.drawing, one.key, one.title, one.description))
                (aside / f"{one.key}.svg").write_text(svg, encoding="utf-8", newline="\n")
                (aside / f"{one.key}.png").write_bytes(drawing.png(one.drawing))
            if one.table.num_rows:
                (aside / f"{one.key}.csv").write_text(page.as_csv(one.table), encoding="utf-8", newline="")
