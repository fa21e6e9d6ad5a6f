"""Clusters of which some requests were there before the run begins."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from slacktide.inputs.rows import select
from slacktide.model import NOTHING_LOST, Past, Workload
from slacktide.model.request_events import lost_in
from support.clusters import Cluster

LONGEST = 600.0
"""Seconds before the run at which the first of them were admitted."""


def with_past(one: Cluster, seed: int, share: float = 0.5) -> Cluster:
    """The same cluster, of whose requests about ``share`` were admitted before second 0 and lost something by then."""
    rng = np.random.default_rng([seed, 1])
    workload = one.workload
    request = np.arange(len(workload)) if workload.request is None else workload.request
    first = np.full(int(request.max()) + 1, np.inf)
    np.minimum.at(first, request, workload.admission)
    chosen = rng.random(len(first)) < share
    if workload.requests is not None:
        chosen &= workload.requests.parallelism == 0
    admission, losses = workload.admission.copy(), [NOTHING_LOST]
    lost = np.zeros(len(workload), np.int32)
    for number in np.flatnonzero(chosen).tolist():
        begun = -round(float(rng.uniform(1.0, LONGEST)), 3)
        losses.append(_past(begun, rng))
        lost[request == number] = len(losses) - 1
        admission[(request == number) & (workload.admission == first[number])] = begun
    ran = np.maximum(-admission, 0.0) - np.array([lost_in(one) for one in losses])[lost]
    duration = workload.duration + np.where(admission < 0.0, ran, 0.0)
    made = replace(workload, admission=admission, duration=duration, lost=lost, losses=tuple(losses))
    return replace(one, workload=_in_order(made))


def _past(begun: float, rng: np.random.Generator) -> Past:
    """Outages since the admission, sometimes more than an account keeps apart."""
    count = int(rng.choice([0, 1, 3, 40], p=[0.2, 0.4, 0.3, 0.1]))
    instants = np.sort(rng.uniform(begun, 0.0, 2 * count)).round(3).tolist()
    pairs = zip(instants[::2], instants[1::2], strict=True)
    return tuple((end, round(end - begin, 3)) for begin, end in pairs if end - begin >= 0.01)


def _in_order(workload: Workload) -> Workload:
    return select(workload, np.argsort(workload.admission, kind="stable"))
