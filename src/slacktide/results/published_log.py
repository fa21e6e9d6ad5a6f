"""What happened in a run as the four result files of the authors' simulator (:mod:`.published_files`).

The files say less than a run of ours knows: nothing of several instances, of amounts that change, or of hosts that
fail. Runs with any of these are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.kernels.runtime import chance
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.results import published_files as files
from slacktide.results.published_files import AHEAD, ENDED, PLACED, PREEMPTED, Happening, erlang
from slacktide.sim import EVENT_KINDS, RunResult
from slacktide.sim.startup import delays
from slacktide.state.layout import on_grid


@dataclass(slots=True)
class Life:
    """What became of a request so far: seconds in the ledgers' terms, and where it is.

    ``running`` counts the first start-up, as the files do; ``useful`` counts none. ``since``: placed there, or waiting.
    """

    row: int
    since: float
    host: int | None = None
    starts: int = 0
    startup: float = 0.0
    running: float = 0.0
    useful: float = 0.0
    pending: float = 0.0
    startup_first: float = 0.0
    startup_restarts: float = 0.0
    wasted_startup: float = 0.0
    preemptions: int = 0
    completed: float = float("nan")
    over: bool = False
    hosts: set[int] = field(default_factory=set)

    def place(self, now: float, host: int, startup: float) -> None:
        self.pending += now - self.since
        self.host, self.since, self.startup = host, now, startup
        self.starts += 1
        self.hosts.add(host)

    def leave(self, now: float) -> None:
        """Off its host, and waiting."""
        on, spent = now - self.since, min(self.startup, now - self.since)
        self.useful += on - spent
        if self.starts == 1:
            self.running += on
            self.startup_first += spent
        else:
            self.running += on - spent
            self.startup_restarts += spent
        self.host, self.since = None, now

    def ran(self, now: float) -> float:
        """Running time by ``now``, with that of the present incarnation."""
        if self.host is None:
            return self.running
        return self.running + max(0.0, now - self.since - (self.startup if self.starts > 1 else 0.0))

    def preempt(self, now: float) -> None:
        self.wasted_startup += min(self.startup, now - self.since)
        self.preemptions += 1
        self.leave(now)


def check(workload: Workload, config: Config) -> None:
    """Raises :class:`ConfigError` for what the files cannot say."""
    there = {
        "requests of several instances": workload.requests is not None,
        "resizes": workload.resize is not None,
        "grace periods": workload.grace is not None,
        "spells of unreadiness": workload.unready is not None,
        "requests from before the run": workload.lost is not None,
        "failures of hosts (failures.file, failures.uptime)": bool(config.failures.file or config.failures.uptime),
        "a network (delay.network)": config.delay.network is not None,
        "simulation.recreation": config.simulation.recreation > 0.0,
    }
    found = [name for name, is_there in there.items() if is_there]
    if found:
        raise ConfigError(
            f"--format published: found {', '.join(found)}, of which the authors' files say nothing; "
            "leave out --format, or these"
        )


def write(folder: Path, workload: Workload, hosts: Hosts, config: Config, result: RunResult) -> None:
    """The four files of a run that kept its events and passes."""
    if result.events is None or result.passes is None:
        raise ValueError("result: found no events or passes, expected a run that kept both")
    told = list(happenings(workload, hosts, config, result.events))
    times = [float(one) for one in result.passes["time"]]
    write_told(folder, workload, hosts, config, told, times, float(result.end))


def happenings(
    workload: Workload, hosts: Hosts, config: Config, events: Mapping[str, NDArray[Any]]
) -> Iterator[Happening]:
    """The events of a run, as far as the files have them; start-ups as they were drawn."""
    tables = [on_grid(delays(getattr(config.startup, one), f"startup.{one}")) for one in ("hot", "cold")]
    kinds = {EVENT_KINDS.index(ours): theirs for ours, theirs in
             {"placed": PLACED, "preempted": PREEMPTED, "completed": ENDED}.items()}  # fmt: skip
    been: dict[int, list[int]] = {}
    for time, kind, row, host in zip(*(events[name].tolist() for name in ("time", "kind", "row", "host")), strict=True):
        if kind not in kinds:
            continue
        startup = None
        where = been.setdefault(row, [])
        if kinds[kind] == PLACED:
            table = tables[0 if host in where else 1]
            startup = float(table[_draw(config.simulation.seed, row, len(where)) % len(table)])
            where.append(host)
        place = where[-1] if host < 0 else host
        yield Happening(time, kinds[kind], int(workload.ids[row]), int(hosts.ids[place]), startup)


def _draw(seed: int, row: int, starts: int) -> int:
    with np.errstate(over="ignore"):  # the hash wraps around
        return int(chance.draw(np.uint64(seed), chance.STARTUP, row, starts))


class Story:
    """What happened, carried out step by step: every life, and what each host holds."""

    def __init__(self, workload: Workload, hosts: Hosts) -> None:
        self.workload = workload
        self.lives = {int(number): Life(row, float(at)) for row, (number, at) in
                      enumerate(zip(workload.ids, workload.admission, strict=True))}  # fmt: skip
        self.held = {int(number): [0.0, 0.0] for number in hosts.ids}
        places = [workload.resources.index(name) for name in ("cpu", "memory")]
        self._demand = workload.demand[:, places].tolist()

    def carry_out(self, one: Happening) -> None:
        life, sign = self.lives[one.request], 1.0 if one.what == PLACED else -1.0
        if one.what == PLACED:
            life.place(one.time, one.host, one.startup or 0.0)
        elif one.what == PREEMPTED:
            life.preempt(one.time)
        else:
            life.leave(one.time)
            life.over = True
        asked = self._demand[life.row]
        self.held[one.host] = [held + sign * each for held, each in zip(self.held[one.host], asked, strict=True)]

    def waiting(self, now: float, *, before: bool = False) -> list[int]:
        """Who is admitted by ``now`` (``before`` it) and on no host, by number."""
        admission = self.workload.admission
        return [
            number
            for number, life in self.lives.items()
            if life.host is None
            and not life.over
            and (admission[life.row] < now if before else admission[life.row] <= now)
        ]


class Order:
    """The metric, and the order of the queue, by the papers' rules."""

    def __init__(self, workload: Workload, config: Config) -> None:
        self._by_class = config.policy.name == "priority"
        self._workload, self._margin = workload, config.qos.margin
        self._alpha, self._orders = config.qos.alpha, config.policy.queue_order

    def slack(self, life: Life, now: float) -> float:
        """The metric Q, seconds; a first start-up counts as running."""
        service = self._service(life)
        alpha = float(on_grid(np.array(service.alpha_or(self._alpha))))
        return life.ran(now) / service.slo - (now - float(self._workload.admission[life.row])) - alpha

    def key(self, life: Life, now: float) -> tuple[Any, ...]:
        """By which the queue is sorted."""
        service = self._service(life)
        if self._by_class:
            return (service.rank, float(self._workload.admission[life.row]), life.row)
        slack = self.slack(life, now)
        margin = service.margin if self._margin is None else self._margin
        below = slack < margin and self._orders == "importance"
        return (0 if below else 1, service.rank if below else 0, round(slack, 6), life.row)

    def _service(self, life: Life) -> ServiceClass:
        return self._workload.classes[int(self._workload.service_class[life.row])]


