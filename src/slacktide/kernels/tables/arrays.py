"""Every array that kernels work on, declared once, and :class:`Tables`, which holds them.

Views (:mod:`slacktide.kernels.tables.views`), the record through which kernels reach the arrays, what grows with
what (:mod:`slacktide.state.growing_arrays`), and what a copy may share (:mod:`slacktide.policy.compiled`) follow from
:data:`ARRAYS`. Only kernels and :mod:`slacktide.state` write to arrays.

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

    ``unit`` is that of its numbers ("record": its fields say). ``used_by`` names the packages of kernels that read or
    write it. Deciding never writes to an array that is ``fixed``.
    """

    dtype: np.dtype[Any]
    axes: tuple[str | int, ...]
    unit: str
    used_by: str
    holds: str
    presence: Presence = Presence.ALWAYS
    fixed: bool = False

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
    "classes": Array(
        schema.CLASS,
        ("classes",),
        "record",
        "drive feasible memo place plan policies qos queue",
        "SLOs, margins, ranks",
    ),
    "instances": Array(schema.INSTANCE, (N,), "record", "drive feasible place plan qos queue", "what became of each"),
    "admission": Array(F8, (N,), "s", "drive feasible plan qos queue", "when it begins to wait", fixed=True),
    "duration": Array(F8, (N,), "s", "drive", "useful running time until completion", fixed=True),
    "member": Array(I4, (N,), "job", "feasible", "SLOT's job, where not its kind's", SIMULATION, fixed=True),
    "accounts": Array(windows.ACCOUNT, (N,), "record", "drive plan qos tables", "of promises over a window", LIVE),
    "request_accounts": Array(
        windows.ACCOUNT, (Q,), "record", "drive plan qos tables", "of promises over a window", LIVE
    ),
    "stretches": Array(
        windows.STRETCH, (Q,), "record", "drive plan qos", "what share of each counts, since when", LIVE
    ),
    "outages": Array(windows.OUTAGE, ("outages",), "record", "plan qos tables", "chained by account, from 1 on", LIVE),
    "turns": Array(F8, ("turns",), "s", "drive", "when calendar windows begin, class by class", LIVE, fixed=True),
    "owner": Array(I4, (N,), "request", "drive plan qos", "whose ledger it belongs to, or -1", LIVE, fixed=True),
    "links": Array(I4, (N, 2), "row", "drive feasible qos", "next and previous of its request on a host, or -1", LIVE),
    "requests": Array(request.REQUEST, (Q,), "record", "drive feasible memo place plan qos queue", "ledgers"),
    "stirred": Array(I4, (Q,), "request", "feasible qos", "those whose hosts do not know their metric yet"),
    "request_heap": Array(request.WAITING, ("requests + 1",), "record", "drive queue", "a heap of requests that wait"),
    "scalings": Array(request.SCALE_EVENT, ("scale events",), "record", "drive", "in order of time", fixed=True),
    "resizings": Array(
        request.RESIZE_EVENT, ("resizes",), "record", "drive", "in order of time, then of row", SIMULATION, fixed=True
    ),
    "deferred": Array(I8, ("resizes",), "resize", "drive", "those that wait for room, in order", SIMULATION),
    "resize_of": Array(I4, (N,), "resize", "drive", "the one it waits for, or -1", SIMULATION),
    "excess": Array(request.EXCESS, ("largest request",), "record", "drive tables", "scratch of scaling down"),
    "pod_group": Array(I4, (N,), "group", "drive feasible", "its pod group, or -1", LIVE, fixed=True),
    "pod_groups": Array(request.POD_GROUP, ("pod groups",), "record", "drive feasible place", "see there", LIVE),
    "next_in_group": Array(I4, (N,), "row", "feasible place", "the next of its whole group on a host, or -1", LIVE),
    "acts": Array(request.ACT, ("steps",), "record", "drive", "scratch of a trial: what it did"),
    "acted": Array(schema.SLOT, ("steps",), "record", "drive", "scratch of a trial: the slots that it took off"),
    "leavers": Array(
        schema.LEAVER, ("leavers",), "record", "drive tables", "preempted, in their grace period", SIMULATION
    ),
    # Hosts and what is on them.
    "hosts": Array(schema.HOST, (H,), "record", "drive feasible memo place plan qos", "hosts"),
    "ceilings": Array(schema.CEILING, (H,), "record", "feasible memo plan qos", "bounds of metrics on each"),
    "lendable": Array(I8, (H, "standings", "2 R"), "amount", "feasible", "most that each could give", TRIAGE),
    "lendable_until": Array(F8, (H, "standings"), "s", "feasible", "until when that surely holds", TRIAGE),
    "most_lendable": Array(I8, ("standings", "2 R"), "amount", "feasible", "by any host", TRIAGE),
    "block_lendable": Array(I8, ("standings", "blocks", "2 R"), "amount", "feasible", "by any of a block", TRIAGE),
    "lenders": Array(schema.LENDERS, ("standings",), "record", "feasible", "of what that was worked out", TRIAGE),
    "usable": Array(F8, ("levels", "samples"), "share", "plan", "what each level and those above could use", PLAN),
    "jobs_asked": Array(F8, ("levels", "samples"), "share", "plan", "what jobs of them asked for", PLAN),
    "room": Array(F8, (R,), "amount", "plan", "what all hosts have"),
    "slots": Array(schema.SLOT, (H, "slots"), "record", "drive feasible memo place plan tables", "instances on each"),
    "free": Array(I8, (H, R), "amount", "drive feasible place plan", "what is left of each"),
    "capacity": Array(I8, (H, R), "amount", "drive feasible memo place plan", "what each has", fixed=True),
    "scale": Array(F8, (H, 2), "2^40 / amount", "drive feasible place", "over its CPU and memory", fixed=True),
    "demand": Array(
        I8, ("shapes", R), "amount", "drive feasible memo place plan policies", "what an instance takes", fixed=True
    ),
    "limit": Array(I8, ("shapes", R), "amount", "feasible place", "most that is granted", NETWORK, fixed=True),
    "granted": Array(I8, (N, R), "amount", "drive feasible", "what it takes where not its demand", NETWORK),
    "unit": Array(F8, (R,), "user's unit", "feasible", "one whole amount"),
    "allowed": Array(
        U1, ("terms", "groups"), "flag", "feasible memo place plan", "hosts that satisfy a term", fixed=True
    ),
    "groups": Array(schema.GROUP, ("groups",), "record", "feasible place plan", "of hosts alike"),
    "tree": Array(I8, ("nodes", "5 + resources"), "amount", "feasible place", "the free index"),
    "leaf_host": Array(I8, (H,), "host", "feasible place", "hosts in the order of the free index"),
    "changes": Array(I8, ("ring",), "host", "feasible memo place qos", "where contents or metrics changed"),
    "releases": Array(I8, ("ring",), "host", "feasible place", "which something left, or that came up"),
    # Where users and hosts are.
    "access": Array(network.ACCESS, ("shapes",), "record", "place", "what it asks of the network", NETWORK, fixed=True),
    "logins": Array(network.LOGIN, ("logins",), "record", "place", "users, by shape", NETWORK, fixed=True),
    "images": Array(network.IMAGE, ("images",), "record", "place", "what fetching takes", NETWORK, fixed=True),
    "image_on": Array(U1, ("images", H), "flag", "place", "present", NETWORK),
    "image_bits": Array(I8, (H,), "bits", "feasible place", "one for each image that is present", NETWORK),
    "places": Array(network.PLACE, ("places",), "record", "feasible place", "where hosts are", NETWORK),
    "place": Array(I4, (H,), "place", "feasible place", "that of each", NETWORK, fixed=True),
    "place_hosts": Array(I4, (H,), "host", "place", "hosts by place", NETWORK, fixed=True),
    "site_tree": Array(I8, ("nodes", "3 + resources"), "amount", "feasible place", "bounds by place", NETWORK),
    "site_leaf": Array(I4, (H,), "node", "feasible", "a host's leaf there", NETWORK),
    "rtt": Array(F8, ("places", "places"), "s", "place", "round-trip times", NETWORK, fixed=True),
    "gamma": Array(F8, ("counts",), "s", "place", "what the first, ... instance costs the next", NETWORK, fixed=True),
    "omega": Array(F8, (H,), "s", "place", "scratch: delays", NETWORK),
    # Kinds, and what they ask of others.
    "kinds": Array(
        schema.KIND, ("kinds",), "record", "drive feasible memo place plan policies qos queue", "and what failed"
    ),
    "counters": Array(affinity.COUNTER, ("counters",), "record", "feasible", "marks that are counted by domain"),
    "tallies": Array(I8, ("domains",), "instances", "feasible", "by counter and domain"),
    "domain": Array(I4, ("topologies", H), "domain", "feasible", "that of a host, or -1", fixed=True),
    "marks": Array(I8, ("marks",), "counter", "feasible", "what kinds carry", fixed=True),
    "conditions": Array(affinity.CONDITION, ("rules",), "record", "feasible", "rules, by kind"),
    "preferences": Array(affinity.PREFERENCE, ("preferences",), "record", "feasible", "by kind", fixed=True),
    "points": Array(I8, (H,), "points", "drive place", "scratch: by preferences"),
    "budget": Array(I4, (N,), "budget", "feasible", "its disruption budget, or -1", LIVE, fixed=True),
    "budgets": Array(affinity.BUDGET, ("budgets",), "record", "drive feasible memo place", "disruption budgets"),
    # What a workload may suffer in time.
    "disruption_account": Array(
        I4, (N,), "account", "feasible", "whose disruptions count together, or -1", LIVE, fixed=True
    ),
    "disruption_accounts": Array(
        limits.ACCOUNT, ("disruption accounts",), "record", "feasible place", "disruptions so far", LIVE
    ),
    "disruptions": Array(F8, ("remembered",), "s", "feasible", "when the latest began, a ring for each account", LIVE),
    "disrupted_at": Array(F8, (N,), "s", "drive feasible", "when that began which has not ended, or -inf", LIVE),
    "disruption_limits": Array(
        limits.DISRUPTION_LIMITS, ("limits",), "record", "feasible", "by number", LIVE, fixed=True
    ),
    "open_hours": Array(
        F8, ("intervals", 2), "s", "feasible", "allowed intervals, those of each in order", LIVE, fixed=True
    ),
    "wakes": Array(F8, ("wakes",), "s", "feasible", "when a host spares one less; of hosts in a tree", LIVE),
    "guard": Array(F8, (N,), "s", "drive feasible", "it is not preempted before", LIVE, fixed=True),
    "nominated": Array(I8, (N, 2), "host, flag", "place", "by others while it waits, or -1; room is kept", LIVE),
    # The queue, and what is known of a pair on all hosts.
    "queue": Array(schema.ENTRY, ("waiting",), "record", "drive place plan queue tables", "who waits, in order"),
    "incoming": Array(schema.ENTRY, ("waiting",), "record", "drive plan queue", "who waits since the last pass"),
    "order": Array(I8, ("waiting",), "place in the queue", "drive queue", "the order of the pass"),
    "failures": Array(schema.FAILURE, ("classes that keep some", "failures"), "record", "memo", "of the present pass"),
    "shared": Array(schema.SHARED, ("sets",), "record", "drive place plan", "evaluations of a pair on all hosts"),
    "shared_cost": Array(F8, ("sets", H, "levels + 1"), "cost", "place", "by importance of the victims"),
    "shared_wait": Array(F8, ("sets", H), "s", "place", "how long the last victim may take to go"),
    "shared_limit": Array(F8, ("sets", H), "s", "place", "holds for metrics below; -inf: infeasible"),
    "shared_look": Array(I8, ("sets", H), "looks", "place", "the number of looks when it was evaluated"),
    "shared_score": Array(I8, ("sets", H), "score", "place", "allocation scores"),
    "shared_hosts": Array(I8, ("sets", H), "host", "place", "those that were feasible when evaluated, each once"),
    "shared_listed": Array(I4, ("sets", H), "count", "place", "where it is in that list, from 1 on; or 0"),
    "shared_tie": Array(I8, ("sets", H), "tie", "place", "what decided between equals when it was evaluated"),
    "shared_of_pair": Array(I8, ("pairs",), "set", "drive place", "that of a pair, or -1"),
    "contest": Array(schema.CONTEST, ("tournaments",), "record", "place", "hosts compared by what they offer", MANY),
    "offers": Array(I8, ("nodes", 5, "2 + resources"), "amount", "place", "after so many victims, by node", MANY),
    "offer_costs": Array(F8, ("nodes", 5, "levels + 1"), "cost", "place", "of so many victims, by node", MANY),
    "offer_tie": Array(I8, ("nodes",), "tie", "place", "the largest below, by node", MANY),
    # What is to happen.
    "heap": Array(log.INSTANCE_EVENT, ("ahead",), "record", "drive plan tables", "what instances have ahead of them"),
    "visits": Array(I8, ("visits",), "row * hosts + host + 1", "drive tables", "hash set, beyond first hosts; 0: none"),
    "hot": Array(F8, ("drawn",), "s", "drive", "start-up delays to draw from", fixed=True),
    "cold": Array(F8, ("drawn",), "s", "drive", "start-up delays to draw from", fixed=True),
    "grace_shares": Array(
        F8, ("shares drawn",), "share", "drive", "of grace periods that are taken, to draw from", SIMULATION, fixed=True
    ),
    "happenings": Array(log.HOST_EVENT, ("host events",), "record", "drive", "in order of time", fixed=True),
    "spells": Array(log.SPELL, ("spells",), "record", "drive", "of unreadiness, by time", SIMULATION, fixed=True),
    "startups_before": Array(F8, (N,), "s", "drive", "of the incarnation, before its last spell", SIMULATION),
    "host_amounts": Array(
        I8, ("changes of amounts", R), "amount", "drive", "by how much host events change them", SIMULATION, fixed=True
    ),
    "host_marks": Array(
        I8, ("changes of marks", 2), "counter, by", "drive", "how many more others carry a mark", SIMULATION, fixed=True
    ),
    "triggers": Array(F8, ("triggers",), "s", "drive", "instants of passes; none: by events", fixed=True),
    # What happened.
    "decisions": Array(log.DECISION, ("recorded",), "record", "drive tables", "who was placed"),
    "victims": Array(I8, ("recorded",), "row", "drive tables", "who was evicted for it, in order"),
    "events": Array(log.EVENT, ("recorded",), "record", "drive qos tables", "all that happened"),
    "passes": Array(log.PASS, ("recorded",), "record", "drive tables", "passes"),
    # Scratch of a search.
    "branches": Array(I8, (130, 3), "node, score, offer", "place", "scratch: branches of a tree to be looked at"),
    "taken": Array(I8, ("slots",), "slot", "drive feasible place", "scratch: victims"),
    "companions": Array(I4, (N,), "row", "drive feasible place", "scratch: victims on other hosts", LIVE),
    "missing": Array(I8, (R,), "amount", "feasible place", "scratch: demand less free and what victims free"),
    "amounts": Array(F8, (3, R), "user's unit", "feasible", "scratch: what a user's score is given"),
    "slack": Array(F8, ("slots",), "s", "feasible place", "scratch: Q - margin of victims"),
    "ranks": Array(I8, ("slots",), "rank", "feasible place", "scratch: those of victims"),
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

    def adopt(self, other: Tables) -> None:
        """Take over another cluster's settings and counters (not its arrays)."""
        self._record["rules"], self._record["control"] = other._record["rules"], other._record["control"]

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
