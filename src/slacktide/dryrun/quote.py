"""A quote: where pods that are not there yet would be placed now, and whom they would displace.

The API server says what it would make of the pods, without making them (a dry run of its own: defaults and admission
are as always). Then an engine is told of the whole cluster, as a new leader's is, ledgers as well, and of these pods.
One pass decides on all that wait. Nothing is written.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import yaml

from slacktide.config import Config
from slacktide.dryrun.dry_run import ReadOnly
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.errors import ConfigError, fail
from slacktide.for_people import share
from slacktide.kube.client.http import NOT_FOUND, ApiError, Connection
from slacktide.kube.client.kinds import Malformed, encode
from slacktide.kube.clock import Clock
from slacktide.kube.feed.fed_pod import FeedListener
from slacktide.kube.feed.live_feed import LiveFeed
from slacktide.kube.feed.takeover import take_over
from slacktide.kube.mirror.cluster import ClusterMirror
from slacktide.kube.mirror.watches import Watches
from slacktide.kube.observe.dashboard import PodHistory, PodStory, beyond_a_start
from slacktide.kube.publish.availability import load
from slacktide.kube.resources.objects import POD, Availability, Pod
from slacktide.kube.translate.service_classes import CLASS_LABEL

MOST_PODS = 50
"""Of one workload."""
LISTS_SECONDS = 60.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Quote:
    """What would become of one pod now; ``story`` is as of :class:`PodStory`, ``decision`` None where it would wait."""

    name: str
    story: Json
    decision: Decision | None
    victims: tuple[tuple[str, float], ...]
    """Namespace and name of each, and its slack in seconds."""

    def text(self) -> str:
        """For people, one or two lines."""
        ledger = self.story.get("ledger")
        promise = f"class {ledger['class']}, promised {share(ledger['promised'])}: " if ledger else ""
        if self.decision is None:
            why = self.story.get("problem") or self.story.get("reason") or "the reason is not known yet"
            return f"{self.name}: {promise}would wait: {why}"
        placed = f"{self.name}: {promise}would be placed on {self.decision.host}"
        if not self.victims:
            return f"{placed}, preempting no pods"
        whom = ", ".join(
            f"{name} ({beyond_a_start(slack if slack < float('inf') else None)})" for name, slack in self.victims
        )
        return f"{placed}, preempting {whom}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A workload of a file: ``count`` pods of a template. ``namespace`` is empty where the file names none."""

    namespace: str
    name: str
    template: Json
    count: int


def workloads(text: str, where: str) -> list[Asked]:
    """The workloads in a file of manifests; other objects are passed over.

    Raises :class:`InputError` where there is none, or one that cannot be read.
    """
    try:
        documents = [one for one in yaml.safe_load_all(text) if one]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise fail(where, "manifests in YAML or JSON", line=mark.line + 1 if mark else 0) from None
    every = [each for one in documents if isinstance(one, dict) for each in _items(one)]
    found = [asked for one in every if isinstance(one, dict) and (asked := _asked(one, where)) is not None]
    if not found:
        raise fail(where, "a Pod, or a workload with a pod template", column="kind")
    return found


def _items(one: Json) -> list[Any]:
    """What is in a list of objects; of another object itself."""
    found = one.get("items", [one])
    return found if isinstance(found, list) else []


def _asked(one: Json, where: str) -> Asked | None:
    """What an object asks for; None where it has no pods."""
    metadata, spec = _map(one, "metadata"), _map(one, "spec")
    template, count = _map(spec, "template"), spec.get("replicas", 1)
    if one.get("kind") == "Pod":
        template, count = {"metadata": metadata, "spec": spec}, 1
    elif one.get("kind") in ("Job", "CronJob"):
        of_job = spec if one["kind"] == "Job" else _map(_map(spec, "jobTemplate"), "spec")
        template, count = _map(of_job, "template"), of_job.get("parallelism", 1)
    if not template:
        return None
    if not isinstance(count, int):
        raise fail(where, "a whole number", column="replicas", value=str(count))
    return Asked(str(metadata.get("namespace") or ""), str(metadata.get("name") or "pod"), template, count)


