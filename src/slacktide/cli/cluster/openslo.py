"""``slacktide openslo``: OpenSLO documents become service classes, and the other way; alerts on error budgets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from slacktide.cli.options import FILE, echo_json, in_a_cluster
from slacktide.cli.shell.suggesting import HelpfulGroup

Json = dict[str, Any]
OUT = click.option("--out", type=FILE, help="A file, written whole or not at all.  [default: standard output]")
CLUSTER = in_a_cluster("Of the cluster whose classes are meant where no FILE is given.")
JSON = click.option("--json", "as_json", is_flag=True, help="What was done, as JSON; YAML goes to --out only.")


@click.group(cls=HelpfulGroup)
def openslo() -> None:
    """Service classes from OpenSLO documents, and back; alerts."""


@openslo.command("import")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--rank", type=click.IntRange(1), help="Of SLOs without the annotation slacktide.io/rank; 1 is highest.")
@click.option("--period", metavar="DURATION", help="Window of SLOs of Sloth, whose files name none.  [default: 30d]")
@click.option("--skip-refused", is_flag=True, help="Import the other SLOs where some are refused.")
@OUT
@JSON
def import_(
    files: tuple[Path, ...], rank: int | None, period: str | None, skip_refused: bool, out: Path | None, as_json: bool
) -> None:
    """Makes ServiceClasses, and what binds workloads to them, from documents of OpenSLO (v1, v1alpha, v2alpha), Sloth
    and Pyrra.

    An SLO becomes a class where it is about the share of time in which pods run and are ready: its indicator is a share
    of replicas that kube-state-metrics counts, or it says so by the annotation slacktide.io/availability: "true". What
    a scheduler cannot promise is refused with file, line and field, and then nothing is written.

    \b
      slacktide openslo import slos.yaml | kubectl apply -f -
    """
    from slacktide.errors import RefusedError
    from slacktide.openslo.documents import read_files, yaml_text
    from slacktide.openslo.importing import SPEC, convert

    documents, problems = read_files(files)
    found = convert(documents, rank, period)
    refused = problems + found.refused
    if refused and not skip_refused:
        raise RefusedError(refused)
    if not documents and not refused:
        raise RefusedError([f"{files[0]}: found no document, expected some of OpenSLO, Sloth or Pyrra"])
    objects = found.classes + [one for binding in found.bindings for one in binding.objects()]
    _write(yaml_text(objects), out, as_json)
    if as_json:
        bindings = [
            {"class": one.service_class, "selector": one.selector, "namespaces": one.namespaces}
            | ({"workload": str(one.workload)} if one.workload else {})
            for one in found.bindings
        ]
        workloads = {name: str(one) for name, one in found.workloads.items()}
        echo_json(
            {"classes": found.classes, "bindings": bindings, "workloads": workloads, "refused": refused,
             "passedOver": found.passed_over, "notes": found.notes}
        )  # fmt: skip
        return
    for text in refused:
        click.echo(f"refused: {text}", err=True)
    for text in found.passed_over:
        click.echo(f"passed over: {text}", err=True)
    for text in found.notes:
        click.echo(text, err=True)
    for name, workload in found.workloads.items():
        click.echo(f"{name}: is of {workload}", err=True)
    bound = {one.service_class for one in found.bindings}
    for one in found.classes:
        name = one["metadata"]["name"]
        if name not in bound:
            click.echo(f"{name}: label pod templates with slacktide.io/class: {name}", err=True)
        if not one["spec"].get("namespaces"):
            said = f"annotation {SPEC} with the field namespaces, of names or '*'"
            click.echo(f"{name}: nobody may use it: give the SLO the {said}", err=True)


@openslo.command("export")
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE...]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["openslo", "sloth", "pyrra"]),
    default="openslo",
    show_default=True,
    help="OpenSLO v1; or what Sloth (OpenSLO v1alpha) or Pyrra reads.",
)
@click.option("--window", metavar="DURATION", help="For Sloth and Pyrra, of classes that have no rolling window: 30d.")
@CLUSTER
@OUT
@JSON
def export_(
    files: tuple[Path, ...],
    form: str,
    window: str | None,
    kubeconfig: Path | None,
    context: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Gives SLO documents whose indicators ask Prometheus for what slacktide counts.

    The classes are those of FILE (manifests of ServiceClasses, or settings files with 'classes:'), or of a cluster.
    What a format cannot say is left out and told.

    \b
      slacktide openslo export --format sloth classes.yaml | sloth generate -i -
    """
    from slacktide.errors import ConfigError
    from slacktide.openslo.documents import yaml_text
    from slacktide.openslo.exporting import export

    found = export(_classes(files, kubeconfig, context), form, window)
    if not found.documents:
        raise ConfigError("\n".join(["no class can be exported", *found.left_out]))
    _write(yaml_text(found.documents), out, as_json)
    if as_json:
        echo_json({"documents": found.documents, "leftOut": found.left_out})
        return
    for text in found.left_out:
        click.echo(f"left out: {text}", err=True)


@openslo.command("alerts")
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE...]")
@click.option("--any-class", is_flag=True, help="For whatever classes there are, by the promises that metrics tell.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["rules", "prometheusrule"]),
    default="rules",
    show_default=True,
    help="A rules file of Prometheus, or an object of the Prometheus Operator.",
)
@CLUSTER
@OUT
def alerts_(
    files: tuple[Path, ...],
    any_class: bool,
    form: str,
    kubeconfig: Path | None,
    context: str | None,
    out: Path | None,
) -> None:
    """Gives Prometheus rules that alert where a class's error budget burns too fast.

    The classes are those of FILE (manifests of ServiceClasses, or settings files with 'classes:'), or of a cluster.
    """
    from slacktide.openslo.burn_rates import prometheus_rule, rules, rules_of_any_class
    from slacktide.openslo.documents import yaml_text

    if any_class and (files or kubeconfig or context):
        raise click.UsageError("--any-class: needs neither files nor a cluster")
    found = rules_of_any_class() if any_class else rules(_classes(files, kubeconfig, context))
    made = prometheus_rule(found) if form == "prometheusrule" else found
    comment = f"Made by: slacktide openslo alerts --format {form}" + (" --any-class" if any_class else "")
    _write(yaml_text([made], comment), out, as_json=False)


def _write(text: str, out: Path | None, as_json: bool) -> None:
    from slacktide.whole_file import write_whole

    if out is not None:
        write_whole(out, text)
    elif not as_json:
        click.echo(text, nl=False)


def _classes(files: Sequence[Path], kubeconfig: Path | None, context: str | None) -> list[Json]:
    from slacktide.errors import ConfigError
    from slacktide.openslo.classes import read_classes

    if files and (kubeconfig or context):
        raise click.UsageError("FILE: read in place of a cluster; leave out --kubeconfig and --context")
    if files:
        found, where = read_classes(files), ", ".join(str(one) for one in files)
    else:
        import asyncio

        found, where = asyncio.run(_of_cluster(kubeconfig, context)), "the cluster"
    if not found:
        raise ConfigError(f"{where}: found no ServiceClass, expected at least one")
    return found


async def _of_cluster(kubeconfig: Path | None, context: str | None) -> list[Json]:
    """The ServiceClasses of a cluster, whole, as its API server has them."""
    import json

    from slacktide.kube.client.http import connect
    from slacktide.kube.resources.objects import SERVICE_CLASS
    from slacktide.openslo.classes import class_document

    async with await connect(kubeconfig, context=context) as connection:
        items = json.loads(await connection.get(SERVICE_CLASS.path()))["items"]
    return [class_document(one["metadata"]["name"], one["spec"]) for one in items]
