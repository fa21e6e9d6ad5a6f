"""Every array the core works on: its fields, units and shapes.

``Tables`` holds them; kernels are given its ``state`` record and reach the arrays
through :mod:`slacktide.kernels.views`. Only kernels and :mod:`slacktide.state.cluster`
write to them.

Row numbers: a *row* is an instance's place in the workload, a *request* that of a
request with a ledger in ``requests``, a *host* a host's place in the host file, a
*shape* a distinct demand vector (with limits and access, where a score asks for them),
a *pair* a distinct (shape, class), a *kind* a distinct (pair, term, anti-affine job), a
*group* hosts of equal capacity that satisfy the same terms. Times are seconds,
amounts whole numbers (docs/semantics.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.access_records import ASKS, IMAGE, LOGIN, PLACE
from slacktide.kernels.log_records import COMPLETION, DECISION, EVENT, HOST_EVENT, PASS
from slacktide.kernels.neighbour_records import BUDGET, CONDITION, COUNTER, LIKING
from slacktide.kernels.request_records import ACT, EXCESS, REQUEST, RESIZE_EVENT, SCALE_EVENT, STREAM

# An instance's life, as far as it has gone.
INSTANCE = np.dtype(
    [
        ("since", "f8"),  # when the present state began: that of completion where it is DONE
        ("startup", "f8"),  # start-up delay of the present incarnation
        ("running", "f8"),  # useful running seconds; what is lost to a stop is in ``discarded``
        ("startup_first", "f8"),  # start-up seconds spent in the first start
        ("startup_restarts", "f8"),  # start-up seconds spent in later starts
        ("discarded", "f8"),  # useful running seconds lost to a stop
        ("overhead", "f8"),  # sum of alpha_m over past preemptions (Q eq. 8)
        ("host", "i4"),  # host, or -1
        ("state", "i4"),  # one of the states below
        ("starts", "i4"),
        ("preemptions", "i4"),
        ("hosts_used", "i4"),
        ("first_host", "i4"),  # the first host it ran on, or -1
        ("kind", "i4"),
    ],
    align=True,
)
FUTURE, WAITING, PLACED, DONE, REMOVED, LEAVING, VACANT = range(7)
# LEAVING: only in a live cluster, told to go; VACANT: its next incarnation has not come yet

# An instance on a host: all a victim search needs, side by side.
SLOT = np.dtype(
    [
        ("row", "i8"),
        ("e", "f8"),
        ("p", "f8"),
        ("since", "f8"),
        ("on", "f8"),  # from this instant its time counts as running
        ("overhead", "f8"),
        ("admitted", "f8"),
        ("tie", "i8"),
        ("batch", "i8"),  # the pass that placed it
        ("cls", "i8"),
        ("shape", "i8"),
        ("job", "i8"),  # its job where some instances of that keep away from others, or -1
        ("request", "i8"),  # whose ledger decides, or -1: its own, that is ``e`` and ``p``
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("version", "i8"),  # how often its contents changed
        ("sorted_until", "f8"),  # its slots are in victim order before this instant
        ("moves_at", "f8"),  # the instant at which it was last computed how its metrics move
        ("tie", "i8"),  # larger wins among equal hosts
        ("looked", "i8"),  # the last look that saw it
        ("count", "i8"),  # instances on it
        ("group", "i8"),
        ("leaf", "i8"),  # its place in the free index
        ("down", "i8"),
        ("shared", "i8"),  # instances on it that a request's ledger decides for
        ("fell", "i8"),  # the last look before which a metric on it changed from elsewhere
    ],
    align=True,
)

# No instance on a host has a metric above ``peak + rise * (t - time)`` (plus ``slack``
# where that is not exact on the grid of times), while its contents stay, before ``until``.
CEILING = np.dtype(
    [("peak", "f8"), ("time", "f8"), ("rise", "f8"), ("slack", "f8"), ("until", "f8"), ("least", "i8")], align=True
)  # least: largest rank number on it

CLASS = np.dtype(
    [
        ("slo", "f8"),
        ("margin", "f8"),
        ("limit", "f8"),
        ("slope", "f8"),
        ("rank", "i8"),
        ("level", "i8"),
        ("whole", "i8"),
    ],
    align=True,
)  # whole: 1 / slo is a whole number, so that e / slo needs no rounding

# A waiting instance. Its metric is ``key - t``, where no request's ledger decides.
ENTRY = np.dtype(
    [("key", "f8"), ("admitted", "f8"), ("row", "i8"), ("kind", "i8"), ("done", "i8"), ("request", "i8")], align=True
)
OPEN, GONE, SERVED = range(3)  # of ``done``: waits, left the queue, waits and had its turn with its gang

# What is known of a kind: any instance of it with a metric of at least ``key - fall * t`` finds no
# host that has not changed since ``position``, before ``until``. The metric may be ``slop`` less.
KIND = np.dtype(
    [
        ("key", "f8"),
        ("fall", "f8"),
        ("slop", "f8"),
        ("until", "f8"),
        ("position", "i8"),
        ("pass_key", "f8"),  # the same within the present pass, for those further back in the queue
        ("pass_position", "i8"),
        ("batch", "i8"),
        ("alike", "i8"),  # the first kind that differs at most in where its users are: what failed for it is kept there
        ("pair", "i8"),
        ("shape", "i8"),
        ("cls", "i8"),
        ("term", "i8"),
        ("job", "i8"),  # job whose other instances it keeps away from, or -1
        ("no_room", "i8"),  # no host has room for it that nothing left since this place in the log of releases
        ("wait", "i8"),  # failures for which ``until`` is not worth computing
        ("penalty", "i8"),  # how many the next disappointment adds
        ("loosened", "i8"),  # of ``pass_key``: budgets had been loosened so often
        ("marks_at", "i8"),  # counters of the marks it carries, in ``marks``
        ("marks", "i8"),
        ("conditions_at", "i8"),
        ("conditions", "i8"),
        ("likings_at", "i8"),
        ("likings", "i8"),
        ("never", "i8"),  # never preempts anybody
    ],
    align=True,
)

# A set of shared evaluations: of one pair on every host.
SHARED = np.dtype(
    [
        ("position", "i8"),  # all hosts are evaluated as of this place in the change log
        ("batch", "i8"),  # in this pass
        ("reference", "f8"),  # for this metric
        ("latest", "f8"),  # and last used for this one
        ("used", "i8"),
        ("pair", "i8"),
        ("feasible", "i8"),  # length of its list of hosts
        ("loosened", "i8"),  # budgets had been loosened so often
    ],
    align=True,
)

GROUP = np.dtype([("root", "i8"), ("width", "i8"), ("first", "i8")], align=True)

# Settings that kernels read, and the loop's own counters.
RULES = np.dtype(
    [
        ("alpha", "f8"),
        ("patience", "f8"),
        ("watchdog", "f8"),
        ("end", "f8"),
        ("tolerance", "f8"),
        ("relaxed", "f8"),
        ("expiry", "f8"),
        ("fastest", "f8"),  # the largest slope of any class's running metric
        ("seed", "u8"),
        ("stride", "i8"),  # coprime to the number of hosts, for searches in random order
        ("own_score", "i8"),  # address of a user's score, or 0
        ("own_cost", "i8"),
        ("placer_score", "i8"),  # addresses of what a score that asks where users are consists of, or 0
        ("placer_choose", "i8"),
        ("placer_near", "i8"),
        ("policy", "i8"),
        ("needed", "i8"),
        ("by_importance", "i8"),
        ("same_pass", "i8"),
        ("mirrored", "i8"),  # victims in the mirror of the queue order, else by metric alone
        ("score", "i8"),
        ("cost", "i8"),
        ("priority_cost", "i8"),  # while deciding by priority
        ("scope", "i8"),
        ("queue_limit", "i8"),
        ("accounting", "i8"),
        ("lost", "i8"),
        ("free_index", "i8"),
        ("shared", "i8"),
        ("feasible_time", "i8"),
        ("ceilings", "i8"),
        ("sorted_hosts", "i8"),
        ("static_order", "i8"),
        ("pruning", "i8"),
        ("levels", "i8"),
        ("record", "i8"),  # sum of the RECORD_ flags
        ("one_margin", "i8"),  # all classes have the same margin
        ("gang", "i8"),
        ("min_running", "f8"),
        ("recreation", "f8"),
        ("weight", "f8"),  # alpha of equation 3
        ("phi", "f8"),
        ("near", "f8"),  # lambda, seconds
        ("cpu_unit", "f8"),  # CPUs that one whole amount of CPU is
        ("memory_in_cpu", "f8"),  # and that one whole amount of memory is worth
        ("network_unit", "f8"),  # amounts of resource ``network`` in the unit of images' sizes
        ("network", "i8"),  # that resource, or -1
        ("fetching", "f8"),  # weight of the time to fetch an image
        ("keep_images", "i8"),
        ("live", "i8"),  # start-ups and ends are told from outside (:mod:`slacktide.kernels.live`)
        ("observe", "f8"),  # the clock stops once when all up to this instant has happened; inf: it does not
    ],
    align=True,
)
QOS_DRIVEN, PRIORITY, HYBRID = range(3)
LEAST_REQUESTED, BALANCED, MEAN, OWN_SCORE, DELAY_AWARE, ELASTIC_FOG, TSRA, NAS, KCSS = range(9)
SLACK, FEWEST_VICTIMS, OWN_COST = range(3)
SCOPE_LEVEL, SCOPE_CLASS, SCOPE_ALL, SCOPE_NONE = range(4)
RESTART, ALWAYS, NEVER = range(3)
KEPT, LOST, LOST_BY_KIND = range(3)
RECORD_EVENTS, RECORD_DECISIONS, RECORD_PASSES = 1, 2, 4

CONTROL = np.dtype(
    [
        ("now", "f8"),
        ("last_pass", "f8"),
        ("arrived", "i8"),  # requests admitted so far
        ("completed", "i8"),
        ("placed_now", "i8"),  # instances on hosts
        ("happened", "i8"),  # host events applied so far
        ("batch", "i8"),  # number of the present pass, from 1
        ("scaled", "i8"),  # scale events applied so far
        ("resized", "i8"),  # resizes that have come so far
        ("open_resizes", "i8"),  # of these, those that wait for room
        ("deferred", "i8"),  # length of the list of those, with some that do not any more
        ("retried", "i8"),  # where in that list the present round stands
        ("changes", "i8"),  # end of the change log
        ("releases", "i8"),  # end of the log of releases
        ("stirred", "i8"),  # requests whose metrics changed since their hosts were last told
        ("streams", "i8"),
        ("gang", "i8"),  # the request whose waiting instances have their turn together, or -1
        ("gang_starts", "i8"),  # whether they start
        ("gang_at", "i8"),  # where in the queue the next of them is looked for
        ("acts", "i8"),  # of the trial
        ("queue", "i8"),
        ("incoming", "i8"),
        ("order", "i8"),
        ("at", "i8"),  # where in the queue order the pass stands
        ("phase", "i8"),  # of the pass: 0 not begun, 1 the queue, 2 its victims
        ("mode", "i8"),  # QOS_DRIVEN or PRIORITY, of the present pass
        ("sorted_for", "i8"),  # the mode in which slots and queue are sorted
        ("heap", "i8"),
        ("visits", "i8"),
        ("most", "i8"),  # the fullest host's instances, at the most
        ("operations", "i8"),
        ("bounds", "i8"),  # branches of the free index looked at
        ("placements", "i8"),
        ("preemptions", "i8"),
        ("resizes", "i8"),  # that held where the instance was, or while it waited
        ("moves", "i8"),  # resizes for which an instance moved
        ("deferrals", "i8"),  # resizes that had to wait for room
        ("pass_placed", "i8"),
        ("pass_preempted", "i8"),
        ("pass_queue", "i8"),
        ("pass_operations", "i8"),
        ("decisions", "i8"),
        ("victims", "i8"),
        ("events", "i8"),
        ("passes", "i8"),
        ("failed", "i8"),  # kind of the last request of this pass that found no host, or -1
        ("looks", "i8"),
        ("due", "i8"),  # something happened at ``now`` that calls for a pass
        ("broken", "i8"),  # a user's own score or cost raised or gave no number
        ("stalled", "i8"),  # the last pass placed nobody
        ("tightened", "i8"),  # the last look before which a budget had more left
        ("loosened", "i8"),  # how often a budget got more left
        ("triggered", "i8"),  # triggers that have been
    ],
    align=True,
)

NOBODY: Any = np.int64(-1)
FAIL, DRAIN, REPAIR = range(3)
Records = Any  # records, or an array of them: Numba checks their fields, a type checker cannot

# Every array: its element type and number of axes. n instances, h hosts, r resources.
ARRAYS: dict[str, tuple[np.dtype[Any], int]] = {
    "classes": (CLASS, 1),
    "instances": (INSTANCE, 1),  # (n,)
    "member": (np.dtype("i4"), 1),  # (n,): SLOT's job; (0,) where that is its kind's
    "owner": (np.dtype("i4"), 1),  # (n,): request whose ledger the instance belongs to, or -1; (0,) where none has one
    "links": (np.dtype("i4"), 2),  # (n, 2) or (0, 2): next and previous row of its request on a host, or -1
    "requests": (REQUEST, 1),
    "stirred": (np.dtype("i4"), 1),  # requests
    "streams": (STREAM, 1),
    "scalings": (SCALE_EVENT, 1),
    "resizings": (RESIZE_EVENT, 1),
    "deferred": (np.dtype("i8"), 1),  # places in ``resizings``, in order
    "wish": (np.dtype("i4"), 1),  # (n,): place in ``resizings`` of what the instance waits for, or -1; (0,) without any
    "excess": (EXCESS, 1),  # scratch, as long as the largest request with scale events
    "acts": (ACT, 1),  # scratch of a trial
    "acted": (SLOT, 1),  # the slots that it took off, by act
    "admission": (np.dtype("f8"), 1),  # (n,)
    "duration": (np.dtype("f8"), 1),  # (n,)
    "hosts": (HOST, 1),  # (h,)
    "ceilings": (CEILING, 1),  # (h,)
    "slots": (SLOT, 2),  # (h, most instances a host + 1 spare)
    "free": (np.dtype("i8"), 2),  # (h, r)
    "capacity": (np.dtype("i8"), 2),  # (h, r)
    "scale": (np.dtype("f8"), 2),  # (h, 2): 2^40 / capacity of CPU and memory
    "demand": (np.dtype("i8"), 2),  # (shapes, r)
    "limit": (np.dtype("i8"), 2),  # (shapes, r): most that is granted; (0, r) where nobody has a limit above its demand
    "granted": (np.dtype("i8"), 2),  # (n, r): what an instance takes of its host; (0, r) where that is its demand
    "asks": (ASKS, 1),  # (shapes,); (0,) unless a score asks where users are
    "logins": (LOGIN, 1),  # by shape
    "images": (IMAGE, 1),
    "image_on": (np.dtype("u1"), 2),  # (images, h): whether it is present
    "places": (PLACE, 1),
    "place": (np.dtype("i4"), 1),  # (h,): a host's place
    "place_hosts": (np.dtype("i4"), 1),  # (h,): hosts by place
    "yard": (np.dtype("i8"), 2),  # (nodes, 3 + r): a tree over the hosts of each place
    "yard_leaf": (np.dtype("i4"), 1),  # (h,): a host's leaf there
    "image_bits": (np.dtype("i8"), 1),  # (h,): a bit for each image that is present
    "rtt": (np.dtype("f8"), 2),  # (places, places), seconds
    "gamma": (np.dtype("f8"), 1),  # seconds that the first, second, ... instance on a host costs the next (equation 18)
    "omega": (np.dtype("f8"), 1),  # scratch (h,): delays
    "kinds": (KIND, 1),
    "counters": (COUNTER, 1),
    "tallies": (np.dtype("i8"), 1),  # by counter and domain
    "domain": (np.dtype("i4"), 2),  # (topologies, h): a host's domain, or -1
    "marks": (np.dtype("i8"), 1),  # counters, by kind
    "conditions": (CONDITION, 1),  # by kind
    "likings": (LIKING, 1),  # by kind
    "points": (np.dtype("i8"), 1),  # scratch (h,)
    "budget": (np.dtype("i4"), 1),  # (n,): budget or -1; (0,) where nobody has one
    "budgets": (BUDGET, 1),
    "guard": (np.dtype("f8"), 1),  # (n,): not preempted before this instant; (0,) where that holds for nobody
    "allowed": (np.dtype("u1"), 2),  # (terms, groups)
    "groups": (GROUP, 1),
    "tree": (np.dtype("i8"), 2),  # (nodes, 5 + r): the free index
    "leaf_host": (np.dtype("i8"), 1),  # (h,): hosts in the order of the index
    "changes": (np.dtype("i8"), 1),  # ring of hosts on which contents or metrics changed
    "releases": (np.dtype("i8"), 1),  # ring of hosts that something left, or that came up
    "queue": (ENTRY, 1),
    "incoming": (ENTRY, 1),
    "order": (np.dtype("i8"), 1),  # places in the queue, in the order of the pass
    "shared": (SHARED, 1),  # (sets,)
    "shared_cost": (np.dtype("f8"), 3),  # (sets, h, levels + 1)
    "shared_limit": (np.dtype("f8"), 2),  # (sets, h): valid for metrics below; -inf: infeasible
    "shared_look": (np.dtype("i8"), 2),  # (sets, h): the number of looks when it was evaluated
    "shared_score": (np.dtype("i8"), 2),  # (sets, h)
    "shared_hosts": (np.dtype("i8"), 2),  # (sets, h): hosts that were feasible when evaluated, each once
    "shared_listed": (np.dtype("u1"), 2),  # (sets, h): whether it is in that list
    "shared_of_pair": (np.dtype("i8"), 1),  # (pairs,): its set, or -1
    "heap": (COMPLETION, 1),
    "visits": (np.dtype("i8"), 1),  # hash set of (row, host) beyond each row's first host; 0: empty
    "hot": (np.dtype("f8"), 1),  # start-up delays to draw from, seconds
    "cold": (np.dtype("f8"), 1),
    "happenings": (HOST_EVENT, 1),
    "triggers": (np.dtype("f8"), 1),  # instants of passes; (0,): where events and the watchdog call for them
    "decisions": (DECISION, 1),
    "victims": (np.dtype("i8"), 1),  # rows evicted, in order
    "events": (EVENT, 1),
    "passes": (PASS, 1),
    "taken": (np.dtype("i8"), 1),  # scratch: slots chosen as victims
    "missing": (np.dtype("i8"), 1),  # scratch (r,): demand less free amounts and what victims free
    "unit": (np.dtype("f8"), 1),  # (r,): one whole amount in the user's unit
    "amounts": (np.dtype("f8"), 2),  # scratch (3, r)
    "slack": (np.dtype("f8"), 1),  # scratch: victims' Q - margin
    "ranks": (np.dtype("i8"), 1),  # scratch: victims' ranks
}


def _state_dtype() -> np.dtype[Any]:
    fields: list[tuple[str, Any]] = [("rules", RULES), ("control", CONTROL)]
    for name, (_, axes) in ARRAYS.items():
        fields.append((f"{name}_at", "i8"))
        fields.extend((f"{name}_{axis}", "i8") for axis in range(axes))
    return np.dtype(fields, align=True)


STATE = _state_dtype()
State = int  # the address of one record of STATE: what kernels are given


class Tables:
    """The arrays of one cluster, and the record through which kernels reach them.

    Kernels take one address instead of forty arrays: it is what makes them compile
    in seconds and call each other cheaply. Replace an array with :meth:`put` only.
    """

    def __init__(self, rules: Records, control: Records, arrays: dict[str, NDArray[Any]]) -> None:
        self._record = np.zeros(1, STATE)
        self._record["rules"], self._record["control"] = rules, control
        self._arrays: dict[str, NDArray[Any]] = {}
        for name in ARRAYS:
            self.put(name, arrays[name])

    def put(self, name: str, array: NDArray[Any]) -> None:
        """Make ``array`` the one that kernels see under ``name``."""
        dtype, axes = ARRAYS[name]
        array = np.ascontiguousarray(array, dtype=dtype)
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
        return int(self._record.ctypes.data)

    @property
    def rules(self) -> Records:
        return self._record["rules"][0]

    @property
    def control(self) -> Records:
        return self._record["control"][0]
