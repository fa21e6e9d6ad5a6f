"""A new leader's engine: fed with all that the watches have shown, the ledgers, and the pods' own timestamps."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Decision
from slacktide.engine.explain.feasibility import Looker
from slacktide.engine.ledger.rest import at_rest
from slacktide.errors import StateError
from slacktide.kube.feed import fed_pod
from slacktide.kube.feed.controllers import BATCH
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.feed.feed import Feed
from slacktide.kube.mirror.barrier import reference
from slacktide.kube.mirror.pod_record import Departure, End, PodRecord, finished_at, grace
from slacktide.kube.resources.custom_resources import AVAILABILITY, Availability
from slacktide.kube.resources.objects import TIMESTAMP_SECONDS, Identity, Reference, condition_of
from slacktide.kube.translate.disruption_budgets import SEVERAL
from slacktide.kube.translate.nodes import PODS
from slacktide.kube.translate.owners import Target, is_followed
from slacktide.kube.translate.unschedulable import Unschedulable, gated, said_to_wait_for_volume

FOREIGN_SPEC = -1
"""Stands for the spec of a pod that has ended, which nobody asks for."""


def take_over(
    feed: Feed,
    ledgers: Mapping[str, Availability],
    adopt: Callable[[Decision, set[str]], None],
    doubt: Callable[[FedPod], None] = lambda _: None,
) -> None:
    """Tell a feed's new engine all that its mirror has: hosts, budgets, strangers, then each controller with its pods.

    ``ledgers`` by the UID of their controllers. ``adopt`` takes over a decision of a former leader: a place, kept for
    a pod until these victims are gone. ``doubt`` is told of pods that are nominated for another place. What cannot be
    told is set aside: a leader before may have ended over it.
    """
    controllers, barrier = feed.controllers, feed.mirror.barrier
    for view in feed.mirror.nodes.values():
        with barrier.around(Reference("v1", "Node", "", view.name)):
            feed.hosts.tell(view)
    feed.network.tell_all(feed.clock())
    _tell_budgets(feed)
    _remember_deleted(feed, ledgers)
    controllers.ledgers, controllers.restores_all = dict(ledgers), True
    for found in ledgers.values():  # before any pod is told, as what it is promised follows from that
        if (target := owner_of(found)) is not None:
            controllers.starts.go_on(target.key, found.status.accumulators)
    _note_victims(feed)
    _note_ends(feed)
    for pod in feed.pods.values():  # before any is restored: else some would wait for those that come later
        feed.aside.guarded(feed.groups.see, pod)
    in_quotas = set(feed.mirror.quotas.namespaces())  # decided for all pods together, whoever is told first
    with barrier.around(Reference("slacktide.io/v1beta1", "PromiseQuota")):
        feed.promise_quotas.look_again(one for one in feed.pods.values() if one.pod.metadata.namespace in in_quotas)
    groups, ended = _sort(feed)
    over = {key: _all_over(feed, pods) for key, pods in ended.items()}
    _tell_departed(feed, over)
    for key, group in groups.items():
        try:
            _restore(feed, key, group, over.get(key, []))
        except Exception as error:
            for pod in group:
                feed.aside.failed(pod, error)
    for found in list(controllers.ledgers.values()):
        with barrier.around(_about(found)):
            _remember(feed, found, over)
    controllers.restores_all = False
    _keep_places(feed, adopt, doubt)


def _sort(feed: Feed) -> tuple[dict[str, list[FedPod]], dict[str, list[FedPod]]]:
    """Pods that can be restored, and those that have ended, by the keys of their controllers; all others are told."""
    groups: dict[str, list[FedPod]] = {}
    ended: dict[str, list[FedPod]] = {}

    def sort(pod: FedPod) -> None:
        if not pod.ours:
            feed.consider(pod)
        elif pod.record.is_final:
            feed.consider(pod)
            pod.target = feed.mirror.owners.target_of(pod.pod.metadata)
            if pod.target is not None:
                ended.setdefault(pod.target.key, []).append(pod)
        elif (key := _known(feed, pod)) is not None:
            groups.setdefault(key, []).append(pod)

    for pod in feed.pods.values():
        feed.aside.guarded(sort, pod)
    return groups, ended


def _all_over(feed: Feed, pods: Iterable[FedPod]) -> list[dict[str, Any]]:
    """What pods that have ended say."""
    said: list[dict[str, Any]] = []
    for pod in pods:
        feed.aside.guarded(lambda one: said.append(_over(one) | _end(one, feed)), pod)
    return said


def _about(found: Availability) -> Reference:
    metadata = found.metadata
    return reference(AVAILABILITY, Identity(metadata.namespace, metadata.name, metadata.uid, ""))


def _remember_deleted(feed: Feed, ledgers: Mapping[str, Availability]) -> None:
    """Those of workloads that are no more come first: others of their names may be there already."""
    watched = feed.mirror.owners.watched
    for uid, found in ledgers.items():
        with feed.mirror.barrier.around(_about(found)):
            target = owner_of(found)
            if target is not None and uid not in watched and uid not in feed.pods:
                _keep_memory(feed, found, target)


def _tell_budgets(feed: Feed) -> None:
    budgets = feed.mirror.budgets
    feed.engine.budget(SEVERAL, budgets.left(None))
    for (namespace, name), found in budgets.found.items():
        with feed.mirror.barrier.around(Reference("policy/v1", "PodDisruptionBudget", namespace, name)):
            feed.engine.budget(f"{namespace}/{name}", budgets.left(found))


def _known(feed: Feed, pod: FedPod) -> str | None:
    """The key of a pod's controller, where the pod can be restored; others are looked at as if they were new."""
    if not gated(pod.pod):
        with contextlib.suppress(Unschedulable):
            number = feed.number_of(pod)
            if key := feed.enter(pod):
                feed.specs.take(pod, number)
                return key
            feed.specs.unused(number)
    feed.consider(pod)
    return None


