"""The state of one cluster: its tables, and how they come to be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import LONGEST, Accounting, Config
from slacktide.errors import ConfigError
from slacktide.kernels import builtin
from slacktide.kernels.feasible import lendable
from slacktide.kernels.feasible.free_index import AMOUNTS, NOWHERE
from slacktide.kernels.feasible.own_numbers import ATTRIBUTE, NAMES
from slacktide.kernels.place import offers
from slacktide.kernels.plan.pools import MOST, NONE
from slacktide.kernels.plan.record import SAMPLES
from slacktide.kernels.policies.pieces import OF_CLASS, OF_INSTANCE, OF_STATE
from slacktide.kernels.tables import log_records, schema
from slacktide.kernels.tables.arrays import Tables
from slacktide.model import Hosts, Workload
from slacktide.model.host_events import HostEvents
from slacktide.model.matching import matching_hosts
from slacktide.model.resting import Room, let_go, room_beside, scattered
from slacktide.state import (
    affinity_tables,
    host_events,
    layout,
    limit_tables,
    network_tables,
    past,
    request_tables,
    resize_tables,
    unreadiness,
    windows,
)

SCOPES = {
    "same-or-more-important": schema.SCOPE_LEVEL,
    "same-class": schema.SCOPE_CLASS,
    "all": schema.SCOPE_ALL,
    "none": schema.SCOPE_NONE,
}
ACCOUNTINGS: dict[Accounting, int] = {"restart": schema.RESTART, "always": schema.ALWAYS, "never": schema.NEVER}

WORK = {"kept": schema.KEPT, "lost": schema.LOST, "by-kind": schema.LOST_BY_KIND}

ON_GRID = ("patience", "savable", "overload_patience", "recovery", "watchdog", "end", "tolerance", "recreation")
"""Rules that are times."""

NETWORK = "network"
"""The resource that is bandwidth."""
NAIVE = False
"""True only in tests: decisions without anything that saves work, which must be the same."""
LARGE_REQUEST = 100
"""Instances on hosts from which on hosts are told of a request only what matters to them (:mod:`..leeway`)."""
INSTANCES = 16  # a host has room for at first
MANY_HOSTS = 1024  # from as many on a tournament of them is worth its memory
LOOKS_BEFORE = 16  # a tree costs about as much as that many looks at every host
FAILURES = (8, 16)  # of the present pass that hold for larger demands: of so many classes, so many of each
SHARED_BYTES = 48_000_000  # for shared evaluations; fewer sets only cost time


@dataclass(frozen=True, slots=True)
class PieceCode:
    """Addresses of the compiled pieces of a user's policy, and what they ask for (:mod:`.kernels.policies.pieces`)."""

    queue: int
    gives_way: int
    leaves: int
    cost: int
    look: int
    overhead: int
    move: int
    by_metric: bool
    metric: int = 0
    falls: int = 0


@dataclass(frozen=True, slots=True)
class OwnCode:
    """Addresses of a user's compiled score and cost, 0 for none; the numbers that the score asks for, by name; and the
    pieces of a policy."""

    score: int = 0
    cost: int = 0
    numbers: tuple[str, ...] = ()
    pieces: PieceCode | None = None


