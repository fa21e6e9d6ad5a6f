"""Availability, slack and penalties by service class, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from prometheus_client.core import GaugeMetricFamily

from slacktide.engine.ledger.overview import STATES, Floats, Overview
from slacktide.qos.availability import SLO_TOLERANCE

QUANTILES = (0.0, 0.05, 0.5)


def bonus_owed(found: Overview) -> Floats:
    """Share of its price that each controller is owed as things stand, 0 to 1, by its class's penalty tiers."""
    owed = np.zeros(len(found.controllers))
    known = found.state != STATES.index("Unknown")
    by_service: dict[Any, list[int]] = {}
    for i, one in enumerate(found.controllers):
        by_service.setdefault(one.service, []).append(i)
    for service, rows in by_service.items():
        for tier in service.tiers:
            below = found.delivered[rows] < tier.boundary * service.slo - SLO_TOLERANCE
            owed[rows] = np.where(below & known[rows], np.maximum(owed[rows], tier.bonus), owed[rows])
    return owed


def availability(found: Overview, class_of: Callable[[str], str]) -> Iterator[GaugeMetricFamily]:
    """Gauges by class over its controllers."""
    numbers: dict[str, int] = {}
    names = (class_of(one.service.name) for one in found.controllers)
    cls = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    owed = bonus_owed(found)
    promised = _family("slacktide_availability_promised", "Promised availability, mean over controllers.")
    delivered = _family("slacktide_availability_delivered", "Availability so far, mean over controllers.")
    least = _family("slacktide_availability_delivered_min", "Availability so far, the least of any controller.")
    slack = _family("slacktide_slack_seconds", "Slack of controllers: least, 5 % quantile, median.", "quantile")
    states = _family("slacktide_controllers", "Controllers by how their promise stands.", "state")
    violations = _family("slacktide_violations", "Controllers that got less so far than promised.")
    penalties = _family("slacktide_penalties", "Shares of a price owed to controllers as things stand, summed up.")
    pods = _family("slacktide_pods", "Instances that are ready, and that are not.", "state")
    late = _family("slacktide_late_pods", "Waiting pods whose promise cannot be kept any more.", "state")
    for name, number in numbers.items():
        mine = cls == number
        promised.add_metric([name], float(found.promised[mine].mean()))
        delivered.add_metric([name], float(found.delivered[mine].mean()))
        least.add_metric([name], float(found.delivered[mine].min()))
        ordered = np.sort(found.slack[mine])
        for q in QUANTILES:
            slack.add_metric([name, f"{q:g}"], float(ordered[int(q * (len(ordered) - 1))]))
        counts = np.bincount(found.state[mine], minlength=len(STATES))
        for state, count in zip(STATES, counts.tolist(), strict=True):
            states.add_metric([name, state], count)
        violations.add_metric([name], int(counts[STATES.index("Missed")]))
        penalties.add_metric([name], float(owed[mine].sum()))
        pods.add_metric([name, "running"], int(found.running[mine].sum()))
        pods.add_metric([name, "waiting"], int(found.waiting[mine].sum()))
        late.add_metric([name, "lost"], int(found.lost[mine].sum()))
        late.add_metric([name, "starving"], int(found.starving[mine].sum()))
    yield from (promised, delivered, least, slack, states, violations, penalties, pods, late)


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=("class", *labels))
