"""``slacktide explain``: why a pod is where it is, why it waits, why it was preempted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.cluster.scheduler_pages import Trust, asking_a_scheduler
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.kube.client.http import Connection

ADDRESS = "https://127.0.0.1:10359"
SHOWN_EVENTS = 10


@click.command()
@click.argument("name", metavar="POD", shell_complete=completing.pods)
@click.option(
    "-n", "--namespace", shell_complete=completing.namespaces, help="The pod's namespace.  [default: the context's]"
)
@click.option(
    "--address",
    metavar="[http://]HOST:PORT",
    help=f"The scheduler's kube.listen, https unless it says http.  [default: the lab's in a lab, else {ADDRESS}]",
)
@asking_a_scheduler
@click.option("--json", "as_json", is_flag=True, help="The scheduler's answer as it is.")
def explain(
    name: str,
    namespace: str | None,
    address: str | None,
    trust: Trust,
    as_json: bool,
) -> None:
    """Says why a pod is where it is, waits, or was preempted.

    The scheduler itself is asked where it can be reached (kubectl port-forward helps); it remembers what it decided,
    also about pods that are gone. It is shown a token, so its certificate has to be known: by --ca-file or
    --fingerprint. Otherwise the pod's events, its conditions and its workload's ledger tell.
    """
    import asyncio

    where = namespace or _namespace(trust.kubeconfig, trust.context)
    click.echo(asyncio.run(_explain(where, name, trust.kubeconfig, trust.context, address, trust, as_json)))


async def _explain(
    namespace: str,
    name: str,
    kubeconfig: Path | None,
    context: str | None,
    address: str | None,
    trust: Trust,
    as_json: bool,
) -> str:
    from slacktide.cli.cluster.scheduler_pages import ask
    from slacktide.errors import ConfigError, InputError, Problem
    from slacktide.kube.client.http import connect

    asked = {"namespace": namespace, "name": name}
    uid = ""
    if address is None:  # another cluster's scheduler may listen here: the pod's UID tells
        async with await connect(kubeconfig, context=context) as connection:
            raw = await _get(connection, f"/api/v1/namespaces/{namespace}/pods/{name}")
            uid = "" if raw is None else raw["metadata"]["uid"]
            address = of_lab(kubeconfig, connection.server) or ADDRESS
            found, problem = await ask(address, "/explain", asked, trust)
            if found is None or (uid and found.get("uid") != uid):
                if as_json:
                    raise ConfigError(f"--json: the scheduler does not answer for this pod at {address}: {problem}")
                events = await _events(connection, namespace, name)
                if raw is None and not events:
                    broken = Problem(f"pod {namespace}/{name}", 0, "", "", "one that exists, or existed lately")
                    raise InputError([broken])
                ledger = await _ledger(connection, namespace, raw)
                return _from_cluster(namespace, name, raw, events, ledger, problem)
    else:
        found, problem = await ask(address, "/explain", asked, trust)
        if found is None:
            raise ConfigError(f"--address: {address}: {problem}")
    if as_json:
        return json.dumps(found, indent=2)
    from slacktide.kube.observe.explain import text_of

    return text_of(found)


def of_lab(kubeconfig: Path | None, server: str) -> str:
    """Where the scheduler listens that a lab with this API server has started; empty where it is no lab's."""
    from slacktide.cli.machine.lab import default_directory
    from slacktide.kube.client.credentials import paths_of_environment
    from slacktide.lab.state import scheduler_address

    files = paths_of_environment() if kubeconfig is None else [kubeconfig]
    directories = [*(file.absolute().parent for file in files), default_directory()]
    return next((f"http://{found}" for one in directories if (found := scheduler_address(one, server))), "")


async def _get(connection: Connection, path: str, **query: str) -> Any:
    from slacktide.kube.client.http import ApiError
    from slacktide.kube.client.status_codes import NOT_FOUND

    try:
        return json.loads(await connection.get(path, query=query or None))
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        raise


def _namespace(kubeconfig: Path | None, context: str | None) -> str:
    """The context's; the scheduler can be asked by its address alone, without any cluster."""
    from slacktide.errors import ConfigError
    from slacktide.kube.client.credentials import namespace_of

    try:
        return namespace_of(kubeconfig, context)
    except ConfigError:
        if kubeconfig is not None or context is not None:
            raise
        return "default"


