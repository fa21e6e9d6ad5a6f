"""A past, as :mod:`slacktide.pasts` wrote it, with its promises: what simulations of it begin with."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.errors import InputError, Problem
from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.columns.occasions import parse_amounts
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.pasts import promises as promising
from slacktide.pasts.outcome import FORMAT, PAST, PODS, PROMISED, WorkloadLine, read_workloads
from slacktide.settings import load_live

SETTINGS, WORKLOAD, HOSTS, EVENTS = "settings.json", "workload.parquet", "hosts.parquet", "events.csv"
MOVED = ("hot.csv", "cold.csv", "grace.csv", "batch-recreation.csv", "events.csv")


@dataclass(frozen=True, slots=True)
class PodLine:
    """A pod's way to a node in truth, seconds from the beginning; None: it did not get there."""

    request: int
    created: float
    bound: float | None
    ready: float | None
    node: str


@dataclass(frozen=True, slots=True)
class ClusterPast:
    """What happened, and who is promised what. ``promised`` has the class of each request, ``lines`` who it is, both
    by the request's number; ``about`` is what the past says of itself."""

    folder: Path
    workload: Workload
    hosts: Hosts
    config: Config
    lines: dict[int, WorkloadLine]
    promised: dict[int, ServiceClass]
    pods: list[PodLine]
    about: dict[str, Any]
    unpromised: int = 0
    events: list[dict[str, str]] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """How long it lasted."""
        return float(self.config.simulation.end or 0.0)

    def number_of(self, row: int) -> int:
        """The request that a row of the workload is of, by its number."""
        if self.workload.requests is None or self.workload.request is None:
            return int(self.workload.ids[row])
        return int(self.workload.requests.ids[self.workload.request[row]])


def read(folder: Path, promises: promising.Promises | None = None) -> ClusterPast:
    """A past and its promises, or these ones. Raises :class:`InputError`."""
    about = _about(folder)
    lines = {one.request: one for one in read_workloads(folder)}
    promises = promises or promising.read(folder / promising.FILE)
    config = load_live(folder / SETTINGS)
    workload = read_workload(folder / WORKLOAD, classes=(PROMISED,))
    hosts = read_hosts(folder / HOSTS)
    promised = {number: found for number, one in lines.items() if (found := promises.of(one)) is not None}
    past = ClusterPast(
        folder, workload, hosts, _placed_here(config, folder), lines, promised, _pods(folder), about,
        len(lines) - len(promised), _events(folder),
    )  # fmt: skip
    if not promised:
        raise InputError([
            Problem(str(folder / promising.FILE), 0, "workloads", "", "rules that fit at least one workload")
        ])  # fmt: skip
    return past


def _about(folder: Path) -> dict[str, Any]:
    path = folder / PAST
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError([
            Problem(str(path), 0, "", "", f"what slacktide past writes ({error}): slacktide past SOURCE --out {folder}")
        ]) from None  # fmt: skip
    if about.get("format") != FORMAT:
        raise InputError([Problem(str(path), 0, "format", str(about.get("format")), FORMAT)])
    return about


def _placed_here(config: Config, folder: Path) -> Config:
    """The settings, with the files that lie beside them: the folder may have been moved."""

    def here(name: str) -> str:
        return str(folder / Path(name).name) if Path(name).name in MOVED else name

    startup = replace(config.startup, hot=here(config.startup.hot), cold=here(config.startup.cold))
    failures = replace(config.failures, file=config.failures.file and here(config.failures.file))
    again = config.simulation.batch_recreation
    simulation = replace(config.simulation, grace=here(config.simulation.grace), batch_recreation=again and here(again))
    return replace(config, startup=startup, failures=failures, simulation=simulation)


def _pods(folder: Path) -> list[PodLine]:
    def number(text: str) -> float | None:
        return float(text) if text else None

    path = folder / PODS
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [
                PodLine(
                    int(row["request"]), float(row["created"]), number(row["bound"]), number(row["ready"]), row["node"]
                )
                for row in csv.DictReader(file)
            ]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError([Problem(str(path), 0, "", "", f"what slacktide past wrote ({error})")]) from None


