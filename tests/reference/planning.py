"""Whom to give up where there is lastingly too little room (docs/plan.md), in the plainest way.

Once a plan is due all is worked out anew from what happened so far. Between plans only margins, patience and shifts of
instances say what it decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, inf

from reference import metric, windows
from reference.requests import Request
from reference.state import Host, Instance
from slacktide.config import Config
from slacktide.model import Term

SAMPLES, FIRST_STEP = 2048, 1.0
EXACT = 2.0**36
FAR, AWAY, BEHIND, MOST, SHIFT = 2.0**34, 2.0**32, 2.0**31, 2.0**29, 4.0
GIVEN_UP = 1.25 * BEHIND
PLANS, SOONEST, PARTS = 720, 32, 4.0
RUNGS, CAUTION = 12, 10.0
POOLS, CANDIDATES = 8, 64
YOUNG, TURN, LONGEST_TURN, STARTS, MARGIN, AGES = 0.2, 0.15, 0.8, 0.1, 0.02, 10


def exact(share: float) -> float:
    """In steps of which sums are exact."""
    return round(share * EXACT) / EXACT


@dataclass
class Kind:
    """A service class, and what the last census says of it."""

    slo: float
    level: int
    alpha: float
    margin: float
    promise: windows.Promise | None
    """Its window; ``None``: its promise is over lives."""
    ended: int = 0
    lived: float = 0.0
    alive: int = 0
    age: float = 0.0
    oldest: float = 0.0
    job: bool = False
    planned: bool = False
    behind: bool = False
    """Its jobs come behind the services of its level."""
    patience: float | None = None
    urgent: float = -inf
    pressing: float = 0.0

    @property
    def of_lives(self) -> bool:
        return self.promise is None

    @property
    def whole(self) -> bool:
        return self.promise is not None and self.promise.whole

    def window(self) -> float:
        """Seconds of its window, of a calendar the present one."""
        if self.promise is None:
            return inf
        return self.promise.rolling or self.promise.ends - self.begins()

    def begins(self) -> float:
        assert self.promise is not None
        return self.promise.turns[self.promise.at]

    def life(self) -> float:
        """How long one of it lives: as for times to a failure of which some are not over."""
        return self.oldest if self.ended == 0 else (self.lived + self.age) / self.ended

    def span(self) -> float:
        """Seconds over which it is planned for."""
        return max(1.0, self.life()) if self.of_lives else self.window()

    def is_short(self, longest: float) -> bool:
        return (self.of_lives or self.ended > 0) and self.life() * AGES < longest

    def turns_over(self) -> bool:
        return self.of_lives and self.ended * AGES > self.alive

    def is_young(self) -> bool:
        return self.of_lives and self.slo < 1.0 and (1.0 - self.slo) * self.oldest < 2.0 * self.alpha / STARTS


def turn_of(budget: float, startup: float) -> float:
    """By how much more slack an equal gives its place."""
    return min(LONGEST_TURN * budget, max(TURN * budget, startup / STARTS))


@dataclass(eq=False)
class Pool:
    """Hosts that are all that some can use; or, where nobody's are said, the whole cluster."""

    own: tuple[Term, tuple[int, ...]] | None = None
    """What one asks for that can use these hosts only: conditions and amounts."""
    resource: int | None = None
    """By which everything is measured there; ``None``: by whatever it asks for the most of."""
    short_at: float = 0.0
    record: list[tuple[list[float], list[float]]] = field(default_factory=list)
    """Of each sample by level what it and those above could use, and what jobs of them asked for."""


