"""What runs in a lab's directory, in a file, so that another process can end exactly that."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from slacktide.lab.errors import LabError
from slacktide.lab.kubeconfig import write_private
from slacktide.lab.processes import Component, locked
from slacktide.lab.programs import Layout

FILE = "lab.json"
LOCK = "lock"
VERSION = 1
SCHEDULER = "slacktide"
"""The component that is our scheduler."""
LISTEN = "kube.listen="


def write(layout: Layout, components: dict[str, Component]) -> None:
    """Writes the directory's state, aside and then renamed."""
    content = {
        "version": VERSION,
        "ports": {"etcd": layout.etcd_port, "peer": layout.peer_port, "api_server": layout.secure_port},
        "components": [
            {
                "name": component.name,
                "pid": component.pid,
                "born": component.born,
                "command": list(component.command),
                "environment": component.environment,
            }
            for component in components.values()
        ],
    }
    write_private(layout.directory / FILE, json.dumps(content, indent=2) + "\n")


def read(directory: Path) -> tuple[Layout, dict[str, Component]]:
    """The state that ``write`` wrote.

    Raises:
        LabError: if there is none or it is not understood.
    """
    file = directory / FILE
    try:
        content = json.loads(file.read_text())
    except FileNotFoundError:
        raise LabError(f"no lab in {directory}; start one: slacktide lab up --dir {directory}") from None
    except (OSError, ValueError) as error:
        raise LabError(f"{file}: cannot be read: {error}") from error
    try:
        if content["version"] != VERSION:
            raise LabError(f"{file}: version: found {content['version']!r}, expected {VERSION}")
        ports = content["ports"]
        layout = Layout(directory, int(ports["etcd"]), int(ports["peer"]), int(ports["api_server"]))
        return layout, {str(one["name"]): _component(layout, one) for one in content["components"]}
    except (KeyError, TypeError, ValueError) as error:
        raise LabError(f"{file}: is damaged ({type(error).__name__}: {error}); expected a lab's state") from error


def _component(layout: Layout, one: dict[str, Any]) -> Component:
    name = str(one["name"])
    return Component(
        name,
        [str(part) for part in one["command"]],
        layout.log(name),
        dict(one["environment"]),
        int(one["pid"]),
        str(one["born"]),
    )


def scheduler_address(directory: Path, server: str) -> str:
    """Where the scheduler listens that the lab in this directory has started.

    Empty where there is none, or where its API server is not ``server``.
    """
    try:
        layout, components = read(directory)
    except LabError:
        return ""
    if server != layout.url:
        return ""
    command = components[SCHEDULER].command if SCHEDULER in components else []
    return next((word.removeprefix(LISTEN) for word in reversed(command) if word.startswith(LISTEN)), "")


def forget(directory: Path) -> None:
    """Removes the state, and what no later lab needs: data, keys, tokens, kubeconfigs. Logs stay."""
    for name in ("data", "pki"):
        shutil.rmtree(directory / name, ignore_errors=True)
    for file in (*directory.glob("kubeconfig*"), directory / FILE):
        file.unlink(missing_ok=True)


def remember(file: Path, directory: Path) -> None:
    """A lab was started in ``directory``; those that are no more are forgotten.

    Raises:
        LabError: if the file cannot be written.
    """
    with locked(file.with_suffix(".lock")):
        others = [one for one in known(file) if one != directory]
        write_private(file, "".join(f"{one}\n" for one in [*others, directory]))


def known(file: Path) -> list[Path]:
    """Directories of labs that were started and not ended, the latest last."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [Path(line) for line in lines if line and (Path(line) / FILE).exists()]