def rules_of(config: Config, classes: schema.Records, hosts: int, own: OwnCode, record: int) -> schema.Records:
    """The settings as kernels read them; raises ConfigError where they contradict each other."""
    policy, optimize = config.policy, config.optimize
    if policy.overload != "share" and "metric" in (policy.queue_order, policy.victim_order):
        which = "queue_order" if policy.queue_order == "metric" else "victim_order"
        raise ConfigError(
            f"policy.overload: found {policy.overload!r} beside policy.{which} 'metric', expected that order to be "
            "'importance'; set one of the two otherwise"
        )
    as_kube = policy.equals == "kube-scheduler" and policy.name == "priority"
    if as_kube and (asks_for_users(config) or optimize.relaxed_randomization < 1.0):
        which = f"policy.score {policy.score!r}" if asks_for_users(config) else "optimize.relaxed_randomization below 1"
        raise ConfigError(
            f"policy.equals: found 'kube-scheduler' beside {which}, which kube-scheduler does not know; set one of the "
            "two otherwise"
        )
    rules = np.zeros(1, schema.RULES)
    score = None if own.score and not in_order(config) else builtin.SCORES[score_name(config)]
    values: dict[str, float | int] = {
        "patience": policy.patience,
        "savable": policy.savable,
        "overload_patience": max(policy.overload_patience, policy.patience),
        "recovery": policy.recovery,
        "floor": policy.floor,
        "watchdog": config.scheduler.watchdog,
        "end": math.inf if config.simulation.end is None else config.simulation.end,
        "tolerance": optimize.equivalence_tolerance,
        "relaxed": optimize.relaxed_randomization,
        "seed": config.simulation.seed % 2**64,
        "stride": coprime_stride(hosts),
        "own_score": own.score,
        "own_cost": own.cost,
        "policy": builtin.POLICIES[policy.name].code if policy.name in builtin.POLICIES else builtin.QOS_DRIVEN,
        "triage": weighs_overload(config),
        "plans": plans(config),
        "crossings": follows_crossings(config),
        "needed": policy.preempt_when == "needed",
        "by_importance": policy.queue_order == "importance",
        "same_pass": policy.victims == "same-pass",
        "mirrored": policy.victim_order == "importance",
        "score": builtin.OWN if score is None else score.code,
        "usual_score": builtin.OWN if score is None else score.code,
        "planned_score": builtin.OWN if score is None else planned_score(config, score.code),
        "weight": config.delay.alpha,
        "phi": config.delay.phi,
        "near": config.delay.tolerance,
        "fetching": config.delay.fetching,
        "keep_images": config.delay.keep_images,
        "cost": cost_code(policy.cost, own, builtin.SLACK),
        "priority_cost": cost_code(policy.cost, own, builtin.FEWEST_VICTIMS),
        "scope": SCOPES[policy.overhead_scope],
        "queue_limit": policy.queue_limit,
        "as_kube": as_kube,
        "accounting": ACCOUNTINGS[config.qos.startup],
        "lost": WORK[config.simulation.preempted_work],
        "gang": policy.gang,
        "reprieve": policy.reprieve,
        "recreation": config.simulation.recreation,
        "shared": optimize.shared_evaluations and not NAIVE and "age" not in own.numbers,  # which changes by itself
        "naive": NAIVE,
        "large": LARGE_REQUEST,
        "pruning": optimize.queue_pruning,
        "exact": optimize.relaxed_randomization >= 1.0 and optimize.equivalence_tolerance == 0.0,
        "record": record,
        "observe": math.inf,
    }
    if score is not None:
        values |= score.addresses()
    if own.pieces is not None:
        values |= piece_rules(config, own.pieces)
    for name, value in values.items():
        rules[0][name] = value
    for name in ON_GRID:
        rules[name] = layout.on_grid(rules[name])
    note_classes(rules[0], classes)
    return rules


def piece_rules(config: Config, own: PieceCode) -> dict[str, float | int]:
    """What rules say otherwise where a user's policy from pieces decides: those of the built-in ones do not count."""
    return {
        "policy": builtin.QOS_DRIVEN if own.by_metric else builtin.PRIORITY,
        "crossings": config.scheduler.crossings and own.by_metric and not own.metric,
        **dict.fromkeys(("triage", "plans", "needed", "by_importance", "mirrored"), 0),
        **dict.fromkeys(("cost", "priority_cost"), builtin.OF_PIECES),
        "piece_queue": own.queue,
        "piece_level": own.gives_way,
        "piece_leaves": own.leaves,
        "piece_cost": own.cost,
        "piece_metric": own.metric,
        "piece_falls": own.falls,
        "pieces_look": own.look,
        "pieces_overhead": own.overhead,
        "pieces_move": own.move,
    }


def class_numbers(classes: schema.Records) -> NDArray[np.float64]:
    """What pieces of a user's policy may ask of each class, shape (classes, numbers)."""
    names = {"rank": "named_rank", "overhead_limit": "limit"}
    levels = np.full(len(classes), classes["level"].max() + 1.0)
    columns = [levels if one == "levels" else classes[names.get(one, one)] for one in OF_CLASS]
    return np.stack(columns, axis=1).astype(np.float64)


