"""Instants of passes that are given, as those of a live run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs import read_delays


def triggers(file: str | None) -> NDArray[np.float64]:
    """The instants in a file of seconds, in order; none where no file is named.

    Raises :class:`ConfigError` where there is no such file, and InputError for a broken one.
    """
    if file is None:
        return np.zeros(0)
    if not Path(file).is_file():
        raise ConfigError(f"scheduler.triggers: found {file!r}, expected a file of seconds")
    return np.sort(read_delays(Path(file)))