async def _events(connection: Connection, namespace: str, name: str) -> list[dict[str, Any]]:
    selector = f"involvedObject.kind=Pod,involvedObject.name={name}"
    found = await _get(connection, f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector)
    events: list[dict[str, Any]] = [] if found is None else found["items"]
    return sorted(events, key=lambda one: one.get("lastTimestamp") or "")


async def _ledger(connection: Connection, namespace: str, pod: dict[str, Any] | None) -> dict[str, Any] | None:
    """The Availability of a pod's workload: its topmost owner is the target of one."""
    from slacktide.kube.resources.objects import AVAILABILITY

    if pod is None:
        return None
    found = await _get(connection, AVAILABILITY.path(namespace))
    owners = await _owners(connection, namespace, pod)
    for one in [] if found is None else found["items"]:
        if one.get("status", {}).get("target", {}).get("uid") in owners:
            return dict(one["status"])
    return None


async def _owners(connection: Connection, namespace: str, pod: dict[str, Any]) -> set[str]:
    """UIDs of a pod and of those above it, as far as they can be read."""
    plurals = {"ReplicaSet": "apis/apps/v1", "Job": "apis/batch/v1"}
    found, current = {pod["metadata"]["uid"]}, pod
    while (owner := _controlling(current)) is not None:
        found.add(owner["uid"])
        group = plurals.get(owner["kind"])
        path = f"/{group}/namespaces/{namespace}/{owner['kind'].lower()}s/{owner['name']}"
        current = {} if group is None else await _get(connection, path) or {}
    return found


def _controlling(one: dict[str, Any]) -> dict[str, Any] | None:
    owners = one.get("metadata", {}).get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), None)


def _from_cluster(
    namespace: str,
    name: str,
    pod: dict[str, Any] | None,
    events: list[dict[str, Any]],
    ledger: dict[str, Any] | None,
    problem: str,
) -> str:
    lines = [f"Pod {namespace}/{name}" + ("" if pod else " (gone)")]
    if ledger:
        lines.append(f"  {_of_ledger(ledger)}")
    if pod:
        lines += [f"  {line}" for line in _of_pod(pod)]
    for one in events[-SHOWN_EVENTS:]:
        times = f" ({one['count']} times)" if one.get("count", 1) > 1 else ""
        lines.append(f"  {(one.get('lastTimestamp') or '')[11:19]}  {one['reason']}: {one['message']}{times}")
    why = problem or "it belongs to another cluster"
    lines.append(
        f"The scheduler did not answer ({why}); this is what the cluster knows (--address asks the scheduler)."
    )
    return "\n".join(lines)


def _of_ledger(ledger: dict[str, Any]) -> str:
    from slacktide.kube.observe.explain import waiting_text

    target, breaks = ledger["target"], ledger.get("breaksAt")
    left = f", which can break at {breaks[11:19]}" if breaks else ""
    return (
        f"{target['kind']} {target['name']}, class {ledger['class']}: promised {ledger['promised']:.4f}{left}, "
        f"delivered {ledger['delivered']:.4f}, {ledger['state']}; {ledger['running']} running, "
        f"{waiting_text(ledger)} (as of {ledger['at'][11:19]})"
    )


def _of_pod(pod: dict[str, Any]) -> list[str]:
    spec, status = pod["spec"], pod.get("status", {})
    scheduler = spec.get("schedulerName", "")
    lines = [f"scheduler {scheduler}, phase {status.get('phase', '')}"]
    if spec.get("nodeName"):
        lines.append(f"on {spec['nodeName']}")
    if status.get("nominatedNodeName"):
        lines.append(f"is nominated to node {status['nominatedNodeName']}")
    for one in status.get("conditions", []):
        if one["status"] != "True" and one["type"] == "PodScheduled" and one.get("message"):
            lines.append(f"waits: {one['message']}")
        if one["status"] == "True" and one["type"] == "DisruptionTarget":
            lines.append(f"is being evicted: {one.get('message') or one.get('reason')}")
    return lines
