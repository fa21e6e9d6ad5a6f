"""Records of requests with several instances, of the arrays in :mod:`slacktide.kernels.tables.schema`."""

from __future__ import annotations

import numpy as np

# A request of several instances, or of a batch (docs/semantics.md, 'Requests of several instances').
# Seconds are sums over its instances as of ``since``; in between they grow with the counts.
REQUEST = np.dtype(
    [
        ("since", "f8"),
        ("total", "f8"),  # T
        ("received", "f8"),  # u in the accounting of decisions
        ("together_restart", "f8"),  # time in which all live instances counted as running, in each accounting
        ("together_always", "f8"),
        ("together_never", "f8"),
        ("shift", "f8"),  # seconds by which the plan moves the metric of its instances
        ("overhead", "f8"),  # sum of alpha_m over past preemptions of all instances (da Silva et al. 2020, equation 8)
        ("weighed", "f8"),  # for this instant, unless anything changed since, Q of a running instance is
        ("worth_up", "f8"),  # where it counts as running
        ("worth_starting", "f8"),  # and where it does not yet
        ("leeway_at", "f8"),  # at this instant hosts need not know of a change while both stay between these bounds
        ("up_least", "f8"),
        ("up_most", "f8"),
        ("starting_least", "f8"),
        ("starting_most", "f8"),
        ("live", "i8"),
        ("placed", "i8"),  # live instances on hosts
        ("up_restart", "i8"),  # live instances that count as running, in each accounting
        ("up_always", "i8"),
        ("up_never", "i8"),
        ("cls", "i8"),
        ("approach", "i8"),  # one of those below
        ("batch", "i8"),
        ("loses", "i8"),  # a stopped instance loses its work
        ("head", "i8"),  # a row on a host, the others by ``links``; -1: none
        ("stirred", "i8"),  # is among the stirred
        ("told", "i8"),  # what else hosts know of it (kernels/feasible/leeway.py), 0: there is no leeway
        ("heap_at", "i8"),  # its position in the heap of the pass, or -1
        ("window", "i8"),  # instances of a batch request at work at once, 0: all
        ("release", "i8"),  # the next row to be released
        ("held", "i8"),  # rows that wait for their release
        # In a live cluster, instances told to leave that still count as running, in each accounting: sums take
        # them in, decisions do not.
        ("leaving_restart", "i8"),
        ("leaving_always", "i8"),
        ("leaving_never", "i8"),
    ],
    align=True,
)
INDEPENDENT, CONCURRENT, AGGREGATED = range(3)
SCALE_EVENT = np.dtype([("time", "f8"), ("request", "i8"), ("replicas", "i8")], align=True)

# A row asks for other amounts from then on, as instances of ``kind`` do; in order of time, then of row.
# ``told``: that it was deferred is recorded.
RESIZE_EVENT = np.dtype([("time", "f8"), ("row", "i8"), ("kind", "i8"), ("told", "i8")], align=True)

# A live instance as scaling down sees it: larger goes first.
EXCESS = np.dtype([("row", "i8"), ("stage", "i8"), ("siblings", "i8"), ("at", "f8")], align=True)

# The waiting instances of one request in a pass: positions ``at`` to ``stop`` of the queue.
WAITING = np.dtype(
    [("tier", "f8"), ("metric", "f8"), ("row", "i8"), ("at", "i8"), ("stop", "i8"), ("request", "i8")], align=True
)

# A pod group of a live cluster: how many of its instances must be on hosts before any is, how many are, and how many
# would have been by the last trial. ``whole``: it is preempted as a whole or not at all; then ``first`` is the first of
# its rows on hosts, the others in ascending order by ``next_in_group``; -1: none. One that somebody else ends is not
# among them (GOES_ANYWAY). ``mixed``: some are more important than others, so that each is preempted by itself.
POD_GROUP = np.dtype(
    [("least", "i8"), ("placed", "i8"), ("found", "i8"), ("whole", "i8"), ("first", "i8"), ("mixed", "i8")], align=True
)

GOES_ANYWAY = -2

# What a trial did, so that it can be undone: the row went on ``host``, or off it (then ``slot`` is what it was).
# ``overhead`` and ``received`` are what its request's ledger said before.
ACT = np.dtype(
    [("row", "i8"), ("host", "i8"), ("off", "i8"), ("version", "i8"), ("overhead", "f8"), ("received", "f8")],
    align=True,
)
