"""The state of one cluster: its tables, and how they come to be and grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.kernels import ledger, log_records, placers, room, tables
from slacktide.kernels.free_index import AMOUNTS, NOWHERE
from slacktide.kernels.tables import Tables
from slacktide.model import Hosts, Workload
from slacktide.model.matching import matching_hosts
from slacktide.state import access, layout, neighbours, requests, resizes

PLACERS = {
    "delay-aware": tables.DELAY_AWARE,
    "elastic-fog": tables.ELASTIC_FOG,
    "tsra": tables.TSRA,
    "nas": tables.NAS,
    "kcss": tables.KCSS,
}
"""Scores that ask where users are."""
IN_ORDER = (*PLACERS, "least-requested")
"""Policies that serve in order of admission, preempt nobody, and have the score of their name."""
POLICIES = {
    "qos-driven": tables.QOS_DRIVEN,
    "priority": tables.PRIORITY,
    "hybrid": tables.HYBRID,
    **dict.fromkeys(IN_ORDER, tables.PRIORITY),  # all are equally important then
}
SCORES = {
    "least-requested": tables.LEAST_REQUESTED,
    "balanced": tables.BALANCED,
    "mean": tables.MEAN,
    **PLACERS,
}
COSTS = {"slack": tables.SLACK, "fewest-victims": tables.FEWEST_VICTIMS}
SCOPES = {
    "same-or-more-important": tables.SCOPE_LEVEL,
    "same-class": tables.SCOPE_CLASS,
    "all": tables.SCOPE_ALL,
    "none": tables.SCOPE_NONE,
}
ACCOUNTINGS = {"restart": tables.RESTART, "always": tables.ALWAYS, "never": tables.NEVER}

WORK = {"kept": tables.KEPT, "lost": tables.LOST, "by-kind": tables.LOST_BY_KIND}

NETWORK = "network"
"""The resource that is bandwidth."""
INSTANCES = 16  # a host has room for at first
SHARED_BYTES = 48_000_000  # for shared evaluations; fewer sets only cost time


@dataclass(frozen=True, slots=True)
class OwnCode:
    """Addresses of a user's compiled score and cost, 0 for none."""

    score: int = 0
    cost: int = 0


def rules_of(config: Config, classes: tables.Records, hosts: int, own: OwnCode, record: int) -> tables.Records:
    """The settings as kernels read them."""
    policy, optimize = config.policy, config.optimize
    rules = np.zeros(1, tables.RULES)
    values: dict[str, float | int] = {
        "alpha": config.qos.alpha,
        "patience": policy.patience,
        "watchdog": config.scheduler.watchdog,
        "end": math.inf if config.simulation.end is None else config.simulation.end,
        "tolerance": optimize.equivalence_tolerance,
        "relaxed": optimize.relaxed_randomization,
        "expiry": optimize.expiring_cache,
        "fastest": float(classes["slope"].max()),
        "seed": config.simulation.seed % 2**64,
        "stride": coprime_stride(hosts),
        "own_score": own.score,
        "own_cost": own.cost,
        "policy": POLICIES.get(policy.name, tables.QOS_DRIVEN),
        "needed": policy.preempt_when == "needed",
        "by_importance": policy.queue_order == "importance",
        "same_pass": policy.victims == "same-pass",
        "mirrored": policy.victim_order == "importance",
        "score": score_code(config, own),
        "weight": config.delay.alpha,
        "phi": config.delay.phi,
        "near": config.delay.tolerance,
        "fetching": config.delay.fetching,
        "keep_images": config.delay.keep_images,
        "cost": cost_code(policy.cost, own, tables.SLACK),
        "priority_cost": cost_code(policy.cost, own, tables.FEWEST_VICTIMS),
        "scope": SCOPES[policy.overhead_scope],
        "queue_limit": policy.queue_limit,
        "accounting": ACCOUNTINGS[config.qos.startup],
        "lost": WORK[config.simulation.preempted_work],
        "gang": policy.gang,
        "min_running": policy.min_running,
        "recreation": config.simulation.recreation,
        "free_index": optimize.free_index,
        "shared": optimize.shared_evaluations,
        "feasible_time": optimize.feasible_time,
        "ceilings": optimize.ceilings,
        "sorted_hosts": optimize.sorted_hosts,
        "static_order": optimize.static_order,
        "pruning": optimize.queue_pruning,
        "levels": int(classes["level"].max()) + 1,
        "record": record,
        "observe": math.inf,
        "one_margin": len(set(classes["margin"].tolist())) == 1,
    }
    values |= placers.addresses(score_code(config, own))
    for name, value in values.items():
        rules[0][name] = value
    for name in ("alpha", "patience", "watchdog", "end", "tolerance", "expiry", "min_running", "recreation"):
        rules[name] = layout.on_grid(rules[name])
    return rules


