"""A new leader's engine: fed with all that the watches have shown, the ledgers, and the pods' own timestamps."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slacktide.kube import entries
from slacktide.kube.demand import PODS
from slacktide.kube.entries import FINAL, Entry
from slacktide.kube.intake import Intake
from slacktide.kube.ledger import owner_of
from slacktide.kube.objects import Availability, Pod
from slacktide.kube.refusals import Unschedulable, gated
from slacktide.live import parts
from slacktide.live.engine import Engine
from slacktide.live.obstacles import Looker
from slacktide.live.parts import Decision

LOG = logging.getLogger(__name__)

JOB = "Job"
FOREIGN_SPEC = -1
"""Stands for the spec of a pod that has ended, which nobody asks for."""


def begin(
    intake: Intake, engine: Engine, ledgers: Mapping[str, Availability], adopt: Callable[[Decision, set[str]], None]
) -> None:
    """Make ``engine`` the one that decides: hosts, budgets, strangers, then each controller with its pods.

    ``ledgers`` by the UID of their controllers. ``adopt`` takes over a decision of a former leader: a place, kept for
    a pod until these victims are gone.
    """
    world = intake.world
    intake.engine = engine
    for view in world.nodes.values():
        world.tell_node(engine, view)
    world.edge.begin(engine, intake.clock())
    world.tell_budgets(engine)
    world.book.outdated()  # every pod is told anew
    world.memories, world.restores = dict(ledgers), True
    groups: dict[str, list[Entry]] = {}
    ended: dict[str, list[Entry]] = {}
    for entry in intake.pods.values():
        entry.key, entry.spec, entry.other, entry.queue = "", -1, "", entries.NOWHERE
        if not entry.ours:
            intake.consider(entry)
        elif entry.pod.status.phase in FINAL:
            intake.consider(entry)
            entry.target = world.owners.target_of(entry.pod.metadata)
            if entry.target is not None:
                ended.setdefault(entry.target.key, []).append(entry)
        elif (key := _known(intake, engine, entry)) is not None:
            groups.setdefault(key, []).append(entry)
    for key, group in groups.items():
        _restore(intake, engine, key, group, ended.get(key, []))
    for found in list(world.memories.values()):
        _remember(intake, engine, found, ended)
    world.restores = False
    _keep_places(intake, engine, adopt)


def _known(intake: Intake, engine: Engine, entry: Entry) -> str | None:
    """The key of a pod's controller, where the pod can be restored; others are looked at as if they were new."""
    if not gated(entry.pod):
        with contextlib.suppress(Unschedulable):
            number = intake.specs.of(entry, engine)
            if key := intake.enter(entry):
                intake.specs.take(entry, number, engine)
                return key
            intake.specs.unused(number, engine)
    intake.consider(entry)
    return None


def _restore(intake: Intake, engine: Engine, key: str, group: list[Entry], ended: list[Entry]) -> None:
    target = group[0].target
    assert target is not None  # noqa: S101  # intake.enter found it
    for entry in group:
        if entry.pod.spec.node_name:
            intake.world.host_for(engine, entry.pod.spec.node_name)
    pods = [sighted(entry) for entry in group]
    intake.world.go_on(engine, target, pods + [_over(entry) for entry in ended])
    for entry in group:
        entry.key = key
        intake.consider(entry)


def _remember(intake: Intake, engine: Engine, found: Availability, ended: Mapping[str, list[Entry]]) -> None:
    """A controller that has a ledger and, at the moment, no pods; if it cannot be told, it keeps until it has some."""
    target, world = owner_of(found), intake.world
    if target is None or target.key in engine.controllers:
        return
    watched = world.owners.watched.get(target.uid)
    if watched is None and target.uid not in intake.pods:
        return
    batch = target.kind in (JOB, "CronJob")
    try:
        promised = world.classes.remembered(found.status.class_, batch)
    except Unschedulable:
        return
    world.ensure(engine, target, promised, batch)
    world.go_on(engine, target, [_over(entry) for entry in ended.get(target.key, [])])
    if watched is None:
        world.left(engine, target)
    elif watched.finished:
        engine.retire(target.key, intake.clock())


def _condition(pod: Pod, name: str) -> tuple[bool, float | None]:
    for one in pod.status.conditions:
        if one.type == name:
            return one.status == "True", one.last_transition_time
    return False, None


def sighted(entry: Entry) -> dict[str, Any]:
    """A pod as :class:`slacktide.live.sightings.PodNow` has it."""
    pod, metadata = entry.pod, entry.pod.metadata
    _, since = _condition(pod, "PodScheduled")
    ready, ready_since = _condition(pod, "Ready")
    return {
        "uid": entry.uid,
        "name": metadata.name,
        "spec": entry.spec,
        "created": metadata.creation_timestamp or entry.seen,
        "host": pod.spec.node_name,
        "since": since,
        "ready": ready,
        "ready_since": ready_since,
        "leaving": metadata.deletion_timestamp is not None,
        "budget": entry.budget,
        "stopped": _latest(
            one.last_state.terminated.finished_at for one in pod.status.container_statuses if one.last_state.terminated
        ),
    }


def _over(entry: Entry) -> dict[str, Any]:
    """The same of a pod that has ended and is still listed."""
    pod = entry.pod
    runs = [one.state.terminated for one in pod.status.container_statuses if one.state.terminated]
    _, since = _condition(pod, "Ready")
    began = _latest(one.started_at for one in runs)
    return sighted(entry) | {
        "spec": FOREIGN_SPEC,
        "ready": began is not None,
        "ready_since": began,
        "stopped": None,
        "ended": _latest(one.finished_at for one in runs) or since or pod.metadata.creation_timestamp,
        "completed": pod.status.phase == "Succeeded",
    }


def _latest(times: Iterable[float | None]) -> float | None:
    return max((at for at in times if at is not None), default=None)


# -- places that a former leader made room for -------------------------------------------------------------------------


def _keep_places(intake: Intake, engine: Engine, adopt: Callable[[Decision, set[str]], None]) -> None:
    """A pod for which victims are on their way out, or gone, gets the place that they leave; others would have to go
    else."""
    leaving: dict[str, dict[str, Entry]] = {}
    for uid, entry in intake.pods.items():
        if entry.key and entry.pod.spec.node_name and entry.pod.metadata.deletion_timestamp is not None:
            leaving.setdefault(entry.pod.spec.node_name, {})[uid] = entry
    looker = Looker(engine)
    for uid, entry in intake.pods.items():
        node = entry.pod.status.nominated_node_name
        if not entry.key or node not in engine.hosts or engine.incarnations[uid].state != parts.WAITING:
            continue
        engine.tables.settle()
        found = looker.look(engine.tables.kind_of(engine.specs[entry.spec]))
        awaited: dict[str, Entry] = {}
        if not found.fits[engine.hosts[node]]:
            awaited = leaving.get(node, {})
            if not (awaited and found.candidates[engine.hosts[node]] and _has_room(engine, entry, node, awaited)):
                continue
        engine.nominated(uid, node, intake.clock())
        entry.queue = entries.NOWHERE
        adopt(Decision(uid, node, 0.0), set(awaited))


def _has_room(engine: Engine, entry: Entry, node: str, leaving: Mapping[str, Entry]) -> bool:
    """Whether a node has room for a pod once others have left it."""
    room = engine.room(node)
    for other in leaving.values():
        for name, amount in engine.specs[other.spec].demand:
            room[name] = room.get(name, 0) + amount
    demand = engine.specs[entry.spec].demand
    return PODS in room and all(room.get(name, 0) >= amount for name, amount in demand)
