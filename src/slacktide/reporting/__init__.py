"""One self-contained HTML page about an experiment, and its figures as files (docs/report.md)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from slacktide.errors import ConfigError, OutputError
from slacktide.whole_file import write_whole

EXTRA = "slacktide[experiments]"
PAGES = (".html", ".htm")


def write(folder: Path, out: Path, export: Path | None = None, announce: Callable[[str], None] = lambda _: None) -> int:
    """The report of the experiment in ``folder`` as the file ``out``; its figures into ``export``.

    Equal folders give equal bytes. Returns how many figures are in it. ``announce`` is told what is done. Raises
    :class:`InputError` for what is no experiment, :class:`OutputError` where it cannot be written, and
    :class:`ConfigError` where the libraries for it are not installed.
    """
    need_libraries()
    from slacktide.reporting import export as files
    from slacktide.reporting.assemble import assemble
    from slacktide.reporting.content import content
    from slacktide.reporting.page import render

    check_file(out, folder)
    if export is not None:
        files.check(export)
    report = assemble(folder, announce)
    announce("drawing")
    drawn: dict[str, bytes] = {}
    text = render(content(report, None if export is None else drawn))
    if export is not None:
        files.write(export, drawn)
    _write(out, text)
    return len(report.figures)


def need_libraries() -> None:
    """Raises :class:`ConfigError` where matplotlib or Jinja2 is missing."""
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"a report needs {error.name}: pip install '{EXTRA}'") from error
    del jinja2


def check_file(out: Path, folder: Path) -> None:
    """Raises :class:`OutputError` where ``out`` cannot become a file, or is the experiment's own in ``folder``."""
    if out.is_dir():
        raise OutputError(f"{out}: a directory; expected a file name such as {out / 'report.html'}")
    if out.exists() and not out.is_file():
        raise OutputError(f"{out}: a device or pipe; expected a file name such as report.html")
    if out.resolve().is_relative_to(folder.resolve()):
        inside = out.resolve().relative_to(folder.resolve())
        if len(inside.parts) != 1 or (out.exists() and inside.suffix not in PAGES):
            raise OutputError(f"{out}: belongs to the experiment; expected a file beside it, or a new one in it")
    above = out.resolve().parent
    if above.exists() and not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        raise OutputError(f"{out}: no permission to create it in {above}")


def _write(out: Path, text: str) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: {error.strerror or error}") from error
    write_whole(out, text.encode(errors="replace"))
