"""A new leader's engine: fed with all that the watches have shown, the ledgers, and the pods' own timestamps."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from slacktide.errors import StateError
from slacktide.kube import entries
from slacktide.kube.entries import Entry
from slacktide.kube.intake import FINAL, Intake
from slacktide.kube.objects import Availability, Pod
from slacktide.kube.refusals import Unschedulable, gated
from slacktide.live.engine import Engine

LOG = logging.getLogger(__name__)


def begin(intake: Intake, engine: Engine, ledgers: Mapping[str, Availability]) -> None:
    """Make ``engine`` the one that decides: hosts, budgets, strangers, then each controller with its pods."""
    world = intake.world
    intake.engine = engine
    for view in world.nodes.values():
        if view.ours:
            world.tell_node(engine, view)
    world.tell_budgets(engine)
    world.book.outdated()  # every pod is told anew
    groups: dict[str, list[Entry]] = {}
    for entry in intake.pods.values():
        entry.key, entry.spec, entry.other, entry.queue = "", -1, "", entries.NOWHERE
        if not entry.ours or entry.pod.status.phase in FINAL:
            intake.consider(entry)
        elif (key := _known(intake, entry)) is not None:
            groups.setdefault(key, []).append(entry)
    for key, group in groups.items():
        _restore(intake, engine, key, group, ledgers)


def _known(intake: Intake, entry: Entry) -> str | None:
    """The key of a pod's controller, where the pod can be restored; others are looked at as if they were new."""
    if gated(entry.pod):
        intake.consider(entry)
        return None
    try:
        number = intake.spec_of(entry)
    except Unschedulable:
        intake.consider(entry)
        return None
    key = intake.enter(entry)
    if key:
        intake.take_spec(entry, number)
    return key or None


def _restore(
    intake: Intake, engine: Engine, key: str, group: list[Entry], ledgers: Mapping[str, Availability]
) -> None:
    target = group[0].target
    found = ledgers.get(target.uid) if target is not None else None
    books = dict(found.status.accumulators) if found is not None and found.status.accumulators else None
    for entry in group:
        if entry.pod.spec.node_name:
            intake.world.host_for(engine, entry.pod.spec.node_name)
    pods = [sighted(entry) for entry in group]
    try:
        engine.restore(key, books, pods, intake.clock())
    except StateError as problem:
        LOG.warning("ledger of %s cannot be read and begins anew: %s", key, problem)
        engine.restore(key, None, pods, intake.clock())
    for entry in group:
        entry.key = key
        intake.consider(entry)
    intake.watcher.changed(key)


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
    }
