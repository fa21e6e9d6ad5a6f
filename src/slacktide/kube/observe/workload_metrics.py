"""What single workloads had and lost by cause, for Prometheus; bounded by ``kube.metrics_workloads``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from slacktide.engine.ledger.overview import Overview
from slacktide.kube.publish.loss_totals import LossTotals
from slacktide.kube.translate.owners import Target
from slacktide.model.causes import CAUSES
from slacktide.qos.standing import budget_left

WHO = ("namespace", "kind", "name", "class")


def by_class(totals: LossTotals) -> Iterator[Metric]:
    """Counters by class since this replica leads, as of the last second."""
    good = CounterMetricFamily(
        "slacktide_class_good_seconds", "Instance seconds in which pods were ready.", labels=("class",)
    )
    lost = CounterMetricFamily(
        "slacktide_class_lost_seconds", "Instance seconds lost, by whose doing it was.", labels=("class", "cause")
    )
    every = CounterMetricFamily("slacktide_class_seconds", "Instance seconds, good and lost.", labels=("class",))
    for name, seconds in totals.good.items():
        good.add_metric([name], seconds)
        every.add_metric([name], seconds + sum(totals.lost[name, cause] for cause in CAUSES))
    for (name, cause), seconds in totals.lost.items():
        lost.add_metric([name, cause], seconds)
    yield from (good, lost, every)


def by_workload(found: Overview, targets: Mapping[str, Target], most: int) -> Iterator[Metric]:
    """The ledgers of all workloads, where there are at most so many; else nothing.

    A workload's counters go on over restarts, failovers, and its deletion and new creation.
    """
    if len(found.controllers) > most:
        return
    good = CounterMetricFamily(
        "slacktide_workload_good_seconds", "Instance seconds of a workload in which pods were ready.", labels=WHO
    )
    lost = CounterMetricFamily(
        "slacktide_workload_lost_seconds", "Instance seconds that a workload lost, by whose doing it was.",
        labels=(*WHO, "cause"),
    )  # fmt: skip
    slack = GaugeMetricFamily(
        "slacktide_workload_slack_seconds", "Slack of a workload; infinite where its promise cannot break.", labels=WHO
    )
    left = GaugeMetricFamily(
        "slacktide_workload_budget_left_ratio",
        "What is left of a workload's error budget: 1 is all of it, below 0 its promise is broken.",
        labels=WHO,
    )
    for i, one in enumerate(found.controllers):
        target = targets.get(one.key)
        if target is None:
            continue
        who = [target.namespace, target.full_kind, target.name, one.service.name.partition("@")[0]]
        good.add_metric(who, found.losses[i].good)
        for cause in CAUSES:
            lost.add_metric([*who, cause], getattr(found.losses[i], cause))
        slack.add_metric(who, float(found.slack[i]))
        left.add_metric(who, budget_left(float(found.promised[i]), float(found.delivered[i])))
    yield from (good, lost, slack, left)
