"""What the API server does to pods alone: defaults, bindings, evictions, graceful ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from simulated.resources import BY_NAME, Json, Refused, Resource, Target, conflict, not_found
from simulated.store import Store

SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
PODS, BUDGETS = BY_NAME["pods"], BY_NAME["poddisruptionbudgets"]
TRIED_SECONDS = 10.0
"""For so long an eviction that meets another pod of the name is tried."""
OVERDRAWN = "Cannot evict pod as it would violate the pod's disruption budget."
OVER = ("Succeeded", "Failed")


def timestamp(seconds: float) -> str:
    """As the API server writes them, in whole seconds."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def condition(body: Json, kind: str) -> Json | None:
    for one in body.get("status", {}).get("conditions", ()):
        if one["type"] == kind:
            return one  # type: ignore[no-any-return]
    return None


def is_true(body: Json, kind: str) -> bool:
    found = condition(body, kind)
    return found is not None and found["status"] == "True"


def set_condition(body: Json, now: float, kind: str, status: str, reason: str = "", message: str = "") -> None:
    """Say it, with the instant since when it is so."""
    conditions = body.setdefault("status", {}).setdefault("conditions", [])
    found = next((one for one in conditions if one["type"] == kind), None)
    if found is None:
        found = {"type": kind}
        conditions.append(found)
    if found.get("status") != status:
        found["lastTransitionTime"] = timestamp(now)
    found["status"] = status
    for name, value in (("reason", reason), ("message", message)):
        found.pop(name, None)
        if value:
            found[name] = value


