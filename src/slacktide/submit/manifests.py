"""A workload's requests as Deployments and Jobs, to be submitted by :mod:`slacktide.submit.broker`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import fail
from slacktide.kube.client.quantities import nanos
from slacktide.kube.resources.custom_resources import API_VERSION, EVERYBODY
from slacktide.kube.translate.service_classes import APPROACH, CLASS_LABEL
from slacktide.model import Constraint, ServiceClass, Term, Workload
from slacktide.model.durations import write_duration
from slacktide.model.workload import APPROACHES, INDEPENDENT

STARTUP_SECONDS = "slacktide.io/startup-seconds"
"""From the binding to the Ready condition; at once without it."""

RUN_SECONDS = "slacktide.io/run-seconds"
"""From Ready to the containers' end, of pods whose restartPolicy is not Always; never without it."""

EXIT_CODE = "slacktide.io/exit-code"
"""With which the containers end then; 0 without it."""

SHUTDOWN_SECONDS = "slacktide.io/shutdown-seconds"
"""From the deletion to the containers' end, at most the grace period; exactly the grace period without it."""

REJECT_REASON = "slacktide.io/reject-reason"
"""The kubelet refuses the pod with this reason (OutOfcpu, for example)."""


RUN_LABEL = "slacktide.io/workload"
"""On everything that one broker submits."""
REQUEST_LABEL = "slacktide.io/request"
JOB_LABEL = "slacktide.io/job"
HOSTNAME = "kubernetes.io/hostname"
UNITS: Mapping[str, str] = {"cpu": "1", "memory": "1Gi"}
"""What a demand of 1 in a workload file is, as a Kubernetes quantity; of other resources 1."""
AFFINITY = {"==": "In", "/=": "NotIn", "<": "Lt", ">": "Gt"}
KEPT_SECONDS = 600
"""A Job that has ended stays this long, so that its ledger can be read."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One object and its times, seconds since the workload's beginning, in the workload's time.

    ``needs``: useful running seconds of all instances together after which a service is removed; infinite: never.
    """

    at: float
    name: str
    batch: bool
    body: dict[str, Any]
    needs: float = float("inf")
    scale: tuple[tuple[float, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Manner:
    """How a workload is written as objects.

    ``delays`` are start-up seconds to draw from (the workload's time), one for each object; ``units``: :data:`UNITS`.
    """

    run: str
    scheduler: str = "slacktide"
    speed: float = 1.0
    grace: int = 1
    seed: int = 0
    delays: NDArray[np.float64] | None = None
    units: Mapping[str, str] = field(default_factory=lambda: dict(UNITS))


def submissions(workload: Workload, manner: Manner, file: str) -> list[Submission]:
    """All objects of a workload, in order of their times.

    Rows that are requests of their own become Deployments of one replica. Raises :class:`InputError` for what objects
    of Kubernetes cannot say: requests whose instances differ, rules about neighbours, budgets.
    """
    _refuse_neighbours(workload, file)
    count = len(workload)
    owner = np.arange(count) if workload.request is None else workload.request.astype(np.int64)
    order = np.argsort(owner, kind="stable")
    bounds = np.flatnonzero(np.diff(owner[order])) + 1
    chance = np.random.default_rng(manner.seed)
    made = []
    for rows in np.split(order, bounds) if count else []:
        delay = None if manner.delays is None else float(chance.choice(manner.delays))
        made.append(_submission(workload, rows, int(owner[rows[0]]), manner, delay, file))
    return sorted(made, key=lambda one: one.at)


def _refuse_neighbours(workload: Workload, file: str) -> None:
    placement, budget = workload.placement, workload.budget
    for column, used, expected in (
        ("rules", placement is not None and placement.any(), "no marks, rules or preferences"),
        ("budget", budget is not None and (budget >= 0).any(), "no budgets"),
    ):
        if used:
            raise fail(file, f"{expected}: the broker does not submit them", column=column)


def _submission(
    workload: Workload, rows: NDArray[np.int64], number: int, manner: Manner, delay: float | None, file: str
) -> Submission:
    """The object of the request whose instances are ``rows``."""
    first, requests = int(rows[0]), workload.requests
    _refuse_unlike(workload, rows, file)
    batch = requests is not None and bool(requests.batch[number])
    approach = INDEPENDENT if requests is None else int(requests.approach[number])
    identifier = int(workload.ids[first]) if requests is None else int(requests.ids[number])
    name = f"{manner.run}-{identifier}"
    template = _template(workload, first, name, manner, approach, delay)
    at, duration = float(workload.admission[first]), workload.duration[rows]
    if batch and requests is not None:
        parallelism = int(requests.parallelism[number]) or len(rows)
        if np.isfinite(duration).all():  # a Job has one template: each of its pods runs for the mean
            template["metadata"]["annotations"][RUN_SECONDS] = _seconds(float(duration.mean()) / manner.speed)
        return Submission(at, name, True, _job(name, manner, template, len(rows), parallelism))
    scale = _scale(workload, number)
    replicas = int(np.count_nonzero(workload.admission[rows] == workload.admission[first]))
    return Submission(at, name, False, _deployment(name, manner, template, replicas), float(duration.sum()), scale)


def _scale(workload: Workload, number: int) -> tuple[tuple[float, int], ...]:
    requests = workload.requests
    if requests is None:
        return ()
    mine = requests.scale_request == number
    times, counts = requests.scale_time[mine].tolist(), requests.scale_replicas[mine].tolist()
    return tuple(zip(times, counts, strict=True))


def _refuse_unlike(workload: Workload, rows: NDArray[np.int64], file: str) -> None:
    if len(rows) == 1:
        return
    first = int(rows[0])
    for column, same in (
        ("demand", (workload.demand[rows] == workload.demand[first]).all()),
        ("class", (workload.service_class[rows] == workload.service_class[first]).all()),
        ("constraints", (workload.term[rows] == workload.term[first]).all()),
        ("anti_affinity", (workload.anti_affinity[rows] == workload.anti_affinity[first]).all()),
    ):
        if not same:
            what = f"the same for all instances of request {int(workload.ids[first])}: they share one pod template"
            raise fail(file, what, column=column, value="several values")


def _template(
    workload: Workload, row: int, name: str, manner: Manner, approach: int, delay: float | None
) -> dict[str, Any]:
    annotations = {APPROACH: APPROACHES[approach]}
    if delay is not None:
        annotations[STARTUP_SECONDS] = _seconds(delay / manner.speed)
    job = str(int(workload.job[row]))
    labels = {
        RUN_LABEL: manner.run,
        REQUEST_LABEL: name,
        JOB_LABEL: job,
        CLASS_LABEL: workload.classes[int(workload.service_class[row])].name,
    }
    amounts = zip(workload.resources, workload.demand[row].tolist(), strict=True)
    requests = {resource: _amount(resource, amount, manner.units) for resource, amount in amounts if amount}
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    spec: dict[str, Any] = {
        "schedulerName": manner.scheduler,
        "terminationGracePeriodSeconds": manner.grace,
        "containers": [container],
    }
    affinity = _affinity(workload.terms[int(workload.term[row])], bool(workload.anti_affinity[row]), job, manner)
    if affinity:
        spec["affinity"] = affinity
    return {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}


def _amount(resource: str, amount: float, units: Mapping[str, str]) -> str:
    """A demand as a quantity, rounded up: thousandths of cpu, whole numbers of all else."""
    unit = nanos(units.get(resource, "1"))
    steps = 10**6 if resource == "cpu" else 10**9
    whole = ceil(Fraction(repr(float(amount))) * unit / steps)
    return f"{whole}m" if resource == "cpu" else str(whole)


def _affinity(term: Term, apart: bool, job: str, manner: Manner) -> dict[str, Any]:
    found: dict[str, Any] = {}
    wanted = [
        {"key": one.key, "operator": AFFINITY[one.op], "values": [one.value]}
        for one in term.constraints
        if isinstance(one, Constraint)
    ]
    if wanted:
        found["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
        }
    if apart:
        others = {"matchLabels": {JOB_LABEL: job, RUN_LABEL: manner.run}}
        found["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": others, "topologyKey": HOSTNAME}]
        }
    return found


