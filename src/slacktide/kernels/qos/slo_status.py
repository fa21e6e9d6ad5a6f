"""What requests were promised and have got at an instant, without changing anything.

In an accounting e is what counts as received, T the lifetime, sigma the promise. The availability is A = e / T, 1 where
T = 0. Of an independent request the least of its instances counts; of a concurrent one e is the time in which all its
instances ran. The slack is the metric of a waiting instance, of independent requests the least of any instance.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.qos import request_ledger, request_windows, window_ledger
from slacktide.kernels.qos.metric import received, waiting_key, withheld
from slacktide.kernels.qos.request_ledger import together_at
from slacktide.kernels.runtime.compiling import entry, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.request_records import CONCURRENT, INDEPENDENT
from slacktide.kernels.tables.schema import EXCUSED, LEAVING, PLACED, Records, State
from slacktide.model.service_class import SLO_TOLERANCE

ACCRUED = np.dtype(
    [
        ("lifetime", "f8"),
        ("running", "f8"),
        ("startup_first", "f8"),
        ("startup_restarts", "f8"),
        ("discarded", "f8"),
        ("age", "f8"),  # how long the present state has lasted
        ("spent", "f8"),  # what of that was start-up
        ("on", "?"),  # it is on a host, or is leaving it
        ("up", "?"),  # it is ready
    ],
    align=True,
)
"""An instance's ledger brought to an instant, seconds."""

STATUS = np.dtype(
    [
        ("lifetime", "f8"),  # this and the next four are sums over all instances ever, given for those that are no more
        ("running", "f8"),
        ("startup_first", "f8"),
        ("startup_restarts", "f8"),
        ("discarded", "f8"),
        ("preemptions", "i8"),  # these two as well
        ("starts", "i8"),
        ("q", "i8"),  # given: the request
        ("count", "i8"),  # given: its live instances
        ("promised", "f8"),
        ("received", "f8"),  # as of an aggregated request, in the accounting of decisions
        ("slack", "f8"),
        ("state", "i8"),  # one of those below
        ("running_now", "i8"),  # live instances that are ready
    ],
    align=True,
)
KEPT, AT_RISK, MISSED, UNKNOWN = range(4)


@entry
def accrue(tb: State, rows: NDArray[np.int64], now: float, out: Annotated[Records, ACCRUED]) -> None:
    """Bring the ledgers of instances to ``now``; ``out`` is ACCRUED, shape (rows,); O(rows)."""
    for i in range(len(rows)):
        accrued(views.instances(tb)[rows[i]], views.admission(tb)[rows[i]], now, out[i])


@leaf
def accrued(instance: Records, admission: float, now: float, out: Records) -> None:
    """As :func:`accrue`, of one instance; O(1)."""
    on = instance["state"] == PLACED or instance["state"] == LEAVING
    passed = now - instance["since"]
    spent = startup_spent(instance, now) if on else 0.0
    out["lifetime"] = now - admission
    out["age"], out["spent"] = passed, spent
    out["on"], out["up"] = on, on and passed >= instance["startup"]
    out["running"] = instance["running"] + (passed - spent if on or instance["state"] == EXCUSED else 0.0)
    out["startup_first"], out["startup_restarts"] = instance["startup_first"], instance["startup_restarts"]
    add_startup(out, instance["starts"], spent)
    out["discarded"] = instance["discarded"]


@leaf
def startup_spent(instance: Records, now: float) -> float:
    """Seconds of start-up that the present incarnation has had; O(1)."""
    return min(now - instance["since"], instance["startup"])


@leaf
def add_startup(ledger: Records, starts: int, spent: float) -> None:
    """Add the start-up of the ``starts``-th start to a ledger, seconds; O(1)."""
    if starts == 1:
        ledger["startup_first"] += spent
    else:
        ledger["startup_restarts"] += spent


@leaf
def share(e: float, lifetime: float) -> float:
    """A = e / T; O(1)."""
    return e / lifetime if lifetime > 0.0 else 1.0


@entry
def stand(
    tb: State,
    rows: NDArray[np.int64],
    had: Annotated[Records, ACCRUED],
    now: float,
    out: Annotated[Records, STATUS],
    delivered: Annotated[NDArray[np.float64], 2],
    together: Annotated[NDArray[np.float64], 2],
) -> None:
    """Fill what is not given of ``out``, STATUS of shape (requests,), for ``now``; O(instances).

    ``rows`` and ``had``, ACCRUED, are their live instances, those of the first request first. ``delivered`` and
    ``together``, shape (requests, accountings), are availabilities and the seconds of :func:`.together_at`.
    """
    first = 0
    for i in range(len(out)):
        stop = first + out[i]["count"]
        one = out[i]
        one["slack"] = np.inf
        for k in range(first, stop):
            one["lifetime"] += had[k]["lifetime"]
            one["running"] += had[k]["running"]
            one["startup_first"] += had[k]["startup_first"]
            one["startup_restarts"] += had[k]["startup_restarts"]
            one["discarded"] += had[k]["discarded"]
            one["running_now"] += had[k]["up"]
            one["preemptions"] += views.instances(tb)[rows[k]]["preemptions"]
            one["starts"] += views.instances(tb)[rows[k]]["starts"]
        for accounting in range(3):
            together[i, accounting] = together_at(views.requests(tb)[one["q"]], accounting, now)
        stand_one(tb, rows[first:stop], had[first:stop], now, one, delivered[i], together[i])
        first = stop


