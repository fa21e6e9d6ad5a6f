"""A few hours of a cluster's series: what is new, what changed and what ended in them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import msgspec

from slacktide.past.prometheus_client import Client, Series, TooMuchError
from slacktide.past.prometheus_names import Names

LOTS, BATCH = 1500, 250
"""Of more things than this the whole series is asked for; of fewer, so many at once."""
LONGEST_RANGE = 10_000
"""Points of a series in one answer; servers give 11,000."""
LOOKBACK = 300
"""Seconds for which a sample is shown where none follows."""
INFO = "kube_pod_info"
WHO = ("uid", "namespace", "pod", "node", "priority_class", "created_by_kind", "created_by_name", "host_network")
FINAL = 'phase=~"Succeeded|Failed"'
BY_SCHEDULER = "PreemptionByScheduler"
WISHES = {
    "Deployment": ("kube_deployment_spec_replicas", "deployment", "kube_deployment_created"),
    "StatefulSet": ("kube_statefulset_replicas", "statefulset", "kube_statefulset_created"),
}
"""Which series say how many pods are wanted, the label with the name, and which series says since when it is there."""
NODES: dict[str, tuple[tuple[str, ...], str]] = {
    "kube_node_created": (("node",), ""),
    "kube_node_status_condition": (("node",), 'condition="Ready",status="true"'),
    "kube_node_spec_unschedulable": (("node",), ""),
    "kube_node_spec_taint": (("node", "key", "value", "effect"), ""),
    "kube_node_status_allocatable": (("node", "resource"), 'resource!~"attachable_volumes.*"'),
}
Moment = tuple[list[str], float, float | None]
"""A label set, from when on, and which value; None: it is not there any more."""
Turn = tuple[list[str], float, float | None, float | None]
"""The same, and the value before."""


class Chunk(msgspec.Struct):
    """What was found between two instants; times are seconds since 1970.

    ready: ``(uid, at, value)`` of 0: not ready, and 1: ready, ``at`` as near as samples say it, or the instant since
    when it is. going: told to go when, and until when. bound: ``(uid, node, at)``.
    """

    begin: float
    end: float
    pods: list[list[str]] = msgspec.field(default_factory=list)
    created: dict[str, float] = msgspec.field(default_factory=dict)
    owners: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    requests: list[tuple[str, str, str, float]] = msgspec.field(default_factory=list)
    inits: list[tuple[str, str, str, float]] = msgspec.field(default_factory=list)
    sidecars: list[tuple[str, str]] = msgspec.field(default_factory=list)
    totals: list[tuple[str, str, str, str, float]] = msgspec.field(default_factory=list)
    labels: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    selectors: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    tolerations: list[list[str]] = msgspec.field(default_factory=list)
    bound: list[tuple[str, str, float]] = msgspec.field(default_factory=list)
    ready: list[tuple[str, float, int]] = msgspec.field(default_factory=list)
    going: list[tuple[str, float, float]] = msgspec.field(default_factory=list)
    final: list[tuple[str, str, float, str]] = msgspec.field(default_factory=list)
    preempted: list[str] = msgspec.field(default_factory=list)
    gone: dict[str, float] = msgspec.field(default_factory=dict)
    replicasets: list[list[str]] = msgspec.field(default_factory=list)
    jobs: list[list[str]] = msgspec.field(default_factory=list)
    parallel: list[tuple[str, str, float]] = msgspec.field(default_factory=list)
    jobs_over: list[tuple[str, str, float, bool]] = msgspec.field(default_factory=list)
    jobs_gone: list[tuple[str, str, float]] = msgspec.field(default_factory=list)
    wishes: list[tuple[str, str, str, float, float | None]] = msgspec.field(default_factory=list)
    nodes: dict[str, list[Moment]] = msgspec.field(default_factory=dict)
    node_labels: list[tuple[dict[str, str], float]] = msgspec.field(default_factory=list)
    victims: float = 0.0
    budgets: int = 0
    unseen: list[tuple[float, float]] = msgspec.field(default_factory=list)


class Asker:
    """Asks about a chunk ``begin`` < t <= ``end``, samples of which come every ``interval`` seconds.

    ``first``: what was there at its beginning is asked for as well. ``late``: for so long the newest sample was there
    at its end.
    """

    def __init__(
        self, client: Client, names: Names, begin: float, end: float, interval: float, *, first: bool, late: float
    ) -> None:
        self.client, self.names = client, names
        self.begin, self.end, self.first, self.interval, self.late = begin, end, first, interval, late
        self.alive: list[float] = []
        """When somebody scraped kube-state-metrics, of the steps."""
        self.span = f"{round(end - begin)}s"
        self.since = f"{round(end - begin + interval)}s"  # with the sample before
        # Of what ended without a word, as its scraper did, the last sample is shown for five minutes.
        self.longer = f"{round(end - begin) + LOOKBACK}s"

    def middle(self, step: float) -> float:
        """When it changed what the samples show at a step first."""
        return self.seen(step) - self.interval / 2

    def seen(self, step: float) -> float:
        """When the sample was taken that a step shows."""
        return step - self.late

    def best(
        self, metric: str, labels: Sequence[str], *more: str, over: str = "last_over_time", longer: bool = False
    ) -> str:
        """The values of a series in the chunk, by label; ``longer``: also a little before, of what ended in it."""
        span = self.longer if longer else self.since if over == "changes" else self.span
        return f"{self.names.by(metric, labels)}({over}({self.names.select(metric, *more)}[{span}]))"

    def now(self, metric: str, labels: Sequence[str], *more: str, before: bool = False) -> str:
        """Its values at the end, or at the beginning."""
        offset = f" offset {self.span}" if before else ""
        return f"{self.names.by(metric, labels)}({self.names.select(metric, *more)}{offset})"

    def new(self, metric: str, labels: Sequence[str], on: Sequence[str], *more: str) -> str:
        """Its values in the chunk, of those that were not there at the beginning."""
        query = self.best(metric, labels, *more)
        if self.first:
            return query
        names = ",".join(self.names.label(metric, one) for one in on)
        return f"{query} unless on({names}) {self.now(metric, on, *more, before=True)}"

    async def rows(self, query: str, metric: str, labels: Sequence[str]) -> list[tuple[list[str], float]]:
        """What a query gives at the end of the chunk: label values, and the value."""
        return _rows(await self.client.instant(query, self.end), self.names, metric, labels)

    async def of(
        self, things: Collection[str], metric: str, label: str, query: Callable[[str], str], labels: Sequence[str]
    ) -> list[tuple[list[str], float]]:
        """What ``query(MATCHER)`` gives of things: by name, or all where there are many of them."""
        if not things or not self.names.has(metric):
            return []
        if len(things) > LOTS:
            try:
                at, wanted = labels.index(label), set(things)
                found = await self.rows(query(""), metric, labels)
                return [one for one in found if one[0][at] in wanted]
            except TooMuchError:
                pass
        found = []
        for some in _batches(things):
            found += await self.rows(query(self.names.among(metric, label, some)), metric, labels)
        return found

    async def last(
        self, things: Collection[str], metric: str, label: str, labels: Sequence[str], *more: str,
        over: str = "last_over_time", longer: bool = False,
    ) -> list[tuple[list[str], float]]:  # fmt: skip
        """What a series said of things in the chunk, last."""

        def query(among: str) -> str:
            return self.best(metric, labels, *more, among, over=over, longer=longer)

        return await self.of(things, metric, label, query, labels)

    def steps(self, begin: float, end: float) -> Iterator[tuple[float, float]]:
        """Ranges of steps that are answered at once."""
        longest = self.interval * LONGEST_RANGE
        while begin <= end:
            yield begin, min(end, begin + longest)
            begin += longest + self.interval

    async def moments(self, metric: str, labels: Sequence[str], *more: str, anew: Collection[str] = ()) -> list[Turn]:
        """What changed of a series: which label sets came, went, or have another value, from when on. Of what was made
        ``anew``, by its first label, all that there is: its series may have come back as they were."""
        if not self.names.has(metric):
            return []
        found: list[Turn] = []
        if self.first:
            at_begin = self.now(metric, labels, *more)
            answer = await self.client.instant(at_begin, self.begin)
            found += [(key, self.begin, value, None) for key, value in _rows(answer, self.names, metric, labels)]
        now, before = self.now(metric, labels, *more), self.now(metric, labels, *more, before=True)
        which = (
            f"({self.best(metric, labels, *more)} unless {before}) or ({before} unless {now}) or "
            f"({self.best(metric, labels, *more, over='changes')} > 0)"
        )
        keys = {tuple(key) for key, _ in await self.rows(which, metric, labels)}
        keys.update(tuple(key) for key, _ in await self.last(anew, metric, labels[0], labels, *more))
        for some in _batches(sorted({one[0] for one in keys})):
            among = self.names.among(metric, labels[0], some)
            series: dict[tuple[str, ...], dict[float, float]] = {}
            for begin, end in self.steps(self.begin, self.end):
                query = self.now(metric, labels, *more, among)
                for one in await self.client.range(query, begin, end, self.interval):
                    key = tuple(one.metric.get(self.names.label(metric, label), "") for label in labels)
                    if key in keys:
                        series.setdefault(key, {}).update((at, float(value)) for at, value in one.values)
            for key in sorted(series):
                found += self._changes(list(key), series[key])
        return found

    def _changes(self, key: list[str], values: dict[float, float]) -> Iterator[Turn]:
        last = values.get(self.begin)
        for step in self.alive:
            value = values.get(step)
            if value != last:
                yield key, step, value, last
                last = value


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


UID = ("uid",)


async def first_samples(ask: Asker, metric: str, uids: Collection[str], *more: str) -> list[tuple[str, float]]:
    """When series of these pods were sampled first in the chunk."""
    return [(key[0], at) for key, at in await samples(ask, metric, uids, UID, "min", *more)]


async def last_samples(ask: Asker, metric: str, uids: Collection[str], *more: str) -> list[tuple[str, float]]:
    """When they were sampled last."""
    return [(key[0], at) for key, at in await samples(ask, metric, uids, UID, "max", *more)]


async def samples(
    ask: Asker, metric: str, things: Collection[str], labels: Sequence[str], how: str, *more: str, value: str = ""
) -> list[tuple[list[str], float]]:
    """When series, of which the first label names these things, were sampled first (min) or last (max) in the chunk,
    with this ``value``."""
    by = ask.names.by(metric, labels, how)

    def query(among: str) -> str:
        select = ask.names.select(metric, *more, among)
        sampled = f"timestamp({select})"
        if value:  # without its own instant: that of the step that shows it
            sampled = f"(timestamp({ask.names.by(metric, labels)}({select}) == {value}) - {ask.late:g})"
        return f"{by}({how}_over_time({sampled}[{ask.longer}:{ask.interval:g}s]))"

    return await ask.of(things, metric, labels[0], query, labels)


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
        points += [(one.metric.get("uid", ""), ask.begin, _value(one)) for one in answer]
        new = {uid for uid in new if chunk.created.get(uid, ask.begin) >= ask.begin}
    changed = await ask.rows(f"{ask.best(metric, ('uid',), true, over='changes')} > 0", metric, ("uid",))
    for some in _batches(sorted(new.union(key[0] for key, _ in changed))):
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


def _value(one: Series) -> float:
    return 0.0 if one.value is None else float(one.value[1])


def _rows(answer: Iterable[Series], names: Names, metric: str, labels: Sequence[str]) -> list[tuple[list[str], float]]:
    called = [names.label(metric, one) for one in labels]
    return [([one.metric.get(label, "") for label in called], _value(one)) for one in answer]


def _batches(things: Iterable[str]) -> Iterator[list[str]]:
    listed = list(things)
    for first in range(0, len(listed), BATCH):
        yield listed[first : first + BATCH]
