"""A workload: one row per request, stored by column so that 25 million fit in memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.model.constraint import NO_CONSTRAINT, Term
from slacktide.model.service_class import DEFAULT_CLASSES, ServiceClass


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in order of admission (equal instants keep the file's order).

    Arrays have shape ``(n,)`` unless said otherwise; readers and generators check
    every value, so that nothing behind them has to.

    ids             int64    the request's number in the input, unique
    admission       float64  T_j, seconds, non-decreasing, >= 0
    duration        float64  useful running seconds until completion, > 0; inf: never completes.
                             Drives the simulator and is never visible to a policy.
    demand          float64  shape (n, len(resources)), in the hosts' unit, >= 0
    service_class   int16    index into ``classes``
    job             int64    requests of one job are related (anti-affinity is within a job)
    anti_affinity   bool     never on a host that runs another instance of the same job
    term            int32    index into ``terms``
    """

    ids: NDArray[np.int64]
    admission: NDArray[np.float64]
    duration: NDArray[np.float64]
    demand: NDArray[np.float64]
    service_class: NDArray[np.int16]
    job: NDArray[np.int64]
    anti_affinity: NDArray[np.bool_]
    term: NDArray[np.int32]
    resources: tuple[str, ...] = ("cpu", "memory")
    classes: tuple[ServiceClass, ...] = DEFAULT_CLASSES
    terms: tuple[Term, ...] = (NO_CONSTRAINT,)

    def __len__(self) -> int:
        return len(self.ids)
