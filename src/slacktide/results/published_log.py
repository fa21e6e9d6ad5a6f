"""What happened in a run as the four result files of the authors' simulator (:mod:`.published_files`).

The files say less than a run of ours knows: nothing of several instances, of amounts that change, or of hosts that
fail. Runs with any of these are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    told = happenings(workload, hosts, config, result.events)
    write_told(folder, workload, hosts, config, told, result.passes["time"].tolist(), float(result.end))


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
        self._waiting: set[int] = set()
        self._admitted = 0

    def carry_out(self, one: Happening) -> None:
        life, sign = self.lives[one.request], 1.0 if one.what == PLACED else -1.0
        if one.what == PLACED:
            life.place(one.time, one.host, one.startup or 0.0)
            self._waiting.discard(one.request)
        elif one.what == PREEMPTED:
            life.preempt(one.time)
            self._waiting.add(one.request)
        else:
            life.leave(one.time)
            life.over = True
        asked = self._demand[life.row]
        self.held[one.host] = [held + sign * each for held, each in zip(self.held[one.host], asked, strict=True)]

    def waiting(self, now: float) -> set[int]:
        """Who is admitted by ``now``, which never goes back, and on no host, by number."""
        ids, admission = self.workload.ids, self.workload.admission
        while self._admitted < len(ids) and admission[self._admitted] <= now:
            self._waiting.add(int(ids[self._admitted]))
            self._admitted += 1
        return self._waiting


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
    told: Iterable[Happening],
    passes: Sequence[float],
    end: float,
) -> None:
    """The four files of what happened, with passes at these seconds."""
    log, at = _Log(workload, hosts, config), 0
    happened, admitted = list(told), set(workload.admission.tolist())
    for now in [*passes, float("inf")]:
        while at < len(happened) and (happened[at].time, happened[at].what != ENDED) < (now, True):
            log.tell(happened[at])
            at += 1
        if now < float("inf"):
            log.begin(now, files.AT_ADMISSION if now in admitted else files.AT_WATCHDOG)
    log.close(end)
    for name, cells in log.rows.items():
        curves = files.CURVES[name][:-1] if log.by_class and name == files.ALLOCATION else None
        files.write(folder / name, cells, curves)


class _Log:
    """Rows of the four files, as what happens is told."""

    def __init__(self, workload: Workload, hosts: Hosts, config: Config) -> None:
        self.by_class = config.policy.name == "priority"
        self.rows: dict[str, list[list[str]]] = {name: [] for name in files.CURVES}
        self._story, self._order = Story(workload, hosts), Order(workload, config)
        self._first, self._places = files.AT_WATCHDOG, dict[int, int]()

    def begin(self, now: float, first: int) -> None:
        """A pass: who waits, in order; ``first`` is the index of the first of them."""
        self._first = first
        waits = sorted(self._story.waiting(now), key=lambda number: self._order.key(self._story.lives[number], now))
        self._places = {number: place for place, number in enumerate(waits)}
        time = erlang(now + AHEAD)
        for number in waits:
            self.rows[files.QUEUE].append([time, str(number), self._ran(self._story.lives[number])])

    def tell(self, one: Happening) -> None:
        """One thing that happens, in its file."""
        before = self._story.held[one.host]
        self._story.carry_out(one)
        row = [erlang(one.time + AHEAD), str(one.request), str(one.host)]
        if one.what == PREEMPTED:
            self.rows[files.PREEMPTION].append(row)
            return
        held = [erlang(each, whole=False) for each in (before if one.what == ENDED else self._story.held[one.host])]
        if one.what == ENDED:
            ran = self._ran(self._story.lives[one.request])
            self.rows[files.TERMINATION].append([*row, *held, ran, str(files.AT_THE_END)])
        else:
            index = self._first + files.EACH * self._places.get(one.request, len(self._places))
            startup = [] if self.by_class else [erlang(one.startup or 0.0)]
            self.rows[files.ALLOCATION].append([*row, *held, str(index), *startup])

    def close(self, end: float) -> None:
        """At the end all that run are over, host by host, and those that wait are written once more."""
        lives = self._story.lives.items()
        left = sorted((life.host, number) for number, life in lives if life.host is not None)
        held = {host: list(amounts) for host, amounts in self._story.held.items()}
        for host, number in left:
            self._story.held[host] = held[host]  # as if all were over at once
            self.tell(Happening(end, ENDED, number, host))
        self.begin(end + files.AFTER_THE_END, self._first)

    def _ran(self, life: Life) -> str:
        """Running time: a whole number of who never started, and under priority."""
        return erlang(life.running, whole=self.by_class or not life.starts)
