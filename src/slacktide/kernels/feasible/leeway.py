"""How far the metrics of a large request may move at one instant before its hosts have to be told.

Whatever happens to an instance of a request moves the metrics of all its siblings, on as many hosts. To tell
all of them each time costs the square of the request's size, where many of its instances preempt or are
preempted in one pass. But hosts ask little of a metric: on which side of certain levels it is. These are the
levels of the rules (margin, patience, triage), the metric of the one who looks for victims, and the metrics of
the neighbours in the order of victims. So a large request keeps bounds, *its leeway*. They begin when its hosts
are told, and become narrower with each level that somebody compares its metric with. Between the bounds nothing
that any host knows becomes wrong at this instant. What hosts know of later instants does; so the request stays
among those whose hosts are to be told, and they are when somebody looks at a later instant.

There is no leeway where more is asked than on which side a metric is: where the cost of a preemption depends on
it, where siblings have different metrics (they would lose work of their own), and where instances have rules
about their neighbours.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.builtin import FEWEST_VICTIMS
from slacktide.kernels.policies import in_force
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.qos.metric import NEAR
from slacktide.kernels.qos.metric_dynamics import bound_of_request, lift_ceiling, note_change
from slacktide.kernels.qos.request_ledger import CALM, ROSE
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import Records, State

TOLD, IDLE, WITHIN, ALIKE = 1, 2, 4, 8
"""Bits of ``told``: set at all; the instances are idle; the overhead is within its limit; all metrics are equal."""

SMALLEST = 2.0**-1074
ROUNDS_UP = 2.0**-53 * (1.0 + 2.0**-52)


@leaf
def has_any(tb: State, q: int) -> bool:
    """Whether a request is large enough for a leeway, and may have one; O(1)."""
    request, large = views.requests(tb)[q], views.rules(tb)["large"]
    if request["placed"] < large or request["loses"] or len(views.counters(tb)) > 0:
        return False
    return in_force.by_metric(tb) and in_force.cost(tb) == FEWEST_VICTIMS


@leaf
def is_open(request: Records, now: float) -> bool:
    """Whether the request has a leeway at this instant; O(1)."""
    return request["leeway_at"] == now and request["told"] != 0


@kernel
def known(tb: State, q: int, now: float) -> int:
    """What hosts know of a request beside the size of its metrics, as bits; O(1)."""
    request = views.requests(tb)[q]
    request_ledger.weigh_siblings(tb, q, now)
    bits = whole(TOLD)
    if request_ledger.one_waits(request):
        bits |= IDLE
    if request_ledger.shared_overhead(tb, q, now) <= views.classes(tb)[request["cls"]]["limit"]:
        bits |= WITHIN
    if request["worth_up"] == request["worth_starting"]:
        bits |= ALIKE
    return bits


@leaf
def next_above(value: float) -> float:
    """The number after 0 or one of a size of 2^-900 and more; after infinity that itself; O(1).

    S. Rump, P. Zimmermann, S. Boldo and G. Melquiond, "Computing predecessor and successor in rounding to nearest"
    (2009): a little more than half a unit in the last place is rounded up to one. (NumPy's own is a function of a C
    library, which kernels do without.)
    """
    return value + (SMALLEST + ROUNDS_UP * abs(value))


@leaf
def is_between(least: float, most: float, value: float) -> bool:
    """Whether a metric is between its bounds: strictly, or exactly at both; O(1)."""
    return (least < value and (value < most or most == np.inf)) or (least == value and value == most)


@leaf
def bounds_with(least: float, most: float, value: float, level: float) -> tuple[float, float]:
    """Bounds between which ``value`` also stays on its side of ``level``; O(1)."""
    if value == level:
        return max(least, value), min(most, value)
    return (max(least, level), most) if value > level else (least, min(most, level))


@kernel
def suffices(tb: State, q: int, now: float) -> bool:
    """Whether what hosts know of a request is still right at this instant; O(1)."""
    request = views.requests(tb)[q]
    if not is_open(request, now) or not has_any(tb, q) or known(tb, q, now) != request["told"]:
        return False
    if not is_between(request["up_least"], request["up_most"], request["worth_up"]):
        return False
    return is_between(request["starting_least"], request["starting_most"], request["worth_starting"])


@kernel
def narrow(tb: State, q: int, up: bool, level: float) -> None:
    """Keep the metrics of a request's instances that count as running, or of the others, on their side; O(1)."""
    request = views.requests(tb)[q]
    if up:
        least, most = bounds_with(request["up_least"], request["up_most"], request["worth_up"], level)
        request["up_least"], request["up_most"] = least, most
    else:
        least, most = bounds_with(request["starting_least"], request["starting_most"], request["worth_starting"], level)
        request["starting_least"], request["starting_most"] = least, most


@kernel
def first_bounds(tb: State, q: int, value: float, most: float, now: float) -> tuple[float, float]:
    """Bounds of a metric up to ``most`` by the levels of the rules; O(1).

    Above its margin a metric may not rise: no rule has a level there, and ceilings would be without end.
    """
    request, rules = views.requests(tb)[q], views.rules(tb)
    theirs, least = views.classes(tb)[request["cls"]], -np.inf
    margin = theirs["margin"]
    if value >= margin:
        most = min(most, next_above(value))
    least, most = bounds_with(least, most, value, margin)
    least, most = bounds_with(least, most, value, margin + rules["patience"])
    least, most = bounds_with(least, most, value, margin + rules["overload_patience"])
    least, most = bounds_with(least, most, value, rules["spare_from"])
    least, most = bounds_with(least, most, value, theirs["late_below"])
    starving = (rules["floor"] - 1.0) * request_ledger.owed_lifetime(tb, q, now) - theirs["alpha"]
    blur = NEAR + 1e-12 * abs(starving)
    if abs(value - starving) <= blur:
        return bounds_with(least, most, value, value)
    return bounds_with(least, most, value, starving + blur if value > starving else starving - blur)


