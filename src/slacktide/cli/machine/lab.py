"""``slacktide lab``."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from slacktide.cli.options import AS_JSON, FILE, SETTING, echo_json
from slacktide.cli.shell.suggesting import HelpfulGroup

NAMESPACE, ACCOUNT = "slacktide-system", "slacktide"
"""Of the manifests."""


def default_directory() -> Path:
    """Where a lab is whose directory nobody named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "slacktide" / "lab"


def _list_of_labs() -> Path:
    """The file that names the directories of this user's labs."""
    return default_directory().parent / "labs"


def _other_labs(directory: Path) -> list[Path]:
    """Directories of labs that were started elsewhere and not ended."""
    from slacktide.lab.state import known

    return [one for one in known(_list_of_labs()) if one != directory]


def _found(directory: Path | None) -> Path:
    """The lab that is meant: where none is named and none is at the default, the only one that there is.

    Raises:
        LabError: where there are several to choose from.
    """
    from slacktide.lab import LabError
    from slacktide.lab.state import FILE as STATE

    if directory is not None:
        return directory.absolute()
    default = default_directory().absolute()
    if (default / STATE).exists() or not (others := _other_labs(default)):
        return default
    if len(others) > 1:
        named = ", ".join(str(one) for one in others)
        raise LabError(f"no lab in {default}; name one of those in {named}: --dir {shlex.quote(str(others[-1]))}")
    return others[0]


def _say(text: str) -> None:
    click.echo(text, err=True)


DIRECTORY = click.option(
    "--dir", "directory", type=FILE, help="The lab's directory.  [default: slacktide/lab in the user's state folder]"
)
BINARIES = click.option(
    "--bin",
    "binaries",
    type=FILE,
    help="A directory with the programs; what it lacks is looked for elsewhere, or built.",
)


@click.group(cls=HelpfulGroup)
def lab() -> None:
    """A Kubernetes control plane on this machine, to try slacktide.

    etcd, the API server and the controllers are the real ones; only the kubelets are played, by KWOK. It needs
    no cluster, no containers and no rights, and listens on loopback only.
    """


@lab.command()
@DIRECTORY
@BINARIES
@click.option("--nodes", type=click.IntRange(0, 10_000), default=5, show_default=True, help="How many nodes.")
@click.option("--cpu", default="4", show_default=True, help="CPU of each node, a Kubernetes quantity.")
@click.option("--memory", default="16Gi", show_default=True, help="Memory of each node, a Kubernetes quantity.")
@click.option("--pods", type=click.IntRange(1), default=110, show_default=True, help="How many pods a node takes.")
@click.option("--with-kube-scheduler", is_flag=True, help="Start kube-scheduler, too, for pods that name no other.")
@click.option("--without-scheduler", is_flag=True, help="Do not start slacktide's scheduler.")
@click.option(
    "--classes", is_flag=True, help="Apply the service classes of examples/kubernetes: gold, silver, bronze (default)."
)
@SETTING
@AS_JSON
def up(
    directory: Path | None,
    binaries: Path | None,
    nodes: int,
    cpu: str,
    memory: str,
    pods: int,
    with_kube_scheduler: bool,
    without_scheduler: bool,
    classes: bool,
    words: tuple[str, ...],
    as_json: bool,
) -> None:
    """Starts a lab with slacktide's scheduler and leaves it running.

    Programs are looked for in --bin, $SLACKTIDE_LAB_BIN, $KUBEBUILDER_ASSETS, on the PATH and in slacktide's cache;
    what is missing is built with Go (once, about 8 minutes for all). --set is a setting of the scheduler.
    """
    from slacktide.lab import Binaries, ControlPlane, LabError
    from slacktide.lab.binaries import NEEDED
    from slacktide.lab.control_plane import free_ports, reserved
    from slacktide.lab.state import SCHEDULER, remember
    from slacktide.settings import load_live

    if words and without_scheduler:
        raise click.UsageError("--set: is a setting of the scheduler, which --without-scheduler leaves out")
    load_live(overrides=words)  # what cannot be is refused before anything starts
    directory = (directory or default_directory()).absolute()
    programs = [*NEEDED, "kubectl", *(["kube-scheduler"] if with_kube_scheduler else [])]
    with reserved(directory):
        found = Binaries.find(programs, directory=binaries, say=_say)
        plane = ControlPlane.create(directory, found, with_kube_scheduler=with_kube_scheduler)
        plane.start(say=_say)
        try:
            applied = plane.install(classes=classes)
            plane.create_nodes(nodes, cpu=cpu, memory=memory, pods=pods)
            if not without_scheduler:
                kubeconfig = plane.service_account_kubeconfig(NAMESPACE, ACCOUNT)
                plane.add(SCHEDULER, _scheduler(kubeconfig, free_ports(1)[0], words))
        except BaseException:
            plane.kill()
            raise
    with contextlib.suppress(LabError):  # then only --dir leads to it
        remember(_list_of_labs(), directory)
    _say(f"{len(applied)} objects applied, {nodes} nodes of {cpu} CPUs, {memory} and {pods} pods created")
    if as_json:
        echo_json({"kubeconfig": str(plane.kubeconfig), "url": plane.url, "nodes": nodes, "directory": str(directory)})
    else:
        click.echo(_next_commands(plane.kubeconfig, directory, found["kubectl"], classes=classes))


