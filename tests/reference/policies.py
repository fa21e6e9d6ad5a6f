"""Who may be preempted, whom a host gives up, and which host is taken (docs/semantics.md, A pass at instant t)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from reference import neighbours, placing
from reference.amounts import Amounts, fits, minus, plus
from reference.budgets import spares
from reference.costs import COSTS, Victim, lateness
from reference.groups import in_company, one_by_one, those_on, whole_of
from reference.limits import permits
from reference.queue import as_kube, is_lost, priority_order, qos_order, recovers, victim_order
from reference.scores import SCARCE, SCORES, left_over
from reference.state import Host, Instance
from slacktide.config import Config
from slacktide.errors import ConfigError

Mode = Literal["qos-driven", "priority"]


@dataclass(frozen=True)
class Choice:
    """Where an instance goes and who has to leave first, in this order."""

    host: Host
    victims: tuple[Instance, ...] = ()


def overhead_limited(j: Instance, k: Instance, config: Config) -> bool:
    """Whether the overhead limit protects ``k`` from ``j``."""
    scope = config.policy.overhead_scope
    if scope == "same-or-more-important":
        return k.rank <= j.rank
    if scope == "same-class":
        return k.service_class == j.service_class
    return scope == "all"


def outranked(j: Instance, k: Instance) -> bool:
    """Whether ``j`` comes after ``k`` by priority, their classes being of one rank."""
    return j.named_rank == k.named_rank and j.named_rank > 0 and j.rank > k.rank


def eligible(j: Instance, k: Instance, t: float, config: Config) -> bool:
    """QoS-driven: whether running ``k`` may be preempted for waiting ``j``."""
    q_j, q_k = j.metric_at(t, config), k.metric_at(t, config)
    if q_k >= k.margin:
        allowed = q_j < q_k and (config.policy.preempt_when == "better" or q_j < j.margin)
        allowed = allowed and not outranked(j, k)
    else:
        patience = config.policy.patience if j.patience is None else j.patience
        gives_way = q_j < max(q_k - patience, min(j.urgent, q_k - j.pressing))
        allowed = q_j < j.margin and (j.rank < k.rank or (j.rank == k.rank and gives_way))
    if allowed and overhead_limited(j, k, config):
        return k.overhead_at(t, config) <= k.limit
    return allowed


def eligible_in_overload(j: Instance, k: Instance, t: float, config: Config) -> bool:
    """Triage: whether running ``k`` may be preempted for waiting ``j`` of an overloaded rank."""
    q_j, q_k = j.metric_at(t, config), k.metric_at(t, config)
    if not q_j < j.margin or k.rank < j.rank:
        return False
    lost, patience = is_lost(j, t, config), config.policy.patience
    if lost and k.rank == j.rank:
        allowed = q_k >= k.margin + max(config.policy.overload_patience, patience)
    else:
        allowed = is_lost(k, t, config) or q_k >= k.margin + patience
        allowed = allowed or (k.rank > j.rank and not (lost and recovers(j, config)))
        allowed = allowed or (not lost and makes_room_for_two(k, j))
    if allowed and overhead_limited(j, k, config):
        return k.overhead_at(t, config) <= k.limit
    return allowed


def makes_room_for_two(k: Instance, j: Instance) -> bool:
    """Whether running ``k`` asks for at least twice of everything that ``j`` asks for."""
    return all(large >= 2 * small for large, small in zip(k.demand, j.demand, strict=True))


@dataclass
class Pass:
    """The fixed circumstances of one pass: ``number`` counts from 0, ``ranks`` are all classes', ascending.

    ``overloaded`` are the ranks that are so in this pass.
    """

    t: float
    number: int
    mode: Mode
    config: Config
    ranks: Sequence[int]
    cpu: int = 0
    memory: int = 1
    known: placing.Map | None = None
    overloaded: frozenset[int] = frozenset()
    planned: bool = False
    """A plan is in force."""

    def order(self, waiting: Sequence[Instance]) -> list[Instance]:
        if self.mode == "priority":
            return priority_order(waiting)
        return qos_order(waiting, self.t, self.config, self.overloaded)

    def candidates(self, host: Host) -> list[Instance]:
        """Instances in the order in which they would be given up; none that was placed in this pass."""
        if host.known is None:
            return self.work_out_candidates(host)
        if host not in host.known.orders:
            host.known.orders[host] = self.work_out_candidates(host)
        return host.known.orders[host]

    def work_out_candidates(self, host: Host) -> list[Instance]:
        seed = self.config.simulation.seed
        old = [k for k in host.instances if k.placed_in_pass != self.number]
        if self.mode == "priority":
            started = as_kube(self.config)
            return sorted(
                old, key=lambda k: (k.rank, k.placed_at if started else 0.0, k.admission, k.tie(seed)), reverse=True
            )
        return victim_order(old, self.t, self.config, self.overloaded)

    def eligible(self, j: Instance, k: Instance, taken: Sequence[Instance] = ()) -> bool:
        """Whether ``k`` may be preempted for ``j``, besides those ``taken`` already."""
        if not permits(k, taken, self.t) or not spares(k, taken, self.t):
            return False
        if self.mode == "priority":
            return k.rank > j.rank
        if j.rank in self.overloaded:
            return eligible_in_overload(j, k, self.t, self.config)
        return eligible(j, k, self.t, self.config)

    def who_leaves(self, j: Instance, k: Instance, taken: Sequence[Instance]) -> list[Instance]:
        """``k``, or all of its group, if they may be preempted for ``j`` besides those ``taken``; else nobody.

        A group does not leave for its own, nor for one with rules: these may fail where others of the group leave.
        """
        group = whole_of(k)
        if group is None or j.placement.rules:
            return [k] if not in_company(k) and self.eligible(j, k, taken) else []
        leaving: list[Instance] = []
        for m in group.there():
            if group is j.group or m.placed_in_pass == self.number or not self.eligible(j, m, [*taken, *leaving]):
                return []
            leaving.append(m)
        return leaving

    def lacks(self, j: Instance, host: Host) -> bool:
        """As kube-scheduler: whether there is room only once victims are gone that are no less important."""
        if not as_kube(self.config):
            return False
        left = host.free()
        for until, amounts, rank in host.going:
            if until > self.t and rank <= j.rank:
                left = minus(left, amounts)
        return not fits(j.demand, left)

    def victims(self, j: Instance, host: Host, hosts: Sequence[Host]) -> tuple[Instance, ...] | None:
        """Whom the host gives up for ``j``; ``None`` where that would not suffice.

        First all who stand in the way of its ``away`` rules, then others until there is room.
        """
        if fits(j.demand, host.free()) and self.lacks(j, host):
            return None
        in_the_way = neighbours.in_the_way(j, host, hosts)
        if in_the_way is None or not neighbours.draws_near(j, host, hosts):
            return None
        candidates = self.candidates(host)
        taken: list[Instance] = []
        for k in candidates:
            if k in in_the_way:
                taken += self.who_leaves(j, k, taken)
        if len(taken) < len(in_the_way):
            return None
        free = host.free_without(taken)
        for k in candidates:
            if fits(j.demand, free):
                break
            if k not in in_the_way and k not in taken:
                leaving = self.who_leaves(j, k, taken)
                taken += leaving
                for m in those_on(host, leaving):
                    free = plus(free, m.takes())
        enough = fits(j.demand, free) and neighbours.draws_near(j, host, hosts, taken)
        here = those_on(host, taken)
        return (*here, *(k for k in taken if k not in here)) if enough else None

    def victims_together(self, j: Instance, host: Host, hosts: Sequence[Host]) -> tuple[Instance, ...] | None:
        """Whom the host gives up for the room and all rules of ``j`` together; ``None`` where that would not suffice.

        All less important ones that are eligible and that ``j`` need not be near to, without those who need not go: the
        one who would be given up last is asked first.
        """
        taken: list[Instance] = []

        def near(gone: Sequence[Instance]) -> bool:
            return all(
                neighbours.holds(rule, j, host, hosts, gone) for rule in j.placement.rules if rule.kind == "near"
            )

        for k in self.candidates(host):
            if k.rank > j.rank and self.who_leaves(j, k, taken) and near([*taken, k]):
                taken.append(k)

        def serves(gone: Sequence[Instance]) -> bool:
            rules = all(neighbours.holds(rule, j, host, hosts, gone) for rule in j.placement.rules)
            return rules and fits(j.demand, host.free_without(list(gone)))

        if not taken or not j.placement.rules or not serves(taken):
            return None
        for k in reversed(tuple(taken)):
            rest = [other for other in taken if other is not k]
            if serves(rest):
                taken = rest
        return tuple(taken)

    def score_name(self) -> str:
        packs = self.planned and self.config.policy.score == "default"
        return "packed" if packs else placing.score_name(self.config)

    def score(self, j: Instance, host: Host, free: Amounts) -> float:
        """Allocation score of ``j`` on the host with ``free`` amounts before it comes."""
        if self.known is not None:
            compared = placing.preempting_score(j, host, free, self.known)
            if compared is not None:
                return compared
        name = self.score_name()
        if placing.is_compared(self.config):
            name = "mean"  # of ElasticFog, which has no score of one host
        if name not in SCORES:
            raise ConfigError(f"policy.score: found {self.config.policy.score!r}, expected one of {list(SCORES)}")
        x = left_over(free[self.cpu], j.demand[self.cpu], host.capacity[self.cpu])
        y = left_over(free[self.memory], j.demand[self.memory], host.capacity[self.memory])
        return SCORES[name](x, y) - (SCARCE if name == "packed" and host.scarce else 0.0)

    def cost(self, victims: Sequence[Instance]) -> tuple[float, ...]:
        name = self.config.policy.cost
        if name == "default":
            name = "fewest-victims" if self.mode == "priority" else "slack"
        if name not in COSTS:
            raise ConfigError(f"policy.cost: found {name!r}, expected one of {['default', *COSTS]}")
        knows_idle = self.mode == "qos-driven"
        known = [
            Victim(k.rank, k.metric_at(self.t, self.config), k.margin, knows_idle and k.is_idle())
            for k in one_by_one(victims)
        ]
        cost = COSTS[name](known, self.ranks)
        if as_kube(self.config) and name == "fewest-victims" and victims:
            most = min(k.rank for k in victims)
            return (*cost, min(k.placed_at for k in victims if k.rank == most))
        return cost

    def with_lateness(self, cost: tuple[float, ...], j: Instance, victims: Sequence[Instance]) -> tuple[float, ...]:
        """What ``j`` would be late counts directly after its own rank."""
        if self.mode != "qos-driven":
            return cost
        overloaded = j.rank in self.overloaded
        late = lateness([k.grace for k in victims], 0.0 if overloaded else j.metric_at(self.t, self.config))
        behind = self.ranks.index(j.rank) + 1
        return (*cost[:behind], -late, *cost[behind:])

    def choose_free(self, j: Instance, hosts: Sequence[Host]) -> Choice | None:
        """Step 1: the best of the hosts where its rules hold and whose free amounts suffice."""
        seed = self.config.simulation.seed
        fitting = [h for h in hosts if h.admits(j) and neighbours.welcomes(j, h, hosts) and fits(j.demand, h.free())]
        fitting = [h for h in fitting if not self.lacks(j, h)]
        if not fitting:
            return None
        if self.known is not None and placing.is_compared(self.config):
            points = neighbours.points_of(j, fitting, hosts)
            choose = placing.CHOICES[placing.score_name(self.config)]
            return Choice(choose(j, placing.Asked(fitting, points, hosts, self.known)))
        scores = [self.score(j, h, h.free_for(j)) for h in fitting]
        extras = neighbours.extras(j, fitting, hosts, self.score_name())
        best = max(range(len(fitting)), key=lambda i: (scores[i] + extras[i], fitting[i].tie(seed)))
        return Choice(fitting[best])

    def choose_preempting(self, j: Instance, hosts: Sequence[Host]) -> Choice | None:
        """Step 2: the best of the hosts where victims suffice."""
        seed = self.config.simulation.seed
        open_to = [host for host in hosts if host.admits(j)]
        for choose in (self.victims, self.victims_together):
            found = [(host, choose(j, host, hosts)) for host in open_to]
            options = [Choice(host, victims) for host, victims in found if victims is not None]
            if as_kube(self.config) and self.config.policy.reprieve:
                options = [self.reprieved(j, one, hosts) for one in options]
            if options:
                break
        else:
            return None

        def merit(option: Choice) -> tuple[tuple[float, ...], float, int]:
            here = those_on(option.host, option.victims)
            free = option.host.free_for(j, here)
            return (
                self.with_lateness(self.cost(option.victims), j, here),
                self.score(j, option.host, free),
                option.host.tie(seed),
            )

        best = max(options, key=merit)
        return self.reprieved(j, best, hosts) if self.config.policy.reprieve else best

    def reprieved(self, j: Instance, choice: Choice, hosts: Sequence[Host]) -> Choice:
        """Without those of its victims who need not go: the one who would be given up last is asked first."""
        left = list(choice.victims)
        for k in reversed(those_on(choice.host, choice.victims)):
            rest = [other for other in left if other is not k]
            room = fits(j.demand, choice.host.free_without(those_on(choice.host, rest)))
            rules = all(neighbours.holds(rule, j, choice.host, hosts, rest) for rule in j.placement.rules)
            if not in_company(k) and room and rules:
                left = rest
        return Choice(choice.host, tuple(left))