@kernel
def begin(tb: State, q: int, now: float, rose: bool) -> None:
    """The hosts of a request are told: from now on they know its present metrics; O(1).

    After a fall, hosts of which an evaluation says that nobody is eligible are not looked at again: what is
    known of them holds up to the metrics of then.
    """
    request = views.requests(tb)[q]
    if not has_any(tb, q):
        request["told"] = 0
        return
    again, told = is_open(request, now), known(tb, q, now)
    up, starting = request["worth_up"], request["worth_starting"]
    most_up, most_starting = np.inf, np.inf
    if not rose:
        most_up = request["up_most"] if again else next_above(up)
        most_starting = request["starting_most"] if again else next_above(starting)
    request["told"], request["leeway_at"] = told, now
    least, most = first_bounds(tb, q, up, most_up, now)
    request["up_least"], request["up_most"] = least, most
    least, most = first_bounds(tb, q, starting, most_starting, now)
    request["starting_least"], request["starting_most"] = least, most


@kernel
def most_of(tb: State, slot: Records, value: float, now: float) -> float:
    """The metric of an instance on a host, or the most to which it may rise at this instant untold; O(1)."""
    if slot["request"] < 0:
        return value
    request = views.requests(tb)[slot["request"]]
    if not is_open(request, now):
        return value
    return max(value, request["up_most"] if now >= slot["on"] else request["starting_most"])


@kernel
def least_of(tb: State, slot: Records, value: float, now: float) -> float:
    """The metric of an instance on a host, or the least to which it may fall at this instant untold; O(1)."""
    if slot["request"] < 0:
        return value
    request = views.requests(tb)[slot["request"]]
    if not is_open(request, now):
        return value
    return min(value, request["up_least"] if now >= slot["on"] else request["starting_least"])


@kernel
def keep_side(tb: State, slot: Records, level: float, now: float) -> None:
    """The metric of an instance on a host was compared with ``level``; O(1)."""
    if slot["request"] >= 0 and is_open(views.requests(tb)[slot["request"]], now):
        narrow(tb, whole(slot["request"]), now >= slot["on"], level)


@kernel
def keep_eligibility(tb: State, slot: Records, q_k: float, cls: int, q_j: float, now: float) -> None:
    """Whether instance k of a request is eligible for one of class ``cls`` with metric ``q_j`` was asked; O(1).

    Of an overloaded class only the levels of the rules count, and those are there from the beginning.
    """
    if views.classes(tb)[cls]["overloaded"]:
        return
    k, j = views.classes(tb)[slot["cls"]], views.classes(tb)[cls]
    if q_k >= k["margin"] or not q_j < j["margin"]:
        keep_side(tb, slot, q_j, now)
    elif k["rank"] == j["rank"]:
        keep_side(tb, slot, q_j + j["patience"], now)
        if q_j < j["urgent"]:
            keep_side(tb, slot, q_j + j["pressing"], now)


@kernel
def keep_order(tb: State, a: Records, b: Records, q_a: float, q_b: float, now: float) -> None:
    """Instances a and b of one tier stand next to each other in the order of victims; O(1)."""
    if a["request"] == b["request"]:
        return  # both by their own ledgers, or siblings: ``ALIKE``
    both = a["request"] >= 0 and b["request"] >= 0
    keep_side(tb, a, (q_a + q_b) / 2.0 if both else q_b, now)
    keep_side(tb, b, (q_a + q_b) / 2.0 if both else q_a, now)


@kernel
def tell_hosts(tb: State) -> None:
    """Let every host with instances of a stirred request know that their metrics changed; O(those instances).

    Done when somebody looks, not when it happens: a request that changes often between
    two looks is gone through once, and not at all where nobody needs to preempt. Nor is one
    whose leeway suffices.
    """
    control, now, left = views.control(tb), views.control(tb)["now"], whole(0)
    control["looks"] += 1
    for i in range(control["stirred"]):
        q = whole(views.stirred(tb)[i])
        if suffices(tb, q, now):
            views.stirred(tb)[left] = q
            left += 1
        else:
            tell_hosts_of(tb, q, now)
    control["stirred"] = left


@kernel
def tell_hosts_of(tb: State, q: int, now: float) -> None:
    """As :func:`tell_hosts`, of one request; O(its instances on hosts)."""
    control, request = views.control(tb), views.requests(tb)[q]
    rose = request["stirred"] == ROSE
    request["stirred"], control["told"] = CALM, control["looks"]
    begin(tb, q, now, rose)
    peak, rise, until, blur = 0.0, 0.0, 0.0, 0.0
    if rose and request["head"] >= 0:  # who has nobody on hosts may have no history either
        peak, rise, until, blur = bound_of_request(tb, q, now)
        if is_open(request, now):
            peak = max(peak, request["up_most"], request["starting_most"])
    row = whole(request["head"])
    while row >= 0:
        h = whole(views.instances(tb)[row]["host"])
        views.hosts(tb)[h]["sorted_until"] = -np.inf
        views.hosts(tb)[h]["fell"] = control["looks"]
        if rose:
            lift_ceiling(tb, h, now, peak, rise, until, blur)
            note_change(tb, h)
        if views.rules(tb)["piece_metric"] != 0:
            views.ceilings(tb)[h]["peak"] = np.inf
        row = whole(views.links(tb)[row, 0])
