"""Workloads, nodes and classes explained by what the cluster has written, without asking the scheduler."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from slacktide.cli.cluster.pod_state import away_since, is_over, is_ready, state
from slacktide.cli.cluster.reading import Json, events_about, every, got, of_events, of_ledger, of_losses
from slacktide.errors import fail

if TYPE_CHECKING:
    from slacktide.kube.client.http import Connection

WORKLOADS = {
    "deployment": ("Deployment", "apis/apps/v1"), "statefulset": ("StatefulSet", "apis/apps/v1"),
    "daemonset": ("DaemonSet", "apis/apps/v1"), "job": ("Job", "apis/batch/v1"),
}  # fmt: skip
"""How kinds of workloads are called in their objects, and where these are."""
SHOWN_PODS, SHOWN_LEDGERS = 10, 10
PROBLEMS = {
    "ReplicaFailure": "True",
    "Progressing": "False",
    "Suspended": "True",
    "Failed": "True",
    "FailureTarget": "True",
}
"""Conditions of workloads that tell of one, by the status in which they do."""


async def explained(connection: Connection, kind: str, namespace: str, name: str) -> str:
    """What is known of an object of such a kind (of :data:`WORKLOADS`, ``node`` or ``class``)."""
    if kind == "node":
        return await _node(connection, name)
    if kind == "class":
        return await _class(connection, name)
    return await _workload(connection, kind, namespace, name)


# -- workloads -----------------------------------------------------------------------------------------------------


async def _workload(connection: Connection, kind: str, namespace: str, name: str) -> str:
    title, group = WORKLOADS[kind]
    found = await got(connection, f"/{group}/namespaces/{namespace}/{kind}s/{name}")
    if found is None:
        raise fail(f"{kind} {namespace}/{name}", f"one that exists (kubectl -n {namespace} get {kind}s)")
    selector = _selector(found["spec"].get("selector", {}))
    pods = await every(connection, f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector) if selector else []
    lines = [f"{title} {namespace}/{name}"]
    lines += [f"  {line}" for line in await _promise(connection, namespace, found)]
    lines.append(f"  {_counts(kind, found, pods)}")
    lines += [f"  {one['type']}: {one.get('message') or one.get('reason', '')}" for one in _problems(found)]
    waiting = [one for one in pods if not is_ready(one) and not is_over(one)]
    lines += [f"  {line}" for line in await _waiting(connection, waiting)]
    if kind == "statefulset" and found["spec"].get("podManagementPolicy", "OrderedReady") == "OrderedReady" and waiting:
        lines.append("  its pods come one by one: none is made until those before it are ready (podManagementPolicy)")
    events = await events_about(connection, namespace, title, name)
    for one in [] if kind != "deployment" else await _replica_sets(connection, found, selector):
        events += await events_about(connection, namespace, "ReplicaSet", one)
    lines += _told(sorted(events, key=lambda one: one.get("lastTimestamp") or ""))
    if waiting:
        lines.append(f"Next: slacktide explain pod {waiting[0]['metadata']['name']} -n {namespace}")
    return "\n".join(lines)


def _selector(selector: Json) -> str:
    labels = [f"{key}={one}" for key, one in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        values = f"({','.join(one.get('values') or ())})"
        words = {"In": f"{one['key']} in {values}", "NotIn": f"{one['key']} notin {values}",
                 "Exists": one["key"], "DoesNotExist": f"!{one['key']}"}  # fmt: skip
        labels.append(words[one["operator"]])
    return ",".join(labels)


async def _promise(connection: Connection, namespace: str, found: Json) -> list[str]:
    """What its ledger says, or why it has none."""
    from slacktide.kube.resources.objects import AVAILABILITY

    ledgers = await every(connection, AVAILABILITY.path(namespace))
    uid, scheduler = found["metadata"]["uid"], found["spec"]["template"]["spec"].get("schedulerName", "")
    for one in ledgers:
        status = one.get("status", {})
        if status.get("target", {}).get("uid") == uid and status.get("promised") is not None:
            return [of_ledger(status), of_losses(status), *([status["message"]] if status.get("message") else [])]
    if scheduler in ("", "default-scheduler"):
        return ["scheduled by the default scheduler: no promise is kept for it (schedulerName of its pod template)"]
    return [f"schedulerName {scheduler}, and no Availability: none of its pods has been promised anything"]


def _counts(kind: str, found: Json, pods: list[Json]) -> str:
    spec, status = found["spec"], found.get("status", {})
    wanted = {"daemonset": status.get("desiredNumberScheduled", 0), "job": spec.get("parallelism", 1)}
    counts: Counter[str] = Counter(map(_kind_of, pods))
    said = [f"{counts[one]} {one}" for one in ("ready", "starting", "waiting", "being deleted", "ended") if counts[one]]
    count = wanted.get(kind, spec.get("replicas", 1))
    return f"wants {count} pod{'s' if count != 1 else ''}; there are {', '.join(said) or 'none'}"


def _kind_of(pod: Json) -> str:
    if is_over(pod):
        return "ended"
    if pod["metadata"].get("deletionTimestamp"):
        return "being deleted"
    if is_ready(pod):
        return "ready"
    return "starting" if pod["spec"].get("nodeName") else "waiting"


def _problems(found: Json) -> list[Json]:
    return [one for one in found.get("status", {}).get("conditions", ()) if PROBLEMS.get(one["type"]) == one["status"]]


async def _waiting(connection: Connection, pods: list[Json]) -> list[str]:
    """A line for pods that say the same."""
    nodes = {one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName")}
    views = {name: await got(connection, f"/api/v1/nodes/{name}") for name in sorted(nodes)[:SHOWN_PODS]}
    alike: dict[str, list[str]] = {}
    for one in pods:
        said = state(one, views.get(one["spec"].get("nodeName", ""))) or "waits; nobody has said for what"
        alike.setdefault(said, []).append(one["metadata"]["name"])
    lines = []
    for said, names in list(alike.items())[:SHOWN_PODS]:
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        lines.append(f"{', '.join(names[:3])}{more}: {said}")
    return [*lines, *([f"and {len(alike) - SHOWN_PODS} other reasons"] if len(alike) > SHOWN_PODS else [])]


async def _replica_sets(connection: Connection, found: Json, selector: str) -> list[str]:
    namespace, uid = found["metadata"]["namespace"], found["metadata"]["uid"]
    every_one = await every(connection, f"/apis/apps/v1/namespaces/{namespace}/replicasets", labelSelector=selector)
    owned = [one for one in every_one if any(o["uid"] == uid for o in one["metadata"].get("ownerReferences", ()))]
    return [one["metadata"]["name"] for one in owned if one["spec"].get("replicas")]


def _told(events: list[Json]) -> list[str]:
    return ["Events, the latest last:", *(f"  {line}" for line in of_events(events))] if events else []


# -- nodes ---------------------------------------------------------------------------------------------------------


async def _node(connection: Connection, name: str) -> str:
    found = await got(connection, f"/api/v1/nodes/{name}")
    if found is None:
        raise fail(f"node {name}", "one that exists (kubectl get nodes)")
    on_it = await every(connection, "/api/v1/pods", fieldSelector=f"spec.nodeName={name}")
    pending = await every(connection, "/api/v1/pods", fieldSelector="spec.nodeName=,status.phase=Pending")
    lines = [f"Node {name}", *(f"  {line}" for line in _openness(found))]
    lines += [f"  {line}" for line in _room(found, on_it)]
    lines += [f"  {line}" for line in await _windows(connection, found)]
    lines += [f"  {line}" for line in _pods_on(on_it, found)]
    for one in pending:
        if one["status"].get("nominatedNodeName") == name:
            lines.append(f"  {_named(one)}: {state(one)}")
    lines += _told(await events_about(connection, "default", "Node", name))
    return "\n".join(lines)


def _openness(found: Json) -> list[str]:
    from slacktide.config import KubeSettings

    label = KubeSettings().node_label
    key, _, value = label.partition("=")
    is_ours = found["metadata"].get("labels", {}).get(key) == value
    lines = [f"has the label {label}" if is_ours else f"lacks the label {label}: it is not slacktide's (unless "
             "kube.node_label or kube.all_nodes say otherwise)"]  # fmt: skip
    lines.append(away_since(found).replace("its node is", "is") or "is ready")
    if found["spec"].get("unschedulable"):
        lines.append(f"is cordoned: it takes no pods (kubectl uncordon {found['metadata']['name']})")
    for one in found["spec"].get("taints", ()):
        what = f"{one['key']}{'=' + one['value'] if one.get('value') else ''}:{one['effect']}"
        lines.append(f"has the taint {what}: only pods that tolerate it come here")
    return lines


def _room(found: Json, pods: list[Json]) -> list[str]:
    """How much of what the node has is asked for."""
    import json

    from slacktide.kube.client.kinds import Malformed
    from slacktide.kube.client.quantities import quantity, text_of
    from slacktide.kube.resources.objects import POD
    from slacktide.kube.translate.nodes import requests
    from slacktide.kube.translate.unschedulable import Unschedulable

    asked: Counter[str] = Counter()
    for one in (POD.decode(json.dumps(each).encode()) for each in pods if not is_over(each)):
        if isinstance(one, Malformed):
            continue
        try:
            asked.update(requests(one))
        except Unschedulable:
            continue
    has = {name: quantity(name, str(text)) for name, text in found["status"].get("allocatable", {}).items()}
    return [
        f"{name}: {text_of(name, asked[name])} of {text_of(name, amount)} are asked for"
        for name, amount in has.items()
        if name in ("cpu", "memory", "pods") or asked[name]
    ]


async def _windows(connection: Connection, found: Json) -> list[str]:
    import json

    from slacktide.kube.client.kinds import Malformed
    from slacktide.kube.client.metadata import whole_seconds
    from slacktide.kube.clock import wall_seconds
    from slacktide.kube.resources.objects import MAINTENANCE_WINDOW
    from slacktide.kube.translate.disruption_budgets import Maintenance

    maintenance = Maintenance()
    for one in await every(connection, MAINTENANCE_WINDOW.path()):
        window = MAINTENANCE_WINDOW.decode(json.dumps(one).encode())
        if not isinstance(window, Malformed):
            maintenance.see(window)
    until = maintenance.until(found["metadata"].get("labels", {}), wall_seconds())
    return (
        [f"is in a MaintenanceWindow until {whole_seconds(until)}: what a drain costs is the operator's"]
        if until
        else []
    )


def _pods_on(pods: list[Json], node: Json) -> list[str]:
    from slacktide.kube.translate.service_classes import CLASS_LABEL

    there = [one for one in pods if not is_over(one)]
    classes = Counter(one["metadata"].get("labels", {}).get(CLASS_LABEL, "none") for one in there)
    said = ", ".join(f"{count} of class {name}" if name != "none" else f"{count} without a class"
                     for name, count in sorted(classes.items()))  # fmt: skip
    count = "1 pod is" if len(there) == 1 else f"{len(there)} pods are"
    lines = [f"{count} on it{': ' + said if said else ''}"]
    unready = [one for one in there if not is_ready(one)]
    return lines + [f"{_named(one)}: {state(one, node)}" for one in unready[:SHOWN_PODS]]


def _named(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


# -- classes -------------------------------------------------------------------------------------------------------


async def _class(connection: Connection, name: str) -> str:
    from slacktide.kube.resources.objects import AVAILABILITY, SERVICE_CLASS

    found = await got(connection, SERVICE_CLASS.path(name=name))
    if found is None:
        known = ", ".join(one["metadata"]["name"] for one in await every(connection, SERVICE_CLASS.path()))
        raise fail(f"class {name}", f"one that exists ({known or 'there is none'})")
    ledgers = [one["status"] | {"namespace": one["metadata"]["namespace"]}
               for one in await every(connection, AVAILABILITY.path())
               if one.get("status", {}).get("class") == name and not one["status"].get("deletedAt")]  # fmt: skip
    lines = [f"Class {name}", *(f"  {line}" for line in _terms(found["spec"]))]
    states = Counter(one.get("state", "Unknown") for one in ledgers)
    said = ", ".join(f"{count} {state}" for state, count in states.most_common())
    lines.append(f"  {len(ledgers)} workloads{': ' + said if said else ''}")
    given_up = [one for one in ledgers if one.get("givenUp")]
    if given_up:
        lines.append(f"  the plan gives up {len(given_up)} of them: {given_up[0].get('message', '')}")
    worst = sorted((one for one in ledgers if one.get("promised") is not None), key=_slack)[:SHOWN_LEDGERS]
    lines += [f"  {one['namespace']}: {of_ledger(one)}; {of_losses(one)}" for one in worst]
    lines += _told(await events_about(connection, "default", "ServiceClass", name))
    if worst:
        target = worst[0]["target"]
        lines.append(f"Next: slacktide explain {target['kind'].lower()}/{target['name']} -n {worst[0]['namespace']}")
    return "\n".join(lines)


def _slack(ledger: Json) -> float:
    slack: Any = ledger.get("slackSeconds")
    return float("inf") if slack is None else float(slack)


def _terms(spec: Json) -> list[str]:
    from slacktide.kube.resources.custom_resources import EVERYBODY

    window = spec.get("window") or {}
    over = f"a rolling window of {window['rolling']}" if window.get("rolling") else ""
    over = over or (f"each {window['calendar']}" if window.get("calendar") else "a workload's lifetime")
    spaces = spec.get("namespaces") or []
    who = "all namespaces" if EVERYBODY in spaces else f"namespaces {', '.join(spaces)}" if spaces else "no namespace"
    default = "; pods that name no class get it" if spec.get("default") else ""
    return [f"promises {spec['slo']:g} over {over}, rank {spec['rank']}; {who} may use it{default}"]