@dataclass(eq=False)
class Member:
    """An instance that its own ledger decides for, or those of a request whose ledger does."""

    first: Instance
    kind: Kind
    sizes: dict[Pool, float]
    """What it asks for in each pool to which all of it is bound."""
    slack: float = 0.0
    budget: float = 0.0

    @property
    def request(self) -> Request | None:
        """Whose ledger decides."""
        return self.first.request if self.first.request is not None and self.first.request.decides else None

    @property
    def shift(self) -> float:
        return self.first.shift if self.request is None else self.request.shift

    def give_up(self, shift: float) -> None:
        if self.request is None:
            self.first.shift = shift
        else:
            self.request.shift = shift

    def slack_at(self, t: float, config: Config) -> float:
        """Seconds until its promise breaks, were all of it away from now on."""
        one, request = self.first, self.request
        accounting = config.qos.startup
        if request is not None:
            live = len(request.live())
            if request.account is not None:
                account = request.account
                return account.rolling(0, live) if account.promise.rolling else account.calendar(0, live)
            return (metric.earned(request.running(t, accounting), one.sigma) - request.lifetime(t)) / live
        if one.promise is not None:
            return windows.slack(one, t, config)
        return metric.earned(one.ledger_at(t, accounting).e, one.sigma) - one.lifetime(t)

    def lived(self, t: float) -> float:
        request = self.request
        if request is None:
            return self.first.lifetime(t)
        return request.lifetime(t) / len(request.live()) if request.account is None else request.account.owed_lifetime()

    def budget_at(self, t: float) -> float:
        """Of its window, or of what it has lived of it."""
        kind, lived = self.kind, self.lived(t)
        promise = kind.promise
        if promise is not None and promise.whole:
            return promise.rolling - promise.good if promise.rolling else promise.budget(promise.at)
        if promise is not None:
            lived = min(lived, kind.span(), t - kind.begins() if promise.turns else inf)
        return (1.0 - kind.slo) * max(lived, YOUNG * kind.span())

    def outages(self, t: float, config: Config) -> list[tuple[float, float]]:
        """Seconds of each outage that counts in its rolling window, and when that is over."""
        request, one, promise = self.request, self.first, self.kind.promise
        if promise is None or not promise.rolling or (request is not None and request.account is None):
            return []
        if request is None:
            kept, _ = windows.outages_of(windows.lost_now(one, t, config), promise)
            e = one.ledger_at(t, config.qos.startup).e
            return [(outage.length, outage.end) for outage in kept if outage.at + promise.good > e]
        account = request.account
        assert account is not None
        found = []
        several, before = account.outages()
        for outage in several:
            before += outage.length
            if outage.at + promise.good > account.received:
                found.append((outage.length, account.begun + outage.at + before))
        return found

    def back(self, horizon: float, t: float, config: Config) -> float:
        """What of its budget returns within the horizon."""
        kind, promise = self.kind, self.kind.promise
        returns = 0.0
        for length, end in self.outages(t, config):
            assert promise is not None
            if end + promise.rolling - t <= horizon:
                returns += length
        left = inf
        if promise is not None:
            left = max(0.0, promise.rolling - self.lived(t)) if promise.rolling else promise.ends - t
        if not kind.whole:
            returns += (1.0 - kind.slo) * max(0.0, min(horizon, left) - max(0.0, self.slack))
        if promise is not None and promise.turns and horizon > left:
            following = promise.budget(promise.at + 1) if promise.whole else (1.0 - kind.slo) * (horizon - left)
            returns += following
        return returns

    def away(self, horizon: float, reserve: float, t: float, config: Config) -> float:
        """For how long it may be away within the horizon, in turns; so much of its budget is held back."""
        turn = turn_of(self.budget, self.kind.alpha)
        if not turn > 0.0:
            return 0.0
        least = self.slack + self.back(horizon, t, config) - reserve * self.budget - self.kind.alpha
        return max(0.0, least) / (1.0 + self.kind.alpha / turn)


def order(members: Sequence[Member], cluster: Pool) -> list[Member]:
    """Of giving up: broken ones, then the large, then those that were given up before, then who has lost most."""
    largest = max(m.sizes[cluster] for m in members)

    def key(m: Member) -> float:
        share = max(-10.0, min(1.0, m.slack / m.budget if m.budget > 0.0 else -1.0))
        large = m.sizes[cluster] / largest if largest > 0.0 else 0.0
        return -1e5 * (m.slack < 0.0) - 1e3 * large * 16.0 - 20.0 * (m.shift > GIVEN_UP) + share

    return sorted(members, key=key)