def score_code(config: Config, own: OwnCode) -> int:
    """The code of the allocation score; a policy that is one decides by itself."""
    if config.policy.name in IN_ORDER:
        return SCORES[config.policy.name]
    return tables.OWN_SCORE if own.score else SCORES[config.policy.score]


def cost_code(name: str, own: OwnCode, default: int) -> int:
    """The code of a preemption cost; ``default`` where the policy's own is wanted."""
    if own.cost:
        return tables.OWN_COST
    return default if name == "default" else COSTS[name]


def coprime_stride(count: int) -> int:
    """A step that visits all of ``count`` places, near the golden section so that neighbours lie apart."""
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
    happenings: tables.Records | None = None,
    triggers: NDArray[np.float64] | None = None,
    own: OwnCode | None = None,
    record: int = 0,
) -> Tables:
    """Tables of a cluster before anything happened.

    ``workload`` and ``hosts`` must name the same resources in the same order, CPU and
    memory first; ``hot`` and ``cold`` are the start-up delays to draw from, seconds.
    Raises :class:`ConfigError` where they do not.
    """
    if workload.resources != hosts.resources or workload.resources[:2] != ("cpu", "memory"):
        raise ConfigError(f"resources differ: workload {workload.resources}, hosts {hosts.resources}")
    unit = layout.units(hosts.capacity)
    capacity = layout.amounts(hosts.capacity, unit)
    own = own or OwnCode()
    score = score_code(config, own)
    edge = score in PLACERS.values()
    every = resizes.with_later_demands(workload)
    limit = layout.amounts(every.limit, unit) if edge and every.limit is not None else None
    kinds = layout.classify(every, layout.amounts(every.demand, unit), further_columns(every, limit, score))
    edges = edge_arrays(every, hosts, config, kinds, limit, score) if edge else access.nothing(capacity.shape[1])
    kinds, resizing = resizes.apart(workload, kinds)
    terms = [*workload.terms, *neighbours.preferred_terms(workload.placements)]
    grouping = layout.group_hosts(capacity, matching_hosts(terms, hosts))
    classes = layout.class_table(workload.classes, config.qos.margin, config.policy.name in IN_ORDER)
    levels = int(classes["level"].max()) + 1
    arrays = {
        "classes": classes,
        "demand": kinds.demand,
        "kinds": kinds.kinds,
        "member": kinds.member,
        "allowed": grouping.allowed,
        "groups": grouping.groups,
        "leaf_host": grouping.leaf_host,
        "hot": layout.on_grid(hot),
        "cold": layout.on_grid(cold),
        "happenings": np.zeros(0, log_records.HOST_EVENT) if happenings is None else happenings,
        "triggers": np.zeros(0) if triggers is None else layout.on_grid(triggers),
        "unit": 1.0 / unit,
        **instance_arrays(workload, kinds),
        **neighbours.arrays(workload, hosts, kinds.kinds, kinds.placement),
        **resizing,
        **edges,
        **requests.arrays(workload, config.simulation.preempted_work != "kept"),
        **host_arrays(capacity, grouping),
        **shared_arrays(len(hosts), kinds.pairs, levels),
        **buffers(len(workload), capacity.shape[1]),
    }
    requests.make_room(arrays, INSTANCES)
    control = np.zeros(1, tables.CONTROL)
    control["last_pass"] = -np.inf
    control["sorted_for"] = -1
    rules = rules_of(config, classes, len(hosts), own, record)
    set_units(rules, hosts, unit, config.delay.memory_per_cpu)
    return Tables(rules, control, arrays)