def selects(selector: Json | None, labels: Json) -> bool:
    """Whether a selector of ``matchLabels`` selects these labels."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())


def set_defaults(pod: Json) -> None:
    spec = pod.setdefault("spec", {})
    for name, value in (
        ("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30), ("schedulerName", "default-scheduler"),
    ):  # fmt: skip
        spec.setdefault(name, value)
    pod["status"] = {"phase": "Pending"}


def refuse_changes(before: Json, after: Json) -> None:
    """Of what a pod asks for nothing may be changed here but its image and tolerations; we never try."""
    names = ("nodeName", "schedulerName", "restartPolicy")
    if any(before["spec"].get(name) != after.get("spec", {}).get(name) for name in names):
        raise Refused(
            422, f'Pod "{before["metadata"]["name"]}" is invalid: spec: Forbidden: pod updates may not change fields'
        )


def check_preconditions(resource: Resource, before: Json, wanted: Json) -> None:
    metadata = before["metadata"]
    for name, said in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(name) and wanted[name] != metadata[name]:
            why = (
                f"Precondition failed: {said} in precondition: {wanted[name]}, {said} in object meta: {metadata[name]}"
            )
            raise conflict(resource, metadata["name"], why)


def _copy(store: Store, target: Target) -> Json:
    found = store.copy("pods", target.namespace, target.name)
    if found is None:
        raise not_found(PODS, target.name)
    return found


def bind(store: Store, target: Target, body: Json) -> Json:
    """A pod gets its node."""
    pod = _copy(store, target)
    wanted, metadata = body.get("metadata", {}).get("uid"), pod["metadata"]
    if wanted and wanted != metadata["uid"]:
        why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {metadata['uid']}"
        raise conflict(PODS, target.name, why)
    problem = ""
    if metadata.get("deletionTimestamp"):
        problem = f"pod {target.name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        problem = f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    if problem:
        raise Refused(409, f'Operation cannot be fulfilled on pods/binding "{target.name}": {problem}')
    pod["spec"]["nodeName"] = body["target"]["name"]
    pod["status"].pop("nominatedNodeName", None)
    metadata.pop("managedFields", None)
    set_condition(pod, store.now(), "PodScheduled", "True")
    metadata["generation"] += 1
    store.write(PODS, pod)
    return SUCCESS


def note_nominator(before: Json, pod: Json, manager: str) -> None:
    """Who nominated a pod for a node: of all fields the only one of which anybody asks who wrote it."""
    node = pod["status"].get("nominatedNodeName")
    if node == before["status"].get("nominatedNodeName"):
        return
    pod["metadata"].pop("managedFields", None)
    if node:
        fields: Json = {"f:status": {"f:nominatedNodeName": {}}}
        entry = {"manager": manager, "operation": "Update", "subresource": "status", "fieldsV1": fields}
        pod["metadata"]["managedFields"] = [entry]


def evict(store: Store, target: Target, body: Json) -> Json:
    """A pod is told to go, where its budget lets it."""
    pod = _copy(store, target)
    options = body.get("deleteOptions") or {}
    wanted, metadata = options.get("preconditions") or {}, pod["metadata"]
    ignores = metadata.get("deletionTimestamp") or pod["status"].get("phase") in (*OVER, "Pending")
    budget = None if ignores else _budget_of(store, pod)
    if options.get("dryRun"):
        return SUCCESS
    if budget is not None:
        _draw_on(store, budget, target.name)
    for name in ("uid", "resourceVersion"):
        if wanted.get(name) and wanted[name] != metadata[name]:
            why = f"the {name} in the precondition does not match the {name} in record"
            refused = conflict(PODS, target.name, f"{why}. The object might have been deleted and then recreated")
            refused.wait = TRIED_SECONDS if name == "uid" and not wanted.get("resourceVersion") else 0.0
            raise refused
    if not metadata.get("deletionTimestamp"):
        set_condition(pod, store.now(), "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
        pod = store.write(PODS, pod)
    again = store.copy("pods", target.namespace, target.name)
    assert again is not None
    delete(store, pod, again, options.get("gracePeriodSeconds"))
    return SUCCESS


def _budget_of(store: Store, pod: Json) -> Json | None:
    """The budget that an eviction draws on. Raises ``Refused`` where it may not."""
    namespace, labels = pod["metadata"]["namespace"], pod["metadata"].get("labels", {})
    found = [
        one
        for one in store.every("poddisruptionbudgets")
        if one["metadata"]["namespace"] == namespace and selects(one["spec"].get("selector"), labels)
    ]
    if len(found) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise Refused(500, message)
    if not found:
        return None
    status = found[0].get("status", {})
    if not is_true(pod, "Ready") and status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0:
        return None
    return found[0]


def _draw_on(store: Store, budget: Json, pod: str) -> None:
    metadata, status = budget["metadata"], dict(budget.get("status", {}))
    if status.get("observedGeneration", 0) < metadata["generation"]:
        raise Refused(429, OVERDRAWN, after=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        raise Refused(429, OVERDRAWN)
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**status.get("disruptedPods", {}), pod: timestamp(store.now())}
    store.write(BUDGETS, {**budget, "metadata": dict(metadata), "status": status})


def delete(store: Store, before: Json, pod: Json, grace: int | None) -> Json:
    """A pod goes at once where nobody has to stop it, else when its kubelet has, and its finalizers are gone."""
    metadata, spec = pod["metadata"], pod["spec"]
    period = spec.get("terminationGracePeriodSeconds", 30) if grace is None else max(grace, 0)
    if not spec.get("nodeName") or pod["status"].get("phase") in OVER:
        period = 0
    current: Any = metadata.get("deletionGracePeriodSeconds")
    if current is not None and period >= current:
        if current == 0 and not metadata.get("finalizers"):
            return store.remove(PODS, (metadata["namespace"], metadata["name"]))
        return before
    metadata["deletionGracePeriodSeconds"] = period
    if current is None:
        metadata["deletionTimestamp"] = timestamp(store.now() + period)
        metadata["generation"] += 1
    else:
        metadata["deletionTimestamp"] = timestamp(seconds_of(metadata["deletionTimestamp"]) - current + period)
    written = store.write(PODS, pod)
    if period == 0 and not metadata.get("finalizers"):  # the real one does it in two steps as well
        return store.remove(PODS, (metadata["namespace"], metadata["name"]))
    return written