def _note_victims(feed: Feed) -> None:
    """Pods that go from a node which is kept for another pod are victims of a former leader."""
    kept = {one.pod.status.nominated_node_name for one in feed.pods.values() if one.ours and not one.pod.spec.node_name}
    for one in feed.pods.values():
        one.evicted = one.ours and _goes(one) and one.pod.spec.node_name in kept


def _note_ends(feed: Feed) -> None:
    """Whose doing it is that pods go, of those that this replica saw being told to."""
    for one in feed.pods.values():
        end = one.record.end
        if end is not None and not one.evicted:
            one.ended_by, one.ended_until = end.cause, end.until


def _tell_departed(feed: Feed, over: dict[str, list[dict[str, Any]]]) -> None:
    """Pods that went while this replica stood by, with their controllers' others that are over."""
    for one in feed.mirror.departures.taken():
        namespace, name = one.record.namespaced_name
        with feed.mirror.barrier.around(Reference("v1", "Pod", namespace, name, one.record.uid)):
            target = feed.mirror.owners.target_of(one.record.pod.metadata)
            if target is not None and not target.is_pod and one.record.uid not in feed.pods:
                over.setdefault(target.key, []).append(_departed(one, feed))


def _restore(feed: Feed, key: str, group: list[FedPod], over: list[dict[str, Any]]) -> None:
    target = group[0].target
    assert target is not None  # noqa: S101  # feed.enter found it
    for pod in group:
        if pod.pod.spec.node_name:
            feed.hosts.ensure(pod.pod.spec.node_name)
    replaced = _replaced(feed, key, group)
    group = [one for one in group if not one.replaced]
    held = _held(feed, key, group)
    group = [one for one in group if one.uid not in held]
    over = [*over, *(_departed(Departure(*one), feed) for one in replaced)]
    feed.controllers.restore(target, [*(observed(pod, feed) for pod in group), *over])
    feed.blame.takes_over(key)
    going = [one for one in group if _goes(one)]
    for pod in group:
        pod.key = key
        if pod.pod.spec.node_name:
            feed.controllers.starts.bound(pod)
    for pod in going:
        feed.replacements.goes(pod)
    for pod in sorted(group, key=_by_age):
        if not feed.engine.pods[pod.uid].ready:
            came_for = not _goes(pod) and _came_after_one_of(going, pod)
            feed.blame.arrived(pod, feed.replacements.predecessor(pod) if came_for else None)
    for pod in (*group, *held.values()):
        feed.consider(pod)


def _held(feed: Feed, key: str, group: list[FedPod]) -> dict[str, FedPod]:
    """Pods that came for victims of a former leader which still run: they wait until those are gone, as they did then.
    Else there would be one instance more for as long."""
    victims = [one for one in group if one.evicted]
    for one in victims:
        feed.succession.told(key, one.uid)
    desired = feed.engine.controllers[key].desired
    came = [one for one in group if not one.pod.spec.node_name and _came_after_one_of(victims, one)]
    surplus = len(group) - desired if desired >= 0 else len(came)
    held = sorted(came, key=_by_age)[: max(0, min(surplus, len(victims)))]
    for one in held:
        feed.specs.release(one.spec)
        one.spec = -1
    return {one.uid: one for one in held}


