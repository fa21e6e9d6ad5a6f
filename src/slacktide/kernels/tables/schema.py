"""Records of the cluster itself, settings and counters, of the arrays in :mod:`slacktide.kernels.tables.arrays`.

Records of requests, of affinity, of the network and of logs stand in modules beside this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# An instance's life, as far as it has gone.
INSTANCE = np.dtype(
    [
        ("since", "f8"),  # when the present state began: that of completion where it is DONE
        ("startup", "f8"),  # start-up delay of the present incarnation
        ("running", "f8"),  # useful running seconds; what is lost to a stop is in ``discarded``
        ("startup_first", "f8"),  # start-up seconds spent in the first start
        ("startup_restarts", "f8"),  # start-up seconds spent in later starts
        ("discarded", "f8"),  # useful running seconds lost to a stop
        ("overhead", "f8"),  # sum of alpha_m over past preemptions (da Silva et al. 2020, equation 8)
        ("host", "i4"),  # host, or -1
        ("state", "i4"),  # one of the states below
        ("starts", "i4"),
        ("preemptions", "i4"),
        ("hosts_used", "i4"),
        ("first_host", "i4"),  # the first host it ran on, or -1
        ("kind", "i4"),
        ("shift", "i4"),  # of its metric where it is given up, in units of SHIFT seconds (:mod:`..plan`)
    ],
    align=True,
)
SHIFT = 4.0
GIVEN_UP = 2.0**31 * 1.25
"""Whose metric is moved by more seconds is given up."""
FUTURE, WAITING, PLACED, DONE, REMOVED, LEAVING, VACANT, EXCUSED = range(8)
# LEAVING: told to go, until its end; VACANT: its next incarnation has not come yet; EXCUSED: only in a live
# cluster, VACANT for a reason that is not the cluster's doing, so that its time counts as running

# An instance on a host: all a victim search needs, side by side.
SLOT = np.dtype(
    [
        ("row", "i8"),
        ("e", "f8"),
        ("p", "f8"),
        ("since", "f8"),
        ("on", "f8"),  # from this instant its time counts as running
        ("put_at", "f8"),  # when it was put on the host, however often it was not ready there since
        ("overhead", "f8"),
        ("admitted", "f8"),
        ("tie", "i8"),
        ("batch", "i8"),  # the pass that placed it
        ("cls", "i8"),
        ("shape", "i8"),
        ("job", "i8"),  # its job where some instances of that keep away from others, or -1
        ("request", "i8"),  # whose ledger decides, or OWN, or FLAT: its own, that is ``e`` and ``p``
        ("shift", "f8"),  # seconds by which the plan moves its metric; of a request's ledger REQUEST says it
    ],
    align=True,
)

_OWN: tuple[Any, ...] = (np.int64(-1), np.int64(-2))  # not literals, so that kernels are compiled once
OWN, FLAT = _OWN
"""Of ``request`` of a slot. FLAT: its metric stands still while it runs, as if its promise were 1 (windows)."""

HOST = np.dtype(
    [
        ("version", "i8"),  # how often its contents changed
        ("sorted_until", "f8"),  # its slots are in victim order before this instant
        ("moves_at", "f8"),  # the instant at which it was last computed how its metrics move
        ("tie", "i8"),  # larger wins among equal hosts
        ("looked", "i8"),  # the last look that saw it
        ("count", "i8"),  # instances on it
        ("group", "i8"),
        ("leaf", "i8"),  # its position in the free index
        ("down", "i8"),
        ("failures", "i8"),  # how often it went down
        ("came", "f8"),  # since when it is known, s
        ("scarce", "i8"),  # so much less it scores, as others need it more (:mod:`..plan.pools`)
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

LENDERS = np.dtype([("batch", "i8"), ("position", "i8"), ("unknown", "i8")], align=True)
# As of that pass and position of the change log; unknown: some host has no bound.

CLASS = np.dtype(
    [
        ("slo", "f8"),
        ("margin", "f8"),  # in force: FAR while a plan is (:mod:`..plan`)
        ("own_margin", "f8"),
        ("patience", "f8"),  # by which an equal must have more slack to give its place
        ("urgent", "f8"),  # to one whose slack is below this,
        ("pressing", "f8"),  # an equal gives it that has so much more
        ("alpha", "f8"),  # seconds that a start is expected to take
        ("late_below", "f8"),  # Q below which one is late (triage)
        ("limit", "f8"),
        ("slope", "f8"),
        ("min_running", "f8"),  # seconds on a host before which an instance is no victim
        ("rank", "i8"),  # smaller is more important: by rank as it is named, then by priority
        ("named_rank", "i8"),
        ("level", "i8"),
        ("whole", "i8"),
        ("overloaded", "i8"),
        ("some_lost", "i8"),
        ("waits", "i8"),
        ("bounded", "i8"),  # by a user's own rule of eligibility: whether it is known
        ("bounded_for", "f8"),  # for whom
        ("lends_above", "f8"),  # that nobody with a metric up to this gives way
        ("looked_in", "i8"),  # the last pass in which one of it looked for a host, where a user's own policy decides
        ("looked_at", "i8"),  # and where the change log ended then
        ("windowed", "i8"),  # LIFETIME, ROLLING or CALENDAR, of :mod:`.window_records`; the rest is 0 for LIFETIME
        ("whole_budget", "i8"),
        ("length", "f8"),  # W, seconds, of a rolling window
        ("good", "f8"),  # sigma W of a rolling window
        ("grant", "f8"),  # (1 - sigma) W of the rolling window, or of the present calendar window where that is whole
        ("next_grant", "f8"),  # of the calendar window that follows
        ("begins", "f8"),  # the present calendar window
        ("ends", "f8"),
        ("turn", "i8"),  # the place in ``turns`` of ``begins``
        ("last_turn", "i8"),
        ("in_tier", "i8"),  # of the tier that has the place of this class, not of the class
        ("tier_turned", "i8"),  # the same: it goes by decreasing metric
        ("tier_lost", "i8"),  # the same: ``some_lost`` of a class of it
        ("ended", "i8"),  # instances of it that completed or were removed
        ("lived", "f8"),  # seconds from admission to end, of these in all
        ("alive", "i8"),  # how many these are
        ("age", "f8"),  # their ages in all, seconds
        ("oldest", "f8"),  # the largest of these
        ("job", "i8"),  # they live too shortly to be planned for
        ("planned", "i8"),  # the plan is in force for it
        ("promises", "i8"),  # of it that the present plan is about: instances, or requests of several
        ("given_up", "i8"),  # how many of these it gives up
        ("behind", "i8"),  # its members come behind those that are planned for: their shift, as that of INSTANCE
        ("unsettled", "i8"),  # of the tier that has the place of this class: classes of both sorts are in it
        ("beyond", "i8"),  # what of less important ones it goes before at last: BEYOND_BUDGETS, BEYOND_LIMITS, added up
    ],
    align=True,
)  # whole: 1 / slo is a whole number, so that e / slo needs no rounding; overloaded: in the present pass (triage);
# some_lost: one of it that waits, found while the pass begins; waits: how many of it have their turn in this round

# A waiting instance. Its metric is ``key - t``, where no request's ledger decides.
ENTRY = np.dtype(
    [
        *(("key", "f8"), ("admitted", "f8"), ("row", "i8"), ("kind", "i8"), ("done", "i8"), ("request", "i8")),
        ("told", "i8"),  # whether an event says that it waits in vain
        ("tier", "i8"),  # of the present pass, where one below its margin may be before it
        *(("first", "f8"), ("second", "f8")),  # where it stands, by a user's own order of the queue, or by backoff
        *(("tries", "i8"), ("again", "f8")),  # turns in vain, and the second at which it is done backing off
    ],
    align=True,
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
        ("no_room", "i8"),  # no host has room for it that nothing left since this position in the log of releases
        ("wait", "i8"),  # failures for which ``until`` is not worth computing
        ("penalty", "i8"),  # how many the next disappointment adds
        ("seen_in", "i8"),  # the round of turns for which ``seen_key`` is
        ("seen_key", "f8"),  # that of the last one of it, by a user's own order of the queue
        ("reach", "f8"),  # for so many seconds a failure has held, by a user's own rule of eligibility
        ("worked_out", "i8"),  # in which pass ``until`` was worked out last, of all hosts
        ("loosened", "i8"),  # of ``pass_key``: budgets had been loosened so often
        ("order_mattered", "i8"),  # of ``pass_key``: its mark (:mod:`..feasible.victim_order`)
        ("marks_at", "i8"),  # counters of the marks it carries, in ``marks``
        ("marks", "i8"),
        ("conditions_at", "i8"),
        ("conditions", "i8"),
        ("preferences_at", "i8"),
        ("preferences", "i8"),
        ("never", "i8"),  # never preempts anybody
        ("bare", "i8"),  # nobody makes its instances again when they are gone
        ("grace", "f8"),  # seconds that its instances may take to end
        ("homeless", "i8"),  # whether no host is large enough and satisfies its term (:mod:`..memo.standstill`)
        ("counted", "i8"),  # the round of turns for which ``ahead`` was counted
        ("ahead", "i8"),  # entries that have not had their turn in it
        ("left", "i8"),  # it is out of the pass while ``control.returns`` is this (:mod:`..memo.hopeless_kinds`)
    ],
    align=True,
)

# Hosts that are all that some can use, where these ask for more than there is (:mod:`..plan.pools`).
POOL = np.dtype(
    [
        ("kind", "i8"),  # one that can use these hosts only, or -1: there is no such pool
        ("resource", "i8"),  # by which everything there is measured, or -1: by whatever it asks for the most of
        ("short_at", "f8"),  # the last plan that found too little there
        ("since", "i8"),  # samples before its first
    ],
    align=True,
)

# A failure of the present pass that holds for larger demands of the class, too (:mod:`..memo.lesser_demands`).
FAILURE = np.dtype(
    [
        ("kind", "i8"),
        ("cls", "i8"),
        ("stands", "f8"),  # whoever may preempt no more than one that stands so
        ("position", "i8"),  # in the change log
        ("batch", "i8"),  # the pass
        ("loosened", "i8"),  # budgets had been loosened so often
    ],
    align=True,
)

# A set of shared evaluations: of one pair on every host.
SHARED = np.dtype(
    [
        ("position", "i8"),  # all hosts are evaluated as of this position in the change log
        ("batch", "i8"),  # in this pass
        ("reference", "f8"),  # for this metric
        ("latest", "f8"),  # and last used for this one
        ("used", "i8"),
        ("pair", "i8"),
        ("feasible", "i8"),  # length of its list of hosts
        ("heaped", "i8"),  # the list is a heap, best host first
        ("scans", "i8"),  # how often the list was gone through
        ("changed", "i8"),  # a host was evaluated anew while it was
        ("sound", "i8"),  # the look of the last time
        ("least_limit", "f8"),  # no limit of a listed host is less, where the list is a heap
        ("loosened", "i8"),  # budgets had been loosened so often
        ("order_mattered", "i8"),  # the mark of hosts that are not listed (:mod:`..feasible.victim_order`)
    ],
    align=True,
)

# The tournament of a pass: whose offers they are, and as of when.
CONTEST = np.dtype(
    [
        ("after", "i8"),  # so many look at every host before there is one
        ("batch", "i8"),  # the pass
        ("cls", "i8"),  # for whom
        ("looks", "i8"),  # of the class, in this pass
        ("builds", "i8"),  # how often it was made anew in it
        ("position", "i8"),  # end of the change log as of which offers are
        ("arranged", "i8"),  # where that ended when the leaves of the free index were put in order
        ("reference", "f8"),  # the largest metric for which offers were worked out
    ],
    align=True,
)

# A group, with its place in the tree and in ``leaf_host``; no host of it scores above ``limit``, by the last search.
GROUP = np.dtype([("root", "i8"), ("width", "i8"), ("first", "i8"), ("limit", "i8")], align=True)

# Settings that kernels read, and the loop's own counters.
RULES = np.dtype(
    [
        ("patience", "f8"),
        ("savable", "f8"),
        ("overload_patience", "f8"),
        ("recovery", "f8"),
        ("floor", "f8"),
        ("spare_from", "f8"),  # the least margin of any class, and overload_patience
        ("watchdog", "f8"),
        ("crossing_pause", "f8"),  # seconds between two passes for crossings (:mod:`..queue.crossing`)
        ("end", "f8"),
        ("tolerance", "f8"),
        ("relaxed", "f8"),
        ("fastest", "f8"),  # the largest slope of any class's running metric
        ("seed", "u8"),
        ("stride", "i8"),  # coprime to the number of hosts, for searches in random order
        ("own_score", "i8"),  # address of a user's score, or 0
        ("own_cost", "i8"),
        ("piece_queue", "i8"),  # addresses of the pieces of a user's policy, or 0
        ("piece_level", "i8"),
        ("piece_leaves", "i8"),
        ("piece_cost", "i8"),
        ("piece_metric", "i8"),  # and of its metric
        ("piece_falls", "i8"),
        ("pieces_look", "i8"),  # which of them ask for numbers of an instance (:mod:`..policies.pieces`)
        ("pieces_overhead", "i8"),  # and which for its overhead
        ("pieces_move", "i8"),  # and which for what time changes beside the overhead and, of levels, the metric
        ("placer_score", "i8"),  # addresses of what a score that asks where users are consists of, or 0
        ("placer_choose", "i8"),
        ("placer_near", "i8"),
        ("policy", "i8"),
        ("triage", "i8"),
        ("plans", "i8"),  # whom to give up is planned (``policy.overload = plan``)
        ("needed", "i8"),
        ("crossings", "i8"),  # there is a pass when slack meets the margin (``scheduler.crossings``)
        ("by_importance", "i8"),
        ("same_pass", "i8"),
        ("mirrored", "i8"),  # victims in the mirror of the queue order, else by metric alone
        ("score", "i8"),
        ("usual_score", "i8"),
        ("planned_score", "i8"),  # while a plan is in force
        ("cost", "i8"),
        ("priority_cost", "i8"),  # while deciding by priority
        ("scope", "i8"),
        ("queue_limit", "i8"),
        ("as_kube", "i8"),  # the order of equals is kube-scheduler's (``policy.equals``)
        ("accounting", "i8"),
        ("lost", "i8"),
        ("shared", "i8"),
        ("large", "i8"),  # instances on hosts from which on a request is large
        ("pruning", "i8"),
        ("naive", "i8"),  # every host is looked at for every request, as tests compare
        ("exact", "i8"),  # every host that could serve is looked at, and for the metric in question
        ("levels", "i8"),
        ("record", "i8"),  # sum of the RECORD_ flags
        ("one_margin", "i8"),  # all classes have the same margin
        ("gang", "i8"),
        ("reprieve", "i8"),
        ("min_running", "f8"),  # the largest of any class
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
        ("live", "i8"),  # start-ups and ends are told from outside (:mod:`slacktide.kernels.drive.live_events`)
        ("observe", "f8"),  # the clock stops once when all up to this instant has happened; inf: it does not
    ],
    align=True,
)
SCOPE_LEVEL, SCOPE_CLASS, SCOPE_ALL, SCOPE_NONE = range(4)
LEAVER = np.dtype([("row", "i8"), ("host", "i8"), ("shape", "i8"), ("until", "f8")], align=True)
"""A preempted instance of a simulated cluster that goes on, and takes what its shape says of the host, until then."""
BEYOND_BUDGETS, BEYOND_LIMITS = 1, 2
RESTART, ALWAYS, NEVER = range(3)
KEPT, LOST, LOST_BY_KIND = range(3)
RECORD_EVENTS, RECORD_DECISIONS, RECORD_PASSES, RECORD_OUTAGES, RECORD_TURNS = 1, 2, 4, 8, 16

CONTROL = np.dtype(
    [
        ("now", "f8"),
        ("last_pass", "f8"),
        ("crossing_at", "f8"),  # the next one that waits meets its margin (:mod:`..queue.crossing`); inf: nobody does
        ("crossed_at", "f8"),  # the last pass before which one had
        ("crossing_moved", "i8"),  # somebody joined the queue, or was unready, since that was worked out
        ("arrived", "i8"),  # requests admitted so far
        ("completed", "i8"),
        ("placed_now", "i8"),  # instances on hosts
        ("happened", "i8"),  # host events applied so far
        ("batch", "i8"),  # number of the present pass, from 1
        ("scaled", "i8"),  # scale events applied so far
        ("spelled", "i8"),  # spells of unreadiness that have begun so far
        ("resized", "i8"),  # resizes that have come so far
        ("open_resizes", "i8"),  # of these, those that wait for room
        ("deferred", "i8"),  # length of the list of those, with some that do not any more
        ("retried", "i8"),  # where in that list the present round stands
        ("overloaded", "i8"),  # classes that are, in the present pass
        ("beyond", "i8"),  # what does not protect those of a larger rank at the moment, as in CLASS
        ("beyond_rank", "i8"),
        ("planned", "i8"),  # a plan is in force
        ("plan_at", "f8"),  # the next plan is due
        ("plan_soon_at", "f8"),  # and from then on where somebody waits whom the present one keeps
        ("unrecorded", "i8"),  # nobody can be planned for, so that no record of the shortage is kept
        ("plans", "i8"),  # plans so far
        ("planned_at", "f8"),  # when the present one was made
        ("given_up", "i8"),  # requests and instances that the present one gives up
        ("born", "f8"),  # when the record of the shortage begins; NaN: not yet
        ("step", "f8"),  # seconds between two samples of it
        ("samples", "i8"),  # samples so far
        ("sample_at", "f8"),  # the next sample is due
        ("changes", "i8"),  # end of the change log
        ("pass_from", "i8"),  # where it ended when the present pass began
        ("arranged", "i8"),  # where it ended when the leaves of the free index were last put in order
        ("arranged_bounds", "i8"),  # bound checks until then
        ("releases", "i8"),  # end of the log of releases
        ("stirred", "i8"),  # requests whose metrics changed since their hosts were last told
        ("request_heap", "i8"),
        ("gang", "i8"),  # whose turn it is together (kernels/drive/gang.py), or -1
        ("gang_starts", "i8"),  # whether they start
        ("gang_at", "i8"),  # where in the queue the next of them is looked for
        ("acts", "i8"),  # of the trial
        ("ordered", "i8"),  # whether a user's own order of the queue is by metric within each kind
        ("grouped", "i8"),  # whether an instance of a pod group waits in the present pass
        ("whole_members", "i8"),  # instances of groups that are preempted as a whole, on hosts or not
        ("asking", "i8"),  # the group of that kind whose instance has its turn, or -1
        ("order_mattered", "i8"),  # in the present look, by the order of victims (:mod:`..feasible.victim_order`)
        ("companions", "i8"),  # of the last choice of victims: how many of them are on other hosts
        ("told_operations", "i8"),  # that a live cluster was told so far
        ("queue", "i8"),
        ("incoming", "i8"),
        ("numbers", "i8"),  # turns in vain, and arrivals, counted as they are (:mod:`..queue.backoff`)
        ("left_before", "i8"),  # how often somebody had left a host as the present pass began
        ("all_tried", "i8"),  # whether that was more often than before the pass before
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
        ("residents", "i8"),  # instances on hosts that were asked about rules, once for each rule
        ("seeking", "i8"),  # the class of whom a host is looked for
        ("allowance", "i8"),  # so much work, and the pass is left until it is resumed; 0: it is not left
        ("placements", "i8"),
        ("preemptions", "i8"),
        ("resizes", "i8"),  # that held where the instance was, or while it waited
        ("moves", "i8"),  # resizes for which an instance moved
        ("deferrals", "i8"),  # resizes that had to wait for room
        ("leavers", "i8"),  # preempted instances that go on for their grace period, with some that do not any more
        ("bind_at", "f8"),  # when the victims of the decision that is carried out are gone
        ("graces", "i8"),  # whether kinds differ in how long their instances may take to end
        ("kept", "i8"),  # waiting instances for which the present pass keeps room where they are nominated
        ("pass_placed", "i8"),
        ("pass_preempted", "i8"),
        ("pass_queue", "i8"),
        ("most_queue", "i8"),  # the most that waited as a pass ended, since somebody outside last set it to -1
        ("pass_operations", "i8"),
        ("decisions", "i8"),
        ("victims", "i8"),
        ("events", "i8"),
        ("passes", "i8"),
        ("failed", "i8"),  # kind of the last request of this pass that found no host, or -1
        ("leaving", "i8"),  # whether kinds may leave the present pass
        ("rounds", "i8"),  # of turns so far: those of the queue, those of its victims
        ("ahead", "i8"),  # entries that have not had their turn in this one
        ("open", "i8"),  # of these, those whose kind has not left
        ("untold", "i8"),  # of these, those of whom an event is still to say that they wait in vain
        ("left_at", "i8"),  # end of the change log as of which kinds left
        ("left_loosened", "i8"),  # budgets had been loosened so often
        ("returns", "i8"),  # how often kinds that had left came back
        ("looks", "i8"),
        ("due", "i8"),  # something happened at ``now`` that calls for a pass
        ("broken", "i8"),  # a user's own score or cost raised or gave no number
        ("stalled", "i8"),  # the last pass placed nobody
        ("told", "i8"),  # the last look before which a metric on some host changed from elsewhere
        ("still_until", "f8"),  # until then passes decide nothing, if nothing happens
        ("still_from", "i8"),  # end of the change log as of that
        ("late_at", "f8"),  # no class becomes overloaded before
        ("hopeful", "i8"),  # who waited in the last pass and would fit on some host, if it were empty
        ("tightened", "i8"),  # the last look before which a budget or an account had more left
        ("loosened", "i8"),  # how often a budget or an account got more left
        ("triggered", "i8"),  # triggers that have been
        ("turns_at", "f8"),  # the next calendar window of any class begins
        ("moves_at", "f8"),  # in a live cluster: no old outage leaves its window before
        ("outages", "i8"),  # places of the array that were ever used
        ("free_outage", "i8"),  # the first of a chain of those that are free, or 0
    ],
    align=True,
)

NOBODY: Any = np.int64(-1)
FAIL, DRAIN, REPAIR, CAPACITY, OTHERS, MARKS = range(6)  # as :data:`.host_events.EVENT_KINDS`
Records = Any  # records, or an array of them: Numba checks their fields, a type checker cannot

State = int  # the address of one record of all arrays: what kernels are given
