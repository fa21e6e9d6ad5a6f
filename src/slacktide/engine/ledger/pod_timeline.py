"""What happened to one pod since a checkpoint, read off the pod."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from slacktide.engine.ledger.pod_observation import PodObservation

ENDS, COMES, IS_BOUND, BLAMED, STOPS, IS_READY = range(6)  # in this order at one instant
Event = tuple[float, int, PodObservation]


@dataclass(frozen=True, slots=True)
class Before:
    """How a pod was at ``base``, the checkpoint's instant: ``known`` to it, ``placed`` on a host, ready (``up``)."""

    base: float
    known: bool
    placed: bool
    up: bool


def timeline(pod: PodObservation, before: Before, clip: Callable[[float], float]) -> list[Event]:
    """What happened since then, when and to whom; ``clip`` brings an instant between the base and now."""
    events: list[Event] = []
    if not before.known:
        if pod.ended is not None and clip(pod.ended) <= clip(pod.created):
            return []
        events.append((clip(pod.created), COMES, pod))
    if pod.host and not (before.known and before.placed):
        events.append((clip(pod.since), IS_BOUND, pod))
    if pod.cause and pod.host and not pod.ready and pod.ended is None:
        events.append((clip(pod.cause_since), BLAMED, pod))
    if before.up and not pod.ready:
        events.append((clip(pod.ready_since), STOPS, pod))
    elif before.up and pod.stopped is not None and before.base < pod.stopped < pod.ready_since:
        events.append((clip(pod.stopped), STOPS, pod))
        events.append((clip(pod.ready_since), IS_READY, pod))
    elif pod.ready and pod.host and not before.up:
        events.append((clip(pod.ready_since), IS_READY, pod))
    if pod.ended is not None:
        if pod.stopped is not None and before.base < pod.stopped >= pod.ready_since:
            events.append((clip(pod.stopped), STOPS, pod))
        events.append((clip(pod.ended), ENDS, pod))
    return events
