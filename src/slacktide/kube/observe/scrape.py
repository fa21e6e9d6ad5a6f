"""What a scrape is told, worked out then. Names are kube-scheduler's where the meaning is the same, else begin with
``slacktide_``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector as Base

from slacktide.engine.ledger.overview import overview
from slacktide.kube.observe.availability_metrics import availability
from slacktide.kube.observe.metrics import Histogram, Meter, class_of
from slacktide.kube.observe.workload_metrics import by_class, by_workload

if TYPE_CHECKING:
    from slacktide.kube.scheduler import Scheduler

ACTS = {
    "evicted": "Evictions that the API server accepted.",
    "evictions_refused": "Evictions that the API server refused, as a rule for a disruption budget.",
    "moved": "Pods evicted as their resize did not fit where they ran.",
    "spared": "Victims that stay after all.",
    "given_up": "Reserved places given up, as victims did not go in time.",
    "refused": "Decisions that could not be carried out; their pods wait again.",
    "retried": "Bindings sent again, as the API server had no time.",
}


class Collector(Base):
    """What a scrape is told, worked out then. For ``prometheus_client``'s registry."""

    def __init__(self, scheduler: Scheduler, meter: Meter, stall: Callable[[], float]) -> None:
        self.scheduler, self.meter, self._stall = scheduler, meter, stall

    def collect(self) -> Iterator[Metric]:
        """All families of metrics."""
        yield from self._like_kube_scheduler()
        engine = self.scheduler.engine
        term = self.scheduler.term
        if engine is not None and term is not None:
            found = overview(engine, self.scheduler.clock())
            yield from availability(found, class_of)
            yield from by_class(term.losses)
            yield from by_workload(found, term.feed.controllers.targets, self.scheduler.config.kube.metrics_workloads)
            yield overloaded(engine.tables.overloaded())
        yield from self._deeds()
        yield from self._health()

    def _like_kube_scheduler(self) -> Iterator[Metric]:
        meter, profile = self.meter, self.scheduler.config.kube.scheduler_name
        engine = self.scheduler.engine
        yield gauge(
            "scheduler_pending_pods",
            "Pods that wait, by queue.",
            ("queue",),
            {(queue,): count for queue, count in self.scheduler.queues().items()},
        )
        pods = 0 if engine is None else len(engine.pods) + len(engine.others)
        cache = {
            "nodes": 0 if engine is None else sum(map(self.scheduler.mirror.is_ours, engine.hosts)),
            "pods": pods,
            "assumed_pods": len(meter.in_flight),
        }
        yield gauge(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods that decisions are based on.",
            ("type",),
            {(name,): count for name, count in cache.items()},
        )
        yield counter(
            "scheduler_schedule_attempts",
            "Attempts to place a pod: a pass that it took part in.",
            ("result", "profile"),
            {(name, profile): meter.attempts[name] for name in meter.attempt_seconds},
        )
        yield histogram(
            "scheduler_scheduling_attempt_duration_seconds",
            "From the beginning of the pass to the binding, or to the end of the pass.",
            ("result", "profile"),
            {(name, profile): one for name, one in meter.attempt_seconds.items()},
        )
        yield histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From the time a pod entered the queue until it was bound.",
            ("attempts",),
            {(name,): one for name, one in meter.sli_seconds.items()},
        )
        yield histogram(
            "scheduler_pod_scheduling_attempts", "Attempts until a pod was bound.", (), {(): meter.attempts_needed}
        )
        yield counter("scheduler_preemption_attempts", "Preemptions decided on.", (), {(): meter.preemption_attempts})
        yield histogram("scheduler_preemption_victims", "Victims of one preemption.", (), {(): meter.victims})
        yield counter(
            "scheduler_queue_incoming_pods", "Pods added to queues.", ("event", "queue"), dict(meter.incoming)
        )

    def _deeds(self) -> Iterator[Metric]:
        meter, counts = self.meter, self.scheduler.counts
        yield counter(
            "slacktide_preemptions",
            "Pods told to leave, by their class.",
            ("class",),
            {(name,): count for name, count in meter.preempted.items()},
        )
        yield counter(
            "slacktide_finished_controllers",
            "Controllers that are no more, by how their promise ended.",
            ("class", "state"),
            dict(meter.finished),
        )
        yield counter(
            "slacktide_finished_penalties",
            "Shares of a price owed to controllers that are no more.",
            ("class",),
            {(name,): owed for name, owed in meter.owed.items()},
        )
        for name, text in ACTS.items():
            yield counter(f"slacktide_acts_{name}", text, (), {(): getattr(counts, name)})
        yield gauge("slacktide_bindings_in_flight", "Decisions not confirmed yet.", (), {(): len(meter.in_flight)})
        yield gauge(
            "slacktide_nominations",
            "Pods whose place waits for victims to go.",
            (),
            {(): len(self.scheduler.nominations)},
        )
        yield histogram("slacktide_pass_duration_seconds", "One pass over all that wait.", (), {(): meter.pass_seconds})
        yield histogram(
            "slacktide_startup_seconds", "From the binding until a pod is ready.", (), {(): meter.startup_seconds}
        )

    def _health(self) -> Iterator[Metric]:
        scheduler = self.scheduler
        yield gauge("slacktide_leader", "1 where this replica may act.", (), {(): float(scheduler.leading())})
        yield gauge("slacktide_ledger_pending", "Ledgers that wait to be written.", (), {(): scheduler.ledgers_pending})
        yield counter(
            "slacktide_ledger_writes",
            "Writes of ledgers.",
            ("result",),
            {("written",): scheduler.ledgers.written, ("failed",): scheduler.ledgers.failed},
        )
        yield gauge(
            "slacktide_ledgers_left_alone",
            "Ledgers that a later release wrote: their workloads are accounted for in memory only.",
            (),
            {(): scheduler.ledgers_left_alone},
        )
        yield gauge(
            "slacktide_pods_without_class",
            "Pods, waiting or running, that are promised nothing because their class is not known.",
            (),
            {(): scheduler.without_class},
        )
        yield gauge("slacktide_events_pending", "Events that wait to be written.", (), {(): scheduler.recorder.pending})
        yield counter(
            "slacktide_events",
            "Events by what became of them.",
            ("result",),
            {("written",): scheduler.recorder.written, ("dropped",): scheduler.recorder.dropped},
        )
        watches = scheduler.watches.by_name()
        yield gauge(
            "slacktide_watch_age_seconds",
            "Since a watch last showed a sign of life (about one a minute).",
            ("kind",),
            {(name,): one.age() for name, one in watches.items()},
        )
        yield gauge(
            "slacktide_watch_dead",
            "1 where a watch showed no sign of life for longer than a watch lasts.",
            ("kind",),
            {(name,): one.is_dead() for name, one in watches.items()},
        )
        yield counter(
            "slacktide_watch_failures",
            "Watches that ended with an error.",
            ("kind",),
            {(name,): one.failures for name, one in watches.items()},
        )
        yield counter(
            "slacktide_watch_lists",
            "Lists taken, the first one among them.",
            ("kind",),
            {(name,): one.lists for name, one in watches.items()},
        )
        yield gauge(
            "slacktide_clock_drift_seconds",
            "How far the wall clock was moved since the start.",
            (),
            {(): scheduler.clock.drift},
        )
        yield gauge(
            "slacktide_event_loop_stall_seconds",
            "Longest stall of the event loop since the last scrape.",
            (),
            {(): self._stall()},
        )


def overloaded(classes: Mapping[str, bool]) -> Metric:
    """Classes, whether they were overloaded in the last pass; one with an own SLO counts to the class it is of."""
    by_name: dict[tuple[str], bool] = {}
    for name, found in classes.items():
        by_name[class_of(name),] = found or by_name.get((class_of(name),), False)
    return gauge(
        "slacktide_class_overloaded",
        "1 where in the last pass somebody of the class waited whose promise could not be kept any more.",
        ("class",),
        by_name,
    )


Values = Mapping[Any, Any]
"""By label values, a tuple."""


def gauge(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    """A family of gauges by label values."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family


def counter(name: str, text: str, labels: tuple[str, ...], values: Values) -> Metric:
    """A family of counters by label values; ``_total`` is added to the name."""
    family = CounterMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, float(value))
    return family


def histogram(name: str, text: str, labels: tuple[str, ...], values: Mapping[Any, Histogram]) -> Metric:
    """A family of histograms by label values."""
    family = HistogramMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value.buckets(), value.total)
    return family
