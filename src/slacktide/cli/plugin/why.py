"""``kubectl slack why``: why pods wait, as the cluster itself has it written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.cluster import pod_state
from slacktide.cli.cluster.reading import events_about, got
from slacktide.cli.options import in_a_cluster
from slacktide.cli.shell import completing
from slacktide.cli.text import table

if TYPE_CHECKING:
    from slacktide.kube.client.http import Connection

LOOK_SECONDS = 10.0
"""Nothing has to be known of a pod that is younger."""
PERSISTENT_VOLUME_CLAIM = "/api/v1/namespaces/{}/persistentvolumeclaims/{}"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
HEAD = ("NAMESPACE", "POD", "CLASS", "SINCE", "WHY")


@click.command()
@click.argument("pod", required=False, shell_complete=completing.pods)
@in_a_cluster()
@click.option(
    "-n", "--namespace", shell_complete=completing.namespaces, help="The pods' namespace.  [default: the context's]"
)
@click.option("-A", "--all-namespaces", is_flag=True, help="Pods of all namespaces.")
@click.option("--scheduler-name", default="slacktide", show_default=True, help="The scheduler's kube.scheduler_name.")
def why(
    pod: str | None,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    all_namespaces: bool,
    scheduler_name: str,
) -> None:
    """Says why POD waits, or why each pod waits that does.

    It needs to read pods: the scheduler writes its reasons on them. Those may be a minute old; 'kubectl slack explain'
    asks the scheduler itself. Of a pod that says nothing, events and claims are read where that is allowed.
    """
    import asyncio

    from slacktide.kube.client.credentials import namespace_of

    if all_namespaces and (namespace or pod):
        raise click.UsageError("-A: shows pods of all namespaces; expected neither -n nor POD beside it")
    where = "" if all_namespaces else namespace or namespace_of(kubeconfig, context)
    click.echo(asyncio.run(_why(kubeconfig, context, where, pod, scheduler_name)))


async def _why(kubeconfig: Path | None, context: str | None, namespace: str, pod: str | None, scheduler: str) -> str:
    from slacktide.kube.client.http import connect

    async with await connect(kubeconfig, context=context) as connection:
        if pod is not None:
            return await _one(connection, namespace, pod, scheduler)
        return await _all(connection, namespace, scheduler)


async def _one(connection: Connection, namespace: str, name: str, scheduler: str) -> str:
    from slacktide.errors import fail
    from slacktide.kube.client.http import NOT_FOUND, ApiError
    from slacktide.kube.resources.objects import POD

    try:
        found = json.loads(await connection.get(POD.path(namespace, name)))
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        raise fail(f"pod {namespace}/{name}", "one that exists (kubectl get pods)") from None
    spec = found["spec"]
    if spec.get("schedulerName") != scheduler:
        return f"{name} is scheduled by {spec.get('schedulerName')}, not by {scheduler}"
    if pod_state.is_ready(found):
        return f"{name} does not wait: it {pod_state.state(found)}"
    reason = await _reason(connection, found, scheduler)
    if spec.get("nodeName") or found["metadata"].get("deletionTimestamp"):
        return f"{name}: {reason}"
    return f"{name} waits since {found['metadata']['creationTimestamp']}: {reason}"


async def _all(connection: Connection, namespace: str, scheduler: str) -> str:
    from slacktide.kube.resources.objects import POD

    selector = f"spec.schedulerName={scheduler},spec.nodeName=,status.phase=Pending"
    found = json.loads(await connection.get_list(POD.path(namespace), {"fieldSelector": selector}))["items"]
    where = f"namespace {namespace}" if namespace else "the cluster"
    if not found:
        return f"No pod of {scheduler} waits in {where}."
    rows = [await _cells(connection, one, scheduler) for one in found]
    rows.sort(key=lambda row: (row[0], row[3]))  # who waits longest comes first
    many = "1 pod is waiting" if len(found) == 1 else f"{len(found)} pods wait"
    return "\n".join([f"{many} in {where}", table(HEAD, rows, left=len(HEAD))])


async def _cells(connection: Connection, one: dict[str, Any], scheduler: str) -> tuple[str, ...]:
    from slacktide.kube.translate.service_classes import CLASS_LABEL

    metadata = one["metadata"]
    service = metadata.get("labels", {}).get(CLASS_LABEL, "")
    why = await _reason(connection, one, scheduler)
    return metadata["namespace"], metadata["name"], service, metadata["creationTimestamp"], why


async def _reason(connection: Connection, one: dict[str, Any], scheduler: str) -> str:
    """What the pod says; where it says nothing, what the scheduler has done for it."""
    if said := pod_state.state(one):
        return said.removeprefix("waits: ")
    acts = [await asked(connection, one, scheduler) for asked in (_told, _claims)]
    if done := next((act for act in acts if act), ""):
        return done
    if _age(one) < LOOK_SECONDS:
        return f"created less than {LOOK_SECONDS:.0f} s ago; nothing is known of it yet"
    name, namespace = one["metadata"]["name"], one["metadata"]["namespace"]
    return (
        f"neither its conditions nor its events nor its claims say why. 'slacktide explain pod {name} -n {namespace}' "
        f"asks the scheduler; 'kubectl get lease -A' says whether {scheduler} leads"
    )


def _age(one: dict[str, Any]) -> float:
    from slacktide.kube.client.metadata import unix_seconds
    from slacktide.kube.clock import wall_seconds

    return wall_seconds() - unix_seconds(one["metadata"]["creationTimestamp"])


async def _told(connection: Connection, one: dict[str, Any], scheduler: str) -> str:
    """What an event about the pod says."""
    metadata = one["metadata"]
    with _what_may_be_read():
        events = await events_about(connection, metadata["namespace"], "Pod", metadata["name"])
        about = [each for each in events if each["involvedObject"].get("uid") in (None, metadata["uid"])]
        said = [each for each in about if each.get("reportingComponent") in ("slacktide", scheduler)]
        return f"{said[-1]['reason']}: {said[-1]['message']}" if said else ""
    return ""


async def _claims(connection: Connection, one: dict[str, Any], _scheduler: str) -> str:
    """Whether a node was chosen for the pod's claims already: then the scheduler has acted, and others are to."""
    namespace, name = one["metadata"]["namespace"], one["metadata"]["name"]
    for volume in one["spec"].get("volumes", ()):
        claim = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        claim = claim or (f"{name}-{volume['name']}" if "ephemeral" in volume else "")
        with _what_may_be_read():
            found = await got(connection, PERSISTENT_VOLUME_CLAIM.format(namespace, claim)) if claim else None
            node = {} if found is None else found["metadata"].get("annotations", {})
            if found is not None and not found["spec"].get("volumeName") and node.get(SELECTED_NODE):
                return f"has a node, {node[SELECTED_NODE]}; a volume is to be created there for claim {claim}"
    return ""


@contextmanager
def _what_may_be_read() -> Iterator[None]:
    """Who may read pods only is told what pods say."""
    from slacktide.kube.client.http import FORBIDDEN, ApiError

    try:
        yield
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
