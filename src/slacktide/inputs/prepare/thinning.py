"""A random part of a workload's requests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.inputs.rows import select
from slacktide.model import Workload


def thin(workload: Workload, share: float, seed: int) -> Workload:
    """``share`` (above 0, at most 1) of the requests, drawn without replacement, in their order.

    Their number is the share of all, rounded, at least one. A request of several instances is kept whole or not at
    all. Of one seed a smaller share keeps requests that a larger one keeps. Raises :class:`ConfigError`.
    """
    count = len(workload) if workload.requests is None else len(workload.requests)
    kept = drawn(count, share, seed)
    return select(workload, np.flatnonzero(kept if workload.request is None else kept[workload.request]))


def drawn(count: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Which of ``count`` requests :func:`thin` keeps. Raises :class:`ConfigError`."""
    if not 0 < share <= 1:
        raise ConfigError(f"share: found {share:g}, expected a number above 0 and at most 1")
    order = np.arange(count, dtype=np.int32)
    np.random.default_rng(seed).shuffle(order)
    kept = np.zeros(count, np.bool_)
    kept[order[: max(round(count * share), 1)]] = True
    return kept
