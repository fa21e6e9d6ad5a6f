"""``slacktide lab``."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from slacktide.cli.options import AS_JSON, FILE, echo_json
from slacktide.cli.shell.suggesting import HelpfulGroup

NAMESPACE, ACCOUNT = "slacktide-system", "slacktide"
"""Of the manifests."""


def default_directory() -> Path:
    """Where a lab is whose directory nobody named."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "slacktide" / "lab"


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
    as_json: bool,
) -> None:
    """Starts a lab with slacktide's scheduler and leaves it running.

    Programs are looked for in --bin, $SLACKTIDE_LAB_BIN, $KUBEBUILDER_ASSETS, on the PATH and in slacktide's cache;
    what is missing is built with Go (once, about 8 minutes for all).
    """
    from slacktide.lab import Binaries, ControlPlane
    from slacktide.lab.binaries import NEEDED
    from slacktide.lab.control_plane import free_ports, reserved
    from slacktide.lab.state import SCHEDULER

    directory = (directory or default_directory()).absolute()
    programs = [*NEEDED, "kubectl", *(["kube-scheduler"] if with_kube_scheduler else [])]
    with reserved(directory):
        found = Binaries.find(programs, directory=binaries, say=_say)
        plane = ControlPlane.create(directory, found, with_kube_scheduler=with_kube_scheduler)
        plane.start(say=_say)
        try:
            applied = plane.install()
            plane.create_nodes(nodes, cpu=cpu, memory=memory, pods=pods)
            if not without_scheduler:
                plane.add(SCHEDULER, _scheduler(plane.service_account_kubeconfig(NAMESPACE, ACCOUNT), *free_ports(1)))
        except BaseException:
            plane.kill()
            raise
    _say(f"{len(applied)} objects applied, {nodes} nodes of {cpu} CPUs, {memory} and {pods} pods created")
    if as_json:
        echo_json({"kubeconfig": str(plane.kubeconfig), "url": plane.url, "nodes": nodes, "directory": str(directory)})
    else:
        click.echo(_next_commands(plane.kubeconfig, directory, found["kubectl"]))


def _scheduler(kubeconfig: Path, port: int) -> list[str]:
    """The command of the scheduler, under the rights that the manifests give it."""
    from slacktide.lab.state import LISTEN

    settings = ["--set", "kube.leader_election=false", "--set", f"{LISTEN}127.0.0.1:{port}"]
    settings += ["--set", "kube.http_access=loopback"]
    return [sys.executable, "-m", "slacktide", "run", "--kubeconfig", str(kubeconfig), *settings]


def _next_commands(kubeconfig: Path, directory: Path, kubectl: Path) -> str:
    known = shutil.which("kubectl") == str(kubectl)
    command = "kubectl" if known else shlex.quote(str(kubectl))
    return "\n".join(
        [
            f"kubeconfig: {kubeconfig}",
            "Next:",
            f"  export KUBECONFIG={shlex.quote(str(kubeconfig))}",
            f"  {command} get nodes",
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

    directory = (directory or default_directory()).absolute()
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

    Exit code 0: all of it runs; 1: some of it does not; 2: there is none.
    """
    from slacktide.cli.text import paint, table
    from slacktide.lab import ControlPlane

    directory = (directory or default_directory()).absolute()
    plane = ControlPlane.attach(directory)
    parts = {name: one.running for name, one in plane.components.items()}
    if as_json:
        pids = {name: one.pid for name, one in plane.components.items()}
        about = {"directory": str(directory), "kubeconfig": str(plane.kubeconfig), "url": plane.url}
        echo_json({**about, "components": {name: {"running": parts[name], "pid": pids[name]} for name in parts}})
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
