"""Every array that kernels work on, declared once, and :class:`Tables`, which holds them.

Views (:mod:`slacktide.kernels.tables.views`), the record through which kernels reach the arrays, and what grows with
what (:mod:`slacktide.state.growing_arrays`) follow from :data:`ARRAYS`. Only kernels and :mod:`slacktide.state` write
to arrays.

Row numbers: a *row* is an instance's place in the workload, a *request* that of a
request with a ledger in ``requests``, a *host* a host's place in the host file, a
*shape* a distinct demand vector (with limits and access, where a score asks for them),
a *pair* a distinct (shape, class), a *kind* a distinct (pair, term, anti-affine job), a
*group* hosts of equal capacity that satisfy the same terms. Times are seconds,
amounts whole numbers (docs/semantics.md).
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.tables import affinity_records as affinity
from slacktide.kernels.tables import limit_records as limits
from slacktide.kernels.tables import log_records as log
from slacktide.kernels.tables import network_records as network
from slacktide.kernels.tables import request_records as request
from slacktide.kernels.tables import schema
from slacktide.kernels.tables import window_records as windows
from slacktide.kernels.tables.schema import Records, State

AXES = {
    "instances": "an instance comes",
    "requests": "a request with a ledger comes",
    "classes": "a service class comes",
    "hosts": "a host comes",
    "resources": "a resource comes",
    "shapes": "a kind of a new demand comes",
    "pairs": "a kind of a new demand or class comes",
    "kinds": "a kind comes",
    "disruption accounts": "a request comes whose disruptions are limited",
    "remembered": "more disruptions of such requests are remembered",
    "pod groups": "a pod group comes",
    "logins": "a shape comes whose users log in",
    "slots": "a host has more instances than one ever had: one place for each, and one to spare",
    "waiting": "more instances wait than ever did",
    "ahead": "instances have more ahead of them than ever: ends of start-ups and runs, returns",
    "visits": "the hash set is half full",
    "outages": "more outages are kept than ever were",
    "leavers": "more preempted instances are in their grace periods than ever were",
    "steps": "a trial takes more steps than one ever did",
    "recorded": "it is full and nobody empties it",
}
"""What makes an axis longer while a cluster runs. Axes that are not here are as long as what they were made for."""


class Presence(Enum):
    """When an array is there; it is empty otherwise."""

    ALWAYS = "always"
    LIVE = "in a live cluster, and in a simulation where somebody needs it"
    SIMULATION = "in a simulation where somebody needs it"
    NETWORK = "where the score asks where users are"
    TRIAGE = "under triage"
    PLAN = "where it is planned whom to give up"
    MANY = "where there are many hosts"


class Array(NamedTuple):
    """One array: the type of its elements, its axes (a name of AXES, another name, or a length), and what it holds.

    ``unit`` is that of its numbers ("record": its fields say).
    """

    dtype: np.dtype[Any]
    axes: tuple[str | int, ...]
    unit: str
    holds: str
    presence: Presence = Presence.ALWAYS

    def empty(self, resources: int) -> NDArray[Any]:
        """The array where it is not there."""
        further = (resources if axis == "resources" else axis if isinstance(axis, int) else 0 for axis in self.axes[1:])
        return np.zeros((0, *further), self.dtype)


F8, I8, I4, U1 = (np.dtype(name) for name in ("f8", "i8", "i4", "u1"))
LIVE, SIMULATION, NETWORK = Presence.LIVE, Presence.SIMULATION, Presence.NETWORK
TRIAGE, MANY, PLAN = Presence.TRIAGE, Presence.MANY, Presence.PLAN
N, Q, H, R = "instances", "requests", "hosts", "resources"

ARRAYS: dict[str, Array] = {
    # Classes, instances and requests.
    "classes": Array(schema.CLASS, ("classes",), "record", "SLOs, margins, ranks"),
    "instances": Array(schema.INSTANCE, (N,), "record", "what became of each"),
    "admission": Array(F8, (N,), "s", "when it begins to wait"),
    "duration": Array(F8, (N,), "s", "useful running time until completion"),
    "member": Array(I4, (N,), "job", "SLOT's job, where not its kind's", SIMULATION),
    "accounts": Array(windows.ACCOUNT, (N,), "record", "of promises over a window", LIVE),
    "request_accounts": Array(windows.ACCOUNT, (Q,), "record", "of promises over a window", LIVE),
    "stretches": Array(windows.STRETCH, (Q,), "record", "what share of each counts, since when", LIVE),
    "outages": Array(windows.OUTAGE, ("outages",), "record", "chained by account, from 1 on", LIVE),
    "turns": Array(F8, ("turns",), "s", "when calendar windows begin, class by class", LIVE),
    "owner": Array(I4, (N,), "request", "whose ledger it belongs to, or -1", LIVE),
    "links": Array(I4, (N, 2), "row", "next and previous of its request on a host, or -1", LIVE),
    "requests": Array(request.REQUEST, (Q,), "record", "ledgers"),
    "stirred": Array(I4, (Q,), "request", "those whose hosts do not know their metric yet"),
    "request_heap": Array(request.WAITING, ("requests + 1",), "record", "a heap of requests that wait"),
    "scalings": Array(request.SCALE_EVENT, ("scale events",), "record", "in order of time"),
    "resizings": Array(request.RESIZE_EVENT, ("resizes",), "record", "in order of time, then of row", SIMULATION),
    "deferred": Array(I8, ("resizes",), "resize", "those that wait for room, in order", SIMULATION),
    "resize_of": Array(I4, (N,), "resize", "the one it waits for, or -1", SIMULATION),
    "excess": Array(request.EXCESS, ("largest request",), "record", "scratch of scaling down"),
    "pod_group": Array(I4, (N,), "group", "its pod group, or -1", LIVE),
    "pod_groups": Array(request.POD_GROUP, ("pod groups",), "record", "see there", LIVE),
    "next_in_group": Array(I4, (N,), "row", "the next of its whole group on a host, or -1", LIVE),
    "acts": Array(request.ACT, ("steps",), "record", "scratch of a trial: what it did"),
    "acted": Array(schema.SLOT, ("steps",), "record", "scratch of a trial: the slots that it took off"),
    "leavers": Array(schema.LEAVER, ("leavers",), "record", "preempted, in their grace period", SIMULATION),
    # Hosts and what is on them.
    "hosts": Array(schema.HOST, (H,), "record", "hosts"),
    "ceilings": Array(schema.CEILING, (H,), "record", "bounds of metrics on each"),
    "lendable": Array(I8, (H, "standings", "2 R"), "amount", "most that each could give", TRIAGE),
    "lendable_until": Array(F8, (H, "standings"), "s", "until when that surely holds", TRIAGE),
    "most_lendable": Array(I8, ("standings", "2 R"), "amount", "by any host", TRIAGE),
    "block_lendable": Array(I8, ("standings", "blocks", "2 R"), "amount", "by any of a block", TRIAGE),
    "lenders": Array(schema.LENDERS, ("standings",), "record", "of what that was worked out", TRIAGE),
    "usable": Array(F8, ("pools", "levels", "samples"), "share", "what each level and those above could use", PLAN),
    "jobs_asked": Array(F8, ("pools", "levels", "samples"), "share", "what jobs of them asked for", PLAN),
    "pools": Array(schema.POOL, ("pools",), "record", "those that are short of room", PLAN),
    "room": Array(F8, (R,), "amount", "the most that all hosts ever had"),
    "slots": Array(schema.SLOT, (H, "slots"), "record", "instances on each"),
    "free": Array(I8, (H, R), "amount", "what is left of each"),
    "capacity": Array(I8, (H, R), "amount", "what each has"),
    "scale": Array(F8, (H, 2), "2^40 / amount", "over its CPU and memory"),
    "demand": Array(I8, ("shapes", R), "amount", "what an instance takes"),
    "limit": Array(I8, ("shapes", R), "amount", "most that is granted", NETWORK),
    "granted": Array(I8, (N, R), "amount", "what it takes where not its demand", NETWORK),
    "unit": Array(F8, (R,), "user's unit", "one whole amount"),
    "allowed": Array(U1, ("terms", "groups"), "flag", "hosts that satisfy a term"),
    "groups": Array(schema.GROUP, ("groups",), "record", "of hosts alike"),
    "tree": Array(I8, ("nodes", "5 + resources"), "amount", "the free index"),
    "leaf_host": Array(I8, (H,), "host", "hosts in the order of the free index"),
    "changes": Array(I8, ("ring",), "host", "where contents or metrics changed"),
    "releases": Array(I8, ("ring",), "host", "which something left, or that came up"),
    # Where users and hosts are.
    "access": Array(network.ACCESS, ("shapes",), "record", "what it asks of the network", NETWORK),
    "logins": Array(network.LOGIN, ("logins",), "record", "users, by shape", NETWORK),
    "images": Array(network.IMAGE, ("images",), "record", "what fetching takes", NETWORK),
    "image_on": Array(U1, ("images", H), "flag", "present", NETWORK),
    "image_bits": Array(I8, (H,), "bits", "one for each image that is present", NETWORK),
    "places": Array(network.PLACE, ("places",), "record", "where hosts are", NETWORK),
    "place": Array(I4, (H,), "place", "that of each", NETWORK),
    "place_hosts": Array(I4, (H,), "host", "hosts by place", NETWORK),
    "site_tree": Array(I8, ("nodes", "3 + resources"), "amount", "bounds by place", NETWORK),
    "site_leaf": Array(I4, (H,), "node", "a host's leaf there", NETWORK),
    "rtt": Array(F8, ("places", "places"), "s", "round-trip times", NETWORK),
    "gamma": Array(F8, ("counts",), "s", "what the first, ... instance costs the next", NETWORK),
    "omega": Array(F8, (H,), "s", "scratch: delays", NETWORK),
    # Kinds, and what they ask of others.
    "kinds": Array(schema.KIND, ("kinds",), "record", "and what failed"),
    "counters": Array(affinity.COUNTER, ("counters",), "record", "marks that are counted by domain"),
    "tallies": Array(I8, ("domains",), "instances", "by counter and domain"),
    "domain": Array(I4, ("topologies", H), "domain", "that of a host, or -1"),
    "marks": Array(I8, ("marks",), "counter", "what kinds carry, ascending"),
    "conditions": Array(affinity.CONDITION, ("rules",), "record", "rules, by kind"),
    "preferences": Array(affinity.PREFERENCE, ("preferences",), "record", "by kind"),
    "points": Array(I8, (H,), "points", "scratch: by preferences"),
    "budget": Array(I4, (N,), "budget", "its disruption budget, or -1", LIVE),
    "budgets": Array(affinity.BUDGET, ("budgets",), "record", "disruption budgets"),
    # What a workload may suffer in time.
    "disruption_account": Array(I4, (N,), "account", "whose disruptions count together, or -1", LIVE),
    "disruption_accounts": Array(limits.ACCOUNT, ("disruption accounts",), "record", "disruptions so far", LIVE),
    "disruptions": Array(F8, ("remembered",), "s", "when the latest began, a ring for each account", LIVE),
    "disrupted_at": Array(F8, (N,), "s", "when that began which has not ended, or -inf", LIVE),
    "disruption_limits": Array(limits.DISRUPTION_LIMITS, ("limits",), "record", "by number", LIVE),
    "open_hours": Array(F8, ("intervals", 2), "s", "allowed intervals, those of each in order", LIVE),
    "wakes": Array(F8, ("wakes",), "s", "when a host spares one less; of hosts in a tree", LIVE),
    "guard": Array(F8, (N,), "s", "it is not preempted before", LIVE),
    "nominated": Array(I8, (N, 2), "host, flag", "by others while it waits, or -1; room is kept", LIVE),
    # The queue, and what is known of a pair on all hosts.
    "queue": Array(schema.ENTRY, ("waiting",), "record", "who waits, in order"),
    "incoming": Array(schema.ENTRY, ("waiting",), "record", "who waits since the last pass"),
    "order": Array(I8, ("waiting",), "place in the queue", "the order of the pass"),
    "failures": Array(schema.FAILURE, ("classes that keep some", "failures"), "record", "of the present pass"),
    "shared": Array(schema.SHARED, ("sets",), "record", "evaluations of a pair on all hosts"),
    "shared_cost": Array(F8, ("sets", H, "levels + 1"), "cost", "by importance of the victims"),
    "shared_wait": Array(F8, ("sets", H), "s", "how long the last victim may take to go"),
    "shared_limit": Array(F8, ("sets", H), "s", "holds for metrics below; -inf: infeasible"),
    "shared_look": Array(I8, ("sets", H), "looks", "the number of looks when it was evaluated"),
    "shared_score": Array(I8, ("sets", H), "score", "allocation scores"),
    "shared_hosts": Array(I8, ("sets", H), "host", "those that were feasible when evaluated, each once"),
    "shared_listed": Array(I4, ("sets", H), "count", "where it is in that list, from 1 on; or 0"),
    "shared_tie": Array(I8, ("sets", H), "tie", "what decided between equals when it was evaluated"),
    "shared_of_pair": Array(I8, ("pairs",), "set", "that of a pair, or -1"),
    "contest": Array(schema.CONTEST, ("tournaments",), "record", "hosts compared by what they offer", MANY),
    "offers": Array(I8, ("nodes", 5, "2 + resources"), "amount", "after so many victims, by node", MANY),
    "offer_costs": Array(F8, ("nodes", 5, "levels + 1"), "cost", "of so many victims, by node", MANY),
    "offer_tie": Array(I8, ("nodes",), "tie", "the largest below, by node", MANY),
    # What is to happen.
    "heap": Array(log.INSTANCE_EVENT, ("ahead",), "record", "what instances have ahead of them"),
    "visits": Array(I8, ("visits",), "row * hosts + host + 1", "hash set, beyond first hosts; 0: none"),
    "hot": Array(F8, ("drawn",), "s", "start-up delays to draw from"),
    "cold": Array(F8, ("drawn",), "s", "start-up delays to draw from"),
    "grace_shares": Array(F8, ("shares drawn",), "share", "of grace periods that are taken, to draw from", SIMULATION),
    "batch_returns": Array(F8, ("returns drawn",), "s", "until a batch instance comes again, to draw from", SIMULATION),
    "happenings": Array(log.HOST_EVENT, ("host events",), "record", "in order of time"),
    "spells": Array(log.SPELL, ("spells",), "record", "of unreadiness, by time", SIMULATION),
    "startups_before": Array(F8, (N,), "s", "of the incarnation, before its last spell", SIMULATION),
    "host_amounts": Array(I8, ("changes of amounts", R), "amount", "by how much host events change them", SIMULATION),
    "host_marks": Array(I8, ("changes of marks", 2), "counter, by", "how many more others carry a mark", SIMULATION),
    "triggers": Array(F8, ("triggers",), "s", "instants of passes; none: by events"),
    # What happened.
    "decisions": Array(log.DECISION, ("recorded",), "record", "who was placed"),
    "victims": Array(I8, ("recorded",), "row", "who was evicted for it, in order"),
    "events": Array(log.EVENT, ("recorded",), "record", "all that happened"),
    "passes": Array(log.PASS, ("recorded",), "record", "passes"),
    # Scratch of a search.
    "branches": Array(I8, (130, 3), "node, score, offer", "scratch: branches of a tree to be looked at"),
    "taken": Array(I8, ("slots",), "slot", "scratch: victims"),
    "companions": Array(I4, (N,), "row", "scratch: victims on other hosts", LIVE),
    "missing": Array(I8, (R,), "amount", "scratch: demand less free and what victims free"),
    "amounts": Array(F8, (3, R), "user's unit", "scratch: what a user's score is given"),
    "asked": Array(I8, ("numbers asked",), "number", "what else a user's score asks for (own_numbers)"),
    "attributes": Array(F8, (H, "numbers asked"), "user's unit", "attributes of hosts that it asks for; NaN: none"),
    "class_numbers": Array(F8, ("classes", "numbers of a class"), "number", "that pieces of a user's policy ask for"),
    "piece_numbers": Array(F8, ("numbers of an instance",), "number", "scratch: the same of an instance"),
    "piece_state": Array(F8, (2,), "number", "scratch: what a user's metric asks for of a request"),
    "piece_more": Array(F8, (1,), "number", "scratch: the second number of a place"),
    "victim_first": Array(F8, ("slots",), "number", "scratch: places in a user's own order of victims"),
    "victim_second": Array(F8, ("slots",), "number", "scratch: the same, of equal ones"),
    "numbers": Array(F8, ("numbers asked",), "user's unit", "scratch: what it is given of them"),
    "slack": Array(F8, ("slots",), "s", "scratch: Q - margin of victims"),
    "ranks": Array(I8, ("slots",), "rank", "scratch: those of victims"),
}


def _state_dtype() -> np.dtype[Any]:
    fields: list[tuple[str, Any]] = [("rules", schema.RULES), ("control", schema.CONTROL)]
    for name, array in ARRAYS.items():
        fields.append((f"{name}_at", "i8"))
        fields.extend((f"{name}_{axis}", "i8") for axis in range(len(array.axes)))
    return np.dtype(fields, align=True)


STATE = _state_dtype()


class Tables:
    """The arrays of one cluster, and the record through which kernels reach them.

    Kernels take one address instead of eighty arrays: it is what makes them compile
    in seconds and call each other cheaply. Replace an array with :meth:`put` only.
    ``arrays`` may leave out those that are not always there.
    """

    def __init__(self, rules: Records, control: Records, arrays: dict[str, NDArray[Any]]) -> None:
        self._record = np.zeros(1, STATE)
        self._address = int(self._record.ctypes.data)
        self._record["rules"], self._record["control"] = rules, control
        self._arrays: dict[str, NDArray[Any]] = {}
        resources = arrays["free"].shape[1]
        for name, array in ARRAYS.items():
            absent = array.presence is not Presence.ALWAYS and name not in arrays
            self.put(name, array.empty(resources) if absent else arrays[name])

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Make ``array`` the one that kernels see under ``name``; :class:`ValueError` where it has other axes."""
        axes = len(ARRAYS[name].axes)
        array = np.ascontiguousarray(array, dtype=ARRAYS[name].dtype)
        if array.ndim != axes:
            raise ValueError(f"{name}: found {array.ndim} axes, expected {axes}")
        self._arrays[name] = array
        self._record[f"{name}_at"] = array.ctypes.data
        for axis in range(axes):
            self._record[f"{name}_{axis}"] = array.shape[axis]

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    @property
    def state(self) -> State:
        """What kernels are given: the address of the record of settings, counters and arrays."""
        return self._address

    @property
    def rules(self) -> Records:
        return self._record["rules"][0]

    @property
    def control(self) -> Records:
        return self._record["control"][0]
