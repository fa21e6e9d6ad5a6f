"""What a pod waits for, as it says itself: read off its conditions and containers, without asking the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]


def is_ready(pod: Json) -> bool:
    """Whether it delivers."""
    return condition(pod, "Ready").get("status") == "True" and not pod["metadata"].get("deletionTimestamp")


def is_over(pod: Json) -> bool:
    """Whether it has ended, and is still listed."""
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def condition(one: Json, kind: str) -> Json:
    """A condition of an object's status; empty where it has none of that type."""
    found: Iterable[Json] = one.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == kind), {})


def state(pod: Json, node: Json | None = None) -> str:
    """One line about a pod that is not ready; ``node`` is its own, where it was read. Empty where the pod has no node,
    and nobody has said anything about it."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    if is_over(pod):
        return f"has ended ({status['phase']}{_because(status)})"
    if metadata.get("deletionTimestamp"):
        return _ending(pod, node)
    if not spec.get("nodeName"):
        return _without_node(pod)
    where = f"on {spec['nodeName']}"
    if node is not None and (away := away_since(node)):
        return f"{where}: {away}"
    if is_ready(pod):
        return f"is ready {where}"
    return f"{where}: {_starting(pod)}"


def away_since(node: Json) -> str:
    """Why a node's kubelet does nothing; empty where it is ready."""
    ready = condition(node, "Ready")
    if ready.get("status") == "True":
        return ""
    since = f" since {ready['lastTransitionTime']}" if ready.get("lastTransitionTime") else ""
    return f"its node is not ready{since}{_because(ready)}"


def _because(said: Json) -> str:
    reason, message = said.get("reason", ""), said.get("message", "")
    return ": " + ": ".join(one for one in (reason, message) if one) if reason or message else ""


def _ending(pod: Json, node: Json | None) -> str:
    metadata = pod["metadata"]
    text = f"is being deleted since {metadata['deletionTimestamp']} at the latest"
    if finalizers := metadata.get("finalizers"):
        return f"{text}; it stays until {', '.join(finalizers)} has removed its finalizer"
    if node is not None and (away := away_since(node)):
        return f"{text}; {away}, and nobody says that its containers have ended"
    return text


def _without_node(pod: Json) -> str:
    spec, status = pod["spec"], pod["status"]
    if spec.get("schedulingGates"):
        return f"waits for scheduling gates: {', '.join(one['name'] for one in spec['schedulingGates'])}"
    said = condition(pod, "PodScheduled").get("message", "")
    if said:
        return f"waits: {said}"
    if status.get("nominatedNodeName"):
        return f"waits: nominated to node {status['nominatedNodeName']}, waiting for its victims to terminate"
    return ""


def _starting(pod: Json) -> str:
    """What the kubelet of a pod that has a node has done so far."""
    spec, status = pod["spec"], pod["status"]
    for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        waits = one.get("state", {}).get("waiting", {})
        if waits.get("reason") and waits["reason"] not in ("ContainerCreating", "PodInitializing"):
            again = f", started {one['restartCount']} times before" if one.get("restartCount") else ""
            return f"container {one['name']} waits{_because(waits)}{again}"
    inits = {one["name"] for one in spec.get("initContainers", ())}
    for one in status.get("initContainerStatuses", ()):
        if "running" in one.get("state", {}) and one["name"] in inits and not one.get("ready"):
            return f"init container {one['name']} runs since {one['state']['running'].get('startedAt')}"
    running = [one for one in status.get("containerStatuses", ()) if "running" in one.get("state", {})]
    if running and len(running) == len(spec.get("containers", ())):
        unready = ", ".join(one["name"] for one in running if not one.get("ready"))
        gates = [one["conditionType"] for one in spec.get("readinessGates", ())]
        lacks = [one for one in gates if condition(pod, one).get("status") != "True"]
        if unready:
            return f"its containers run, and the readiness probe of {unready} fails"
        return f"its containers run, and it waits for {', '.join(lacks)} (readinessGates)" if lacks else "starts"
    since = condition(pod, "PodScheduled").get("lastTransitionTime", "")
    if not status.get("containerStatuses"):
        return f"bound since {since}; its kubelet has said nothing yet" if since else "its kubelet has said nothing yet"
    return f"bound since {since}; its kubelet creates its containers (images, volumes, network)"
