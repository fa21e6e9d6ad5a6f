"""Events beside objects, as ``kubectl get events -A -o json`` gives them: the last hour of a cluster.

Objects say how everything is now; events say when pods were created, bound, preempted and stopped, also those that are
gone, and when nodes failed. What a pod that is gone asked for follows from one of the same owner that is there.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from slacktide.errors import InputError, Problem
from slacktide.for_people import counted
from slacktide.kube.client.metadata import Condition, Instant, OwnerReference, decode_special, rfc3339
from slacktide.kube.mirror.pod_record import FINAL, finished_at, grace
from slacktide.kube.resources import objects
from slacktide.kube.resources.pods import condition_of
from slacktide.kube.translate.causes import BY_SCHEDULER, DISRUPTED
from slacktide.kube.translate.owners import controlling
from slacktide.pasts import object_files
from slacktide.pasts.conditions import with_condition
from slacktide.pasts.object_files import Found
from slacktide.pasts.story import Change, Findings, Story

LARGEST_FILE = 4 << 30
JUST_WRITTEN = 7200.0
COMMAND = "kubectl get events -A -o json"
ASSIGNED = re.compile(r"Successfully assigned \S+ to (\S+)")
CREATED = re.compile(r"Created pod:? (\S+)")
DELETED = re.compile(r"Deleted pod:? (\S+)")
SCALED = re.compile(r"Scaled (?:up|down) replica set (\S+?)(?: from (\d+))? to (\d+)(?: from (\d+))?$")


class _Ref(msgspec.Struct, rename="camel"):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""


class _Series(msgspec.Struct, rename="camel"):
    last_observed_time: Instant | None = None


class _Event(msgspec.Struct, rename="camel"):
    """An event of either API group; what it says of others than its object is not read, but for a few messages."""

    involved_object: _Ref | None = None
    regarding: _Ref | None = None
    reason: str = ""
    message: str = ""
    note: str = ""
    event_time: Instant | None = None
    first_timestamp: Instant | None = None
    last_timestamp: Instant | None = None
    series: _Series | None = None

    @property
    def about(self) -> _Ref:
        return self.involved_object or self.regarding or _Ref()

    @property
    def first(self) -> float | None:
        return self.first_timestamp or self.event_time

    @property
    def last(self) -> float | None:
        return self.last_timestamp or (self.series.last_observed_time if self.series else None) or self.first

    @property
    def text(self) -> str:
        return self.message or self.note


class _List(msgspec.Struct):
    items: list[msgspec.Raw] | None = None


_event = msgspec.json.Decoder(_Event, dec_hook=decode_special)
_list = msgspec.json.Decoder(_List)


@dataclass(slots=True)
class _Life:
    """What events say of a pod, seconds since 1970."""

    namespace: str
    name: str
    created: float | None = None
    owner: OwnerReference | None = None
    bound: float | None = None
    node: str = ""
    started: float | None = None
    stopped: float | None = None
    preempted: float | None = None


@dataclass(slots=True)
class _Told:
    """All that events say: of pods by UID, of those of which only the name is known by it, and of others."""

    begin: float = float("inf")
    end: float = 0.0
    pods: dict[str, _Life] = field(default_factory=dict)
    created: dict[tuple[str, str], tuple[float, OwnerReference]] = field(default_factory=dict)
    deleted: dict[tuple[str, str], float] = field(default_factory=dict)
    nodes: list[tuple[float, str, bool]] = field(default_factory=list)
    scaled: dict[str, list[tuple[float, str, int | None, int]]] = field(default_factory=dict)


Step = tuple[float, int, Found, bool]
"""When, after what else at the same instant, what was so, and whether it was no more."""
NODE, OWNER, POD, GONE = range(4)


def story(paths: Iterable[Path], events: Path) -> Story:
    """What these objects were like in the time of which the events tell.

    Raises :class:`InputError` where a file cannot be read, or tells of no pod.
    """
    now = object_files.story(paths)
    findings, found = now.findings, [(one.kind, one.found) for one in now.beginning]
    told = _read(events, findings)
    if not told.pods:
        raise InputError([Problem(str(events), 0, "", "no event of a pod", f"events of pods: {COMMAND}")])
    findings.note(
        f"events tell of the time since {rfc3339(told.begin)}, as an API server keeps them for an hour; how long pods "
        "took to end, and when they were not ready meanwhile, they do not tell"
    )
    steps = sorted(
        [*_of_nodes(found, told), *_of_controllers(found, told), *_of_pods(found, told, findings)], key=_order
    )
    beginning: dict[tuple[str, str], Change] = {}
    for at, _, (kind, one), deleted in steps:
        if at <= told.begin:
            beginning[kind.kind, one.metadata.uid] = Change(told.begin, kind, one, deleted)
    changes = [Change(at, *one, deleted) for at, _, one, deleted in steps if at > told.begin]
    there = [one for one in beginning.values() if not one.deleted]
    # A file is written when all was as it says; of one that was copied later that is not known.
    newest, written = max(now.begin, told.end), events.stat().st_mtime
    until = written if newest <= written <= newest + JUST_WRITTEN else newest
    return Story(f"{now.source}, {events}", told.begin, iter(there), iter(changes), findings, until=until)


def _order(step: Step) -> tuple[float, int]:
    return step[:2]


# -- reading -----------------------------------------------------------------------------------------------------------


def _read(path: Path, findings: Findings) -> _Told:
    told = _Told()
    for raw in _items(path):
        try:
            event = _event.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            findings.counts["events that cannot be read"] += 1
            continue
        first, last = event.first, event.last
        if first is None or last is None:
            findings.counts["events without a time"] += 1
            continue
        findings.counts["events"] += 1
        told.begin, told.end = min(told.begin, first), max(told.end, last)
        _take(told, event, first, last)
    return told


def _items(path: Path) -> Iterator[bytes | msgspec.Raw]:
    """The events of a list, or of a file that has one a line."""
    try:
        with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, EOFError) as error:
        raise InputError([Problem(str(path), 0, "", "", f"events: {COMMAND} > {path.name} ({error})")]) from None
    if len(content) > LARGEST_FILE:
        raise InputError([Problem(str(path), 0, "", "", f"at most {LARGEST_FILE:,} bytes; split it by namespace")])
    try:
        found = _list.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        lines = content.splitlines()
        if len(lines) < 2 or not lines[0].startswith(b"{") or not lines[0].rstrip().endswith(b"}"):
            raise InputError([Problem(str(path), 0, "", "", f"a whole list: {COMMAND} ({error})")]) from None
        yield from lines
        return
    yield from [content] if found.items is None else found.items


def _take(told: _Told, event: _Event, first: float, last: float) -> None:
    about, text = event.about, event.text
    if about.kind == "Pod" and about.uid:
        life = told.pods.setdefault(about.uid, _Life(about.namespace, about.name))
        assigned = ASSIGNED.match(text) if event.reason == "Scheduled" else None
        if assigned is not None:
            life.bound, life.node = first, assigned[1]
        elif event.reason == "Started":
            life.started = max(life.started or 0.0, first)
        elif event.reason == "Killing":
            life.stopped = min(life.stopped or last, last)
        elif event.reason == "Preempted":
            life.preempted = first
    elif about.kind == "Node" and event.reason in ("NodeNotReady", "NodeReady"):
        told.nodes.append((last, about.name, event.reason == "NodeReady"))
    elif event.reason == "ScalingReplicaSet" and (scaled := SCALED.match(text)) is not None:
        before = scaled[2] or scaled[4]
        told.scaled.setdefault(about.uid, []).append(
            (last, scaled[1], None if before is None else int(before), int(scaled[3]))
        )
    elif event.reason == "SuccessfulCreate" and (created := CREATED.match(text)) is not None:
        owner = OwnerReference(about.api_version, about.kind, about.name, about.uid, True)
        told.created[about.namespace, created[1]] = first, owner
    elif event.reason == "SuccessfulDelete" and (deleted := DELETED.match(text)) is not None:
        told.deleted[about.namespace, deleted[1]] = first


# -- telling -----------------------------------------------------------------------------------------------------------


def _of_nodes(found: list[Found], told: _Told) -> Iterator[Step]:
    turns: dict[str, list[tuple[float, bool]]] = {}
    for at, name, ready in sorted(told.nodes):
        turns.setdefault(name, []).append((at, ready))
    for kind, one in found:
        if kind is not objects.NODE:
            continue
        since = max(told.begin, one.metadata.creation_timestamp or told.begin)
        mine = turns.get(one.metadata.name, [])
        before = not mine[0][1] if mine else condition_of(one, "Ready")[0]
        changed = condition_of(one, "Ready")[1]
        if not mine and changed is not None and changed > since:  # the events are gone, the condition says it
            mine, before = [(changed, before)], not before
        yield since, NODE, (kind, _with_ready(one, since, before)), False
        for at, ready in mine:
            yield at, NODE, (kind, _with_ready(one, at, ready)), False


def _with_ready(one: Any, at: float, ready: bool) -> Any:
    return with_condition(one, "Ready", at, "True" if ready else "False")


def _of_controllers(found: list[Found], told: _Told) -> Iterator[Step]:
    """All but nodes and pods; of a Deployment of which one ReplicaSet was scaled it is known what it wanted before."""
    for kind, one in found:
        if kind in (objects.NODE, objects.POD):
            continue
        since = max(told.begin, one.metadata.creation_timestamp or told.begin)
        scaled = sorted(told.scaled.get(one.metadata.uid, []))
        wanted = [(at, before, after) for at, _, before, after in scaled]
        if kind is not objects.DEPLOYMENT or len({name for _, name, _, _ in scaled}) != 1 or wanted[0][1] is None:
            yield since, OWNER, (kind, one), False
            continue
        for at, replicas in ((since, wanted[0][1]), *((at, after) for at, _, after in wanted)):
            spec = msgspec.structs.replace(one.spec, replicas=replicas)
            yield at, OWNER, (kind, msgspec.structs.replace(one, spec=spec)), False


def _of_pods(found: list[Found], told: _Told, findings: Findings) -> Iterator[Step]:
    there: dict[str, Any] = {one.metadata.uid: one for kind, one in found if kind is objects.POD}
    shapes: dict[str, Any] = {}
    for pod in there.values():
        owner = controlling(pod.metadata)
        if owner is not None:
            shapes.setdefault(owner.uid, pod)
    for uid, pod in there.items():
        life = told.pods.get(uid, _Life(pod.metadata.namespace, pod.metadata.name))
        yield from _life_of(pod, life, told, is_there=True)
    for uid, life in told.pods.items():
        if uid in there:
            continue
        shape = _shape(life, told, shapes)
        if shape is None:
            findings.counts["pods that are gone, of which nothing else is known"] += 1
        elif life.bound is not None or life.stopped is not None or life.preempted is not None:
            findings.counts["pods that are gone"] += 1
            yield from _life_of(_like(shape, uid, life), life, told, is_there=False)
    unknown = findings.counts["pods that are gone, of which nothing else is known"]
    if unknown:
        findings.note(
            f"left out: {counted(unknown, 'pod')} of the past, as none of the same owner says what was asked for"
        )


def _shape(life: _Life, told: _Told, shapes: dict[str, Any]) -> Any:
    """A pod of the same owner, by what its controller said, else by its name without its last word."""
    made = told.created.get((life.namespace, life.name))
    if made is not None:
        return shapes.get(made[1].uid)
    prefix = life.name.rpartition("-")[0]
    alike = (
        one
        for one in shapes.values()
        if one.metadata.namespace == life.namespace and one.metadata.name.rpartition("-")[0] == prefix
    )
    return next(alike, None)


def _like(shape: Any, uid: str, life: _Life) -> Any:
    metadata = msgspec.structs.replace(shape.metadata, name=life.name, uid=uid, deletion_timestamp=None)
    metadata = msgspec.structs.replace(metadata, creation_timestamp=None)
    spec = msgspec.structs.replace(shape.spec, node_name=life.node or shape.spec.node_name)
    return msgspec.structs.replace(shape, metadata=metadata, spec=spec, status=objects.PodStatus())


def _life_of(pod: Any, life: _Life, told: _Told, *, is_there: bool) -> Iterator[Step]:
    """A pod as it was created, bound, became ready, was told to go and ended."""
    kind, metadata = objects.POD, pod.metadata
    said = told.created.get((life.namespace, life.name))
    # A name may have been another pod's before: who was bound was created before.
    made = None if said is None or (life.bound is not None and life.bound < said[0]) else said[0]
    created = min(metadata.creation_timestamp or made or told.begin, life.bound or float("inf"))
    metadata = msgspec.structs.replace(metadata, deletion_timestamp=None, creation_timestamp=Instant(created))
    spec = msgspec.structs.replace(pod.spec, node_name="")
    last = msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=objects.PodStatus(phase="Pending"))
    yield created, POD, (kind, last), False
    if pod.spec.node_name:
        steps = list(_on_its_node(pod, last, life, created, is_there=is_there))
        yield from ((at, POD, (kind, one), False) for at, one in steps)
        last = steps[-1][1]
    if last.status.phase in FINAL or (is_there and pod.metadata.deletion_timestamp is None):
        return
    deleted = told.deleted.get((life.namespace, life.name))
    stops = [at for at in (life.preempted, life.stopped, deleted) if at is not None and at >= created]
    if pod.metadata.deletion_timestamp is not None:
        stops.append(pod.metadata.deletion_timestamp - grace(pod))
    if stops:
        at = max(min(stops), created)
        last = _going(last, at, preempted=life.preempted is not None)
        yield at, POD, (kind, last), False
        if not is_there:
            yield at, GONE, (kind, last), True


def _on_its_node(pod: Any, last: Any, life: _Life, created: float, *, is_there: bool) -> Iterator[tuple[float, Any]]:
    """Bound, ready, not ready any more or over; of a pod that is gone only when its containers started is known."""
    bound = max(created, life.bound or condition_of(pod, "PodScheduled")[1] or created)
    status = objects.PodStatus(phase="Running", conditions=(Condition("PodScheduled", "True", "", "", Instant(bound)),))
    last = msgspec.structs.replace(last, spec=pod.spec, status=status)
    yield bound, last
    is_ready, since = condition_of(pod, "Ready")
    over = pod.status.phase in FINAL
    was_ready = life.started is not None or over or not is_there
    if is_there and is_ready:
        yield max(bound, since or bound), _ready(last, max(bound, since or bound), ready=True)
        return
    if was_ready:
        at = max(bound, life.started or bound)
        last = _ready(last, at, ready=True)
        yield at, last
    if over:
        yield max(bound, finished_at(pod) or since or bound), pod
    elif is_there and since is not None and since > bound:
        yield since, _ready(last, since, ready=False)


def _going(pod: Any, at: float, *, preempted: bool) -> Any:
    if preempted:
        pod = with_condition(pod, DISRUPTED, at, reason=BY_SCHEDULER)
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=Instant(at + grace(pod)))
    return msgspec.structs.replace(pod, metadata=metadata)


def _ready(pod: Any, at: float, *, ready: bool) -> Any:
    said, reason = ("True", "") if ready else ("False", "ContainersNotReady")
    return with_condition(with_condition(pod, "ContainersReady", at, said, reason), "Ready", at, said, reason)
