"""The table that ``slacktide top`` draws on a terminal."""

from __future__ import annotations

import pytest

from slacktide.cli.top import Line, draw, on_screen
from support.on_terminal import plain, terminal


def test_the_table_has_as_many_lines_as_the_terminal_and_is_not_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setattr("sys.stdout", stream)
    lines = [Line("ns", f"[web-{n}]", "gold", 1.0, 0.9, 1.5, "Missed", 1, 2, 3) for n in range(20)]
    with on_screen() as screen:
        draw(lines, screen)
        shown = plain(stream).splitlines()
    assert shown[0] == "20 workloads: 20 missed, 0 atrisk, 0 kept, 0 unknown"
    assert shown[1].split()[:3] == ["NAMESPACE", "WORKLOAD", "CLASS"]
    assert [line.split()[1] for line in shown[2:-1]] == [f"[web-{n}]" for n in range(6)]
    assert shown[-1] == "... and 14 more"
    assert max(map(len, shown)) <= 60
