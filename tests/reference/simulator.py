"""Exact events, one pass after all events of an instant (docs/semantics.md, A pass at instant t and The end)."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from reference import chance
from reference.outcome import Outcome, RequestOutcome
from reference.policies import Choice, Mode, Pass
from reference.state import Host, Instance, build
from reference.times import config_on_grid, on_grid
from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.model import Hosts, Workload

HostEvent = tuple[float, int, str]
"""Time (s), host row, ``down`` (failure), ``drain`` or ``up``."""


class Simulation:
    """One run. Methods named after what happens; the clock is ``self.now``."""

    def __init__(
        self,
        workload: Workload,
        hosts: Hosts,
        config: Config,
        hot: Sequence[float],
        cold: Sequence[float],
        host_events: Sequence[HostEvent],
    ) -> None:
        if config.policy.name not in ("qos-driven", "priority", "hybrid"):
            raise ConfigError(f"policy.name: found {config.policy.name!r}, the twin knows the built-in policies")
        self.config = config = config_on_grid(config)
        self.hot, self.cold = [on_grid(delay) for delay in hot], [on_grid(delay) for delay in cold]
        self.instances, self.hosts = build(workload, hosts, config)
        self.cpu, self.memory = hosts.resources.index("cpu"), hosts.resources.index("memory")
        self.ranks = sorted({c.rank for c in workload.classes})
        self.outcome = Outcome(requests=[RequestOutcome() for _ in self.instances])
        self.end = inf if config.simulation.end is None else config.simulation.end
        self.arrivals = [j for j in self.instances if j.admission < self.end]
        self.changes = sorted(
            ((on_grid(t), row, kind) for t, row, kind in host_events if on_grid(t) < self.end), key=lambda e: e[0]
        )
        self.waiting: list[Instance] = []
        self.running: list[Instance] = []
        self.now = 0.0
        self.last_pass = -inf

    # What happens to one instance

    def start(self, j: Instance, host: Host, pass_number: int) -> None:
        """Place waiting ``j``: its wait is booked, a start-up delay is drawn."""
        table = self.hot if host.row in j.been_on else self.cold
        delay = chance.startup_delay(self.config.simulation.seed, j.row, j.starts, table)
        self.book(j)
        j.place(host, self.now, delay, pass_number)
        self.waiting.remove(j)
        self.running.append(j)

    def book(self, j: Instance) -> None:
        """Add the time since the last change of state to the outcome."""
        result = self.outcome.requests[j.row]
        if j.host is None:
            result.pending += self.now - j.since
        elif j.starts == 1:
            result.startup_first += j.startup_elapsed(self.now)
        else:
            result.startup_restarts += j.startup_elapsed(self.now)

    def leave(self, j: Instance) -> None:
        """Take ``j`` off its host, everything booked."""
        self.book(j)
        j.remove(self.now)
        self.running.remove(j)

    def send_back(self, j: Instance, preempted: bool) -> None:
        """``j`` loses its host and waits again; only what a preemption cost counts as preemption overhead."""
        result = self.outcome.requests[j.row]
        elapsed = j.startup_elapsed(self.now)
        self.leave(j)
        result.wasted_startup += elapsed
        if preempted:
            result.preemptions += 1
            j.spent += elapsed
        if self.config.simulation.preempted_work == "lost":
            result.discarded += j.progress
            for ledger in j.ledgers.values():
                ledger.e, ledger.p = ledger.e - j.progress, ledger.p + j.progress
            j.progress = 0.0
        self.waiting.append(j)

    # Events, in the order in which they count at one instant

    def complete_due(self) -> bool:
        """Whether anything completed; likewise below."""
        due = [j for j in self.running if j.completion() <= self.now]
        for j in sorted(due, key=lambda j: j.row):
            self.leave(j)
            self.outcome.requests[j.row].completed = self.now
        return bool(due)

    def change_hosts(self) -> bool:
        changed = False
        while self.changes and self.changes[0][0] <= self.now:
            _, row, kind = self.changes.pop(0)
            host = self.hosts[row]
            if host.up == (kind == "up"):
                continue
            for j in sorted(host.instances, key=lambda j: j.row):
                self.send_back(j, preempted=False)
            host.up = kind == "up"
            host.changes += 1
            changed = True
        return changed

    def admit_due(self) -> bool:
        admitted = False
        while self.arrivals and self.arrivals[0].admission <= self.now:
            j = self.arrivals.pop(0)
            self.outcome.requests[j.row].admitted = True
            self.waiting.append(j)
            admitted = True
        return admitted

    def next_event(self) -> float:
        times = [j.completion() for j in self.running]
        times += [change[0] for change in self.changes[:1]]
        times += [j.admission for j in self.arrivals[:1]]
        if self.waiting:
            times.append(self.last_pass + self.config.scheduler.watchdog)
        return min(times, default=inf)

    # The pass

    def mode(self) -> Mode:
        policy = self.config.policy
        if policy.name == "hybrid":
            return "qos-driven" if len(self.waiting) <= policy.queue_limit else "priority"
        return "priority" if policy.name == "priority" else "qos-driven"

    def run_pass(self) -> int:
        """Serve the queue once; returns how many were placed."""
        number, length = len(self.outcome.passes), len(self.waiting)
        this = Pass(self.now, number, self.mode(), self.config, self.ranks, self.cpu, self.memory)
        placed_before = len(self.outcome.decisions)
        victims: list[Instance] = []
        for j in this.order(self.waiting):
            choice = this.choose_free(j, self.hosts) or this.choose_preempting(j, self.hosts)
            if choice is None:
                self.outcome.holds += 1
                continue
            victims += choice.victims
            self.carry_out(j, choice, number)
        if self.config.policy.victims == "same-pass" and this.mode == "qos-driven":
            for j in this.order(victims):
                choice = this.choose_free(j, self.hosts)
                if choice is not None:
                    self.carry_out(j, choice, number)
        placed = len(self.outcome.decisions) - placed_before
        self.outcome.passes.append((self.now, length, placed, len(victims)))
        self.last_pass = self.now
        return placed

    def carry_out(self, j: Instance, choice: Choice, number: int) -> None:
        for k in choice.victims:
            self.send_back(k, preempted=True)
        self.start(j, choice.host, number)
        rows = tuple(k.row for k in choice.victims)
        self.outcome.decisions.append((number, self.now, j.row, choice.host.row, rows))

    # The run

    def run(self) -> Outcome:
        placed = 0
        while True:
            instant = self.next_event()
            if instant >= self.end or instant == inf:
                break
            self.now = instant
            happened = [self.complete_due(), self.change_hosts(), self.admit_due()]
            watchdog = instant >= self.last_pass + self.config.scheduler.watchdog
            if self.waiting and (watchdog or any(happened)):
                placed = self.run_pass()
            if self.end == inf and not (self.arrivals or self.changes or self.running or placed):
                break
        if self.end < inf:
            self.now = self.end
            self.complete_due()
        return self.close()

    def close(self) -> Outcome:
        for j in self.instances:
            result = self.outcome.requests[j.row]
            if result.admitted and result.completed is None:
                self.book(j)
                j.settle(self.now)
            result.running, result.starts, result.ledgers = j.progress, j.starts, j.ledgers
        return self.outcome


def simulate(
    workload: Workload,
    hosts: Hosts,
    config: Config,
    hot: Sequence[float],
    cold: Sequence[float],
    host_events: Sequence[HostEvent] = (),
) -> Outcome:
    """Run the workload on the hosts.

    ``hot`` and ``cold`` are the start-up delays (s) that stream 1 picks from;
    ``host_events`` are ``(time, host row, kind)``, at one instant in this order.
    ``config.optimize`` and ``config.classes`` are not looked at: the twin is always
    exact and takes the workload's classes.  Raises :class:`ConfigError` for policies,
    scores and costs that are not built in.
    """
    return Simulation(workload, hosts, config, hot, cold, host_events).run()
