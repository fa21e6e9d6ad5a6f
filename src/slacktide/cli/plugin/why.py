"""``kubectl slack why``: why pods wait, as the cluster itself has it written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import CONTEXT, FILE
from slacktide.cli.shell import completing
from slacktide.cli.text import table

if TYPE_CHECKING:
    from slacktide.kube.client.http import Connection

HEAD = ("NAMESPACE", "POD", "CLASS", "SINCE", "WHY")


@click.command()
@click.argument("pod", required=False, shell_complete=completing.pods)
@click.option("--kubeconfig", type=FILE, help="How to reach the cluster.")
@CONTEXT
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

    It needs to read pods, nothing else: the scheduler writes its
    reasons on the pods. Those may be a minute old; 'kubectl slack explain' asks the scheduler itself.
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
    from slacktide.kube.client.http import ApiError
    from slacktide.kube.client.status_codes import NOT_FOUND
    from slacktide.kube.resources.objects import POD

    try:
        found = json.loads(await connection.get(POD.path(namespace, name)))
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        raise fail(f"pod {namespace}/{name}", "one that exists (kubectl get pods)") from None
    spec, status = found["spec"], found["status"]
    if spec.get("schedulerName") != scheduler:
        return f"{name} is scheduled by {spec.get('schedulerName')}, not by {scheduler}"
    if spec.get("nodeName"):
        return f"{name} is not pending: it is on {spec['nodeName']}, phase {status.get('phase')}"
    return f"{name} waits since {found['metadata']['creationTimestamp']}: {_reason(found)}"


async def _all(connection: Connection, namespace: str, scheduler: str) -> str:
    from slacktide.kube.resources.objects import POD

    selector = f"spec.schedulerName={scheduler},spec.nodeName=,status.phase=Pending"
    found = json.loads(await connection.get_list(POD.path(namespace), {"fieldSelector": selector}))["items"]
    where = f"namespace {namespace}" if namespace else "the cluster"
    if not found:
        return f"No pod of {scheduler} waits in {where}."
    rows = sorted(map(_cells, found), key=lambda row: (row[0], row[3]))  # who waits longest comes first
    many = "1 pod is waiting" if len(found) == 1 else f"{len(found)} pods wait"
    return "\n".join([f"{many} in {where}", table(HEAD, rows, left=len(HEAD))])


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    from slacktide.kube.translate.service_classes import CLASS_LABEL

    metadata = one["metadata"]
    service = metadata.get("labels", {}).get(CLASS_LABEL, "")
    return metadata["namespace"], metadata["name"], service, metadata["creationTimestamp"], _reason(one)


def _reason(one: dict[str, Any]) -> str:
    """What the scheduler wrote, or what follows from the pod."""
    status = one["status"]
    if one["metadata"].get("deletionTimestamp"):
        return "it is being deleted"
    if one["spec"].get("schedulingGates"):
        return f"waiting for scheduling gates: {', '.join(gate['name'] for gate in one['spec']['schedulingGates'])}"
    said: dict[str, Any] = next((each for each in status.get("conditions", []) if each["type"] == "PodScheduled"), {})
    if status.get("nominatedNodeName"):
        return f"nominated to node {status['nominatedNodeName']}, waiting for its victims to terminate"
    if said.get("message"):
        return str(said["message"])
    return "the scheduler has not reported anything yet; check that it is running"