def _replaced(feed: Feed, key: str, group: list[FedPod]) -> list[tuple[PodRecord, float, End]]:
    """Pods that were told to go and are not ready, as far as others are there in their place: they count no more. Of
    those that this replica saw becoming unready: when they ceased to count, and whose doing it is that they go."""
    desired = feed.engine.controllers[key].desired
    goes = [one for one in group if _goes(one)]
    down = sorted((one for one in goes if not condition_of(one.pod, "Ready")[0]), key=_told)
    surplus = len(group) - desired if desired >= 0 else _came_since(down, group)
    over = down[: max(0, surplus)]
    found = []
    for one in over:
        if one.record.unready_at and desired >= 0:  # else nobody knows that there is one too many
            end = End(feed.blame.goes(one), one.ended_until)
            found.append((one.record, max(_told(one), one.record.unready_at), end))
        feed.specs.release(one.spec)
        one.spec, one.replaced = -1, True
        feed.hosts.stranger(one)
    return found


def _goes(pod: FedPod) -> bool:
    """Whether a pod on a node was told to go."""
    return pod.pod.metadata.deletion_timestamp is not None and bool(pod.pod.spec.node_name)


def _told(pod: FedPod) -> float:
    """When a pod was told to go, seconds since 1970."""
    return (pod.pod.metadata.deletion_timestamp or 0.0) - grace(pod.pod)


def _by_age(pod: FedPod) -> tuple[float, str]:
    """The order in which pods came."""
    return pod.record.created_at, pod.uid


def _came_after_one_of(going: Iterable[FedPod], pod: FedPod) -> bool:
    """Whether a pod came when one of these had been told to go, as far as timestamps tell."""
    return any(_told(one) <= pod.record.created_at + TIMESTAMP_SECONDS for one in going)


def _came_since(down: list[FedPod], group: list[FedPod]) -> int:
    """How many pods came since the first of those that go was told to: where nobody knows how many there should be."""
    staying = [one for one in group if one.pod.metadata.deletion_timestamp is None]
    return sum((one.pod.metadata.creation_timestamp or one.record.seen) >= _told(down[0]) for one in staying if down)


def _remember(feed: Feed, found: Availability, over: Mapping[str, list[dict[str, Any]]]) -> None:
    """A controller that has a ledger and, at the moment, no pods; if it cannot be told, it keeps until it has some."""
    target, mirror, engine = owner_of(found), feed.mirror, feed.engine
    if target is None or target.key in engine.controllers:
        return
    watched = mirror.owners.watched.get(target.uid)
    if watched is None and target.uid not in feed.pods:
        return
    try:
        promised = feed.controllers.promised(target, found.status.class_)
    except Unschedulable:
        return
    feed.controllers.ensure(target, promised, target.kind in BATCH)
    feed.controllers.restore(target, over.get(target.key, []))
    feed.blame.takes_over(target.key)
    if watched is None:
        feed.controllers.pod_left(target)
    elif watched.finished:
        engine.retire(target.key, feed.clock())


def _keep_memory(feed: Feed, found: Availability, target: Target) -> None:
    """The ledger of a workload that is no more, which one of its name may go on from."""
    status, controllers = found.status, feed.controllers
    deleted = status.deleted_at or status.at
    if not is_followed(target) or not status.accumulators or deleted is None:
        return
    with contextlib.suppress(StateError):  # a ledger that cannot be read is nobody's
        controllers.memories.keep(target, at_rest(status.accumulators), deleted)


def owner_of(found: Availability) -> Target | None:
    """The controller that a ledger is about; None of an object that is called otherwise than a ledger."""
    said = found.status.target
    if said is None:
        return None
    target = Target(said.api_version, said.kind, found.metadata.namespace, said.name, said.uid)
    return target if found.metadata.name == target.ledger else None


def by_owner(found: Iterable[Availability]) -> dict[str, Availability]:
    """Ledgers by the UID of their controllers, also of those that were deleted; what is called otherwise than a ledger
    is left out."""
    owners = ((owner_of(one), one) for one in found)
    return {owner.uid: one for owner, one in owners if owner is not None}


def observed(fed: FedPod, feed: Feed) -> dict[str, Any]:
    """A pod as :class:`slacktide.engine.ledger.pod_observation.PodNow` has it."""
    end = _end(fed, feed) if _goes(fed) else {}  # by which the verdict goes
    since = said_to_wait_for_volume(fed.pod)
    verdict = feed.blame.verdict(fed) if fed.pod.spec.node_name else feed.blame.awaited(since)
    said = _said(fed) | {"cause": verdict.cause, "cause_since": verdict.since or None} | end
    if said["ready"] and said["stopped"] is not None:
        said["stopped_by"] = feed.blame.why_stopped(fed, said["stopped"])
    return said


