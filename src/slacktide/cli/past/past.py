"""``slacktide past``: a cluster's past, or its present, as the input of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import AS_JSON, DURATION, FILE, SETTING, echo_json, in_a_cluster
from slacktide.cli.shell.suggesting import HelpfulGroup

if TYPE_CHECKING:
    from slacktide.pasts.outcome import Past
    from slacktide.pasts.story import Story


@dataclass(frozen=True, slots=True)
class Asked:
    """Options that all sources share."""

    out: Path
    promise: str
    verdict: bool
    anonymize: bool
    horizon: float
    words: tuple[str, ...]
    as_json: bool


def _shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every source, as one :class:`Asked`."""
    options = (
        click.option("--out", type=FILE, required=True, help="A folder for the files."),
        click.option(
            "--promise", default="", metavar="WAY",
            help="What the proposed classes are of: priority, namespace, kind, data, or label=KEY.  [default: "
            "ServiceClasses of the cluster where it has some, priority where there are several, else data]",
        ),
        click.option("--verdict", is_flag=True, help="Judge it at once, as 'slacktide verdict DIR' does."),
        click.option("--anonymize", is_flag=True, help="Replace all names, so that the files can be given away."),
        click.option(
            "--horizon", type=DURATION, default=86_400.0, metavar="DURATION",
            help="So long a cluster of which only the present is known goes on as it is.  [default: 1d]",
        ),
        SETTING,
        AS_JSON,
    )  # fmt: skip

    @wraps(command)
    def called(out: Path, promise: str, verdict: bool, anonymize: bool, horizon: float, words: tuple[str, ...],
               as_json: bool, **rest: Any) -> None:  # fmt: skip
        command(Asked(out, promise, verdict, anonymize, horizon, words, as_json), **rest)

    shared: Callable[..., Any] = called
    for option in reversed(options):
        shared = option(shared)
    return shared


@click.group(cls=HelpfulGroup)
def past() -> None:
    """Reads what a cluster did, or is, for a simulation.

    \b
      slacktide past cluster --out week
      slacktide past audit /var/log/kubernetes/audit --out week
      slacktide past prometheus https://prometheus.example.com --out week
      slacktide past objects dump.json --out week
      slacktide verdict week
      slacktide past classes week

    Writes workload, hosts, what happened to hosts, settings, who had what, and promises.yaml: a proposal of who is
    promised what, to be edited. Environment variables, arguments and annotations of pods are not read.
    """


@past.command()
@in_a_cluster("Of the cluster.  [default: $KUBECONFIG, ~/.kube/config]")
@_shared
def cluster(asked: Asked, kubeconfig: Path | None, context: str | None) -> None:
    """What runs and waits in a cluster now.

    It only lists, and first says what: all that decides where a pod may run, whose it is and what it is promised. Jobs
    that run are taken to run on.

    \b
      slacktide past cluster --out now --verdict
    """
    import asyncio

    from slacktide.pasts.cluster import read

    _make(asyncio.run(read(kubeconfig, context, _say)), asked)


@past.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--events", type=FILE, help="'kubectl get events -A -o json': what happened in the last hour, too.")
@_shared
def objects(asked: Asked, files: Sequence[Path], events: Path | None) -> None:
    """What 'kubectl get -o json', must-gather or a backup says of a cluster: JSON, YAML, folders, tar archives.

    \b
      kubectl get nodes,namespaces,pods,deployments,replicasets,statefulsets,jobs,pdb,pv,pvc -A -o json > now.json
      slacktide past objects now.json --out now
    """
    from slacktide.pasts import events as happened
    from slacktide.pasts import object_files

    _make(object_files.story(files) if events is None else happened.story(files, events), asked)


@past.command()
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@_shared
def audit(asked: Asked, files: Sequence[Path]) -> None:
    """What the API server's audit logs say: files, also gz and zst, and folders of them.

    The policy must log pods, pods/binding, nodes and workloads at level Request or RequestResponse.

    \b
      slacktide past audit /var/log/kubernetes/audit --out week
    """
    from slacktide.pasts.audit import story

    _say("reading the logs")
    _make(story(files), asked)