@kernel
def stand_one(
    tb: State,
    rows: NDArray[np.int64],
    had: Records,
    now: float,
    out: Records,
    delivered: Records,
    together: Records,
) -> None:
    """As :func:`stand`, of one request whose sums are known; O(its instances)."""
    request, decides = views.requests(tb)[out["q"]], views.rules(tb)["accounting"]
    theirs = views.classes(tb)[request["cls"]]
    owed = out["lifetime"] > 0.0
    out["promised"] = theirs["slo"]
    out["received"] = received(out, decides)
    for accounting in range(3):
        e = together[accounting] if request["approach"] == CONCURRENT else received(out, accounting)
        delivered[accounting] = share(e, out["lifetime"])
    risky = False
    if request_windows.is_windowed(tb, whole(out["q"])):
        delivered[:] = kept_in_window(tb, whole(out["q"]), now)
    if request["approach"] != INDEPENDENT:
        out["slack"] = request_ledger.weigh(tb, whole(out["q"]), now, whole(0), 0.0)
        risky = is_risky(tb, theirs, out["slack"], delivered[decides])
    elif len(had) > 0:
        owed, risky = least_of(tb, rows, had, now, out, delivered)
    missed = is_missed(tb, whole(out["q"]), delivered[decides], out["slack"])
    out["state"] = state_of(owed, missed, risky)


@kernel
def kept_in_window(tb: State, q: int, now: float) -> float:
    """What share of its window a request of several instances got; O(outages)."""
    up = request_ledger.counting(views.requests(tb)[q], views.rules(tb)["accounting"])
    lost, over = request_windows.lost_in_window(tb, q, whole(up), now)
    return 1.0 - lost / over if over > 0.0 else 1.0


@leaf
def state_of(owed: bool, missed: bool, risky: bool) -> int:
    """How a promise stands; O(1)."""
    if not owed:
        return whole(UNKNOWN)
    if missed:
        return whole(MISSED)
    return whole(AT_RISK) if risky else whole(KEPT)


@leaf
def is_missed(tb: State, q: int, delivered: float, slack: float) -> bool:
    """Whether less was delivered than promised; of a promise over a window whether its budget is used up; O(1)."""
    request = views.requests(tb)[q]
    alone = request["approach"] == INDEPENDENT and window_ledger.has_window(tb, whole(request["cls"]))
    if alone or request_windows.is_windowed(tb, q):
        return slack + views.classes(tb)[request["cls"]]["alpha"] < -SLO_TOLERANCE
    return delivered < views.classes(tb)[request["cls"]]["slo"] - SLO_TOLERANCE


@leaf
def is_risky(tb: State, theirs: Records, slack: float, delivered: float) -> bool:
    """Whether a promise that is kept is at risk (docs/semantics.md, 'Kept, AtRisk, Missed'); O(1).

    What the metric holds back for a start-up is no loss. And a budget that is small because little time has passed
    puts nothing at risk until half of it is used up.
    """
    left = slack + theirs["alpha"]
    return left < theirs["own_margin"] and delivered < 0.5 * (1.0 + theirs["slo"])


@kernel
def least_of(
    tb: State, rows: NDArray[np.int64], had: Records, now: float, out: Records, delivered: Records
) -> tuple[bool, bool]:
    """The least availability and slack of any instance; O(instances).

    Returns whether there was anything to deliver to, and whether the promise to any of them is at risk.
    """
    decides = views.rules(tb)["accounting"]
    cls = whole(views.requests(tb)[out["q"]]["cls"])
    theirs = views.classes(tb)[cls]
    owed = risky = False
    delivered[:] = 1.0
    for k in range(len(had)):
        owed = owed or had[k]["lifetime"] > 0.0
        slack = metric_at(had[k], theirs["slo"], theirs["alpha"], decides)
        given = share(received(had[k], decides), had[k]["lifetime"])
        windowed = window_ledger.keeps_account(tb, rows[k], cls)
        if windowed:
            slack = window_ledger.slack_at(tb, rows[k], cls, now)
            lost, over = window_ledger.lost_in_window(tb, rows[k], cls, now)
            given = 1.0 - lost / over if over > 0.0 else 1.0
        out["slack"] = min(out["slack"], slack)
        risky = risky or is_risky(tb, theirs, slack, given)
        for accounting in range(3):
            if not windowed:
                given = share(received(had[k], accounting), had[k]["lifetime"])
            delivered[accounting] = min(delivered[accounting], given)
    return owed, risky


@leaf
def metric_at(had: Records, slo: float, alpha: float, accounting: int) -> float:
    """Q of an instance with a ledger of its own, seconds, were it to wait from now on; O(1)."""
    e = received(had, accounting)
    return waiting_key(e, withheld(had["lifetime"], e), slo, alpha, 0.0)


@entry
def received_in(tb: State, sums: Annotated[Records, ACCRUED]) -> float:
    """E of sums of running and start-up seconds, shape (1,), in the accounting of decisions; O(1)."""
    return received(sums[0], views.rules(tb)["accounting"])


@entry
def carry_on(tb: State, q: int, now: float) -> tuple[float, float, int]:
    """A, slack and state of a request at ``now``, from its own sums alone; O(1)."""
    request = views.requests(tb)[q]
    theirs = views.classes(tb)[request["cls"]]
    lifetime = request_ledger.lifetime_of(request, now)
    delivered, slack = (
        share(request_ledger.earned(tb, q, now), lifetime),
        request_ledger.weigh(tb, q, now, whole(0), 0.0),
    )
    if request_windows.is_windowed(tb, q):
        delivered = kept_in_window(tb, q, now)
    missed = is_missed(tb, q, delivered, slack)
    return delivered, slack, state_of(lifetime > 0.0, missed, is_risky(tb, theirs, slack, delivered))
