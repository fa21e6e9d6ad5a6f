"""Nodes and controllers in a chunk of series: whose pods are whose, and how many of them were wanted."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from slacktide.pasts.prometheus.asker import Asker, Turn, samples
from slacktide.pasts.prometheus.chunk import NODES, WISHES, Chunk

CONTROLLED = 'owner_is_controller="true"'
VICTIMS = "scheduler_preemption_victims_sum"
BUDGETS = "kube_poddisruptionbudget_created"


async def nodes(ask: Asker, chunk: Chunk) -> None:
    """What became of nodes."""
    anew: set[str] = set()
    for metric, (labels, more) in NODES.items():
        found = await ask.moments(metric, labels, more, anew=anew)
        chunk.nodes[metric] = [(key, _when(ask, at), value) for key, at, value, _ in found]
        if metric == "kube_node_created":
            anew = {key[0] for key, at, value, _ in found if value is not None and at > ask.begin}
    metric = "kube_node_labels"
    if ask.names.has(metric):
        named = await ask.client.labels(ask.names.select(metric), ask.begin, ask.end)
        labels = ("node", *sorted(one for one in named if one.startswith("label_")))
        for key, at, value, _ in await ask.moments(metric, labels, anew=anew):
            if value is not None:
                chunk.node_labels.append(({"node": key[0]} | _said(labels[1:], key[1:]), _when(ask, at)))


def _said(labels: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    return {label: value for label, value in zip(labels, values, strict=True) if value}


def _when(ask: Asker, step: float) -> float:
    return step if step == ask.begin else ask.middle(step)


async def controllers(ask: Asker, chunk: Chunk) -> None:
    """Owners of the new pods' owners, wishes, and Jobs that are over."""
    owners = [*chunk.owners.values(), *((one[4], one[5]) for one in chunk.pods)]
    sets = {name for kind, name in owners if kind == "ReplicaSet"}
    jobs = {name for kind, name in owners if kind == "Job"}
    chunk.replicasets = await _owners(ask, "kube_replicaset_owner", "replicaset", sets)
    chunk.jobs = await _owners(ask, "kube_job_owner", "job_name", jobs)
    labels = ("namespace", "job_name")
    metric = "kube_job_spec_parallelism"
    found = await ask.last(jobs, metric, "job_name", labels)
    chunk.parallel = [(key[0], key[1], value) for key, value in found]
    for kind, (series, label, created) in WISHES.items():
        both, again = (label, "namespace"), set[str]()
        if ask.names.has(created):
            query = f"{ask.best(created, both, over='changes')} > 0"
            again = {key[0] for key, _ in await ask.rows(query, created, both)}
        moments = await ask.moments(series, both, anew=again)
        since = await _since(ask, created, both, moments)
        for key, step, value, before in moments:
            at = step if step == ask.begin else _wished(ask, step, before, value, since.get(tuple(key)))
            chunk.wishes.append((kind, key[1], key[0], at, value))
    await _jobs_over(ask, chunk)
    await counts(ask, chunk)


async def _since(ask: Asker, metric: str, labels: tuple[str, str], moments: list[Turn]) -> dict[tuple[str, ...], float]:
    names = {key[0] for key, step, value, _ in moments if value is not None and step != ask.begin}
    found = await ask.last(names, metric, labels[0], labels)
    return {tuple(key): value for key, value in found}


def _wished(ask: Asker, step: float, before: float | None, value: float | None, since: float | None) -> float:
    """When another number of pods was wanted. More: at the latest, when they may be there; fewer: at the earliest,
    when none may have gone. So no pod counts as missing for the time between two samples."""
    seen = ask.seen(step)
    if before is None and since is not None and seen - 2 * ask.interval <= since <= seen:
        return since
    return seen - ask.interval if value is None or (before is not None and value < before) else seen


async def _owners(ask: Asker, metric: str, label: str, names: Collection[str]) -> list[list[str]]:
    labels = ("namespace", label, "owner_kind", "owner_name")
    found = await ask.last(names, metric, label, labels, CONTROLLED)
    return [key for key, _ in found]


async def _jobs_over(ask: Asker, chunk: Chunk) -> None:
    labels, half = ("job_name", "namespace"), ask.interval / 2
    done = "kube_job_status_completion_time"
    if ask.names.has(done):
        found = await ask.rows(ask.new(done, labels, labels), done, labels)
        chunk.jobs_over += [(key[1], key[0], at, True) for key, at in found]
    failed, true = "kube_job_failed", 'condition="true"'
    if ask.names.has(failed):
        query = f"{ask.now(failed, labels, true)} == 1"
        if not ask.first:
            query = f"({query}) unless ({ask.now(failed, labels, true, before=True)} == 1)"
        found = await ask.rows(query, failed, labels)
        found = await samples(ask, failed, {key[0] for key, _ in found}, labels, "min", true, value="1")
        chunk.jobs_over += [(key[1], key[0], at - half, False) for key, at in found]
    created = "kube_job_created"
    if ask.names.has(created):
        was = f"{ask.best(created, labels)} or {ask.now(created, labels, before=True)}"
        query = f"({was}) unless {ask.now(created, labels)}"
        left = {tuple(key) for key, _ in await ask.rows(query, created, labels)}
        found = await samples(ask, created, {one[0] for one in left}, labels, "max")
        chunk.jobs_gone = [(key[1], key[0], at + half) for key, at in found if tuple(key) in left]


async def counts(ask: Asker, chunk: Chunk) -> None:
    """Of what there are only numbers: victims of kube-scheduler, and budgets."""
    if ask.names.has(VICTIMS):
        query = f"sum(increase({ask.names.select(VICTIMS)}[{ask.span}]))"
        chunk.victims = sum((value for _, value in await ask.rows(query, VICTIMS, ())), 0.0)
    if ask.names.has(BUDGETS):
        query = f"count({ask.now(BUDGETS, ('namespace', 'poddisruptionbudget'))})"
        chunk.budgets = int(sum(value for _, value in await ask.rows(query, BUDGETS, ())))