def _metadata(name: str, manner: Manner) -> dict[str, Any]:
    return {"name": name, "labels": {RUN_LABEL: manner.run}}


def _deployment(name: str, manner: Manner, template: dict[str, Any], replicas: int) -> dict[str, Any]:
    selector = {"matchLabels": {REQUEST_LABEL: name}}
    spec = {"replicas": replicas, "selector": selector, "template": template, "revisionHistoryLimit": 0}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(name, manner), "spec": spec}


def _job(name: str, manner: Manner, template: dict[str, Any], count: int, parallelism: int) -> dict[str, Any]:
    template["spec"]["restartPolicy"] = "Never"
    spec = {
        "completions": count,
        "parallelism": min(count, parallelism),
        "backoffLimit": 2**31 - 1,  # preempted pods count as failures
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "template": template,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(name, manner), "spec": spec}


def class_object(promise: ServiceClass) -> dict[str, Any]:
    """A ServiceClass that promises the same, to everybody."""
    spec: dict[str, Any] = {"slo": promise.slo, "rank": promise.rank, "marginSeconds": promise.margin}
    if promise.overhead_limit is not None:
        spec["overheadLimit"] = promise.overhead_limit
    if promise.alpha is not None:
        spec["alpha"] = write_duration(promise.alpha)
    spec["tiers"] = [{"boundary": tier.boundary, "bonus": tier.bonus} for tier in promise.tiers]
    spec["namespaces"] = [EVERYBODY]
    return {"apiVersion": API_VERSION, "kind": "ServiceClass", "metadata": {"name": promise.name}, "spec": spec}


def _seconds(value: float) -> str:
    """Seconds for an annotation: a plain decimal number."""
    return f"{value:.6f}".rstrip("0").rstrip(".")