def write_told(
    folder: Path,
    workload: Workload,
    hosts: Hosts,
    config: Config,
    told: Sequence[Happening],
    passes: Sequence[float],
    end: float,
) -> None:
    """The four files of what happened, with passes at these seconds."""
    by_class = config.policy.name == "priority"
    story, order = Story(workload, hosts), Order(workload, config)
    admitted = set(workload.admission.tolist())
    rows: dict[str, list[list[str]]] = {name: [] for name in files.CURVES}
    told, at = list(told), 0

    def ran(seconds: float, starts: int) -> str:
        return erlang(seconds, whole=by_class or not starts)

    def queue(now: float) -> dict[int, int]:
        """Writes the queue; the place in it of each."""
        waits = sorted(story.waiting(now), key=lambda number: order.key(story.lives[number], now))
        time = erlang(now + AHEAD)
        for number in waits:
            life = story.lives[number]
            rows[files.QUEUE].append([time, str(number), ran(life.running, life.starts)])
        return {number: place for place, number in enumerate(waits)}

    def tell(one: Happening, index: int) -> None:
        before = story.held[one.host]
        story.carry_out(one)
        time, life = erlang(one.time + AHEAD), story.lives[one.request]
        row = [time, str(one.request), str(one.host)]
        if one.what == PREEMPTED:
            rows[files.PREEMPTION].append(row)
        elif one.what == ENDED:
            held = [erlang(each, whole=False) for each in before]
            rows[files.TERMINATION].append([*row, *held, ran(life.running, life.starts), str(files.AT_THE_END)])
        else:
            held = [erlang(each, whole=False) for each in story.held[one.host]]
            startup = [] if by_class else [erlang(one.startup or 0.0)]
            rows[files.ALLOCATION].append([*row, *held, str(index), *startup])

    places: dict[int, int] = {}
    first = files.AT_WATCHDOG
    for now in [*passes, float("inf")]:
        while at < len(told) and (told[at].time < now or (told[at].time == now and told[at].what == ENDED)):
            one = told[at]
            tell(one, first + files.EACH * places.get(one.request, len(places)))
            at += 1
        if now < float("inf"):
            first = files.AT_ADMISSION if now in admitted else files.AT_WATCHDOG
            places = queue(now)
    _end(story, tell, queue, end)
    for name, cells in rows.items():
        curves = files.CURVES[name][:-1] if by_class and name == files.ALLOCATION else None
        files.write(folder / name, cells, curves)


def _end(story: Story, tell: Any, queue: Any, end: float) -> None:
    """At the end all that run are over, host by host, and those that wait are written once more."""
    left = [(life.host, number) for number, life in story.lives.items() if life.host is not None]
    held = {host: list(amounts) for host, amounts in story.held.items()}
    waits = {number: life for number, life in story.lives.items() if life.host is None and not life.over}
    for host, number in sorted(left):
        story.held[host] = held[host]  # as if all were over at once
        tell(Happening(end, ENDED, number, host), files.AT_THE_END)
    if waits:
        queue(end + files.AFTER_THE_END)
