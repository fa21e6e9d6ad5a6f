"""Exact events, one pass after all events of an instant (docs/semantics.md, A pass at instant t and The end)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import floor, inf, isinf
from pathlib import Path
from typing import Any

from reference import chance, neighbours, past, placing, resizes, windows
from reference.amounts import Amounts, fits, minus
from reference.limits import open_accounts
from reference.metric import ACCOUNTINGS
from reference.outcome import GroupOutcome, Outcome, RequestOutcome
from reference.planning import FAR, Kind, Planner
from reference.policies import Choice, Mode, Pass
from reference.queue import Turns, as_kube, overloaded_ranks
from reference.request_windows import Account
from reference.requests import Request, group
from reference.state import Host, Instance, Known, build, order
from reference.times import config_on_grid, on_grid
from reference.wanted import Wanted
from reference.windows import STEP
from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.model import Hosts, Workload
from slacktide.sim.startup import delays

IN_ORDER = (*placing.CHOICES, "least-requested")
"""Policies that are a score: in order of admission, all equally important."""

HostEvent = tuple[float, int, str] | tuple[float, int, str, Mapping[str, float]]
"""Time (s), host row, ``down`` (failure), ``drain`` or ``up``; or ``capacity``, ``others`` with amounts by resource; or
``marks`` and how many of others carry each."""


BLUR = 2.0**-10
"""Seconds after which a request has surely met its margin, however its metric was rounded."""

COLLECTIONS = (list, set, dict)


def fields_of(thing: Any) -> dict[str, Any]:
    """What an object holds now; collections are copied, other objects are only pointed at."""
    return {n: value.copy() if type(value) in COLLECTIONS else value for n, value in vars(thing).items()}


def first_admitted(request: Request) -> list[Instance]:
    """The rows that come with the request; those of a batch request beyond its parallelism are released later."""
    return request.instances[: request.parallelism] if request.batch and request.parallelism else request.instances


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
        if config.policy.name not in ("qos-driven", "priority", "hybrid", *IN_ORDER):
            raise ConfigError(f"policy.name: found {config.policy.name!r}, the twin knows the built-in policies")
        self.config = config = config_on_grid(config)
        self.hot, self.cold = [on_grid(delay) for delay in hot], [on_grid(delay) for delay in cold]
        self.shares = delays(config.simulation.grace, "simulation.grace").tolist()
        again = config.simulation.batch_recreation
        self.away = None if again is None else [on_grid(x) for x in delays(again, "simulation.batch_recreation")]
        self.turns = Turns() if as_kube(config) else None
        self.left = 0
        amounts_of_events = [event[3] for event in host_events if len(event) == 4 and event[2] == "capacity"]
        self.instances, self.hosts, self.amounts_of = build(workload, hosts, config, amounts_of_events)
        self.asked = {asked for placement in workload.placements for asked in placement.asked}
        self.accounts = open_accounts(workload, self.instances, config)
        if config.policy.name in IN_ORDER:
            for one in self.instances:
                one.rank = 1
        self.map = placing.Map(hosts, config)
        self.known: Known | None = None
        self.cpu, self.memory = hosts.resources.index("cpu"), hosts.resources.index("memory")
        self.ranks = sorted({order(c) for c in workload.classes})
        self.outcome = Outcome(requests=[RequestOutcome() for _ in self.instances])
        self.end = inf if config.simulation.end is None else config.simulation.end
        self.requests = group(workload, self.instances)
        for request in self.requests:
            past.begin_request(request)
        self.all_alone = not any(request.decides for request in self.requests)
        first = {j for request in self.requests for j in first_admitted(request)}
        self.arrivals = [j for j in self.instances if j.admission < self.end and j in first]
        self.held_back = [j for j in self.instances if j not in first]
        self.scales = self.scale_events(workload)
        self.resizes = sorted(
            ((at, j.row, wanted) for j in self.instances for at, wanted in j.resizes if at < self.end),
            key=lambda event: event[:2],
        )
        spells = ((on_grid(at), j.row, on_grid(seconds)) for j in self.instances for at, seconds in j.spells)
        self.spells = sorted(one for one in spells if one[0] < self.end)
        self.deferred: list[Instance] = []
        self.spoken_of: set[int] = set()
        self.changes = sorted(
            ((on_grid(event[0]), event) for event in host_events if on_grid(event[0]) < self.end), key=lambda e: e[0]
        )
        named = config.scheduler.triggers
        self.triggered = named is not None
        self.triggers = [] if named is None else sorted(on_grid(float(x)) for x in Path(named).read_text().split()[1:])
        self.returning: list[tuple[float, Instance, bool]] = []
        self.waiting: list[Instance] = []
        self.running: list[Instance] = []
        self.now, self.bind_at = 0.0, -inf
        self.last_pass = self.crossed_at = -inf
        self.crossing_at, self.crossing_moved, self.by_metric = inf, False, False
        of_class = {j.service_class: j.promise for j in self.instances if j.promise is not None}
        for j in self.instances:
            if j.request is not None and j.request.decides:
                j.request.promise = None if j.request.batch else j.promise
                j.promise = None
        every = [of_class.get(i) or windows.promise_of(one, config) for i, one in enumerate(workload.classes)]
        self.promises = [one for one in every if one is not None]
        self.planner = Planner(config, self.kinds(workload, every), self.instances, self.hosts, lambda: self.waiting)

    def kinds(self, workload: Workload, promises: Sequence[windows.Promise | None]) -> list[Kind]:
        """Service classes as the plan sees them."""
        qos = self.config.qos
        return [
            Kind(
                one.slo,
                self.ranks.index(order(one)),
                on_grid(qos.alpha if one.alpha is None else one.alpha),
                on_grid(one.margin if qos.margin is None else qos.margin),
                promise,
            )
            for one, promise in zip(workload.classes, promises, strict=True)
        ]

    def scale_events(self, workload: Workload) -> list[tuple[float, Request, int]]:
        """Time, request and how many instances it shall have, in the order in which they happen."""
        asked = workload.requests
        if asked is None:
            return []
        rows = zip(asked.scale_time.tolist(), asked.scale_request.tolist(), asked.scale_replicas.tolist(), strict=True)
        events = [(on_grid(time), self.requests[index], replicas) for time, index, replicas in rows]
        return sorted((event for event in events if event[0] < self.end), key=lambda event: event[0])

    # What happens to one instance

    def admit(self, j: Instance) -> None:
        if j.admission >= 0.0:
            j.admission = self.now
        j.since = self.now
        j.admitted = True
        if j.request is not None and j.request.promise is not None and j.request.account is None:
            j.request.account = Account(j.request.promise, self.now)
        self.outcome.requests[j.row].admitted = True
        self.outcome.requests[j.row].admission = j.admission
        self.outcome.requests[j.row].pending = sum(seconds for _, seconds, _ in j.pieces)
        self.wait(j)
        self.planner.joins(j)

    def start(self, j: Instance, host: Host, pass_number: int) -> None:
        """Place waiting ``j``: its wait is booked, a start-up delay is drawn."""
        table = self.hot if host.row in j.been_on else self.cold
        delay = chance.startup_delay(self.config.simulation.seed, j.row, j.starts, table)
        if j.admission < 0.0 and j.starts == 0 and self.now == 0.0:
            delay = 0.0  # it has been there
        free = host.free()
        self.book(j)
        delay += self.bound_at(j, host, free) - self.now
        self.bind_at = -inf
        j.taken = placing.taken(j, host, self.config)
        self.map.began(j, host)
        j.place(host, self.now, delay, pass_number)
        self.waiting.remove(j)
        self.running.append(j)
        self.forget(j, host)

    def bound_at(self, j: Instance, host: Host, free: Amounts) -> float:
        """When ``j``, which comes to the host, can start: its victims are gone, and others have left it room."""
        at, self.bind_at = max(self.now, self.bind_at), -inf
        while True:
            later = [(until, amounts) for until, amounts, _ in host.going if until > at]
            left = free
            for _, amounts in later:
                left = minus(left, amounts)
            if not later or fits(j.demand, left):
                return at
            at = min(until for until, _ in later)

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
        """Take ``j`` off its host, everything booked; what it wanted to demand it demands from now on."""
        self.book(j)
        self.left += not j.leaving
        if j.leaving:
            j.spent += j.startup_elapsed(self.now)
            j.settle(self.now)
            j.leaving, j.host, j.since = False, None, self.now
        else:
            j.remove(self.now)
        self.running.remove(j)
        if j.wanted is not None:
            self.deferred.remove(j)
            resizes.take(j, j.wanted, self.config)

    def stop(self, j: Instance, preempted: bool) -> None:
        """``j`` loses its host; only what a preemption cost counts as preemption overhead."""
        assert j.host is not None
        result, host = self.outcome.requests[j.row], j.host
        elapsed = j.startup_elapsed(self.now)
        self.leave(j)
        result.wasted_startup += j.startups_before + elapsed
        if preempted:
            result.preemptions += 1
            j.spent += elapsed
        assert j.request is not None
        if j.request.loses_work(self.config):
            j.lose_work()
            result.discarded = j.lost
        self.forget(j, host)

    def disrupt(self, j: Instance) -> None:
        """A preemption or a move counts against what its workload may suffer."""
        if j.account is not None:
            j.account.note(j, self.now)

    def tell_to_go(self, j: Instance) -> None:
        """Preempted ``j`` counts as on no host, and goes on until its grace period is over."""
        host = j.host
        assert host is not None
        self.outcome.requests[j.row].preemptions += 1
        share = chance.share_of_grace(self.config.simulation.seed, j.row, j.starts, self.shares)
        j.leaving, j.leaves_at = True, self.now + max(on_grid(j.grace * share), STEP)
        until = min(j.leaves_at, j.completion())
        host.going.append((until, j.demand, j.rank))
        self.left += 1
        self.bind_at = max(self.bind_at, until)
        host.instances.remove(j)
        host.changes += 1
        if j.wanted is not None:
            self.deferred.remove(j)
            resizes.take(j, j.wanted, self.config)
        self.forget(j, host)

    def go(self, j: Instance) -> None:
        """The grace period of ``j`` is over; it waits again."""
        elapsed = j.startup_elapsed(self.now)
        self.leave(j)
        self.outcome.requests[j.row].wasted_startup += j.startups_before + elapsed
        assert j.request is not None
        if j.request.loses_work(self.config):
            j.lose_work()
            self.outcome.requests[j.row].discarded = j.lost
        self.wait_again(j, preempted=True)

    def send_back(self, j: Instance, preempted: bool) -> None:
        """``j`` loses its host and waits again."""
        if preempted and j.grace > 0.0:
            self.tell_to_go(j)
            return
        self.stop(j, preempted)
        self.wait_again(j, preempted)

    def wait(self, j: Instance) -> None:
        j.number, j.backs_off = 0, 0.0
        self.planner.waits(j)
        self.waiting.append(j)
        self.crossing_moved = True

    def away_for(self, j: Instance) -> float:
        """Seconds from its stop to the next incarnation."""
        if self.away is None or j.request is None or not j.request.batch:
            return self.config.simulation.recreation
        return chance.seconds_away(self.config.simulation.seed, j.row, j.starts, self.away)

    def wait_again(self, j: Instance, preempted: bool) -> None:
        delay = self.away_for(j)
        if delay > 0.0:
            self.returning.append((self.now + delay, j, preempted))
        else:
            self.wait(j)

    def scale_away(self, j: Instance) -> None:
        """``j`` leaves queue or host for good; nothing of it is lost."""
        if j.host is None:
            self.book(j)
            j.settle(self.now)
            self.waiting = [k for k in self.waiting if k is not j]
            self.returning = [one for one in self.returning if one[1] is not j]
        else:
            self.leave(j)
        windows.close(j, self.now, self.config)
        j.gone = self.outcome.requests[j.row].removed = self.now
        self.planner.ends(j, self.now)

    def release_next(self, request: Request) -> None:
        """A batch request's next row, if any, comes in place of one that completed; at the end nobody comes."""
        following = [j for j in self.held_back if j.request is request]
        if following and self.now < self.end:
            self.held_back.remove(following[0])
            self.admit(following[0])

    # Events, in the order in which they count at one instant

    def turn_due(self) -> bool:
        """Calendar windows end, and the next begin."""
        due = [one for one in self.promises if one.ends <= self.now]
        for promise in due:
            for j in self.instances:
                if j.promise is promise and j.admitted and j.gone is None:
                    windows.turn(j, self.now, self.config)
            for request in self.requests:
                if request.account is not None and request.promise is promise:
                    request.account.turn()
            promise.at += 1
        return bool(due)

    def complete_due(self) -> bool:
        """Whether anything completed; likewise below."""
        due = [j for j in self.running if j.completion() <= self.now]
        for j in sorted(due, key=lambda j: j.row):
            self.leave(j)
            windows.close(j, self.now, self.config)
            j.gone = self.outcome.requests[j.row].completed = self.now
            self.planner.ends(j, self.now)
            assert j.request is not None
            self.release_next(j.request)
        over = sorted((j for j in self.running if j.leaving and j.leaves_at <= self.now), key=lambda j: j.row)
        for j in over:
            self.go(j)
        back = [one for one in self.returning if one[0] <= self.now]
        self.returning = [one for one in self.returning if one[0] > self.now]
        for _, j, _ in back:
            self.wait(j)
        at_once = [j for j in over if self.away_for(j) == 0.0]
        if over and self.turns is not None:  # others waited for the room
            return True
        found = bool(due) or any(not preempted or self.has_room(j) for _, j, preempted in back)
        return found or any(self.has_room(j) for j in at_once)

    def has_room(self, j: Instance) -> bool:
        """Whether some host could take ``j`` at once, if it had no rules about neighbours."""
        this = self.new_pass(-1)
        return any(host.admits(j) and fits(j.demand, host.free()) and not this.lacks(j, host) for host in self.hosts)

    def change_hosts(self) -> bool:
        changed = False
        while self.changes and self.changes[0][0] <= self.now:
            event = self.changes.pop(0)[1]
            kind, host = event[2], self.hosts[event[1]]
            if len(event) == 4 and kind == "marks":
                changed = self.change_marks(host, event[3]) or changed
                continue
            if len(event) == 4:
                changed = self.change_amounts(host, kind, event[3]) or changed
                continue
            if host.up == (kind == "up"):
                continue
            for j in sorted(host.instances, key=lambda j: j.row):
                self.send_back(j, preempted=False)
            for j in [j for j in self.running if j.leaving and j.host is host]:
                self.go(j)
            host.going.clear()
            host.up = kind == "up"
            host.changes += 1
            changed = True
        return changed

    def change_amounts(self, host: Host, kind: str, amounts: Mapping[str, float]) -> bool:
        """What a host has, or what others take of it, is other than before; whether anything became free."""
        before = host.free()
        of = host.capacity if kind == "capacity" else host.others
        after: Amounts = tuple(
            told if told is not None else kept for told, kept in zip(self.amounts_of(amounts), of, strict=True)
        )
        if kind == "capacity":
            host.capacity = after
        else:
            host.others = after
            host.changes += 1
        return any(there > was for there, was in zip(host.free(), before, strict=True))

    def change_marks(self, host: Host, marks: Mapping[str, float]) -> bool:
        """So many of others carry these marks on a host now; whether that counts for anybody who asks about them."""
        changed = False
        for mark, count in marks.items():
            asked = [topology for about, topology in self.asked if about == mark]
            counts = any(neighbours.domain_of(topology, host) is not None for topology in asked)
            changed = changed or (counts and host.foreign.get(mark, 0) != count)
            host.foreign[mark] = int(count)
        return changed

    def scale_due(self) -> bool:
        scaled = False
        while self.scales and self.scales[0][0] <= self.now:
            _, request, replicas = self.scales.pop(0)
            for j in request.excess(replicas, self.now):
                self.scale_away(j)
            scaled = True
        return scaled

    def resize_due(self) -> bool:
        resized = False
        while self.resizes and self.resizes[0][0] <= self.now:
            _, row, wanted = self.resizes.pop(0)
            self.resize(self.instances[row], wanted)
            resized = True
        return resized

    def spells_due(self) -> bool:
        """Those that are ready, and whose spells of unreadiness begin, are not; nobody is looked at for it."""
        while self.spells and self.spells[0][0] <= self.now:
            _, row, seconds = self.spells.pop(0)
            j = self.instances[row]
            if j.host is None or j.leaving or self.now < j.ready():
                continue
            self.book(j)
            j.startups_before += j.startup
            j.settle(self.now)
            j.starts = max(j.starts, 2)
            j.since, j.startup = self.now, seconds
            self.crossing_moved = True
        return False

    def resize(self, j: Instance, wanted: Wanted) -> None:
        """Who is on no host, or wants no more of anything, has it at once; else it is tried before the pass."""
        if j.gone is not None:
            return
        if j.wanted is not None:
            self.deferred.remove(j)
        if j.host is None or j.leaving or resizes.asks_for_no_more(j, wanted):
            resizes.take(j, wanted, self.config)
            self.note(j, "resized")
        else:
            j.wanted = wanted
            self.deferred.append(j)
            self.spoken_of.discard(j.row)

    def note(self, j: Instance, what: str) -> None:
        self.outcome.resizes.append((self.now, j.row, what, -1 if j.host is None or j.leaving else j.host.row))

    def retry(self) -> None:
        """Try all resizes that wait for room, in the order in which they came."""
        for j in tuple(self.deferred):
            self.last_pass = self.now
            self.try_resize(j)

    def try_resize(self, j: Instance) -> None:
        """In place; else on another host with room, where it may be stopped; else later."""
        assert j.wanted is not None
        if resizes.fits_in(j, j.wanted):
            self.deferred.remove(j)
            resizes.take(j, j.wanted, self.config)
            self.note(j, "resized")
            return
        this = self.new_pass(-1)
        host = None
        if resizes.may_move(j, self.now):
            host = resizes.another_host(this, j, j.wanted, self.hosts)
        if host is not None:
            self.disrupt(j)
            self.stop(j, preempted=False)
            self.wait(j)
            self.start(j, host, len(self.outcome.passes) - 1)
            self.note(j, "moved")
        elif j.row not in self.spoken_of:
            self.spoken_of.add(j.row)
            self.note(j, "deferred")

    def admit_due(self) -> bool:
        admitted = False
        while self.arrivals and self.arrivals[0].admission <= self.now:
            self.admit(self.arrivals.pop(0))
            admitted = True
        return admitted

    def next_event(self) -> float:
        times = [j.completion() for j in self.running]
        times += [change[0] for change in self.changes[:1]]
        times += [scale[0] for scale in self.scales[:1]]
        times += [resize[0] for resize in self.resizes[:1]]
        if any(not j.leaving for j in self.running):  # else it is void when it comes
            times += [spell[0] for spell in self.spells[:1]]
        times += [max(self.now, j.admission) for j in self.arrivals[:1]]
        times += self.triggers[:1]
        times += [one[0] for one in self.returning]
        times += [j.leaves_at for j in self.running if j.leaving]
        if min(times, default=inf) < self.end or self.running:  # else the calendar would go on for ever
            times += [one.ends for one in self.promises]
        if (self.waiting or self.deferred) and not self.triggered:
            times.append(self.last_pass + self.config.scheduler.watchdog)
            if self.waiting:
                times.append(self.crossing_pass())
        return min(times, default=inf)

    # The pass

    def mode(self) -> Mode:
        policy = self.config.policy
        if policy.name == "hybrid":
            return "qos-driven" if len(self.waiting) <= policy.queue_limit else "priority"
        return "priority" if policy.name in ("priority", *IN_ORDER) else "qos-driven"

    def new_pass(self, number: int) -> Pass:
        this = Pass(self.now, number, self.mode(), self.config, self.ranks, self.cpu, self.memory, self.map)
        this.planned = self.planner.in_force
        return this

    def run_pass(self) -> int:
        """Serve the queue once; returns how many were placed."""
        number, length = len(self.outcome.passes), len(self.waiting)
        if self.mode() == "qos-driven" and self.planner.is_due(self.now):
            self.planner.make(self.now)
        if self.crossing_at <= self.now:
            self.crossed_at = self.now
        self.crossing_at = inf
        this = self.new_pass(number)
        if this.mode == "qos-driven":
            this.overloaded = overloaded_ranks(self.waiting, self.now, self.config)
        placed_before = len(self.outcome.decisions)
        if self.turns is not None:
            self.turns.begin(self.waiting, self.now, self.left)
        self.know(Known())
        victims = self.serve(this, self.waiting, may_preempt=True)
        if self.config.policy.victims == "same-pass" and this.mode == "qos-driven":
            self.serve(this, [j for j in victims if j in self.waiting], may_preempt=False)
        self.know(None)
        if self.turns is not None:
            self.turns.end(self.waiting, self.now)
        placed = len(self.outcome.decisions) - placed_before
        self.outcome.passes.append((self.now, length, placed, len(victims)))
        self.last_pass = self.now
        self.by_metric = this.mode == "qos-driven"
        self.look_for_crossing()
        return placed

    def look_for_crossing(self) -> None:
        """When the next one that waits meets its margin, as things stand; one that has is kept until it was served."""
        self.crossing_moved = False
        if self.crossing_at > self.now:
            found = [self.crossing_of(j) for j in self.waiting] if self.by_metric else []
            self.crossing_at = min(found, default=inf) if self.config.scheduler.crossings else inf

    def crossing_of(self, j: Instance) -> float:
        """The first instant at which its metric is below its margin, by which it falls a second a second."""
        q, line = j.metric_at(self.now, self.config), j.urgent if j.margin == FAR else j.margin
        if q < line or isinf(line) or isinf(q):
            return inf
        blur = BLUR if j.request is not None and j.request.decides else 0.0
        return floor((self.now + q - line) / STEP) * STEP + STEP + blur

    def crossing_pass(self) -> float:
        """When there is a pass for it."""
        watchdog, least = self.config.scheduler.watchdog, min(kind.margin for kind in self.planner.kinds)
        return max(self.crossing_at, self.crossed_at + on_grid(min(max(least / 2, watchdog / 10), watchdog / 2)))

    def know(self, known: Known | None) -> None:
        """From now on what was worked out once is known until something happens; None: it is worked out each time."""
        self.known = known
        for j in self.instances:
            j.known = known
        for host in self.hosts:
            host.known = known

    def forget(self, j: Instance, host: Host) -> None:
        """``j`` comes to the host or leaves it: forget what depends on that."""
        if self.known is not None and self.all_alone:
            self.known.forget_of(host, j)
        elif self.known is not None:
            self.known.forget()

    def serve(self, this: Pass, queue: Sequence[Instance], may_preempt: bool) -> list[Instance]:
        """One round over these; who is next is settled anew whenever somebody was placed. Returns the victims."""
        queue = tuple(queue)
        left, victims = this.order(queue), list[Instance]()
        while left:
            tried = self.tried_together(left[0], left)
            left = [j for j in left if j not in tried]
            stopped = self.attempt(this, tried, queue, may_preempt)
            if stopped is not None:
                victims += stopped
                left = this.order(left)
            elif may_preempt:
                self.outcome.holds += len(tried)
        return victims

    def in_gang(self, j: Instance) -> bool:
        """Whether ``j`` starts only with all others of its request that wait."""
        request = j.request
        assert request is not None
        return self.config.policy.gang and request.approach == "concurrent" and len(request.live()) > 1

    def tried_together(self, j: Instance, left: Sequence[Instance]) -> list[Instance]:
        """``j``, or all of its gang that are not yet served, by row."""
        if not self.in_gang(j):
            return [j]
        return sorted((k for k in left if k.request is j.request), key=lambda k: k.row)

    def attempt(
        self, this: Pass, tried: Sequence[Instance], queue: Sequence[Instance], may_preempt: bool
    ) -> list[Instance] | None:
        """Place all of these or none; returns the victims, or ``None`` where they wait on.

        A gang some of whom wait outside this round cannot start as a whole: one that was evicted
        in this pass is not served in its first round, nor one served in the first in the second.
        """
        request = tried[0].request
        assert request is not None
        if self.in_gang(tried[0]) and not all(k in queue for k in request.away()):
            return None
        go_back: Callable[[], None] | None = None
        victims: list[Instance] = []
        for j in tried:
            choice = this.choose_free(j, self.hosts)
            if choice is None and may_preempt:
                choice = this.choose_preempting(j, self.hosts)
            if choice is None:
                if go_back is not None:
                    go_back()
                return None
            if go_back is None and len(tried) > 1:  # before the first of them
                go_back = self.remember()
            victims += choice.victims
            self.carry_out(j, choice, this.number)
        return victims

    def remember(self) -> Callable[[], None]:
        """A way back to how everything is now."""
        things = [self, self.outcome, *self.instances, *self.hosts, *self.outcome.requests, *self.accounts]
        before = [(thing, fields_of(thing)) for thing in things]
        images = {row: set(present) for row, present in self.map.images.items()}

        def go_back() -> None:
            for thing, values in before:
                vars(thing).update(values)
            self.map.images = images
            if self.known is not None:
                self.known.forget()

        return go_back

    def carry_out(self, j: Instance, choice: Choice, number: int) -> None:
        for k in choice.victims:
            self.disrupt(k)
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
            self.planner.pass_time(instant, self.last_pass)
            self.go_to(instant)
            happened = [
                self.turn_due(),
                self.complete_due(),
                self.change_hosts(),
                self.scale_due(),
                self.resize_due(),
                self.spells_due(),
                self.admit_due(),
            ]
            watchdog = instant >= self.last_pass + self.config.scheduler.watchdog
            crossed = instant >= self.crossing_pass()
            called_for = watchdog or crossed or any(happened)
            if self.triggered:
                called_for = self.triggers[:1] == [instant]
                self.triggers = [one for one in self.triggers if one > instant]
            if called_for:
                self.retry()
            if self.waiting and called_for:
                placed = self.run_pass()
            elif self.crossing_moved:
                self.look_for_crossing()
            if self.end == inf and not self.to_come() and not placed:
                break
        if self.end < inf:
            self.go_to(self.end)
            self.complete_due()
        return self.close()

    def go_to(self, instant: float) -> None:
        """Let time pass, nothing else."""
        self.now = instant
        for account in self.accounts:
            account.come_to(instant)
        for request in self.requests:
            request.note_share(instant, self.config.qos.startup)
        for request in self.requests:
            if request.approach == "concurrent":
                request.count_to(instant)

    def to_come(self) -> bool:
        """Whether anything will happen but the watchdog."""
        return any(
            (
                self.arrivals,
                self.changes,
                self.scales,
                self.resizes,
                self.running,
                self.triggers,
                self.returning,
            )
        )

    def close(self) -> Outcome:
        for j in self.instances:  # who never had a host was owed something
            if j.admitted and j.gone is None and j.starts == 0 and j.admission == self.now:
                j.admission -= STEP
                j.since -= STEP
        for request in self.requests:
            totals = {name: request.totals(self.now, name) for name in ACCOUNTINGS}
            ended = max((j.gone or 0.0 for j in request.had()), default=0.0) if not request.live() else self.now
            short = 0.0 if request.account is None else request.account.worst(ended)
            rows = [j.row for j in request.had()]
            lost = None if request.account is None else request.account.lost()
            self.outcome.groups.append(GroupOutcome(request.approach, rows, totals, short, lost))
        for j in self.instances:
            result = self.outcome.requests[j.row]
            if result.admitted and j.gone is None:
                self.book(j)
                j.settle(self.now)
                windows.close(j, self.now, self.config)
            if result.admitted and j.promise is not None:
                result.short = windows.worst(j, self.now if j.gone is None else j.gone, self.config)
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
