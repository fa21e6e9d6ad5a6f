"""The published simulator's log of validation 1, replayed one choice at a time.

The log's clock reads one second more than the input: the first request, admitted
at 0 s, waits at 1 s.  The replay rebuilds from the log alone who runs where, since
when and with how much running and pending time, and shows that state to the caller
before it carries out the next logged choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from reference.amounts import fits
from reference.erlang import read_hosts, read_workload
from reference.metric import Ledger
from reference.policies import Pass
from reference.queue import readiness
from reference.state import Host, Instance, Known, build, order
from reference.times import config_on_grid
from slacktide.config import Config

CLOCK_AHEAD = 1.0
"""Seconds by which the log's clock is ahead of the input's admissions."""


@dataclass(frozen=True)
class LoggedChoice:
    """One allocation; ids as in the input. ``costs`` is the best host's tuple: gold, silver, bronze, all."""

    time: float
    request: int
    host: int
    startup: float
    victim: int | None
    feasible: int
    costs: tuple[float, ...]


@dataclass
class LoggedPass:
    """``queue`` holds (request, running seconds) in the order in which they were served."""

    time: float
    queue: list[tuple[int, float]] = field(default_factory=list)
    choices: list[LoggedChoice] = field(default_factory=list)


def rows(path: Path) -> list[list[str]]:
    lines = (line.split() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line[0].startswith("#")]


def read_passes(folder: Path) -> list[LoggedPass]:
    """Passes in order of time; the n-th allocation belongs to the n-th host selection."""
    passes: dict[float, LoggedPass] = {}
    for time, request, running in rows(folder / "Waiting_queue_Task_Agent.dat"):
        at = float(time)
        passes.setdefault(at, LoggedPass(at)).queue.append((int(request), float(running)))
    preemptions = iter(rows(folder / "Preemption_Infra_Manager_1.dat"))
    allocations = rows(folder / "Allocation_Infra_Manager_1.dat")
    selections = rows(folder / "HostSelection_Sch_Agent_1.dat")
    for allocation, selection in zip(allocations, selections, strict=True):
        time, request, host = allocation[0], allocation[1], allocation[2]
        assert selection[:2] == [time, request]
        victim = None
        if selection[6] != "0":
            preempted_at, victim, preempted_on = next(preemptions)
            assert (preempted_at, preempted_on) == (time, host)
        passes[float(time)].choices.append(
            LoggedChoice(
                time=float(time),
                request=int(request),
                host=int(host),
                startup=float(allocation[6]),
                victim=None if victim is None else int(victim),
                feasible=int(selection[2]),
                costs=tuple(float(value) for value in selection[8].strip("{}").split(",")),
            )
        )
    assert next(preemptions, None) is None
    return [passes[at] for at in sorted(passes)]


@dataclass
class Findings:
    """What was looked at, and every choice or request for which the log and the rules disagree."""

    passes: list[tuple[float, int]] = field(default_factory=list)
    """Time and number of allocations."""
    preempting: int = 0
    left_waiting: int = 0
    preempted_in_startup: list[int] = field(default_factory=list)
    queue_order: list[float] = field(default_factory=list)
    out_of_order: list[LoggedChoice] = field(default_factory=list)
    placeable_but_waiting: list[tuple[float, int]] = field(default_factory=list)
    feasible_counts: list[LoggedChoice] = field(default_factory=list)
    not_the_best_score: list[LoggedChoice] = field(default_factory=list)
    needless_preemptions: list[LoggedChoice] = field(default_factory=list)
    ineligible_victims: list[LoggedChoice] = field(default_factory=list)
    wrong_victims: list[LoggedChoice] = field(default_factory=list)
    not_the_best_cost: list[LoggedChoice] = field(default_factory=list)
    costs: list[LoggedChoice] = field(default_factory=list)
    costs_with_whole_running_time: list[LoggedChoice] = field(default_factory=list)