def _said(fed: FedPod) -> dict[str, Any]:
    pod, record, metadata = fed.pod, fed.record, fed.pod.metadata
    ready, ready_since = condition_of(pod, "Ready")
    ends = [one.last_state.terminated for one in pod.status.container_statuses if one.last_state.terminated]
    return {
        "uid": fed.uid,
        "name": metadata.name,
        "spec": fed.spec,
        "created": record.created_at,
        "host": pod.spec.node_name,
        "since": record.bound_at or condition_of(pod, "PodScheduled")[1],
        "ready": ready,
        "ready_since": (record.ready_at if ready else record.unready_at) or ready_since,
        "leaving": metadata.deletion_timestamp is not None,
        "budget": fed.budget,
        "stopped": _latest([record.stopped_at or None, *(one.finished_at for one in ends)]),
    }


def _over(fed: FedPod) -> dict[str, Any]:
    """The same of a pod that has ended and is still listed. What this replica saw, it knows better than by the second
    that containers say."""
    pod, record = fed.pod, fed.record
    runs = [one.state.terminated for one in pod.status.container_statuses if one.state.terminated]
    _, since = condition_of(pod, "Ready")
    began = _latest(one.started_at for one in runs)
    return _said(fed) | {
        "spec": FOREIGN_SPEC,
        "ready": began is not None,
        "ready_since": record.ready_at or began,
        "stopped": None,
        "ended": record.ended_at or finished_at(pod) or since or pod.metadata.creation_timestamp,
        "completed": pod.status.phase == "Succeeded",
    }


def _end(fed: FedPod, feed: Feed) -> dict[str, Any]:
    """Whose doing it is that a pod ends, or is told to go."""
    return {"ended_by": feed.blame.goes(fed), "ended_until": fed.ended_until}


def _departed(one: Departure, feed: Feed) -> dict[str, Any]:
    """The same of a pod that was seen to go while this replica stood by."""
    fed, end = FedPod(one.record), {"ended_by": one.end.cause, "ended_until": one.end.until}
    if fed.record.is_final:
        return _over(fed) | end
    said = _said(fed) | {"spec": FOREIGN_SPEC, "stopped": None, "ended": one.at} | end
    if said["ready"] or not one.record.unready_at:
        return said
    # It had been ready, and then was told to go, or failed.
    stopped, told = one.record.unready_at, fed.pod.metadata.deletion_timestamp is not None and _told(fed)
    by = one.end.cause if told and told <= stopped else feed.blame.why_stopped(fed, stopped)
    return said | {"ready": True, "ready_since": one.record.ready_at or None, "stopped": stopped, "stopped_by": by}


def _latest(times: Iterable[float | None]) -> float | None:
    return max((at for at in times if at is not None), default=None)


# -- places that a former leader made room for -------------------------------------------------------------------------


def _keep_places(feed: Feed, adopt: Callable[[Decision, set[str]], None], doubt: Callable[[FedPod], None]) -> None:
    """A pod for which victims are on their way out, or gone, gets the place that they leave; others would have to go
    else."""
    engine = feed.engine
    leaving: dict[str, dict[str, FedPod]] = {}
    for uid, pod in feed.pods.items():
        if pod.key and pod.pod.spec.node_name and pod.pod.metadata.deletion_timestamp is not None:
            leaving.setdefault(pod.pod.spec.node_name, {})[uid] = pod
    looker = Looker(engine)

    def keep(pod: FedPod) -> bool:
        uid, node = pod.uid, pod.pod.status.nominated_node_name
        if not pod.key or node not in engine.hosts or engine.pods[uid].state != types.WAITING:
            return False
        engine.tables.settle()
        found = looker.look(engine.tables.kind_of(engine.specs[pod.spec]))
        awaited: dict[str, FedPod] = {}
        if not found.fits[engine.hosts[node]]:
            awaited = leaving.get(node, {})
            h = engine.hosts[node]  # those who leave count in no spread any more
            helps = awaited and found.candidates[h] and not found.uneven[h]
            if not (helps and _has_room(engine, pod, node, awaited)):
                return False
        engine.nominated(uid, node, feed.clock())
        pod.queue = fed_pod.NOWHERE
        adopt(Decision(uid, node, 0.0), set(awaited))
        return True

    def sort(pod: FedPod) -> None:
        is_waiting = pod.ours and not pod.pod.spec.node_name and not pod.record.is_final
        if not keep(pod) and is_waiting and pod.pod.status.nominated_node_name:
            doubt(pod)

    for pod in feed.pods.values():
        feed.aside.guarded(sort, pod)


def _has_room(engine: Engine, pod: FedPod, node: str, leaving: Mapping[str, FedPod]) -> bool:
    """Whether a node has room for a pod once others have left it."""
    room = engine.room(node)
    for other in leaving.values():
        for name, amount in engine.specs[other.spec].demand:
            room[name] = room.get(name, 0) + amount
    demand = engine.specs[pod.spec].demand
    return PODS in room and all(room.get(name, 0) >= amount for name, amount in demand)
