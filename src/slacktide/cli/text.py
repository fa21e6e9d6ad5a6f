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
    """A length of time: ``12.3 s``, ``1:02:03``, ``4 d 01:02:03``."""
    if not math.isfinite(value):
        return "-"
    if value < 100:
        return f"{value:.1f} s"
    whole = round(value)
    days, rest = divmod(whole, 86400)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days} d {clock}" if days else clock.lstrip("0").removeprefix(":")


def count(value: float) -> str:
    """A number of things: ``23,201``, ``30.2 M``."""
    return f"{value / 1e6:,.1f} M" if value >= 10_000_000 else f"{value:,.0f}"