def note_classes(rules: schema.Records, classes: schema.Records) -> None:
    """Write what ``rules`` (one record) say of all classes together."""
    watchdog = rules["watchdog"]
    rules["levels"] = int(classes["level"].max()) + 1
    classes["patience"], classes["urgent"] = rules["patience"], -np.inf
    rules["fastest"] = float(classes["slope"].max())
    rules["min_running"] = classes["min_running"].max()
    rules["one_margin"] = len(set(classes["margin"].tolist())) == 1 and not rules["piece_level"]
    rules["spare_from"] = classes["margin"].min() + rules["overload_patience"]
    rules["crossing_pause"] = layout.on_grid(np.clip(classes["margin"].min() / 2.0, watchdog / 10.0, watchdog / 2.0))


def in_order(config: Config) -> bool:
    """Whether the policy serves in order of admission and preempts nobody: all classes are equally important then."""
    policy = builtin.POLICIES.get(config.policy.name)
    return policy is not None and policy.score != ""


def score_name(config: Config) -> str:
    """The allocation score: that of the policy where it brings one along, else the setting's."""
    if in_order(config):
        return builtin.POLICIES[config.policy.name].score
    if config.policy.score != builtin.DEFAULT:
        return config.policy.score
    return "mean" if config.policy.name == "priority" else "balanced"


def planned_score(config: Config, usual: int) -> int:
    """The number of the score while a plan is in force: who needs much room at once is to find it."""
    return builtin.PACKED if config.policy.score == builtin.DEFAULT and not in_order(config) else usual


def asks_for_users(config: Config) -> bool:
    """Whether the allocation score asks where users are."""
    return score_name(config) in builtin.AT_USERS


def grants_more(config: Config) -> bool:
    """Whether instances are granted more than they demand: by the score ``delay-aware``, where the settings ask."""
    return config.delay.grants and score_name(config) == "delay-aware"


def by_application(config: Config) -> bool:
    """Whether the allocation score tells applications apart: ``elastic-fog`` counts the traffic of each."""
    return score_name(config) == "elastic-fog"


def cost_code(name: str, own: OwnCode, default: int) -> int:
    """The number of a preemption cost; ``default`` where the policy's own is wanted."""
    if own.cost:
        return builtin.OWN
    return default if name == builtin.DEFAULT else builtin.COSTS[name].code


def coprime_stride(count: int) -> int:
    """A step that visits all of ``count`` places, near the golden section so that they spread."""
    stride = max(1, round(count * 0.6180339887))
    while math.gcd(stride, count) != 1:
        stride += 1
    return stride


