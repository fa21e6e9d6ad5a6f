"""Availability, slack and penalties by service class, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from prometheus_client.core import Metric

from slacktide.engine.core.plans import Carried
from slacktide.engine.ledger.overview import STATES, Floats, Overview
from slacktide.kube.observe.families import Families, Family
from slacktide.model.service_class import class_name
from slacktide.qos.availability import SLO_TOLERANCE

QUANTILES = (0.0, 0.05, 0.5)

PROMISES = Families("Promises by class", "Of the leader. A workload with an SLO of its own counts under its class.")
PROMISED = PROMISES.gauge("slacktide_availability_promised", "Promised availability, mean over workloads.", "class")
DELIVERED = PROMISES.gauge("slacktide_availability_delivered", "Availability so far, mean over workloads.", "class")
LEAST = PROMISES.gauge("slacktide_availability_delivered_min", "Availability so far, the least.", "class")
SLACK = PROMISES.gauge(
    "slacktide_slack_seconds",
    "Slack of workloads, by the share of them that have less: least (0), 5 % quantile (0.05), median (0.5).",
    "class", "share",
)  # fmt: skip
CONTROLLERS = PROMISES.gauge(
    "slacktide_controllers",
    "Workloads, by how their promise stands: Kept, AtRisk, Missed, Unknown.",
    "class", "state",
)  # fmt: skip
VIOLATIONS = PROMISES.gauge("slacktide_violations", "Workloads that got less so far than promised.", "class")
PENALTIES = PROMISES.gauge(
    "slacktide_penalties",
    "Shares of a price owed to workloads as things stand, by penalty tiers.",
    "class",
)
PODS = PROMISES.gauge(
    "slacktide_pods", "Instances that are ready (running), and that are not (waiting).", "class", "state"
)
LATE = PROMISES.gauge(
    "slacktide_late_pods",
    "Waiting pods whose promise cannot be kept any more: lost, starving.",
    "class", "state",
)  # fmt: skip
OVERLOADED = PROMISES.gauge(
    "slacktide_class_overloaded",
    "1 where in the last pass pods of its rank waited whose promise could not be kept any more; else 0.",
    "class",
)
CARRIED = PROMISES.gauge(
    "slacktide_promises_carried",
    "Promises of the class that the plan keeps; only where one is in force.",
    "class",
)
GIVEN_UP = PROMISES.gauge(
    "slacktide_promises_given_up",
    "Promises of the class that the plan gives up; only where one is in force.",
    "class",
)
OF_CLASSES = (OVERLOADED, CARRIED, GIVEN_UP)
"""Known of classes, not of their controllers."""


def planned(classes: Mapping[str, Carried]) -> Iterator[Metric]:
    """Gauges by class of what the present plan says."""
    yield CARRIED.of({(name,): one.carried for name, one in classes.items()})
    yield GIVEN_UP.of({(name,): one.gives_up for name, one in classes.items()})


def bonus_owed(found: Overview) -> Floats:
    """Share of its price that each controller is owed as things stand, 0 to 1, by its class's penalty tiers."""
    owed = np.zeros(len(found.controllers))
    known = found.state != STATES.index("Unknown")
    by_service: dict[Any, list[int]] = {}
    for i, one in enumerate(found.controllers):
        if one.service.tiers:
            by_service.setdefault(one.service, []).append(i)
    for service, rows in by_service.items():
        for tier in service.tiers:
            below = found.delivered[rows] < tier.boundary * service.slo - SLO_TOLERANCE
            owed[rows] = np.where(below & known[rows], np.maximum(owed[rows], tier.bonus), owed[rows])
    return owed


def availability(found: Overview) -> Iterator[Metric]:
    """Gauges by class over its controllers."""
    numbers: dict[str, int] = {}
    names = (class_name(one.service.name) for one in found.controllers)
    cls = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)
    owed = bonus_owed(found)
    values: dict[Family, dict[tuple[str, ...], float]] = {one: {} for one in PROMISES.declared if one not in OF_CLASSES}
    for name, number in numbers.items():
        mine = cls == number
        values[PROMISED][name,] = float(found.promised[mine].mean())
        values[DELIVERED][name,] = float(found.delivered[mine].mean())
        values[LEAST][name,] = float(found.delivered[mine].min())
        ordered = np.sort(found.slack[mine])
        for q in QUANTILES:
            values[SLACK][name, f"{q:g}"] = float(ordered[int(q * (len(ordered) - 1))])
        counts = np.bincount(found.state[mine], minlength=len(STATES))
        for state, count in zip(STATES, counts.tolist(), strict=True):
            values[CONTROLLERS][name, state] = count
        values[VIOLATIONS][name,] = int(counts[STATES.index("Missed")])
        values[PENALTIES][name,] = float(owed[mine].sum())
        values[PODS][name, "running"] = int(found.running[mine].sum())
        values[PODS][name, "waiting"] = int(found.waiting[mine].sum())
        values[LATE][name, "lost"] = int(found.lost[mine].sum())
        values[LATE][name, "starving"] = int(found.starving[mine].sum())
    yield from (family.of(of_class) for family, of_class in values.items())
