"""Numbers and tables for people: as wide as the terminal at most, in colour where it is one.

Into a pipe or a file a table goes as kubectl's and ps's do: a row is a line, however long, so that grep and awk find it
whole.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Literal, TextIO

from slacktide.for_people import share

GAP = "  "
NARROWEST = 16
"""A column of text is not made narrower than this; what does not fit then is cut by the terminal."""
Tone = Literal["good", "bad", "risk", "quiet", "head"]
TONES: dict[Tone, str] = {"good": "32", "bad": "31;1", "risk": "33", "quiet": "2", "head": "1"}
"""Of a terminal's own colours, which its user has chosen."""
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def coloured(stream: TextIO | None = None) -> bool:
    """Whether colour is shown there: a terminal (not a dumb one), and NO_COLOR is not set (no-color.org)."""
    stream = sys.stdout if stream is None else stream
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, tone: Tone | None, stream: TextIO | None = None) -> str:
    """``text`` in a tone, where colour is shown; never the only thing that says something."""
    return f"\x1b[{TONES[tone]}m{text}\x1b[0m" if tone is not None and coloured(stream) else text


def width_of(text: str) -> int:
    """Columns that a line takes."""
    return len(_ESCAPE.sub("", text))


def columns() -> int:
    """How wide lines of text are: as the terminal; 80 where there is none and COLUMNS says nothing."""
    return shutil.get_terminal_size((80, 24)).columns


def room() -> int:
    """How wide a table may be: as the terminal; without limit where there is none and COLUMNS says nothing."""
    return columns() if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else sys.maxsize


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1, width: int | None = None) -> str:
    """Aligned columns, the first ``left`` of them to the left; no trailing blanks.

    Where they do not fit into ``width`` (as of :func:`room`), heads take several lines, then gaps shrink, then the
    widest column of text is wrapped.
    """
    most, gap = width or room(), GAP
    heads = [[one] for one in head]
    widths = _widths(heads, rows)
    if _whole(widths, gap) > most:
        heads = [one.split() or [""] for one in head]
        widths = _widths(heads, rows)
    if _whole(widths, gap) > most:
        gap = " "
    texts = [place for place in range(left) if widths[place] > NARROWEST]
    if _whole(widths, gap) > most and texts:
        widest = max(texts, key=lambda place: widths[place])
        widths[widest] = max(NARROWEST, widths[widest] - (_whole(widths, gap) - most))
    deep = max(map(len, heads))
    lines = [[one[at - deep + len(one)] if at >= deep - len(one) else "" for one in heads] for at in range(deep)]
    lines = [[paint(cell, "head") for cell in line] for line in lines]
    for row in rows:
        lines += _wrapped(row, widths, left)
    return "\n".join(_aligned(line, widths, left, gap) for line in lines)


def _widths(heads: Sequence[Sequence[str]], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max([*map(width_of, head), *(width_of(row[place]) for row in rows)]) for place, head in enumerate(heads)]


def _whole(widths: Sequence[int], gap: str) -> int:
    return sum(widths) + len(gap) * (len(widths) - 1)


def _wrapped(row: Sequence[str], widths: Sequence[int], left: int) -> list[list[str]]:
    """The lines of a row; a cell that is too wide, which is one of text, takes several."""
    cells = [
        textwrap.wrap(cell, width) if place < left and width_of(cell) > width else [cell]
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return [[cell[at] if at < len(cell) else "" for cell in cells] for at in range(max(map(len, cells)))]


def _aligned(line: Sequence[str], widths: Sequence[int], left: int, gap: str) -> str:
    cells = []
    for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
        blank = " " * (width - width_of(cell))
        cells.append(cell + blank if place < left else blank + cell)
    return gap.join(cells).rstrip()


def paragraph(text: str) -> str:
    """A line for people, wrapped where the terminal ends; words are never broken."""
    return textwrap.fill(text, max(columns(), 40), break_long_words=False, break_on_hyphens=False)


def kept_text(kept: float) -> str:
    """A share of promises kept, cut and not rounded up; in colour, whether all were."""
    return paint(f"{share(kept * 100, 2)} %", "good" if kept >= 1.0 else "bad")
