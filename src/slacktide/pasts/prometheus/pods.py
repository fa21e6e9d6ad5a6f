"""Pods in a chunk of series: who is new, on which node, what they ask for, when they were ready, and how they ended."""

from __future__ import annotations

from collections.abc import Collection

from slacktide.kube.translate.causes import BY_SCHEDULER
from slacktide.pasts.prometheus.asker import UID, Asker, batches, first_samples, last_samples, samples, value_of
from slacktide.pasts.prometheus.chunk import INFO, Chunk

WHO = ("uid", "namespace", "pod", "node", "priority_class", "created_by_kind", "created_by_name", "host_network")
FINAL = 'phase=~"Succeeded|Failed"'


async def pods(ask: Asker, chunk: Chunk) -> None:
    """Which pods are new, on which nodes they came, and what they ask for."""
    rows = await ask.rows(ask.new(INFO, WHO, ("uid", "node")), INFO, WHO)
    uids: dict[str, list[str]] = {}
    placed: dict[str, str] = {}
    for (uid, namespace, name, node, *rest), _ in rows:
        uids[uid] = [uid, namespace, name, *rest]
        if node:
            placed[uid] = node
    chunk.pods = list(uids.values())

    async def facts(metric: str, *labels: str, more: str = "") -> list[tuple[list[str], float]]:
        return await ask.last(uids, metric, "uid", labels, more)

    chunk.created = {key[0]: value for key, value in await facts("kube_pod_created", "uid")}
    controls = f'{ask.names.label(INFO, "owner_is_controller")}="true"'
    owners = await facts("kube_pod_owner", "uid", "owner_kind", "owner_name", more=controls)
    chunk.owners = {key[0]: (key[1], key[2]) for key, _ in owners}
    for metric, into in (
        ("kube_pod_container_resource_requests", chunk.requests),
        ("kube_pod_init_container_resource_requests", chunk.inits),
    ):
        into += [(*key, value) for key, value in await facts(metric, "uid", "container", "resource")]  # type: ignore[misc]
    if chunk.inits:
        info, always = "kube_pod_init_container_info", 'restart_policy="Always"'
        chunk.sidecars = [(key[0], key[1]) for key, _ in await facts(info, "uid", "container", more=always)]
    said = await facts("kube_pod_tolerations", "uid", "key", "operator", "value", "effect")
    chunk.tolerations = [key for key, _ in said]
    chunk.labels = await _prefixed(ask, uids, "kube_pod_labels", "label_")
    chunk.selectors = await _prefixed(ask, uids, "kube_pod_nodeselectors", "nodeselector_")
    total = "kube_pod_resource_request"
    kept = ("namespace", "pod", "priority", "resource")
    rows = await ask.last({one[2] for one in chunk.pods}, total, "pod", kept)
    chunk.totals = [(*key, value) for key, value in rows]  # type: ignore[misc]
    chunk.bound = await _bound(ask, placed)


async def _bound(ask: Asker, placed: dict[str, str]) -> list[tuple[str, str, float]]:
    metric = "kube_pod_status_scheduled_time"
    times = {key[0]: value for key, value in await ask.last(placed, metric, "uid", ("uid",))}
    missing = [uid for uid in placed if uid not in times]
    for key, value in await first_samples(ask, INFO, missing, 'node!=""'):
        times[key] = value - ask.interval / 2
    return [(uid, node, times.get(uid, ask.begin)) for uid, node in placed.items()]


async def _prefixed(ask: Asker, uids: Collection[str], metric: str, prefix: str) -> dict[str, dict[str, str]]:
    """Labels of which the names are not known beforehand; only those with the prefix are asked for."""
    if not uids or not ask.names.has(metric):
        return {}
    labels = await ask.client.labels(ask.names.select(metric), ask.begin, ask.end)
    wanted = ["uid", *sorted(one for one in labels if one.startswith(prefix))]
    if len(wanted) == 1:
        return {}
    rows = await ask.last(uids, metric, "uid", wanted)
    names = [one.removeprefix(prefix) for one in wanted[1:]]
    return {key[0]: {name: value for name, value in zip(names, key[1:], strict=True) if value} for key, _ in rows}