def _events(folder: Path) -> list[dict[str, str]]:
    path = folder / EVENTS
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def with_classes(past: ClusterPast, of: dict[int, ServiceClass]) -> Workload:
    """The workload with the class of each request; requests without one are left as the least important of all."""
    least = max((one.rank for one in of.values()), default=0) + 1
    nothing = ServiceClass("nothing", 0.001, least)
    classes: list[ServiceClass] = []
    index: dict[str, int] = {}
    codes = np.zeros(len(past.workload), np.int16)
    for row in range(len(past.workload)):
        service = of.get(past.number_of(row), nothing)
        if service.name not in index:
            index[service.name] = len(classes)
            classes.append(service)
        codes[row] = index[service.name]
    return replace(past.workload, service_class=codes, classes=tuple(classes))


def by_priority(past: ClusterPast) -> dict[int, ServiceClass]:
    """What each request is promised, with the importance that kube-scheduler sees: its priority. Where all have the
    same one, or none is known, the ranks of the promises stand for it."""
    priorities = sorted({one.priority for one in past.lines.values()}, reverse=True)
    if len(priorities) == 1:
        return past.promised
    found = {}
    for number, one in past.lines.items():
        service = past.promised.get(number)
        if service is not None:
            rank = priorities.index(one.priority) + 1
            found[number] = replace(service, name=f"{service.name}@{one.priority}", rank=rank)
    return found


def sized(past: ClusterPast, size: int) -> tuple[Hosts, list[dict[str, str]]]:
    """So many nodes in the mix of today's, and what happens to them; the second of a name is called ``NAME.2``.

    Nodes are taken evenly from all shapes. What others take of a node they take of its copies, too; failures stay with
    the node that failed, and so does that it was closed, which a file says by others that take all of it.
    """
    names, capacity, attributes, events = [], [], [], list[dict[str, str]]()
    for copy, row in _chosen(past.hosts, size):
        name = past.hosts.names[row]
        called = name if copy == 0 else f"{name}.{copy + 1}"
        names.append(called)
        capacity.append(past.hosts.capacity[row])
        attributes.append(past.hosts.attributes[row])
        mine = [one for one in past.events if one["host"] == name]
        kept = mine if copy == 0 else [one for one in mine if not _is_its_own(one, past.hosts.capacity[row, 0])]
        events += [one | {"host": called} for one in kept]
    hosts = Hosts(np.arange(1, size + 1), tuple(names), np.array(capacity), tuple(attributes), past.hosts.resources)
    return hosts, sorted(events, key=lambda one: float(one["time"]))


def _is_its_own(event: dict[str, str], cpu: float) -> bool:
    """Whether something happens to one node, and not to others of its kind."""
    if event["event"] != "others":
        return event["event"] in ("fail", "repair")
    return dict(parse_amounts(event["amounts"])).get("cpu", 0.0) >= cpu


def _chosen(hosts: Hosts, size: int) -> Sequence[tuple[int, int]]:
    """Which copy of which node, evenly over shapes: what is chosen of fewer is among what is chosen of more."""
    shapes: dict[tuple[float, ...], list[int]] = {}
    for row in range(len(hosts)):
        shapes.setdefault(tuple(hosts.capacity[row].tolist()), []).append(row)
    # The k-th of n nodes of a shape stands at (k + 1/2)/n: in this order every beginning has the mix.
    order = sorted(
        ((place + 0.5) / len(rows), row) for rows in shapes.values() for place, row in enumerate(rows)
    )  # fmt: skip
    rounds = -(-size // len(hosts))
    return [(copy, row) for copy in range(rounds) for _, row in order][:size]


def write_events(events: list[dict[str, str]], path: Path) -> None:
    """Events of hosts as a file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, ("time", "host", "event", "amounts", "marks"), lineterminator="\n")
        rows.writeheader()
        rows.writerows(events)