@past.command()
@click.argument("url")
@click.option(
    "--from", "begin", type=DURATION, default=604_800.0, metavar="DURATION", help="Begin so long ago.  [default: 7d]"
)
@click.option("--to", "end", type=DURATION, default=0.0, metavar="DURATION", help="End so long ago.  [default: now]")
@click.option("--match", default="", metavar="LABELS", help="Only these series, such as 'cluster=\"prod\"'.")
@click.option("--token-file", type=FILE, help="A file with a bearer token.")
@click.option("--user", default="", help="For basic authentication; the password is in $SLACKTIDE_PROMETHEUS_PASSWORD.")
@click.option("--tenant", default="", help="Sent as X-Scope-OrgID, which Mimir asks for.")
@click.option("--ca-file", type=FILE, help="Certificates that are trusted.")
@_shared
def prometheus(
    asked: Asked, url: str, begin: float, end: float, match: str, token_file: Path | None, user: str, tenant: str,
    ca_file: Path | None,
) -> None:  # fmt: skip
    """What a Prometheus at URL, or Thanos or Mimir, knows of a cluster by kube-state-metrics.

    What was fetched is kept in the folder: the same command goes on after an interruption.

    \b
      slacktide past prometheus https://prometheus.example.com --from 7d --out week
    """
    import os
    import time

    from slacktide.pasts.prometheus.source import story

    token = "" if token_file is None else _word_of(token_file)
    password = os.environ.get("SLACKTIDE_PROMETHEUS_PASSWORD", "")
    now = time.time()
    told = story(
        url, now - begin, now - end, match=match, token=token, user=user, password=password, tenant=tenant,
        ca="" if ca_file is None else str(ca_file), folder=asked.out / "fetched", say=_say,
    )  # fmt: skip
    _make(told, asked)


@past.command()
@click.argument("folder", type=FILE, metavar="DIR")
def classes(folder: Path) -> None:
    """Prints the classes of DIR/promises.yaml as ServiceClasses, and says how workloads come to them.

    \b
      slacktide past classes week | kubectl apply -f -
    """
    from slacktide.openslo.documents import yaml_text
    from slacktide.pasts import promises
    from slacktide.submit.manifests import class_object

    found = promises.read(folder / promises.FILE)
    made = [class_object(one) for one in found.classes]
    for one in made:
        one["spec"]["approach"] = "aggregated"  # as the verdict judges: what all pods of a workload got together
    click.echo(yaml_text(made), nl=False)
    for line in promises.ways(found):
        _say(line)


def _word_of(path: Path) -> str:
    from slacktide.errors import InputError, Problem

    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem(str(path), 0, "", "", f"a file with a token ({error})")]) from None


def _say(text: str) -> None:
    click.echo(text, err=True)


def _make(told: Story, asked: Asked) -> None:
    from slacktide.pasts import outcome, promises
    from slacktide.pasts.anonymous import anonymized

    promises.check(asked.promise)
    config = outcome.settings_of(asked.words)
    if asked.anonymize:
        told = anonymized(told)
    made = outcome.write(told, asked.out, config=config, horizon=asked.horizon)
    promises.propose_in(asked.out, made.workloads, asked.promise, config.qos.startup)
    if not asked.as_json:
        click.echo(_text(made, asked.out))
    if asked.verdict:
        from slacktide.cli.past.verdict import judge

        judge(asked.out, as_json=asked.as_json)
    elif asked.as_json:
        echo_json({
            "out": str(asked.out), "seconds": made.seconds, "workloads": len(made.workloads), "nodes": made.made.hosts,
            "instances": made.made.instances, "counts": dict(made.counts), "notes": made.notes,
        })  # fmt: skip


def _text(made: Past, out: Path) -> str:
    from slacktide.for_people import count, counted
    from slacktide.model.durations import write_duration
    from slacktide.pasts import promises

    said = promises.summary(promises.read(out / promises.FILE), made.workloads)
    lines = [
        f"{made.source}: {counted(len(made.workloads), 'workload')} of {counted(made.made.instances, 'instance')} on "
        f"{counted(made.made.hosts, 'node')}, "
        + ("as they are" if made.snapshot else f"{write_duration(round(made.seconds))} of them"),
        f"{out / promises.FILE}: " + ", ".join(f"{name} for {count(number)}" for name, number in said.items()),
    ]
    lines += [f"not known: {one}" for one in made.notes]
    lines.append(f"slacktide verdict {out}")
    return "\n".join(lines)