async def readiness(ask: Asker, chunk: Chunk) -> None:
    """When pods became ready, and were it no more."""
    metric, timed = "kube_pod_status_ready", "kube_pod_status_ready_time"
    if not ask.names.has(metric):
        return
    true = 'condition="true"'

    def state(among: str = "", offset: str = "") -> str:
        """0: not ready; since when it is ready; 1: it does not say since when."""
        now = f"max by(uid)({ask.names.select(metric, true, among)}{offset})"
        if not ask.names.has(timed):
            return now
        since = f"max by(uid)({ask.names.select(timed, among)}{offset})"
        return f"(({since} and on(uid) ({now} == 1)) or on(uid) {now})"

    points: list[tuple[str, float, float]] = []
    new = {one[0] for one in chunk.pods}
    if ask.first:
        answer = await ask.client.instant(state(), ask.begin)
        points += [(one.metric.get("uid", ""), ask.begin, value_of(one)) for one in answer]
        new = {uid for uid in new if chunk.created.get(uid, ask.begin) >= ask.begin}
    changed = await ask.rows(f"{ask.best(metric, ('uid',), true, over='changes')} > 0", metric, ("uid",))
    for some in batches(sorted(new.union(key[0] for key, _ in changed))):
        among = ask.names.among(metric, "uid", some)
        query = f"{state(among)} unless on(uid) ({state(among)} == {state(among, f' offset {ask.interval:g}s')})"
        for begin, end in ask.steps(ask.begin + ask.interval, ask.end):
            for one in await ask.client.range(query, begin, end, ask.interval):
                points += [(one.metric.get("uid", ""), at, float(value)) for at, value in one.values]
    for uid, step, value in points:
        if value > 1.0:
            chunk.ready.append((uid, value, 1))
        else:
            chunk.ready.append((uid, step if step == ask.begin else ask.middle(step), int(value)))


async def endings(ask: Asker, chunk: Chunk) -> None:
    """Which pods were told to go, completed, and are gone."""
    new = {one[0] for one in chunk.pods}
    here = await ask.of(new, INFO, "uid", lambda among: ask.now(INFO, ("uid",), among), ("uid",))
    left = new - {key[0] for key, _ in here}
    if not ask.first:
        was, now = ask.now(INFO, ("uid",), before=True), ask.now(INFO, ("uid",))
        left |= {key[0] for key, _ in await ask.rows(f"{was} unless on(uid) {now}", INFO, ("uid",))}
    half = ask.interval / 2
    lasts = dict(await last_samples(ask, INFO, left))
    chunk.gone = {uid: lasts.get(uid, ask.begin) + half for uid in left}
    going = "kube_pod_deletion_timestamp"
    until: dict[str, float] = {}
    if ask.names.has(going):
        until = {key[0]: value for key, value in await ask.rows(ask.new(going, ("uid",), ("uid",)), going, ("uid",))}
        for uid, seen in await first_samples(ask, going, until):
            grace = 30.0  # what Kubernetes gives where nobody says another
            chunk.going.append((uid, min(seen, max(seen - ask.interval, until[uid] - grace)), until[uid]))
    for (uid,), at in await ask.last(
        left, going, "uid", UID, longer=True
    ):  # between two samples it is the likely instant
        chunk.gone[uid] = min(max(at, chunk.gone[uid] - half), chunk.gone[uid] + half)
    await _completed(ask, chunk, left)
    asked = left.union(until, (one[0] for one in chunk.final))
    reasons: dict[str, str] = {}
    metric, labels = "kube_pod_status_reason", ("uid", "reason")
    for key, value in await ask.last(asked, metric, "uid", labels, over="max_over_time", longer=True):
        if value and key[1] == BY_SCHEDULER:
            chunk.preempted.append(key[0])
        elif value:
            reasons[key[0]] = key[1]
    chunk.final = [(uid, phase, at, reasons.get(uid, "")) for uid, phase, at, _ in chunk.final]


async def _completed(ask: Asker, chunk: Chunk, left: Collection[str]) -> None:
    metric, labels = "kube_pod_status_phase", ("uid", "phase")
    if not ask.names.has(metric):
        return
    now = f"({ask.now(metric, labels, FINAL)} == 1)"
    if not ask.first:
        now += f" unless on(uid) ({ask.now(metric, labels, FINAL, before=True)} == 1)"
    over = {key[0]: key[1] for key, _ in await ask.rows(now, metric, labels)}
    found = await ask.last(left, metric, "uid", labels, FINAL, over="max_over_time", longer=True)
    over |= {key[0]: key[1] for key, value in found if value}
    times = {key[0]: value for key, value in await ask.last(over, "kube_pod_completion_time", "uid", UID, longer=True)}
    missing = [uid for uid in over if uid not in times]

    for key, at in await samples(ask, metric, missing, UID, "min", FINAL, value="1"):
        times[key[0]] = at - ask.interval / 2
    chunk.final = [(uid, phase, times.get(uid, ask.end), "") for uid, phase in over.items()]
