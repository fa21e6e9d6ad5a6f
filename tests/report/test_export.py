"""A figure is drawn once for each size, for the page and for its files."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from slacktide import drawing
from slacktide.reporting import export
from slacktide.reporting.figure import Figure


def test_each_size_is_drawn_once_and_files_show_what_the_page_does() -> None:
    drawn = Counter[str]()

    def draw(sheet: drawing.Sheet) -> Any:
        drawn[sheet.name] += 1
        panels = drawing.panels(sheet, [["only"]], height=2.0, share=(False, False))
        for axes, _ in panels:
            axes.plot([0, 1], [0, len(sheet.name)])
        return panels.figure

    figure = Figure("queue", "Queue", "It grows.", "", draw, pa.table({"n": [1, 2]}))
    shown = export.draw(figure, None)
    assert drawn == {"page": 1, "85mm": 1}
    drawn.clear()
    files: dict[str, bytes] = {}
    assert export.draw(figure, files) == shown
    assert drawn == {"page": 1, "85mm": 1, "180mm": 1}
    wide, slim, _ = shown
    assert files["queue.svg"] == drawing.alone(wide).encode()
    assert files["queue-85mm.svg"] == drawing.alone(slim).encode()
    kinds = {"queue-85mm.pdf": b"%PDF", "queue-180mm.pdf": b"%PDF", "queue.png": b"\x89PNG", "queue.csv": b"n"}
    assert files.keys() == {"queue.svg", "queue-85mm.svg", "queue-180mm.svg", *kinds}
    assert all(files[name].startswith(begin) for name, begin in kinds.items())
