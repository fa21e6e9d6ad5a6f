"""A stream that says it is a terminal, and what rich wrote to it."""

from __future__ import annotations

import io
import re

import pytest

GONE = "\x1b[1A\x1b[2K"
"""What removes the line above, as the last thing that is written."""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """As wide and as able, whatever the tests run on."""
    for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def plain(stream: io.StringIO) -> str:
    """What was written, without control sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
