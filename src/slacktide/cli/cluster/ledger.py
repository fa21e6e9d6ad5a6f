"""``slacktide ledger``: ledgers out of a cluster into a file, and from there into a restored cluster."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from slacktide.cli.options import FILE, in_a_cluster
from slacktide.cli.shell.suggesting import HelpfulGroup

if TYPE_CHECKING:
    from slacktide.kube.publish.ledger_transfer import Kept

SHOWN = 20


@click.group(cls=HelpfulGroup)
def ledger() -> None:
    """Takes ledgers out of a cluster, and into a restored one."""


@ledger.command("export")
@in_a_cluster()
@click.option("-n", "--namespace", help="Only this namespace's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces', which is the default.")
@click.option("--out", type=FILE, help="The file to write, whole or not at all; without it, stdout.")
def export(
    kubeconfig: Path | None, context: str | None, namespace: str | None, all_namespaces: bool, out: Path | None
) -> None:
    """Writes what each workload was promised and has got, by its namespace, kind and name.

    The file is JSON with a ledger a line. Ledgers of a later release are kept as they are, for that release.
    """
    if all_namespaces and namespace:
        raise click.UsageError("-A: takes all namespaces, and -n one")
    import asyncio

    from slacktide.kube.client.metadata import rfc3339
    from slacktide.kube.publish import ledger_transfer
    from slacktide.whole_file import write_whole

    found, broken = asyncio.run(_export(kubeconfig, context, namespace or ""))
    for problem in broken:
        click.echo(f"left out: {problem}", err=True)
    text = ledger_transfer.text_of(found, rfc3339(time.time()))
    if out is None:
        click.echo(text, nl=False)
        return
    write_whole(out, text)
    click.echo(f"{len(found)} ledgers written to {out}", err=True)


async def _export(kubeconfig: Path | None, context: str | None, namespace: str) -> tuple[list[Kept], list[str]]:
    from slacktide.kube.client.http import connect
    from slacktide.kube.mirror.watches import installed
    from slacktide.kube.publish.ledger_transfer import kept_in

    async with await connect(kubeconfig, context=context) as connection:
        await installed(connection)
        return await kept_in(connection, namespace)


@ledger.command("import")
@click.argument("file", type=FILE)
@in_a_cluster()
@click.option("--replace", is_flag=True, help="Write also over ledgers that count already.")
@click.option(
    "--lease",
    metavar="NAMESPACE/NAME",
    default="slacktide-system/slacktide",
    show_default=True,
    help="The scheduler's kube.lease_namespace and kube.lease_name; nobody may hold it.",
)
def import_(file: Path, kubeconfig: Path | None, context: str | None, replace: bool, lease: str) -> None:
    """Writes the ledgers of FILE to the workloads of the same namespace, kind and name.

    End the scheduler first: it keeps its books in memory, and would write them over these. All of FILE is checked
    before anything is written. The time since the export counts neither for nor against anybody.
    """
    import asyncio

    from slacktide.kube.publish import ledger_transfer

    namespace, slash, name = lease.partition("/")
    if not (namespace and slash and name):
        raise click.UsageError(f"--lease: found {lease!r}, expected NAMESPACE/NAME")
    kept = ledger_transfer.load(file)
    click.echo(asyncio.run(_import(kept, kubeconfig, context, replace, (namespace, name))))


async def _import(
    kept: list[Kept], kubeconfig: Path | None, context: str | None, replace: bool, lease: tuple[str, str]
) -> str:
    from slacktide.kube.client.http import connect
    from slacktide.kube.mirror.watches import installed
    from slacktide.kube.publish.ledger_transfer import nobody_leads, put

    async with await connect(kubeconfig, context=context) as connection:
        await installed(connection)
        await nobody_leads(connection, *lease, time.time())
        outcome = await put(connection, kept, time.time(), replace)
    lines = [f"{len(outcome.written)} of {len(kept)} ledgers written"]
    if outcome.missing:
        lines.append(f"{len(outcome.missing)} not, as there is no such workload: {_listed(outcome.missing)}")
    if outcome.counting:
        known = _listed(outcome.counting)
        lines.append(f"{len(outcome.counting)} not, as they count already (--replace writes over them): {known}")
    return "\n".join(lines)


def _listed(kept: list[Kept]) -> str:
    more = f" and {len(kept) - SHOWN} more" if len(kept) > SHOWN else ""
    return ", ".join(map(str, kept[:SHOWN])) + more