def build(
    workload: Workload,
    hosts: Hosts,
    config: Config,
    *,
    hot: NDArray[np.float64],
    cold: NDArray[np.float64],
    shares: NDArray[np.float64] | None = None,
    returns: NDArray[np.float64] | None = None,
    happenings: HostEvents | None = None,
    triggers: NDArray[np.float64] | None = None,
    own: OwnCode | None = None,
    record: int = 0,
) -> Tables:
    """Tables of a cluster before anything happened.

    ``workload`` and ``hosts`` must name the same resources in the same order, CPU and
    memory first; ``hot`` and ``cold`` are the start-up delays to draw from, seconds, and ``shares`` what victims take
    of their grace periods (None: all), ``returns`` after how many seconds those of batch requests come again that were
    stopped (None: as all others).
    Raises :class:`ConfigError` where they do not.
    """
    if workload.resources != hosts.resources or workload.resources[:2] != ("cpu", "memory"):
        raise ConfigError(f"resources differ: workload {workload.resources}, hosts {hosts.resources}")
    unit = layout.units(host_events.largest(hosts, happenings))
    capacity = layout.amounts(hosts.capacity, unit)
    own = own or OwnCode()
    edge = asks_for_users(config)
    every = resize_tables.with_later_demands(workload)
    limit = layout.amounts(every.limit, unit) if edge and every.limit is not None else None
    kinds = layout.classify(every, layout.amounts(every.demand, unit), further_columns(every, limit, config))
    edges = edge_arrays(every, hosts, config, kinds, limit) if edge else {}
    kinds, resizing = resize_tables.apart(workload, kinds)
    terms = [*workload.terms, *affinity_tables.preferred_terms(workload.placements)]
    grouping = layout.group_hosts(host_events.apart(capacity, happenings), matching_hosts(terms, hosts))
    classes = layout.class_table(workload.classes, config, in_order(config))
    turns = windows.fill_classes(classes, workload.classes, config, config.simulation.end or LONGEST)
    requests = request_tables.arrays(workload, config.simulation.preempted_work != "kept")
    levels = int(classes["level"].max()) + 1
    counters = affinity_tables.counters_of(workload)
    lasting = room_beside(workload.admission, room=scattered)
    rules = rules_of(config, classes, len(hosts), own, record)
    set_units(rules, hosts, unit, config.delay.memory_per_cpu)
    arrays = {
        "classes": classes,
        "turns": turns,
        **windows.arrays(classes, len(workload), len(requests["requests"]), lasting),
        "demand": kinds.demand,
        "kinds": kinds.kinds,
        "member": kinds.member,
        "allowed": grouping.allowed,
        "groups": grouping.groups,
        "leaf_host": grouping.leaf_host,
        "hot": layout.on_grid(hot),
        "cold": layout.on_grid(cold),
        "grace_shares": np.ones(1) if shares is None else shares,
        "batch_returns": np.zeros(0) if returns is None else layout.on_grid(returns),
        "triggers": np.zeros(0) if triggers is None else layout.on_grid(triggers),
        "unit": 1.0 / unit,
        **host_events.arrays(happenings, capacity, unit, counters.by_mark),
        **instance_arrays(workload, kinds, lasting),
        **affinity_tables.arrays(workload, hosts, kinds.kinds, kinds.placement, counters),
        **resizing,
        **edges,
        **requests,
        **limit_tables.arrays(workload, config.simulation.epoch, config.simulation.end, happenings),
        **host_arrays(capacity, grouping),
        **plan_arrays(levels, bool(rules["plans"][0])),
        "room": np.zeros(capacity.shape[1]),
        **shared_arrays(len(hosts), kinds.pairs, levels, capacity.shape[1], bool(rules["triage"][0])),
        **contest_arrays(len(hosts), grouping.nodes, levels, capacity.shape[1]),
        **unreadiness.arrays(workload),
        "leavers": np.zeros(0 if workload.grace is None else 64, schema.LEAVER),
        **buffers(len(workload), capacity.shape[1]),
        **own_numbers(own.numbers, hosts.attributes),
        "class_numbers": class_numbers(classes),
        "piece_numbers": np.zeros(len(OF_INSTANCE)),
        "piece_state": np.zeros(len(OF_STATE)),
        "piece_more": np.zeros(1),
    }
    request_tables.ensure_capacity(arrays, INSTANCES, record)
    control = np.zeros(1, schema.CONTROL)
    control["last_pass"] = control["crossed_at"] = -np.inf
    control["crossing_at"] = np.inf
    control["sorted_for"] = -1
    control["graces"] = len(np.unique(arrays["kinds"]["grace"])) > 1
    control["turns_at"] = windows.next_turn(classes)
    if arrays["classes"]["min_running"].max() > 0.0:
        arrays["wakes"] = wakes(len(hosts), int(rules["policy"][0]))
    past.write_ledgers(workload, arrays)
    tables = Tables(rules, control, arrays)
    past.write_accounts(workload, tables)
    return tables


def further_columns(workload: Workload, limit: NDArray[np.int64] | None, config: Config) -> list[NDArray[np.int64]]:
    """By what shapes are told apart besides their demand, where a score asks."""
    columns = [] if limit is None else list(limit.T)
    if asks_for_users(config) and workload.access is not None:
        columns.append(workload.access.astype(np.int64))
    if by_application(config):
        columns.append(workload.job)
    return columns


def edge_arrays(
    workload: Workload, hosts: Hosts, config: Config, kinds: layout.Kinds, limit: NDArray[np.int64] | None
) -> dict[str, NDArray[Any]]:
    """Tables of delay-aware placement."""
    resources = len(hosts.resources)
    arrays: dict[str, NDArray[Any]] = {}
    geography = network_tables.Geography(hosts)
    number = np.zeros(len(workload), np.int64) if workload.access is None else workload.access
    bandwidth = np.zeros(len(kinds.of_shape))
    if NETWORK in workload.resources:
        bandwidth = workload.demand[kinds.of_shape, workload.resources.index(NETWORK)]
    chosen = [workload.accesses[number[row]] for row in kinds.of_shape.tolist()]
    ids = workload.ids[kinds.of_shape].tolist()
    arrays |= network_tables.ask_arrays(chosen, ids, bandwidth, config.delay, geography)
    arrays["access"]["application"] = workload.job[kinds.of_shape]
    arrays |= network_tables.geography_arrays(hosts, geography)
    if limit is not None:
        arrays["limit"] = np.maximum(limit[kinds.of_shape], kinds.demand)
        if grants_more(config):
            arrays["granted"] = np.zeros((len(workload), resources), np.int64)
    return arrays