class Replay:
    """Carries out the log on requests and hosts, and compares each choice with the rules before it happens.

    ``short_of_running`` names starts, as request and time, at which the log books one
    second of running time as pending.
    """

    def __init__(self, data: Path, config: Config, short_of_running: frozenset[tuple[int, float]]) -> None:
        workload = read_workload(data / "workload.erl")
        hosts = read_hosts(data / "hosts-20.erl")
        workload = replace(workload, admission=workload.admission + CLOCK_AHEAD)
        self.config = config_on_grid(config)
        self.instances, self.hosts, _ = build(workload, hosts, self.config)
        self.by_id: dict[int, Instance] = {int(i): j for i, j in zip(workload.ids, self.instances, strict=True)}
        self.ids = {j.row: i for i, j in self.by_id.items()}
        self.host_by_id: dict[int, Host] = {int(i): h for i, h in zip(hosts.ids, self.hosts, strict=True)}
        self.ranks = sorted({order(c) for c in workload.classes})
        self.short_of_running = short_of_running
        self.findings = Findings()
        self.known = Known()
        for j in self.instances:
            j.known = self.known
        for host in self.hosts:
            host.known = self.known

    def run(self, passes: list[LoggedPass]) -> Findings:
        for number, logged in enumerate(passes):
            self.known.forget()
            this = Pass(logged.time, number, "qos-driven", self.config, self.ranks)
            self.compare_queue(logged)
            choices = list(logged.choices)
            for request, _ in logged.queue:
                if choices and choices[0].request == request:
                    self.compare_choice(this, choices[0])
                    self.carry_out(choices.pop(0), number)
                else:
                    self.compare_waiting(this, request)
            self.findings.out_of_order += choices
            self.findings.passes.append((logged.time, len(logged.choices)))
        return self.findings

    def compare_queue(self, logged: LoggedPass) -> None:
        """The log's queue is everybody who waits, in queue order up to equal keys."""
        t = logged.time
        waiting = {i for i, j in self.by_id.items() if j.host is None and j.admission <= t}

        def place(j: Instance) -> tuple[int, int, float]:
            below = j.metric_at(t, self.config) < j.margin
            return (0, j.rank, j.key(self.config)) if below else (1, 0, j.key(self.config))

        places = [place(self.by_id[request]) for request, _ in logged.queue]
        running = [self.by_id[request].ledgers["restart"].e for request, _ in logged.queue]
        same = waiting == {request for request, _ in logged.queue} and running == [e for _, e in logged.queue]
        if not same or places != sorted(places) or len(waiting) != len(places):
            self.findings.queue_order.append(t)

    def options(self, this: Pass, j: Instance) -> tuple[list[Host], dict[Host, tuple[Instance, ...]]]:
        """Hosts with room, and the other feasible hosts with their victims."""
        admitting = [h for h in self.hosts if h.admits(j)]
        free = [h for h in admitting if fits(j.demand, h.free())]
        victims = {h: this.victims(j, h, self.hosts) for h in admitting if h not in free}
        return free, {h: v for h, v in victims.items() if v is not None}

    def compare_waiting(self, this: Pass, request: int) -> None:
        free, preempting = self.options(this, self.by_id[request])
        self.findings.left_waiting += 1
        if free or preempting:
            self.findings.placeable_but_waiting.append((this.t, request))

    def compare_choice(self, this: Pass, choice: LoggedChoice) -> None:
        j, host = self.by_id[choice.request], self.host_by_id[choice.host]
        free, preempting = self.options(this, j)
        if len(free) + len(preempting) != choice.feasible:
            self.findings.feasible_counts.append(choice)
        if choice.victim is None:
            best = max(this.score(j, h, h.free()) for h in free)
            if host not in free or this.score(j, host, host.free()) != best:
                self.findings.not_the_best_score.append(choice)
            return
        self.findings.preempting += 1
        if free:
            self.findings.needless_preemptions.append(choice)
        self.compare_victim(this, choice, preempting)

    def compare_victim(self, this: Pass, choice: LoggedChoice, preempting: dict[Host, tuple[Instance, ...]]) -> None:
        findings, t = self.findings, this.t
        j, host, victim = self.by_id[choice.request], self.host_by_id[choice.host], self.by_id[choice.victim or 0]
        if victim.host is not host or victim.placed_in_pass == this.number or not this.eligible(j, victim):
            findings.ineligible_victims.append(choice)
        ours = preempting.get(host, ())
        if [readiness(k, t, self.config) for k in ours] != [readiness(victim, t, self.config)]:
            findings.wrong_victims.append(choice)
        if this.cost((victim,)) < max(this.cost(victims) for victims in preempting.values()):
            findings.not_the_best_cost.append(choice)
        if not same_to_five_digits(this.cost((victim,)), choice.costs):
            findings.costs.append(choice)
        seconds = sum(request == choice.victim and t >= start for request, start in self.short_of_running)
        ledger = victim.ledgers["restart"]
        victim.ledgers["restart"] = Ledger(ledger.e + seconds, ledger.p - seconds)
        self.known.forget_of(host, victim)
        if not same_to_five_digits(this.cost((victim,)), choice.costs):
            findings.costs_with_whole_running_time.append(choice)
        victim.ledgers["restart"] = ledger
        self.known.forget_of(host, victim)

    def carry_out(self, choice: LoggedChoice, number: int) -> None:
        j, t = self.by_id[choice.request], choice.time
        if choice.victim is not None:
            victim = self.by_id[choice.victim]
            if victim.starts > 1 and t < victim.since + victim.startup:
                self.findings.preempted_in_startup.append(choice.victim)
            victim.spent += victim.startup_elapsed(t)
            assert victim.host is not None
            self.known.forget_of(victim.host, victim)
            victim.remove(t)
        j.place(self.host_by_id[choice.host], t, choice.startup, number)
        self.known.forget_of(self.host_by_id[choice.host], j)
        if (choice.request, t) in self.short_of_running:
            ledger = j.ledgers["restart"]
            j.ledgers["restart"] = Ledger(ledger.e - 1.0, ledger.p + 1.0)


def same_to_five_digits(ours: tuple[float, ...], logged: tuple[float, ...]) -> bool:
    """Equal up to half of the fifth digit after the point, and what the grid of times adds to it."""
    return all(abs(a - b) < 6e-6 for a, b in zip(ours, logged, strict=True))