def _map(one: Json, field: str) -> Json:
    """A field that is a map; empty where it is none."""
    found = one.get(field)
    return found if isinstance(found, dict) else {}


async def would_make(connection: Connection, asked: Asked, namespace: str, scheduler: str, service_class: str) -> Pod:
    """What the API server would make of one pod of a workload, if it were created now in ``namespace``.

    Raises :class:`ApiError` where it would refuse it, and says why.
    """
    name, template = asked.name, asked.template
    before = _map(template, "metadata")
    labels = _map(before, "labels") | ({CLASS_LABEL: service_class} if service_class else {})
    metadata = {"generateName": f"{name}-", "labels": labels, "annotations": _map(before, "annotations")}
    spec = _map(template, "spec") | {"schedulerName": scheduler}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    answer = await connection.post(POD.path(namespace), encode(body), query={"dryRun": "All"})
    pod = POD.decode(answer)
    if isinstance(pod, Malformed):
        raise fail(f"pod {namespace}/{name}", pod.problem)
    return pod


async def settings_of(connection: Connection, namespace: str, name: str) -> str | None:
    """The settings file of an installed scheduler: the ConfigMap of its manifests; None where there is none."""
    try:
        found = json.loads(await connection.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}"))
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        raise
    text: str | None = found.get("data", {}).get("config.yaml")
    return text


@asynccontextmanager
async def _mirrored(connection: ReadOnly, config: Config) -> AsyncIterator[tuple[ClusterMirror, Watches]]:
    """The cluster as it is now. Raises :class:`ApiError` where something of it may not be read."""
    mirror = ClusterMirror(config, Clock())
    watches = Watches(connection, mirror, config.kube.watch_seconds)
    for one in watches.reflectors:  # a watch would try again and again
        await connection.get(one.kind.path(), query={"limit": "1"})
    tasks = [asyncio.ensure_future(one) for one in watches.running()]
    try:
        try:
            async with asyncio.timeout(LISTS_SECONDS):
                await watches.first_lists()
        except TimeoutError:
            raise ConfigError(f"the API server did not list all objects within {LISTS_SECONDS:.0f} s") from None
        yield mirror, watches
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def quotes(connection: ReadOnly, config: Config, pods: list[Pod]) -> list[Quote]:
    """What would become of these pods now, if all of them were created at once."""
    ledgers = await load(connection)
    async with _mirrored(connection, config) as (mirror, watches):
        return decide(config, mirror, watches.away, ledgers, pods)


def decide(
    config: Config,
    mirror: ClusterMirror,
    away: Callable[[], float],
    ledgers: Mapping[str, Availability],
    pods: list[Pod],
) -> list[Quote]:
    """One pass over all that wait in ``mirror`` and these pods, by an engine of its own."""
    clock = Clock()
    history = PodHistory(lambda uid: mirror.pods[uid].namespaced_name if uid in mirror.pods else None)
    engine = Engine(config, history)
    feed = LiveFeed(mirror, engine, FeedListener(), clock, away)
    take_over(feed, ledgers, lambda _decision, _leaving: None)
    mirror.follow(feed)
    for pod in pods:
        mirror.on_pod_update(pod)
    found = {one.uid: one for one in engine.run(clock()).decisions}
    story = PodStory(feed, history, clock)
    return [_quote(pod, found.get(pod.metadata.uid), story, mirror) for pod in pods]


def _quote(pod: Pod, decision: Decision | None, story: PodStory, mirror: ClusterMirror) -> Quote:
    metadata = pod.metadata
    victims = () if decision is None else decision.victims
    return Quote(
        f"{metadata.namespace}/{metadata.name}",
        story.document(metadata.namespace, metadata.name) or {},
        decision,
        tuple(("/".join(mirror.pods[one.uid].namespaced_name), one.metric) for one in victims),
    )