def pays(
    base: Sequence[float], step: float, horizon: float, now_missing: float, kept: Sequence[tuple[float, float]]
) -> bool:
    """Whether turns exist for those kept, (m, size) of each, the smallest m first (D. Gale, H. J. Ryser, 1957).

    ``base`` is what was missing without them, a sample each ``step``; ``now_missing`` the same of now.
    """
    own = sum(size for _, size in kept)
    seen = min(horizon, len(base) * step)
    over = max(seen, horizon / CAUTION)
    stretch, pad = horizon / over, over - seen
    curve = [(value, step * (seen / (len(base) * step))) for value in sorted(base, reverse=True)]
    if pad > 0.0:
        curve.insert(next((i for i, (v, _) in enumerate(curve) if now_missing >= v), len(curve)), (now_missing, pad))
    owed = passed = 0.0
    for missing, length in curve:
        value = min(own, missing + own)
        if value <= 0.0:
            break
        owed += value * length * stretch
        passed += length * stretch
        lent, rate = 0.0, own
        for m, size in kept:
            if m <= passed:
                lent += size * m
                rate -= size
        if owed > lent + rate * passed + 1e-9 * own * horizon:
            return False
    return True


class Planner:
    """What is kept between plans: the record of the shortage, how long instances of each class lived."""

    def __init__(
        self,
        config: Config,
        kinds: Sequence[Kind],
        instances: Sequence[Instance],
        hosts: Sequence[Host],
        waiting: Callable[[], Sequence[Instance]],
    ) -> None:
        self.config, self.kinds, self.instances, self.hosts, self.waiting = config, kinds, instances, hosts, waiting
        self.plans = config.policy.overload == "plan" and config.policy.name in ("qos-driven", "hybrid")
        self.levels = 1 + max((kind.level for kind in kinds), default=0)
        self.cluster = Pool()
        self.places: list[Pool | None] = [None] * POOLS
        """Pools beside the whole cluster."""
        self.step, self.sample_at = 0.0, 0.0
        self.made, self.born, self.due_at, self.soon_at = 0, 0.0, 0.0, 0.0
        self.unrecorded = self.in_force = False
        self.room = [0 for _ in hosts[0].capacity] if hosts else []
        self.turns = self.gave_up = self.pooled = 0
        """Plans that had members take turns, that gave somebody up, and that gave somebody up for a pool."""

    def kind(self, j: Instance) -> Kind:
        return self.kinds[j.service_class]

    def ends(self, j: Instance, t: float) -> None:
        """It is no more."""
        self.kind(j).ended += 1
        self.kind(j).lived += t - j.admission

    def helped(self, waiting: Sequence[Instance]) -> list[Instance]:
        """Those of them whom room would help: a host that is up could take them, were it empty."""
        up = [host for host in self.hosts if host.up]
        return [
            j
            for j in waiting
            if any(
                j.term.holds(h.attributes) and all(d <= c for d, c in zip(j.demand, h.capacity, strict=True))
                for h in up
            )
        ]

    # Pools

    def pools(self) -> list[Pool]:
        """Those of the fewest hosts first, the whole cluster last."""
        there = [pool for pool in reversed(self.places) if pool is not None]
        return [*sorted(there, key=lambda pool: len(self.hosts_of(pool))), self.cluster]

    def reach(self, term: Term, demand: Sequence[int]) -> frozenset[int]:
        """Hosts by number that could take one with these conditions and amounts, were they empty."""
        return frozenset(
            number
            for number, h in enumerate(self.hosts)
            if term.holds(h.attributes) and all(d <= c for d, c in zip(demand, h.capacity, strict=True))
        )

    def hosts_of(self, pool: Pool) -> frozenset[int]:
        return frozenset(range(len(self.hosts))) if pool.own is None else self.reach(*pool.own)

    def is_bound(self, j: Instance, pool: Pool) -> bool:
        """By its conditions, by an amount that no host outside has, or as it asks for what the pool's own does."""
        if pool.own is None:
            return True
        inside, (term, demand) = self.hosts_of(pool), pool.own
        outside = [h for number, h in enumerate(self.hosts) if number not in inside]
        return (
            not any(j.term.holds(h.attributes) for h in outside)
            or any(d > max((h.capacity[r] for h in outside), default=0) for r, d in enumerate(j.demand))
            or (j.term == term and all(d >= least for d, least in zip(j.demand, demand, strict=True)))
        )

    def there(self, pool: Pool) -> list[Instance]:
        """Who is on its hosts, and who is bound to it and runs outside, as it was told of its host before."""
        inside = self.hosts_of(pool)
        return [
            j
            for number, host in enumerate(self.hosts)
            for j in host.instances
            if number in inside or self.is_bound(j, pool)
        ]

    def goes_on(self, pool: Pool, live: Sequence[Instance]) -> bool:
        """Whether somebody lives who asks for the same, or can use the same hosts: then the first of these says it."""
        if not any((j.term, tuple(j.demand)) == pool.own for j in live):
            hosts = self.hosts_of(pool)
            pool.own = next(((j.term, tuple(j.demand)) for j in live if self.reach(j.term, j.demand) == hosts), None)
        return pool.own is not None

    def scarce(self, j: Instance) -> int | None:
        """The first resource that it asks for and that some hosts have none of."""
        return next(
            (
                r
                for r, asked in enumerate(j.demand)
                if asked > 0 and any(h.capacity[r] <= 0 and any(h.capacity) for h in self.hosts)
            ),
            None,
        )

    def room_of(self, pool: Pool) -> list[float]:
        """What there is of it for each level: without what those of more important ones take who could be elsewhere."""
        there = self.there(pool)
        total = self.free(pool) + sum(self.size(j, pool) for j in there)
        others = [j for j in there if not self.is_bound(j, pool)]
        above = [[j for j in others if self.kind(j).level < level] for level in range(self.levels)]
        return [total - sum(self.size(j, pool) for j in those) for those in above]

    def is_short(self, pool: Pool, live: Sequence[Instance]) -> bool:
        bound = [j for j in live if self.is_bound(j, pool)]
        return any(
            sum(self.size(j, pool) for j in bound if self.kind(j).level <= level) > room
            for level, room in enumerate(self.room_of(pool))
        )

    def choose(self, live: Sequence[Instance], now: float) -> None:
        """Which pools are looked at from now on."""
        for at, pool in enumerate(self.places):
            if pool is None:
                continue
            if not self.goes_on(pool, live):
                self.places[at] = None
                continue
            if self.is_short(pool, live):
                pool.short_at = now
            if now - pool.short_at > self.longest_window():
                self.places[at] = None
        everywhere = frozenset(number for number, h in enumerate(self.hosts) if any(h.capacity))
        tried = list[object]()
        for j in live:
            about = j.term, tuple(j.demand)
            if not self.kind(j).planned or about in tried:
                continue
            if len(tried) == CANDIDATES:
                return
            tried.append(about)
            reach = self.reach(*about)
            if reach >= everywhere or any(p is not None and self.hosts_of(p) == reach for p in self.places):
                continue
            if None not in self.places:
                return
            pool = Pool(about, self.scarce(j), now)
            if self.is_short(pool, live):
                self.places[self.places.index(None)] = pool

    # The record

    def size(self, j: Instance, pool: Pool) -> float:
        """What its demand takes of all hosts, as the largest share of any resource, or as that of the pool's."""
        if pool.resource is not None and self.room[pool.resource] > 0:
            return exact(j.demand[pool.resource] / self.room[pool.resource])
        return exact(max((d / r for d, r in zip(j.demand, self.room, strict=True) if r > 0), default=0.0))

    def free(self, pool: Pool, given_up: Sequence[Instance] = ()) -> float:
        """What is free on hosts that are up, as the least share of any resource, or that of the pool's; where some are
        ``given_up``, on those whose attributes do for one of these."""
        hosts = [self.hosts[number] for number in sorted(self.hosts_of(pool))]
        reached = [h for h in hosts if not given_up or any(j.term.holds(h.attributes) for j in given_up)]
        up = [host.free() for host in reached if host.up]
        counted = range(len(self.room)) if pool.resource is None else [pool.resource]
        return exact(
            min((sum(max(0, f[r]) for f in up) / self.room[r] for r in counted if self.room[r] > 0), default=0.0)
        )

    def longest_window(self) -> float:
        return max((kind.window() for kind in self.kinds if kind.planned), default=inf)

    def pass_time(self, now: float, last_pass: float) -> None:
        """Since the last instant things stood as they do; who came since the last pass waits for the next one alone."""
        if not self.plans or now <= self.sample_at:
            return
        if self.unrecorded or self.made == 0:
            self.sample_at = now
            return
        self.step = self.step or FIRST_STEP
        samples = {pool: self.sample(pool, last_pass) for pool in self.pools()}
        self.thin_out()
        while self.sample_at < now:
            for pool, sample in samples.items():
                pool.record.append(sample)
            self.sample_at += self.step
            self.thin_out()
        for pool in samples:
            del pool.record[:-SAMPLES]

    def thin_out(self) -> None:
        if len(self.cluster.record) >= SAMPLES and self.step * SAMPLES < self.longest_window():
            for pool in self.pools():
                newest = pool.record[-SAMPLES:]
                pool.record = newest[::-1][::2][: len(newest) // 2][::-1]
            self.step *= 2.0

    def sample(self, pool: Pool, last_pass: float) -> tuple[list[float], list[float]]:
        there = self.there(pool)
        others = [j for j in there if not self.is_bound(j, pool)]
        waiting = self.helped([j for j in self.waiting() if j.since <= last_pass and self.is_bound(j, pool)])
        services = [j for j in waiting if not self.kind(j).job and not is_given_up(j)]
        jobs = [j for j in waiting if self.kind(j).job]
        given_up = [j for j in waiting if not self.kind(j).job and is_given_up(j)]
        waits = min((self.kind(j).level for j in services), default=self.levels)
        room = sum((self.size(j, pool) for j in there), 0.0)
        room += 0.0 if services or jobs else self.free(pool, given_up)
        usable, asked = [], []
        for level in range(self.levels):
            held = [j for j in there if self.kind(j).level <= level]
            above = sum(self.size(j, pool) for j in others if self.kind(j).level < level)
            if level >= waits:  # but those of its own level that are given up
                held = [j for j in held if self.kind(j).level < level or not is_given_up(j)]
                usable.append(sum((self.size(j, pool) for j in held), 0.0) - above)
            else:
                usable.append(room - above)
            bound = [j for j in there if j not in others]
            of_jobs = [j for j in (*bound, *jobs) if self.kind(j).job and self.kind(j).level <= level]
            asked.append(sum((self.size(j, pool) for j in of_jobs), 0.0))
        return usable, asked

    # The plan

    def is_due(self, now: float) -> bool:
        if not self.plans or now < self.soon_at:
            return False
        kept = [j for j in self.waiting() if self.kind(j).planned and not is_given_up(j)]
        return now >= self.due_at or bool(self.helped(kept))

    def waits(self, j: Instance) -> None:
        """It may have come since the plan was made."""
        if j.shift == 0.0 and self.kind(j).behind:
            j.shift = BEHIND

    def joins(self, j: Instance) -> None:
        """As :meth:`waits`, of its request."""
        if j.request is not None and j.request.shift == 0.0 and self.kind(j).behind:
            j.request.shift = BEHIND

    def interval(self, now: float) -> float:
        shortest = min((kind.window() for kind in self.kinds if kind.planned), default=inf)
        return max(1.0, min((now - self.born) / SOONEST, shortest / PLANS))

    def make(self, now: float) -> None:
        """Make a plan, and let it be in force."""
        if self.made == 0:
            self.born = now
        self.made += 1
        self.due_at = now + self.interval(now)
        totals = [sum(host.capacity[r] for host in self.hosts) for r in range(len(self.room))]
        self.room = [max(before, amount) for before, amount in zip(self.room, totals, strict=True)]
        waiting = self.waiting()
        helped = {j.row for j in self.helped(waiting)}
        without = {j.row for j in waiting if j.row not in helped}
        live = [j for j in self.instances if j.admitted and j.gone is None and j.row not in without]
        was = self.in_force
        self.soon_at = self.due_at
        self.take_census(live, now)
        self.sort_out()
        if self.in_force or was:
            for j in self.instances:
                behind = BEHIND if self.kind(j).behind else 0.0
                if not self.kind(j).planned and j in live:
                    j.shift = behind
                if j.row in without and j.shift > GIVEN_UP:
                    j.shift = 0.0
                if j.request is not None and not (self.kind(j).planned and set(j.request.live()) & set(live)):
                    j.request.shift = behind
            self.plan_levels(live, now)
            turn = min((FAR if k.patience is None else k.patience for k in self.kinds if k.planned), default=inf)
            self.soon_at = min(self.due_at, now + max(1.0, turn / PARTS))
        self.tell()

    def take_census(self, live: Sequence[Instance], now: float) -> None:
        for number, kind in enumerate(self.kinds):
            theirs = [j for j in live if j.service_class == number]
            ages = [now - j.admission for j in theirs]
            kind.alive, kind.age, kind.oldest = len(theirs), sum(ages), max(ages, default=0.0)
        there = [kind for kind in self.kinds if kind.alive]
        longest = max((kind.span() for kind in there), default=0.0)
        for kind in self.kinds:
            kind.job = kind.is_short(longest)
        busy, young = any(kind.turns_over() for kind in there), any(kind.is_young() for kind in there)
        services = [kind for kind in there if not kind.job]
        windows = any(not kind.of_lives for kind in services)
        self.unrecorded = busy and not windows
        earn = any(not kind.of_lives or kind.slo < 1.0 for kind in services)
        self.in_force = earn and (windows or not (busy or young))

    def sort_out(self) -> None:
        """Whom the plan is for, as if nobody took turns; jobs of their levels come behind them."""
        for kind in self.kinds:
            kind.planned = self.in_force and not kind.job
        for kind in self.kinds:
            kind.behind = self.in_force and kind.job and any(k.planned and k.level == kind.level for k in self.kinds)
            kind.patience, kind.urgent = FAR if kind.planned or kind.behind else None, -inf

    def plan_levels(self, live: Sequence[Instance], now: float) -> None:
        self.choose(live, now)
        last = max((kind.level for kind in self.kinds if kind.planned), default=0)
        rooms = {pool: self.room_of(pool) for pool in self.pools()}
        for level in range(self.levels):
            turns, missing = level == last, dict[Pool, tuple[float, float]]()
            for pool, room in rooms.items():
                bound = [j for j in live if self.is_bound(j, pool) and self.kind(j).level <= level]
                turns = turns or sum(self.size(j, pool) for j in bound) > room[level]
                above = [j for j in bound if self.kind(j).level < level and self.kind(j).planned]
                missing[pool] = sum((self.size(j, pool) for j in above), 0.0), room[level]
            members = self.members_of(level, live, now)
            if members:
                self.plan_level(level, members, missing, turns, now)

    def members_of(self, level: int, live: Sequence[Instance], now: float) -> list[Member]:
        """In the order of their first rows."""
        found: dict[object, Member] = {}
        for j in live:
            kind = self.kind(j)
            if kind.level == level and kind.planned:
                decides = j.request if j.request is not None and j.request.decides else j
                m = found.setdefault(decides, Member(j, kind, dict.fromkeys(self.pools(), 0.0)))
                for pool in list(m.sizes):
                    if self.is_bound(j, pool):
                        m.sizes[pool] += self.size(j, pool)
                    else:
                        del m.sizes[pool]
        for m in found.values():
            m.slack, m.budget = m.slack_at(now, self.config), m.budget_at(now)
        return list(found.values())

    def plan_level(
        self,
        level: int,
        members: Sequence[Member],
        missing: Mapping[Pool, tuple[float, float]],
        turns: bool,
        now: float,
    ) -> None:
        """``missing``: of each pool what those above ask for there, and the room of this level."""
        ordered, gone = order(members, self.cluster), set[Member]()
        span = max(m.kind.span() for m in members)
        horizons = [span / 2.0**rung for rung in range(RUNGS)]
        for pool, there in missing.items():
            theirs = [m for m in ordered if pool in m.sizes and m not in gone]
            before = sum(m.shift > GIVEN_UP for m in theirs)
            count = self.fewest(pool, level, theirs, there, horizons, MARGIN, now)
            if before > count:
                count = min(before, max(count, self.fewest(pool, level, theirs, there, horizons, TURN, now)))
            self.pooled += pool is not self.cluster and count > 0
            gone.update(theirs[:count])
        for m in members:
            shift = AWAY - 2.0 * max(-MOST, min(MOST, m.slack)) if m in gone else 0.0
            m.give_up(SHIFT * round(shift / SHIFT))
        self.gave_up += bool(gone)
        if turns and len(gone) < len(members):
            self.set_patience(level, members)

    def set_patience(self, level: int, members: Sequence[Member]) -> None:
        """By how much more slack an equal gives its place."""
        for kind in self.kinds:
            budgets = [m.budget for m in members if m.kind is kind]
            total = 0.0
            for budget in budgets:  # in this order, without the care that sum takes for rounding
                total += budget
            if kind.level == level and total > 0.0:
                mean = total / len(budgets)
                kind.patience = turn_of(mean, kind.alpha)
                kind.urgent = MARGIN * mean + kind.alpha
                kind.pressing = min(kind.patience, max(MARGIN * mean, 3.0 * kind.alpha))
                self.turns += 1

    def fewest(
        self,
        pool: Pool,
        level: int,
        ordered: Sequence[Member],
        missing: tuple[float, float],
        horizons: Sequence[float],
        reserve: float,
        now: float,
    ) -> int:
        """How many are given up, in this order, so that the budgets of the others pay at every horizon."""
        (above, room), gone = missing, 0
        for horizon in horizons:
            count = min(len(pool.record), max(1, ceil(horizon / self.step))) if self.step > 0.0 else 0
            base = [self.missing(level, sample) + above for sample in pool.record[len(pool.record) - count :]]
            away = {m: m.away(horizon, reserve, now, self.config) for m in ordered}
            while gone < len(ordered):
                # Equal ones in the order of their first rows, as sums depend on it.
                kept = sorted(ordered[gone:], key=lambda m: (away[m], m.first.row))
                if pays(base, self.step, horizon, above - room, [(away[m], m.sizes[pool]) for m in kept]):
                    break
                gone += 1
        return gone

    def missing(self, level: int, sample: tuple[list[float], list[float]]) -> float:
        """What was missing for jobs above the level alone; negative: left for others."""
        usable, asked = sample
        return (asked[level - 1] if level > 0 else 0.0) - usable[level]

    def tell(self) -> None:
        """What is in force for each instance and host."""
        scarce = [self.hosts_of(pool) for pool in self.places if pool is not None and self.in_force]
        for number, host in enumerate(self.hosts):
            host.scarce = any(number in hosts for hosts in scarce)
        for j in self.instances:
            kind = self.kind(j)
            j.margin = FAR if kind.planned or kind.behind else kind.margin
            j.patience, j.urgent, j.pressing = kind.patience, kind.urgent, kind.pressing
            both = any(one.level == kind.level and one.planned != kind.planned for one in self.kinds)
            j.planned_for = kind.planned or both


def is_given_up(j: Instance) -> bool:
    return Member(j, Kind(1.0, 0, 0.0, 0.0, None), {}).shift > GIVEN_UP
