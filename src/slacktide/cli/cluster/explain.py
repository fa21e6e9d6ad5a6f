"""``slacktide explain``: why a pod is where it is, waits, or was preempted; how workloads, nodes and classes stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from slacktide.cli.cluster.explained_objects import WORKLOADS, explained
from slacktide.cli.cluster.pod_state import condition, state
from slacktide.cli.cluster.reading import events_about, got, of_events, of_ledger
from slacktide.cli.cluster.scheduler_pages import Trust, asking_a_scheduler
from slacktide.cli.options import in_a_cluster
from slacktide.cli.shell import completing
from slacktide.cli.shell.suggesting import HelpfulGroup, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from slacktide.kube.client.http import Connection

SHORT = {
    "po": "pod", "pods": "pod", "deploy": "deployment", "deployments": "deployment", "deployment.apps": "deployment",
    "sts": "statefulset", "statefulsets": "statefulset", "ds": "daemonset", "daemonsets": "daemonset", "jobs": "job",
    "no": "node", "nodes": "node", "serviceclass": "class", "serviceclasses": "class",
}  # fmt: skip
ADDRESS = "https://127.0.0.1:10359"


class _ByName(HelpfulGroup):
    """Takes KIND/NAME, as kubectl does, kubectl's short names of kinds, and the name of a pod alone."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """KIND/NAME is KIND NAME; a word that is no kind, with nothing or options behind it, is a pod."""
        kind, slash, name = args[0].partition("/")
        known = self.get_command(ctx, SHORT.get(kind, kind)) is not None
        if not slash and not known and (len(args) == 1 or args[1].startswith("-")):
            return super().resolve_command(ctx, ["pod", *args])
        return super().resolve_command(ctx, [SHORT.get(kind, kind), *([name] if slash else []), *args[1:]])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Kinds, and pods."""
        return [*super().shell_complete(ctx, incomplete), *completing.pods(ctx, click.Argument(["name"]), incomplete)]


@click.group(cls=_ByName)
def explain() -> None:
    """Says why a pod waits or was preempted, how others stand.

    Others are workloads, nodes and classes: 'slacktide explain deployment/shop'.
    """


def _namespaced(command: Callable[..., None]) -> Callable[..., None]:
    complete, text = completing.namespaces, "Its namespace.  [default: the context's]"
    return click.option("-n", "--namespace", shell_complete=complete, help=text)(command)


@explain.command("pod")
@click.argument("name", shell_complete=completing.pods)
@_namespaced
@click.option(
    "--address",
    metavar="[http://]HOST:PORT",
    help=f"The scheduler's kube.listen, https unless it says http.  [default: the lab's in a lab, else {ADDRESS}]",
)
@asking_a_scheduler
@click.option("--json", "as_json", is_flag=True, help="The scheduler's answer as it is.")
def pod(
    name: str,
    namespace: str | None,
    address: str | None,
    trust: Trust,
    as_json: bool,
) -> None:
    """Explains a pod, or KIND/NAME.

    The scheduler itself is asked where it can be reached (kubectl port-forward helps); it remembers what it decided,
    also about pods that are gone. It is shown a token, so its certificate has to be known: by --ca-file or
    --fingerprint. Otherwise the pod's events, its conditions and its workload's ledger tell. What is no pod the cluster
    tells.
    """
    import asyncio

    kind, slash, other = name.partition("/")
    kind = SHORT.get(kind, kind)
    if slash and kind != "pod":
        if kind not in explain.commands:
            refused(click.get_current_context(), kind, list(explain.commands))
        click.echo(_told(kind, other, namespace, trust.kubeconfig, trust.context))
        return
    where = namespace or _namespace(trust.kubeconfig, trust.context)
    asked = other if slash else name
    click.echo(asyncio.run(_explain(where, asked, address, trust, as_json)))


def _told(kind: str, name: str, namespace: str | None, kubeconfig: Path | None, context: str | None) -> str:
    """What the cluster has written about what is no pod."""
    import asyncio

    from slacktide.kube.client.http import connect

    async def ask() -> str:
        async with await connect(kubeconfig, context=context) as connection:
            return await explained(connection, kind, namespace or _namespace(kubeconfig, context), name)

    return asyncio.run(ask())


def _add_workload(kind: str, about: str) -> None:
    @explain.command(kind, help=about)
    @click.argument("name")
    @_namespaced
    @in_a_cluster()
    def workload(name: str, namespace: str | None, kubeconfig: Path | None, context: str | None) -> None:
        click.echo(_told(kind, name, namespace, kubeconfig, context))


def _add_of_the_cluster(kind: str, about: str, complete: Any = None) -> None:
    @explain.command(kind, help=about)
    @click.argument("name", shell_complete=complete)
    @in_a_cluster()
    def one(name: str, kubeconfig: Path | None, context: str | None) -> None:
        click.echo(_told(kind, name, None, kubeconfig, context))


for _kind in WORKLOADS:
    _add_workload(_kind, f"Says how a {WORKLOADS[_kind][0]} keeps its promise, and which of its pods wait for what.")
_add_of_the_cluster("node", "Says what a node takes, what is on it, and who waits for it.")
_add_of_the_cluster("class", "Says how the promises of a class stand, the worst first.", completing.service_classes)


async def _explain(namespace: str, name: str, address: str | None, trust: Trust, as_json: bool) -> str:
    from slacktide.cli.cluster.scheduler_pages import ask
    from slacktide.errors import ConfigError, InputError, Problem
    from slacktide.kube.client.http import connect

    asked = {"namespace": namespace, "name": name}
    uid = ""
    if address is None:  # another cluster's scheduler may listen here: the pod's UID tells
        async with await connect(trust.kubeconfig, context=trust.context) as connection:
            raw = await got(connection, f"/api/v1/namespaces/{namespace}/pods/{name}")
            uid = "" if raw is None else raw["metadata"]["uid"]
            address = of_lab(trust.kubeconfig, connection.server) or ADDRESS
            found, problem = await ask(address, "/explain", asked, trust)
            if found is None or (uid and found.get("uid") != uid):
                if as_json:
                    raise ConfigError(f"--json: the scheduler does not answer for this pod at {address}: {problem}")
                events = await events_about(connection, namespace, "Pod", name)
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
    from slacktide.kube.observe.dashboard import text_of

    return text_of(found)


def of_lab(kubeconfig: Path | None, server: str) -> str:
    """Where the scheduler listens that a lab with this API server has started; empty where it is no lab's."""
    from slacktide.cli.machine.lab import default_directory
    from slacktide.kube.client.credentials import paths_of_environment
    from slacktide.lab.state import scheduler_address

    files = paths_of_environment() if kubeconfig is None else [kubeconfig]
    directories = [*(file.absolute().parent for file in files), default_directory()]
    return next((f"http://{found}" for one in directories if (found := scheduler_address(one, server))), "")


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


async def _ledger(connection: Connection, namespace: str, pod: dict[str, Any] | None) -> dict[str, Any] | None:
    """The Availability of a pod's workload: its topmost owner is the target of one."""
    from slacktide.kube.resources.objects import AVAILABILITY

    if pod is None:
        return None
    found = await got(connection, AVAILABILITY.path(namespace))
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
        current = {} if group is None else await got(connection, path) or {}
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
        lines.append(f"  {of_ledger(ledger)}")
    if pod:
        lines += [f"  {line}" for line in _of_pod(pod)]
    lines += [f"  {one}" for one in of_events(events)]
    why = problem or "it belongs to another cluster"
    lines.append(
        f"The scheduler did not answer ({why}); this is what the cluster knows (--address asks the scheduler)."
    )
    return "\n".join(lines)


def _of_pod(pod: dict[str, Any]) -> list[str]:
    spec, status = pod["spec"], pod.get("status", {})
    lines = [f"scheduler {spec.get('schedulerName', '')}, phase {status.get('phase', '')}"]
    if said := state(pod):
        lines.append(said)
    evicted = condition(pod, "DisruptionTarget")
    if evicted.get("status") == "True":
        lines.append(f"is being evicted: {evicted.get('message') or evicted.get('reason')}")
    return lines
