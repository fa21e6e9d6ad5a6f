"""Per service class, kind and measurement approach: what requests of several instances got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slacktide.config import Accounting
from slacktide.metrics.summary import Availability, Columns, achieved, describe
from slacktide.model import APPROACHES, Workload
from slacktide.model.workload import KINDS
from slacktide.qos.availability import ACCOUNTINGS, fulfilled
from slacktide.qos.windows import judged


@dataclass(frozen=True, slots=True)
class ApproachSummary:
    """What the requests of one service class, kind and approach were promised and what they got.

    service_class  its name
    kind           service or batch
    approach       independent, concurrent or aggregated
    requests       at least 1
    instances      admitted, over all of them
    availability   for each accounting
    fulfilment     for each accounting the share of requests that reached the SLO
    """

    service_class: str
    kind: str
    approach: str
    slo: float
    requests: int
    instances: int
    availability: Mapping[Accounting, Availability]
    fulfilment: Mapping[Accounting, float]


def per_approach(columns: Columns, workload: Workload, accounting: Accounting) -> list[ApproachSummary]:
    """A summary for each class, kind and approach that occurs, in this order; empty where every row is a request.

    ``columns`` are those of ``qos.per_request``, shape (k,) each. In the ``accounting`` of decisions promises over
    windows are judged by their worst one.
    """
    if workload.requests is None:
        return []
    codes = workload.service_class[columns["first"]].astype(np.int64)
    batch, approach = workload.requests.batch[columns["row"]], workload.requests.approach[columns["row"]]
    group = (codes * len(KINDS) + batch) * len(APPROACHES) + approach
    everyone = {one: achieved(columns, one) for one in ACCOUNTINGS}
    counted = everyone | {accounting: judged(everyone[accounting], columns, slice(None))}
    summaries = []
    for which in np.unique(group).tolist():
        rest, how = divmod(which, len(APPROACHES))
        code, kind = divmod(rest, len(KINDS))
        rows = np.flatnonzero(group == which)
        mine = {one: values[rows] for one, values in everyone.items()}
        promised = workload.classes[code]
        met = {one: float(fulfilled(values[rows], promised.slo).mean()) for one, values in counted.items()}
        got = {one: describe(values) for one, values in mine.items()}
        instances = int(columns["count"][rows].sum())
        summaries.append(
            ApproachSummary(promised.name, KINDS[kind], APPROACHES[how], promised.slo, len(rows), instances, got, met)
        )
    return summaries
