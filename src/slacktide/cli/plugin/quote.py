"""``kubectl slack quote``: what pods would get that are not there yet."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import FILE, in_a_cluster
from slacktide.cli.shell import completing

if TYPE_CHECKING:
    from slacktide.config import Config
    from slacktide.dryrun.quote import Asked, Quote
    from slacktide.kube.client.credentials import Access
    from slacktide.kube.client.http import Connection

INSTALLED = "slacktide-system/slacktide"


@click.command()
@click.option(
    "-f",
    "--filename",
    "file",
    required=True,
    metavar="FILE",
    shell_complete=completing.files,
    help="A Pod or workload; - is the input.",
)
@click.option(
    "--class",
    "service_class",
    default="",
    metavar="NAME",
    shell_complete=completing.service_classes,
    help="Its service class, whatever FILE says.",
)
@in_a_cluster()
@click.option(
    "-n",
    "--namespace",
    shell_complete=completing.namespaces,
    help="Where the pods would be.  [default: FILE's, else the context's]",
)
@click.option("--config", "config_file", type=FILE, help="The scheduler's settings.  [default: those installed]")
@click.option("--installed", default=INSTALLED, show_default=True, metavar="NAMESPACE/NAME", help="Its ConfigMap.")
@click.option("--json", "as_json", is_flag=True, help="What was decided, as JSON.")
def quote(
    file: str,
    service_class: str,
    kubeconfig: Path | None,
    context: str | None,
    namespace: str | None,
    config_file: Path | None,
    installed: str,
    as_json: bool,
) -> None:
    """Says what would become of the pods of FILE if they were created now: the node, and which pods they would preempt.

    The API server is asked what it would make of them, and refuses what it would refuse. Then one pass decides, with
    the scheduler's settings, on the cluster and its ledgers as they are. Nothing is written. It needs the rights to
    create pods in the namespace, and to list what the scheduler lists.

    Pods of a workload are looked at as pods of their own: the slack that they would share is not known before they
    run. The scheduler may choose another of several equal nodes, and it decides later, on what is there then.
    """
    import asyncio

    from slacktide.dryrun.quote import MOST_PODS, workloads
    from slacktide.kube.client.credentials import load_access, namespace_of

    text = sys.stdin.read() if file == "-" else _read(Path(file))
    found = workloads(text, file)
    if sum(one.count for one in found) > MOST_PODS:
        raise click.UsageError(f"-f {file}: found more than {MOST_PODS} pods; set replicas to fewer")
    usual = namespace_of(kubeconfig, context)
    asked = [(one, namespace or one.namespace or usual) for one in found]

    async def answered() -> list[Quote]:
        access = await load_access(kubeconfig, context)
        return await _quotes(access, asked, service_class, config_file, installed)

    answers = asyncio.run(answered())
    click.echo(json.dumps([_plain(one) for one in answers], indent=2) if as_json else _text(answers))


def _read(file: Path) -> str:
    from slacktide.errors import ConfigError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"-f {file}: {getattr(error, 'strerror', None) or 'no UTF-8'}; expected manifests") from None


async def _quotes(
    access: Access,
    asked: list[tuple[Asked, str]],
    service_class: str,
    config_file: Path | None,
    installed: str,
) -> list[Quote]:
    from slacktide.dryrun.dry_run import ReadOnly
    from slacktide.dryrun.quote import quotes, would_make
    from slacktide.kube.client.http import Connection

    async with Connection(access) as asking, ReadOnly(access) as connection:
        config = await _settings(asking, config_file, installed)
        scheduler = config.kube.scheduler_name
        pods = [
            await would_make(asking, one, namespace, scheduler, service_class)
            for one, namespace in asked
            for _ in range(one.count)
        ]
        return await quotes(connection, config, pods)


async def _settings(connection: Connection, file: Path | None, installed: str) -> Config:
    """Those of ``file``, else of the scheduler's ConfigMap, else the defaults, with a word on it."""
    from slacktide.dryrun.quote import settings_of
    from slacktide.kube.client.http import ApiError
    from slacktide.settings import load_live

    if file is not None:
        return load_live(file)
    namespace, _, name = installed.partition("/")
    if not name:
        raise click.UsageError(f"--installed: found {installed!r}, expected NAMESPACE/NAME, such as {INSTALLED}")
    try:
        text, problem = await settings_of(connection, namespace, name), "is not there"
    except ApiError as error:
        text, problem = None, f"cannot be read ({error.message})"
    if text is None:
        click.echo(
            f"ConfigMap {installed} {problem}: the default settings are taken; --config FILE names others", err=True
        )
        return load_live()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "config.yaml"
        copy.write_text(text, encoding="utf-8")
        return load_live(copy)


def _text(answers: list[Quote]) -> str:
    placed = sum(one.decision is not None for one in answers)
    victims = len({name for one in answers for name, _ in one.victims})
    head = f"{placed} of {len(answers)} pods could be placed now, preempting {victims or 'no pods'}"
    return "\n".join([head, *(f"  {one.text()}" for one in answers)])


def _plain(one: Quote) -> dict[str, Any]:
    return {
        "pod": one.name,
        "node": None if one.decision is None else one.decision.host,
        "victims": [{"pod": name, "slack": slack if slack < float("inf") else None} for name, slack in one.victims],
        "ledger": one.story.get("ledger"),
        "problem": one.story.get("problem", ""),
        "reason": one.story.get("reason", ""),
    }
