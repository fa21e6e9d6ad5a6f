"""The worst window of a promise over windows, of each instance of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.model import ServiceClass
from slacktide.qos.availability import TIMES, availability


def worst_window(
    columns: Mapping[str, NDArray[Any]],
    short: NDArray[np.float64],
    service_class: NDArray[np.int16],
    classes: Sequence[ServiceClass],
    accounting: Accounting,
) -> NDArray[np.float64]:
    """The least availability of any window, 0 to 1, shape (n,); NaN where a class promises a whole lifetime.

    ``columns`` are :data:`.availability.TIMES` of instances, seconds; ``short`` is the largest share of a full rolling
    window, or of a calendar window, that each lost. A life shorter than its rolling window is its only window.
    """
    lengths = np.array([np.nan if one.window is None else one.window.rolling or 0.0 for one in classes])[service_class]
    times = [columns[name] for name in TIMES]
    lifetime = np.add.reduce(times)
    whole_life = availability(accounting, *times)
    return np.where(np.isnan(lengths), np.nan, np.where(lifetime < lengths, whole_life, 1.0 - short))


def judged(achieved: NDArray[np.float64], columns: Mapping[str, NDArray[Any]], part: slice) -> NDArray[np.float64]:
    """By what each promise is judged, shape (n,): the worst window where it is over windows, else ``achieved``."""
    worst = columns.get("worst_window")
    if worst is None:
        return achieved
    return np.where(np.isnan(worst[part]), achieved, worst[part])
