"""Availability, slack, seconds and penalties for Prometheus: by service class, and of at most
``kube.metrics_workloads`` single workloads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from prometheus_client.core import Metric

from slacktide.engine.core.plans import Carried
from slacktide.engine.ledger.overview import STATES, Floats, Overview
from slacktide.kube.housekeeping import LossTotals
from slacktide.kube.observe.families import Families, Family
from slacktide.kube.translate.owners import Target
from slacktide.model.causes import CAUSES
from slacktide.model.durations import SECONDS_OF
from slacktide.model.service_class import ServiceClass, class_name
from slacktide.qos.availability import SLO_TOLERANCE
from slacktide.qos.standing import budget_left

QUANTILES = (0.0, 0.05, 0.5)

PROMISES = Families("Promises by class", "Of the leader. A workload with an SLO of its own counts under its class.")
PROMISED = PROMISES.gauge("slacktide_availability_promised", "Promised availability, mean over workloads.", "class")
DELIVERED = PROMISES.gauge("slacktide_availability_delivered", "Availability so far, mean over workloads.", "class")
LEAST = PROMISES.gauge("slacktide_availability_delivered_min", "Availability so far, the least.", "class")
CLASS_SLACK = PROMISES.gauge(
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
            values[CLASS_SLACK][name, f"{q:g}"] = float(ordered[int(q * (len(ordered) - 1))])
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


WHO = ("namespace", "kind", "name", "class")
USUAL_WINDOW = 30.0 * SECONDS_OF["d"]
"""Seconds; over so long the budget of a promise over a whole life is counted."""

SECONDS = Families("Seconds by class", "Of the leader, since it leads, as of the last second.")
CLASS_GOOD = SECONDS.counter("slacktide_class_good_seconds", "Instance seconds in which pods were ready.", "class")
CLASS_LOST = SECONDS.counter(
    "slacktide_class_lost_seconds",
    "Instance seconds lost, by cause: cluster, workload, operator.",
    "class", "cause",
)  # fmt: skip
CLASS_ALL = SECONDS.counter("slacktide_class_seconds", "Instance seconds, good and lost.", "class")

WORKLOADS = Families(
    "By workload",
    "Of the leader, of at most `kube.metrics_workloads` workloads: where there are more, namespaces with many have "
    "series of fewer of them, those that the leader has known for longest. Counters are those of the ledger: they go "
    "on over restarts, changes of leader, and a workload's deletion and new creation.",
)
GOOD = WORKLOADS.counter(
    "slacktide_workload_good_seconds", "Instance seconds of a workload in which pods were ready.", *WHO
)
LOST = WORKLOADS.counter(
    "slacktide_workload_lost_seconds",
    "Instance seconds that a workload lost, by cause: cluster, workload, operator.",
    *WHO, "cause",
)  # fmt: skip
WORKLOAD_SLACK = WORKLOADS.gauge(
    "slacktide_workload_slack_seconds", "Slack of a workload; infinite where its promise cannot break.", *WHO
)
BUDGET_LEFT = WORKLOADS.gauge(
    "slacktide_workload_budget_left_ratio",
    "What is left of a workload's error budget: 1 is all of it, below 0 its promise is broken.",
    *WHO,
)
BUDGET = WORKLOADS.gauge(
    "slacktide_workload_budget_seconds",
    "Instance seconds that a workload's promise lets it lose in a window, with as many instances as now.",
    *WHO,
)
CLASS_BUDGET = WORKLOADS.gauge(
    "slacktide_class_budget_seconds",
    "The same of all workloads of a class together, by the promise of the class.",
    "class",
)
CLASS_WINDOW = WORKLOADS.gauge(
    "slacktide_class_window_seconds",
    "Seconds of a class's window; 30 days where it promises a whole life.",
    "class",
)
UNLISTED = WORKLOADS.gauge(
    "slacktide_class_workloads_unlisted",
    "Workloads of a class without series of their own.",
    "class",
)


def by_class(totals: LossTotals) -> Iterator[Metric]:
    """Counters by class since this replica leads, as of the last second."""
    yield CLASS_GOOD.of({(name,): seconds for name, seconds in totals.good.items()})
    yield CLASS_LOST.of(totals.lost)
    yield CLASS_ALL.of(
        {(name,): good + sum(totals.lost[name, cause] for cause in CAUSES) for name, good in totals.good.items()}
    )


def by_workload(found: Overview, targets: Mapping[str, Target], most: int) -> Iterator[Metric]:
    """The ledgers of at most so many workloads."""
    names = [class_name(one.service.name) for one in found.controllers]
    listed = _listed([one.key for one in found.controllers], targets, most)
    unlisted = Counter(dict.fromkeys(names, 0))
    good: dict[tuple[str, ...], float] = {}
    lost: dict[tuple[str, ...], float] = {}
    slack: dict[tuple[str, ...], float] = {}
    left: dict[tuple[str, ...], float] = {}
    budget: dict[tuple[str, ...], float] = {}
    for i, one in enumerate(found.controllers):
        if one.key not in listed:
            unlisted[names[i]] += one.key in targets
            continue
        target = targets[one.key]
        who = (target.namespace, target.full_kind, target.name, names[i])
        good[who], *by_cause = found.losses[i].tolist()
        lost.update(((*who, cause), seconds) for cause, seconds in zip(CAUSES, by_cause, strict=True))
        slack[who] = float(found.slack[i])
        left[who] = budget_left(float(found.promised[i]), float(found.delivered[i]))
        budget[who] = (1.0 - float(found.promised[i])) * _owed_seconds(found, i)
    yield from (GOOD.of(good), LOST.of(lost), WORKLOAD_SLACK.of(slack), BUDGET_LEFT.of(left), BUDGET.of(budget))
    yield from _budgets_by_class(found, names)
    yield UNLISTED.of({(name,): count for name, count in unlisted.items()})


def _window(service: ServiceClass) -> float:
    return USUAL_WINDOW if service.window is None else service.window.about


def _owed_seconds(found: Overview, i: int) -> float:
    """Instance seconds of a whole window, of the instances that there are now."""
    return int(found.running[i] + found.waiting[i]) * _window(found.controllers[i].service)


def _budgets_by_class(found: Overview, names: Sequence[str]) -> Iterator[Metric]:
    """By the promises of classes: one tenant's own, however low, hides nothing of the others."""
    slo = {one.service.name: one.service.slo for one in found.controllers}
    budget: Counter[tuple[str]] = Counter()
    for i, name in enumerate(names):
        promised = slo.get(name, found.controllers[i].service.slo)  # where all have one of their own, that
        budget[(name,)] += (1.0 - promised) * _owed_seconds(found, i)  # type: ignore[assignment]  # a sum of seconds
    yield CLASS_BUDGET.of(budget)
    windows = zip(names, found.controllers, strict=True)
    yield CLASS_WINDOW.of({(name,): _window(one.service) for name, one in windows})


def _listed(keys: Iterable[str], targets: Mapping[str, Target], most: int) -> set[str]:
    """Which workloads have series of their own: where there are too many, nobody takes them from another namespace by
    making more."""
    theirs: dict[str, list[str]] = {}
    for key in keys:
        if key in targets:
            theirs.setdefault(targets[key].namespace, []).append(key)
    found: set[str] = set()
    left, waiting = most, sorted(theirs.values(), key=len)
    for i, some in enumerate(waiting):  # the smallest first, so that what it leaves is for the others
        share = some[: left // (len(waiting) - i)]
        found.update(share)
        left -= len(share)
    return found
