"""What a scrape is told, worked out then. Names are kube-scheduler's where the meaning is the same, else begin with
``slacktide_``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.core import Metric
from prometheus_client.registry import Collector as Base

from slacktide.engine.ledger.overview import Overview, joined, overview
from slacktide.kube.feed.fed_pod import QUEUES
from slacktide.kube.observe.availability_metrics import OVERLOADED, availability, by_class, by_workload, planned
from slacktide.kube.observe.families import Families
from slacktide.kube.observe.metrics import Meter
from slacktide.model.service_class import class_name

if TYPE_CHECKING:
    from slacktide.kube.scheduler import Scheduler

TOGETHER = 500
"""So many workloads are looked at without a pause."""

LIKE_KUBE_SCHEDULER = Families(
    "As kube-scheduler has them",
    "Names, types and labels are kube-scheduler's. The label `profile` is `kube.scheduler_name`.",
)
_like = LIKE_KUBE_SCHEDULER
PENDING_PODS = _like.gauge(
    "scheduler_pending_pods", "Pending pods, by queue: active, backoff, unschedulable, gated.", "queue"
)
CACHE_SIZE = _like.gauge(
    "scheduler_cache_size", "What decisions are based on, by type: nodes, pods, assumed_pods.", "type"
)
ATTEMPTS = _like.counter(
    "scheduler_schedule_attempts",
    "Attempts to place a pod (passes that it took part in), by result: scheduled, unschedulable, error.",
    "result", "profile",
)  # fmt: skip
ATTEMPT_SECONDS = _like.histogram(
    "scheduler_scheduling_attempt_duration_seconds",
    "From the beginning of the pass to the binding (victims have gone by then), or to the end of the pass.",
    "result", "profile",
)  # fmt: skip
SLI_SECONDS = _like.histogram(
    "scheduler_pod_scheduling_sli_duration_seconds",
    "From the time a pod entered the queue until it was bound, by its attempts (15+: 15 and more).",
    "attempts",
)
ATTEMPTS_NEEDED = _like.histogram("scheduler_pod_scheduling_attempts", "Attempts until a pod was bound.")
PREEMPTION_ATTEMPTS = _like.counter(
    "scheduler_preemption_attempts",
    "Preemptions decided. (kube-scheduler also counts attempts that found no victims.)",
)
VICTIMS = _like.histogram("scheduler_preemption_victims", "Victims of one preemption.")
INCOMING = _like.counter(
    "scheduler_queue_incoming_pods",
    "Pods added to a queue, by event: UnschedulablePodAdd, ScheduleAttemptFailure, BackoffComplete, ForceActivate.",
    "event", "queue",
)  # fmt: skip

DEEDS = Families("What was done", "Counters begin at 0 when a scheduler starts.")
PREEMPTIONS = DEEDS.counter("slacktide_preemptions", "Pods chosen as victims, by their class.", "class")
FINISHED = DEEDS.counter(
    "slacktide_finished_controllers",
    "Workloads that were deleted or completed, by how their promise ended: Kept, AtRisk, Missed, Unknown.",
    "class", "state",
)  # fmt: skip
FINISHED_PENALTIES = DEEDS.counter(
    "slacktide_finished_penalties", "Shares of a price owed to workloads that were deleted or completed.", "class"
)
ACTS = {
    name: DEEDS.counter(f"slacktide_acts_{name}", text)
    for name, text in {
        "evicted": "Evictions that the API server accepted.",
        "evictions_refused": "Evictions that the API server refused, as a rule for a disruption budget.",
        "moved": "Pods evicted as their resize did not fit where they ran.",
        "spared": "Victims that were not evicted after all.",
        "given_up": "Nominations withdrawn, as victims did not terminate in time.",
        "refused": "Decisions that could not be carried out; their pods went back to the queue.",
        "retried": "Bindings sent again, as the API server was overloaded.",
    }.items()
}
BOUND_BY_OTHERS = DEEDS.counter(
    "slacktide_pods_bound_by_others", "Pods that waited here, and that another scheduler bound."
)
IN_FLIGHT = DEEDS.gauge("slacktide_bindings_in_flight", "Decisions not confirmed yet.")
NOMINATIONS = DEEDS.gauge(
    "slacktide_nominations", "Of these, pods that are nominated and wait for victims to terminate."
)
PASS_SECONDS = DEEDS.histogram("slacktide_pass_duration_seconds", "One pass over all that wait.")
STARTUP_SECONDS = DEEDS.histogram(
    "slacktide_startup_seconds",
    "From the binding until a pod is ready. Set qos.alpha to the longest that you expect.",
)

HEALTH = Families("The scheduler's health", "Each replica has these, leader or not.")
LEADER = HEALTH.gauge("slacktide_leader", "1 while this replica leads.")
LEDGER_PENDING = HEALTH.gauge("slacktide_ledger_pending", "Ledgers that wait to be written.")
LEDGER_WRITES = HEALTH.counter("slacktide_ledger_writes", "Writes of ledgers, by result: written, failed.", "result")
LEFT_ALONE = HEALTH.gauge(
    "slacktide_ledgers_left_alone",
    "Ledgers that a later release wrote: their workloads are accounted for in memory only.",
)
WITHOUT_CLASS = HEALTH.gauge(
    "slacktide_pods_without_class",
    "Pods, waiting or running, without a promise because their class is not known.",
)
SET_ASIDE = HEALTH.counter(
    "slacktide_objects_set_aside",
    "Objects that cannot be used, each problem once, by kind and reason (docs/live.md).",
    "kind", "reason",
)  # fmt: skip
ASIDE = HEALTH.gauge("slacktide_objects_aside", "Objects that are ignored now, until they change.")
EVENTS_PENDING = HEALTH.gauge("slacktide_events_pending", "Events that wait to be written.")
EVENTS = HEALTH.counter("slacktide_events", "Events, by what became of them: written, dropped.", "result")
WATCH_AGE = HEALTH.gauge(
    "slacktide_watch_age_seconds",
    "Seconds since a watch last received anything.",
    "kind",
)
WATCH_DEAD = HEALTH.gauge(
    "slacktide_watch_dead",
    "1 where a watch received nothing for longer than a watch lasts (690 s by default).",
    "kind",
)
WATCH_FAILURES = HEALTH.counter("slacktide_watch_failures", "Watches that ended with an error.", "kind")
WATCH_LISTS = HEALTH.counter("slacktide_watch_lists", "Lists taken, the first one among them.", "kind")
POLICIES_MISSING = HEALTH.gauge(
    "slacktide_admission_policies_missing",
    "Admission policies and bindings of this release that the API server has not; only where the account may look.",
)
CERTIFICATE_ENDS = HEALTH.gauge(
    "slacktide_certificate_expiry_timestamp_seconds",
    "When the certificate that is shown at kube.listen ends, seconds since 1970; only with TLS.",
)
CLOCK_DRIFT = HEALTH.gauge("slacktide_clock_drift_seconds", "How far the wall clock was moved since the start.")
STALL = HEALTH.gauge(
    "slacktide_event_loop_stall_seconds",
    "Longest stall of the event loop since the last scrape; of two scrapers each sees a part.",
)


class Collector(Base):
    """What a scrape is told, worked out then. For ``prometheus_client``'s registry."""

    def __init__(
        self,
        scheduler: Scheduler,
        meter: Meter,
        stall: Callable[[], float],
        certificate_ends: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.scheduler, self.meter, self._stall = scheduler, meter, stall
        self._certificate_ends = certificate_ends
        self._found: Overview | None = None

    async def look(self) -> None:
        """See how all workloads stand, for the next :meth:`collect`: of thousands some at a time, so that nobody waits
        for long."""
        self._found = None
        engine, session, parts = self.scheduler.engine, self.scheduler.session, list[Overview]()
        if engine is None or session is None or len(engine.controllers) <= TOGETHER:
            return
        keys = list(engine.controllers)
        for first in range(0, len(keys), TOGETHER):
            await asyncio.sleep(0)
            if self.scheduler.engine is not engine:
                return
            known = [key for key in keys[first : first + TOGETHER] if key in engine.controllers]
            parts.append(overview(engine, self.scheduler.clock(), known))
        self._found = joined(parts)

    def collect(self) -> Iterator[Metric]:
        """All families of metrics."""
        yield from self._like_kube_scheduler()
        engine = self.scheduler.engine
        session = self.scheduler.session
        if engine is not None and session is not None:
            found, self._found = self._found or overview(engine, self.scheduler.clock()), None
            yield from availability(found)
            yield from by_class(session.losses)
            yield from by_workload(
                found, session.feed.controllers.targets, self.scheduler.config.kube.metrics_workloads
            )
            yield overloaded(engine.tables.overloaded())
            yield from planned(engine.plans.classes)
        yield from self._deeds()
        yield from self._health()

    def _like_kube_scheduler(self) -> Iterator[Metric]:
        meter, profile = self.meter, self.scheduler.config.kube.scheduler_name
        engine = self.scheduler.engine
        session = self.scheduler.session
        queues = dict.fromkeys(QUEUES, 0) if session is None else session.queues()
        yield PENDING_PODS.of({(queue,): count for queue, count in queues.items()})
        pods = 0 if engine is None else len(engine.pods) + len(engine.others)
        nodes = 0 if engine is None else sum(map(self.scheduler.mirror.is_ours, engine.hosts))
        yield CACHE_SIZE.of({("nodes",): nodes, ("pods",): pods, ("assumed_pods",): len(meter.in_flight)})
        yield ATTEMPTS.of({(name, profile): meter.attempts[name] for name in meter.attempt_seconds})
        yield ATTEMPT_SECONDS.of({(name, profile): one for name, one in meter.attempt_seconds.items()})
        yield SLI_SECONDS.of({(name,): one for name, one in meter.sli_seconds.items()})
        yield ATTEMPTS_NEEDED.of({(): meter.attempts_needed})
        yield PREEMPTION_ATTEMPTS.of({(): meter.preemption_attempts})
        yield VICTIMS.of({(): meter.victims})
        yield INCOMING.of(dict(meter.incoming))

    def _deeds(self) -> Iterator[Metric]:
        meter, counts = self.meter, self.scheduler.counts
        yield PREEMPTIONS.of({(name,): count for name, count in meter.preempted.items()})
        yield FINISHED.of(dict(meter.finished))
        yield FINISHED_PENALTIES.of({(name,): owed for name, owed in meter.owed.items()})
        for name, family in ACTS.items():
            yield family.of({(): getattr(counts, name)})
        yield BOUND_BY_OTHERS.of({(): meter.bound_by_others})
        yield IN_FLIGHT.of({(): len(meter.in_flight)})
        yield NOMINATIONS.of({(): len(self.scheduler.nominations)})
        yield PASS_SECONDS.of({(): meter.pass_seconds})
        yield STARTUP_SECONDS.of({(): meter.startup_seconds})

    def _health(self) -> Iterator[Metric]:
        scheduler, ledgers, recorder = self.scheduler, self.scheduler.ledgers, self.scheduler.recorder
        watches = scheduler.watches.by_name()
        yield LEADER.of({(): scheduler.leading()})
        session = scheduler.session
        yield LEDGER_PENDING.of({(): 0 if session is None else session.ledger.pending})
        yield LEDGER_WRITES.of({("written",): ledgers.written, ("failed",): ledgers.failed})
        yield LEFT_ALONE.of({(): 0 if session is None else len(session.feed.controllers.left_alone)})
        yield WITHOUT_CLASS.of({(): 0 if session is None else session.without_class()})
        barrier = scheduler.mirror.barrier
        yield SET_ASIDE.of(dict(barrier.counts))
        yield ASIDE.of({(): len(barrier.aside)})
        yield EVENTS_PENDING.of({(): recorder.pending})
        yield EVENTS.of({("written",): recorder.written, ("dropped",): recorder.dropped})
        yield WATCH_AGE.of({(name,): one.age() for name, one in watches.items()})
        yield WATCH_DEAD.of({(name,): one.is_dead() for name, one in watches.items()})
        yield WATCH_FAILURES.of({(name,): one.failures for name, one in watches.items()})
        yield WATCH_LISTS.of({(name,): one.lists for name, one in watches.items()})
        policies = scheduler.installation.policies_missing
        yield POLICIES_MISSING.of({} if policies is None else {(): policies})
        ends = self._certificate_ends()
        yield CERTIFICATE_ENDS.of({} if ends is None else {(): ends})
        yield CLOCK_DRIFT.of({(): scheduler.clock.drift})
        yield STALL.of({(): self._stall()})


def overloaded(classes: Mapping[str, bool]) -> Metric:
    """Classes, whether they were overloaded in the last pass; one with an own SLO counts to the class it is of."""
    by_name: dict[tuple[str], bool] = {}
    for name, found in classes.items():
        by_name[class_name(name),] = found or by_name.get((class_name(name),), False)
    return OVERLOADED.of(by_name)
