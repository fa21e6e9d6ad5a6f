"""A workload: one row per instance, stored by column so that 25 million fit in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slacktide.model.constraint import NO_CONSTRAINT, Term
from slacktide.model.label import NO_LABEL, Label
from slacktide.model.network import NO_ACCESS, Access
from slacktide.model.placement import NO_NEIGHBOURS, Budget, Placement
from slacktide.model.request_events import ALWAYS_READY, NEVER_RESIZED, NOTHING_LOST, Past, Resizing, Unreadiness
from slacktide.model.service_class import DEFAULT_CLASSES, ServiceClass

APPROACHES = ("independent", "concurrent", "aggregated")
"""How the availability of a request of several instances is measured (docs/requests.md)."""
KINDS = ("service", "batch")
"""Of requests, by ``Requests.batch``."""
INDEPENDENT, CONCURRENT, AGGREGATED = range(3)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of several instances (Deployments and Jobs in Kubernetes' words); arrays of shape ``(m,)``.

    ids          int64   the request's number in the input
    batch        bool    kind: a batch request's instances complete once each, and lose their work when stopped
    approach     int8    index into ``APPROACHES``; a batch request is aggregated
    parallelism  int64   how many instances of a batch request may be at work at once; 0: all

    Scale events, shape ``(k,)``, in order of time. An event that asks for more than before
    comes with as many further rows of the workload, admitted at that instant:

    scale_time      float64  seconds
    scale_request   int32    index into the arrays above
    scale_replicas  int64    how many instances there shall be from then on
    """

    ids: NDArray[np.int64]
    batch: NDArray[np.bool_]
    approach: NDArray[np.int8]
    parallelism: NDArray[np.int64]
    scale_time: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    scale_request: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    scale_replicas: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Workload:
    """Instances in order of admission (equal instants keep the file's order).

    Arrays have shape ``(n,)`` unless said otherwise; readers and generators check
    every value, so that nothing behind them has to. Where ``requests`` is None every
    row is a request of its own.

    ids             int64    the row's number in the input; unique where every row is a request
    admission       float64  T_j, seconds, non-decreasing; below 0 where it was admitted before the run begins
    duration        float64  useful running seconds until completion, > 0; inf: never completes.
                             Drives the simulator and is never visible to a policy.
    demand          float64  shape (n, len(resources)), in the hosts' unit, >= 0
    service_class   int16    index into ``classes``; one for all rows of a request
    job             int64    requests of one job are related (anti-affinity is within a job)
    anti_affinity   bool     never on a host that runs another instance of the same job
    term            int32    index into ``terms``
    request         int32    index into ``requests``, or None where ``requests`` is
    placement       int32    index into ``placements``, or None: nobody has to do with its neighbours
    budget          int32    index into ``budgets``, -1 for none, or None: nobody has a budget
    limit           float64  as ``demand``, and nowhere below it: most that an instance may be granted; None: its demand
    access          int32    index into ``accesses``, or None: nothing is known of users, images and data
    resize          int32    index into ``resizings``: how its demand changes; or None: nobody's does
    lost            int32    index into ``losses``: what it lost before the run; or None: nobody was admitted before
    unready         int32    index into ``spells``: when it runs and is not ready; or None: nobody is
    label           int32    index into ``labels``: what people call it; or None: nothing is said
    grace           float64  seconds that it goes on once it is preempted, >= 0; or None: everybody goes at once
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
    request: NDArray[np.int32] | None = None
    requests: Requests | None = None
    placement: NDArray[np.int32] | None = None
    placements: tuple[Placement, ...] = (NO_NEIGHBOURS,)
    budget: NDArray[np.int32] | None = None
    budgets: tuple[Budget, ...] = ()
    limit: NDArray[np.float64] | None = None
    access: NDArray[np.int32] | None = None
    accesses: tuple[Access, ...] = (NO_ACCESS,)
    resize: NDArray[np.int32] | None = None
    resizings: tuple[Resizing, ...] = (NEVER_RESIZED,)
    lost: NDArray[np.int32] | None = None
    losses: tuple[Past, ...] = (NOTHING_LOST,)
    grace: NDArray[np.float64] | None = None
    unready: NDArray[np.int32] | None = None
    spells: tuple[Unreadiness, ...] = (ALWAYS_READY,)
    label: NDArray[np.int32] | None = None
    labels: tuple[Label, ...] = (NO_LABEL,)

    def __len__(self) -> int:
        return len(self.ids)