def further_columns(workload: Workload, limit: NDArray[np.int64] | None, score: int) -> list[NDArray[np.int64]]:
    """By what shapes are told apart besides their demand, where a score asks."""
    columns = [] if limit is None else list(limit.T)
    if score in PLACERS.values() and workload.access is not None:
        columns.append(workload.access.astype(np.int64))
    if score == tables.ELASTIC_FOG:
        columns.append(workload.job)
    return columns


def edge_arrays(
    workload: Workload, hosts: Hosts, config: Config, kinds: layout.Kinds, limit: NDArray[np.int64] | None, score: int
) -> dict[str, NDArray[Any]]:
    """Tables of delay-aware placement."""
    resources = len(hosts.resources)
    arrays = access.nothing(resources)
    geography = access.Geography(hosts)
    number = np.zeros(len(workload), np.int64) if workload.access is None else workload.access
    bandwidth = np.zeros(len(kinds.of_shape))
    if NETWORK in workload.resources:
        bandwidth = workload.demand[kinds.of_shape, workload.resources.index(NETWORK)]
    chosen = [workload.accesses[number[row]] for row in kinds.of_shape.tolist()]
    ids = workload.ids[kinds.of_shape].tolist()
    arrays |= access.ask_arrays(chosen, ids, bandwidth, config.delay, geography)
    arrays["asks"]["application"] = workload.job[kinds.of_shape]
    arrays |= access.geography_arrays(hosts, geography)
    if limit is not None:
        arrays["limit"] = np.maximum(limit[kinds.of_shape], kinds.demand)
        if config.delay.grants and score == tables.DELAY_AWARE:
            arrays["granted"] = np.zeros((len(workload), resources), np.int64)
    return arrays


def set_units(rules: tables.Records, hosts: Hosts, unit: NDArray[np.float64], memory_per_cpu: float) -> None:
    """What whole amounts are in CPUs and in the hosts' unit of bandwidth."""
    rules["cpu_unit"] = 1.0 / unit[0]
    total = hosts.capacity.sum(axis=0)
    worth = memory_per_cpu or (total[1] / total[0] if total[0] > 0.0 and total[1] > 0.0 else 1.0)
    rules["memory_in_cpu"] = 1.0 / unit[1] / worth
    network = hosts.resources.index(NETWORK) if NETWORK in hosts.resources else -1
    rules["network"] = network
    rules["network_unit"] = 1.0 / unit[network] if network >= 0 else 1.0


def instance_arrays(workload: Workload, kinds: layout.Kinds) -> dict[str, NDArray[Any]]:
    """What is known of each instance, before any was admitted."""
    instances = np.zeros(len(workload), tables.INSTANCE)
    instances["kind"] = kinds.kind
    instances["host"] = instances["first_host"] = -1
    admission = layout.on_grid(workload.admission)
    if workload.requests is not None and (workload.requests.parallelism > 0).any():
        admission = admission.copy()  # rows that are released later are admitted then
    return {
        "instances": instances,
        "admission": admission,
        "duration": layout.on_grid(workload.duration),
    }


def host_arrays(capacity: NDArray[np.int64], grouping: layout.Grouping) -> dict[str, NDArray[Any]]:
    """Empty hosts; ``board.fill`` brings them into the free index."""
    count, resources = capacity.shape
    hosts = np.zeros(count, tables.HOST)
    hosts["group"], hosts["leaf"] = grouping.group, grouping.leaf
    with np.errstate(divide="ignore"):
        scale = np.where(capacity[:, :2] > 0, 2.0**40 / capacity[:, :2], 0.0)
    return {
        "hosts": hosts,
        "ceilings": np.zeros(count, tables.CEILING),
        "slots": np.zeros((count, INSTANCES), tables.SLOT),
        "free": capacity.copy(),
        "capacity": capacity,
        "scale": scale,
        "tree": np.full((grouping.nodes, AMOUNTS + resources), NOWHERE, np.int64),
        "changes": np.zeros(1 << 16, np.int32),
        "releases": np.zeros(1 << 10, np.int64),
    }