def _scheduler(kubeconfig: Path, port: int, words: Sequence[str] = ()) -> list[str]:
    """The command of the scheduler, under the rights that the manifests give it, with these settings."""
    from slacktide.lab.state import LISTEN

    own = ["kube.leader_election=false", f"{LISTEN}127.0.0.1:{port}", "kube.http_access=loopback"]
    settings = [part for word in [*own, *words] for part in ("--set", word)]
    return [sys.executable, "-m", "slacktide", "run", "--kubeconfig", str(kubeconfig), *settings]


def _next_commands(kubeconfig: Path, directory: Path, kubectl: Path, *, classes: bool) -> str:
    known = shutil.which("kubectl") == str(kubectl)
    command = "kubectl" if known else shlex.quote(str(kubectl))
    none = [] if classes else ["There is no service class yet; those of the examples (or lab up --classes):"]
    return "\n".join(
        [
            f"kubeconfig: {kubeconfig}",
            "Next:",
            f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
            f"  {command} get nodes",
            *none,
            f"  {command} apply -f examples/kubernetes",
            f"  {command} get availability -A",
            f"  slacktide lab down{_where(directory)}",
        ]
    )


@lab.command()
@DIRECTORY
def down(directory: Path | None) -> None:
    """Ends a lab: exactly the processes that its 'up' started. Its data goes, its logs stay."""
    from slacktide.lab import ControlPlane
    from slacktide.lab.control_plane import reserved

    directory = _found(directory)
    plane = ControlPlane.attach(directory)
    with reserved(directory):
        running = [component.name for component in plane.components.values() if component.running]
        plane.stop()
    click.echo(f"ended: {', '.join(running)}" if running else "nothing of it ran any more; its data is removed")


@lab.command()
@DIRECTORY
@AS_JSON
def status(directory: Path | None, as_json: bool) -> None:
    """Says what of a lab runs, and where it can be reached.

    Without --dir it is the lab at the default, or the only one; others that 'up --dir' started are named. Exit code
    0: all of it runs; 1: some of it does not; 2: there is none.
    """
    from slacktide.cli.text import paint, table
    from slacktide.lab import ControlPlane

    others = [] if directory is not None else _other_labs(_found(None))
    directory = _found(directory)
    plane = ControlPlane.attach(directory)
    parts = {name: one.running for name, one in plane.components.items()}
    if as_json:
        pids = {name: one.pid for name, one in plane.components.items()}
        about = {"directory": str(directory), "kubeconfig": str(plane.kubeconfig), "url": plane.url}
        told = {name: {"running": parts[name], "pid": pids[name]} for name in parts}
        echo_json({**about, "components": told} | ({"others": [str(one) for one in others]} if others else {}))
    else:
        rows = [
            [name, str(one.pid), paint("runs", "good") if parts[name] else paint("ended", "bad"), str(one.log)]
            for name, one in plane.components.items()
        ]
        click.echo(f"API server: {plane.url}\nkubeconfig: {plane.kubeconfig}\n")
        click.echo(table(["program", "process", "state", "log"], rows, left=4))
        if all(parts.values()):
            click.echo(f"\nNext: export KUBECONFIG={shlex.quote(str(plane.kubeconfig))}")
        else:
            where = _where(directory)
            click.echo(f"\nSome of it has ended. Next: slacktide lab down{where}; slacktide lab up{where}")
        for other in others:
            click.echo(f"\nAnother lab: slacktide lab status{_where(other)}")
    if not all(parts.values()):
        raise SystemExit(1)


def _where(directory: Path) -> str:
    """The option that names a lab's directory, where it is needed."""
    return "" if directory == default_directory() else f" --dir {shlex.quote(str(directory))}"


@lab.command()
@BINARIES
@AS_JSON
def binaries(binaries: Path | None, as_json: bool) -> None:
    """Finds or builds every program that a lab may start, and prints where they are."""
    from slacktide.lab import Binaries
    from slacktide.lab.building import SOURCES

    found = Binaries.find(list(SOURCES), directory=binaries, say=_say).paths
    if as_json:
        echo_json({program: str(path) for program, path in found.items()})
        return
    for program, path in found.items():
        click.echo(f"{program:24} {path}")
