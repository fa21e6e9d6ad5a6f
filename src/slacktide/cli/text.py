"""Numbers and tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Aligned columns, the first ``left`` of them to the left; no trailing blanks."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def share(value: float, digits: int = 4) -> str:
    """An availability or share, cut and not rounded up, so that 1 means all: ``0.9999``; ``-`` for none."""
    if math.isnan(value):
        return "-"
    scale = 10**digits
    return f"{math.floor(value * scale + 1e-9) / scale:.{digits}f}"


def seconds(value: float) -> str:
    """A length of time as options take it, too: ``12.3s``, ``1h2m3s``, ``4d1h``; ``-`` for none."""
    from slacktide.model.durations import write_duration  # here, because it takes time

    if not math.isfinite(value):
        return "-"
    return f"{value:.1f}s" if abs(value) < 100 else write_duration(float(round(value)))


def count(value: float) -> str:
    """A number of things: ``23,201``, ``30.2 M``."""
    return f"{value / 1e6:,.1f} M" if value >= 10_000_000 else f"{value:,.0f}"