def shared_arrays(hosts: int, pairs: int, levels: int) -> dict[str, NDArray[Any]]:
    """Sets of evaluations that requests of equal demand and class share, none made yet."""
    sets = int(np.clip(SHARED_BYTES // (hosts * 8 * (levels + 4)), 2, 64))
    shared = np.zeros(sets, tables.SHARED)
    shared["pair"] = shared["batch"] = -1
    return {
        "shared": shared,
        "shared_cost": np.zeros((sets, hosts, levels + 1)),
        "shared_limit": np.zeros((sets, hosts)),
        "shared_look": np.zeros((sets, hosts), np.int64),
        "shared_score": np.zeros((sets, hosts), np.int64),
        "shared_hosts": np.zeros((sets, hosts), np.int32),
        "shared_listed": np.zeros((sets, hosts), np.uint8),
        "shared_of_pair": np.full(pairs, -1, np.int32),
    }


def buffers(requests: int, resources: int) -> dict[str, NDArray[Any]]:
    """Queue, recorders and scratch; those that may run full grow when a kernel asks for it."""
    waiting = min(requests, 1 << 16) + 64
    return {
        "queue": np.zeros(waiting, tables.ENTRY),
        "incoming": np.zeros(waiting, tables.ENTRY),
        "order": np.zeros(waiting, np.int64),
        "heap": np.zeros(1 << 12, log_records.COMPLETION),
        "visits": np.zeros(1 << 12, np.int64),
        "decisions": np.zeros(1 << 12, log_records.DECISION),
        "victims": np.zeros(1 << 13, np.int64),
        "events": np.zeros(1 << 13, log_records.EVENT),
        "passes": np.zeros(1 << 12, log_records.PASS),
        "taken": np.zeros(INSTANCES, np.int64),
        "missing": np.zeros(resources, np.int64),
        "amounts": np.zeros((3, resources)),
        "slack": np.zeros(INSTANCES),
        "ranks": np.zeros(INSTANCES, np.int64),
    }


def lengthen(tb: Tables, name: str, length: int) -> None:
    """Grow the first axis of an array to at least ``length``, new places zero."""
    old = tb[name]
    if len(old) < length:
        grown = np.zeros((length, *old.shape[1:]), old.dtype)
        grown[: len(old)] = old
        tb.put(name, grown)


def widen_hosts(tb: Tables) -> None:
    """Room for twice as many instances a host, and for what one host's worth of them may cause."""
    old = tb["slots"]
    width = 2 * old.shape[1]
    slots = np.zeros((len(old), width), old.dtype)
    slots[:, : old.shape[1]] = old
    tb.put("slots", slots)
    for name in ("taken", "slack", "ranks"):
        lengthen(tb, name, width)
    for name in ("victims", "events", "queue", "incoming", "order"):
        lengthen(tb, name, 4 * width)
    lengthen(tb, "events", 4 * (width + len(tb["excess"])))


def lengthen_trial(tb: Tables) -> None:
    """Room for twice as many steps of a trial."""
    length = 2 * len(tb["acts"]) + tb["slots"].shape[1]
    for name in ("acts", "acted"):
        lengthen(tb, name, length)


def lengthen_queue(tb: Tables) -> None:
    """Room for twice as many waiting requests."""
    length = 2 * len(tb["queue"])
    for name in ("queue", "incoming", "order"):
        lengthen(tb, name, length)


def enlarge_visits(tb: Tables) -> None:
    """A hash set four times as large for the hosts that requests were started on."""
    larger = np.zeros(4 * len(tb["visits"]), np.int64)
    ledger.copy_visits(tb["visits"], larger)
    tb.put("visits", larger)


GROWERS: dict[int, Callable[[Tables], None]] = {
    room.MORE_SLOTS: widen_hosts,
    room.MORE_QUEUE: lengthen_queue,
    room.MORE_HEAP: lambda tb: lengthen(tb, "heap", 2 * len(tb["heap"])),
    room.MORE_VISITS: enlarge_visits,
    room.MORE_ACTS: lengthen_trial,
}
"""What to do when a kernel stops for want of room; a full recorder (FLUSH) is the caller's to empty."""