def set_units(rules: schema.Records, hosts: Hosts, unit: NDArray[np.float64], memory_per_cpu: float) -> None:
    """What whole amounts are in CPUs and in the hosts' unit of bandwidth."""
    rules["cpu_unit"] = 1.0 / unit[0]
    total = hosts.capacity.sum(axis=0)
    worth = memory_per_cpu or (total[1] / total[0] if total[0] > 0.0 and total[1] > 0.0 else 1.0)
    rules["memory_in_cpu"] = 1.0 / unit[1] / worth
    network = hosts.resources.index(NETWORK) if NETWORK in hosts.resources else -1
    rules["network"] = network
    rules["network_unit"] = 1.0 / unit[network] if network >= 0 else 1.0


def instance_arrays(workload: Workload, kinds: layout.Kinds, room: Room) -> dict[str, NDArray[Any]]:
    """What is known of each instance, in ``room``, before any was admitted."""
    instances = room(len(workload), schema.INSTANCE)
    for part in layout.parts(len(workload)):
        some = instances[part]
        some["kind"] = kinds.kind[part]
        some["host"] = some["first_host"] = -1
        let_go(instances, kinds.kind)
    admission = layout.on_grid(workload.admission)
    if workload.requests is not None and (workload.requests.parallelism > 0).any():
        admission = admission.copy()  # rows that are released later are admitted then
    return {
        "instances": instances,
        "admission": admission,
        "duration": layout.on_grid(workload.duration),
    }


def host_arrays(capacity: NDArray[np.int64], grouping: layout.Grouping) -> dict[str, NDArray[Any]]:
    """Empty hosts; ``host_slots.fill`` brings them into the free index."""
    count, resources = capacity.shape
    hosts = np.zeros(count, schema.HOST)
    hosts["group"], hosts["leaf"] = grouping.group, grouping.leaf
    with np.errstate(divide="ignore"):
        scale = np.where(capacity[:, :2] > 0, 2.0**40 / capacity[:, :2], 0.0)
    return {
        "hosts": hosts,
        "ceilings": np.zeros(count, schema.CEILING),
        "slots": np.zeros((count, INSTANCES), schema.SLOT),
        "free": capacity.copy(),
        "capacity": capacity,
        "scale": scale,
        "tree": np.full((grouping.nodes, AMOUNTS + resources), NOWHERE, np.int64),
        "changes": np.zeros(1 << 16, np.int32),
        "releases": np.zeros(1 << 10, np.int64),
    }


def weighs_overload(config: Config) -> bool:
    """Whether classes may be overloaded in some pass: by metric only."""
    return config.policy.overload in ("triage", "plan") and config.policy.name != "priority"


def plans(config: Config) -> bool:
    """Whether it is planned whom to give up: by metric only."""
    return config.policy.overload == "plan" and config.policy.name != "priority"


def follows_crossings(config: Config) -> bool:
    """Whether there is a pass when slack meets the margin: of the built-in policies that ask for slack."""
    return config.scheduler.crossings and config.policy.name in ("qos-driven", "hybrid")


def wakes(hosts: int, policy: int) -> NDArray[np.float64]:
    """When hosts spare one less, as far as anybody asks; ``host_slots.fill`` writes it."""
    return np.full(2 << max(0, hosts - 1).bit_length() if policy in (builtin.PRIORITY, builtin.HYBRID) else 0, np.inf)


