"""Rows of workloads: taken out, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.model import Workload

COLUMNS = ("ids", "admission", "duration", "demand", "service_class", "job", "anti_affinity", "term")
"""The fields of a workload that hold one entry per request."""


def select(workload: Workload, rows: NDArray[np.int64] | slice) -> Workload:
    """The workload of these rows, in this order."""
    return replace(workload, **{name: getattr(workload, name)[rows] for name in COLUMNS})


def join(pieces: Sequence[Workload]) -> Workload:
    """One workload of the pieces' rows, one piece after the other.

    The pieces, at least one, share classes, terms and resources, and are in order of admission.
    """
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in pieces]) for name in COLUMNS}
    return replace(pieces[0], **columns)
