"""The page about an experiment."""

from __future__ import annotations

import os
from pathlib import Path


def report(
    experiment: str | os.PathLike[str], out: str | os.PathLike[str], *, export: str | os.PathLike[str] | None = None
) -> Path:
    """The page about an experiment, an ``Experiment`` or its folder, as the file ``out``, as ``slacktide report`` does.

    ``export`` is a folder for every figure as SVG, PNG and CSV. Returns the page's path. Raises as
    :func:`slacktide.reporting.write`.
    """
    from slacktide import reporting

    reporting.write(Path(experiment), Path(out), None if export is None else Path(export))
    return Path(out)