def shared_arrays(hosts: int, pairs: int, levels: int, resources: int, triage: bool) -> dict[str, NDArray[Any]]:
    """What is found out about hosts, nothing yet: evaluations that equal demands of a class share, and bounds."""
    sets = int(np.clip(SHARED_BYTES // (hosts * 8 * (levels + 4)), 2, 64))
    shared = np.zeros(sets, schema.SHARED)
    shared["pair"] = shared["batch"] = -1
    failures = np.zeros(FAILURES, schema.FAILURE)
    failures["batch"] = -1
    standings = lendable.STANDINGS * levels if triage else 0
    return {
        "failures": failures,
        "shared": shared,
        "shared_cost": np.zeros((sets, hosts, levels + 1)),
        "shared_wait": np.zeros((sets, hosts)),
        "shared_limit": np.zeros((sets, hosts)),
        "shared_look": np.zeros((sets, hosts), np.int64),
        "shared_score": np.zeros((sets, hosts), np.int64),
        "shared_hosts": np.zeros((sets, hosts), np.int32),
        "shared_listed": np.zeros((sets, hosts), np.int32),
        "shared_tie": np.zeros((sets, hosts), np.int64),
        "shared_of_pair": np.full(pairs, -1, np.int32),
        "lendable": np.zeros((hosts if triage else 0, standings, 2 * resources), np.int64),
        "lendable_until": np.full((hosts if triage else 0, standings), -np.inf),
        "most_lendable": np.zeros((standings, 2 * resources), np.int64),
        "block_lendable": np.zeros((standings, -(-hosts // lendable.BLOCK), 2 * resources), np.int64),
        "lenders": np.full(standings, -1, schema.LENDERS),
    }


def plan_arrays(levels: int, planned: bool) -> dict[str, NDArray[Any]]:
    """The record of the shortage, nothing in it yet."""
    pools = np.zeros(MOST if planned else 0, schema.POOL)
    pools["kind"] = NONE
    places = (len(pools) + 1, levels, SAMPLES) if planned else (0, 0, SAMPLES)
    return {"usable": np.zeros(places), "jobs_asked": np.zeros(places), "pools": pools}


def contest_arrays(hosts: int, nodes: int, levels: int, resources: int) -> dict[str, NDArray[Any]]:
    """What hosts offer to those who preempt; nothing yet. Where hosts are few, a look at each costs little."""
    nodes, several = (nodes, 1) if hosts >= MANY_HOSTS else (0, 0)
    contest = np.zeros(several, schema.CONTEST)
    contest["after"], contest["batch"] = LOOKS_BEFORE, -1
    return {
        "contest": contest,
        "offers": np.zeros((nodes, offers.OFFERS, offers.ROOM + resources), np.int64),
        "offer_costs": np.zeros((nodes, offers.OFFERS, levels + 1)),
        "offer_tie": np.zeros(nodes, np.int64),
    }


def own_numbers(names: Sequence[str], attributes: Sequence[Mapping[str, str]]) -> dict[str, NDArray[Any]]:
    """Tables of what a user's score asks for (:mod:`slacktide.kernels.feasible.own_numbers`)."""
    return {
        "asked": np.array([NAMES.get(name, ATTRIBUTE) for name in names], np.int64),
        "attributes": np.array([numbers_of(names, one) for one in attributes]).reshape(len(attributes), len(names)),
        "numbers": np.zeros(len(names)),
    }


def numbers_of(names: Sequence[str], attributes: Mapping[str, str]) -> list[float]:
    """The attributes of a host with these names as numbers, NaN where it has none that is one.

    A parameter cannot be called ``example.com/failure-rate``: so that is ``failure_rate``.
    """
    if not names:  # as nearly always, and each node that changes asks
        return []
    known = {
        one.rpartition("/")[2].replace("-", "_").replace(".", "_"): one for one in sorted(attributes, reverse=True)
    }
    return [_number(attributes.get(name, attributes.get(known.get(name, ""), ""))) for name in names]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def buffers(requests: int, resources: int) -> dict[str, NDArray[Any]]:
    """Queue, recorders and scratch; those that may run full grow when a kernel asks for it."""
    waiting = min(requests, 1 << 16) + 64
    return {
        "queue": np.zeros(waiting, schema.ENTRY),
        "incoming": np.zeros(waiting, schema.ENTRY),
        "order": np.zeros(waiting, np.int64),
        "heap": np.zeros(1 << 12, log_records.INSTANCE_EVENT),
        "visits": np.zeros(1 << 12, np.int64),
        "decisions": np.zeros(1 << 12, log_records.DECISION),
        "victims": np.zeros(1 << 13, np.int64),
        "events": np.zeros(1 << 13, log_records.EVENT),
        "passes": np.zeros(1 << 12, log_records.PASS),
        "branches": np.zeros((130, 3), np.int64),
        "taken": np.zeros(INSTANCES, np.int64),
        "missing": np.zeros(resources, np.int64),
        "amounts": np.zeros((3, resources)),
        "slack": np.zeros(INSTANCES),
        "victim_first": np.zeros(INSTANCES),
        "victim_second": np.zeros(INSTANCES),
        "ranks": np.zeros(INSTANCES, np.int64),
    }
