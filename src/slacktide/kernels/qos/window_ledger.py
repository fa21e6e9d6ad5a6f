"""What a promise over a window asks of one instance: which of its outages count, and from when on they do not.

With the letters of :mod:`.metric`, W the length of a rolling window and time in seconds: the promise holds at t where
the window [t - W, t] has at least sigma W seconds of running. So an outage counts until sigma W more seconds were
received. The slack is what is left of the budget:

    Q = (1 - sigma) W - (seconds lost in outages that count) - alpha

once the budget is that of a full window: from admission where it is ``whole``; where it is ``accrued`` from the
instant at which e = sigma W, and before that Q = e / sigma - (e + p) - alpha as over a lifetime. Derived in
docs/metric.md ('Windows').

The ledger of an instance stays what it is. Its *account* says how much of e and p does not count, so that with what is
left the metric is that of :mod:`.metric`; its promise is 1 where the account is ``flat``, as the metric stands still
while it runs.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.qos import request_ledger, window_outages
from slacktide.kernels.qos.metric import GRID, entitled, received, waiting_key, withheld
from slacktide.kernels.qos.request_ledger import decider_of
from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import (
    ALWAYS,
    EXCUSED,
    FLAT,
    LEAVING,
    NOBODY,
    OWN,
    PLACED,
    RESTART,
    SHIFT,
    Records,
    State,
)
from slacktide.kernels.tables.window_records import CALENDAR, LIFETIME, ROLLING

LAST_TO_GO = 2.0**32
"""Seconds by which the metric of one that nobody makes again is below that of others, while it is on a host."""
FOR_GOOD = 2.0**20
"""As so many victims of its class one counts that nobody makes again."""


@leaf
def has_window(tb: State, cls: int) -> bool:
    """Whether the promise of a class is over a window; O(1)."""
    return views.classes(tb)[cls]["windowed"] != LIFETIME


@leaf
def is_calendar(tb: State, cls: int) -> bool:
    """Whether the promise of a class is over calendar windows; O(1)."""
    return views.classes(tb)[cls]["windowed"] == CALENDAR


@leaf
def keeps_account(tb: State, row: int, cls: int) -> bool:
    """Whether the promise of an instance is over a window, and its own ledger decides; O(1)."""
    return has_window(tb, cls) and decider_of(tb, row) < 0


@leaf
def own_seconds(tb: State, row: int, cls: int, since: float) -> tuple[float, float]:
    """Seconds e and p that count, as of ``since``, when the state of the instance began; O(1)."""
    instance = views.instances(tb)[row]
    e = received(instance, views.rules(tb)["accounting"])
    p = withheld(since - views.admission(tb)[row], e)
    if keeps_account(tb, row, cls):
        e -= views.accounts(tb)[row]["base"]
        p -= views.accounts(tb)[row]["forgiven"]
    return e, p


@leaf
def own_promise(tb: State, row: int, cls: int) -> float:
    """The promise by which the metric of an instance moves: that of its class, or 1 where its account is flat; O(1)."""
    if keeps_account(tb, row, cls) and views.accounts(tb)[row]["flat"]:
        return 1.0
    return views.classes(tb)[cls]["slo"]


@leaf
def own_key(tb: State, row: int, cls: int, since: float) -> float:
    """The key of an instance that waits since ``since``: its metric is ``key - t``; O(1)."""
    e, p = own_seconds(tb, row, cls, since)
    alpha = views.classes(tb)[cls]["alpha"]
    key = waiting_key(e, p, own_promise(tb, row, cls), alpha, since)
    return breaks_at(tb, cls, key + alpha) - alpha


@leaf
def shift_of(tb: State, row: int) -> float:
    """Seconds by which the plan moves the metric of an instance that its own ledger decides for; O(1)."""
    return SHIFT * views.instances(tb)[row]["shift"]


@leaf
def slot_shift_of(tb: State, row: int) -> float:
    """The same while it is on a host. Under a plan and triage one that nobody makes again is far below all of its rank,
    as its whole promise is lost with it: whoever is as important never takes its place, and whoever is more important
    takes others' first; O(1)."""
    if views.kinds(tb)[views.instances(tb)[row]["kind"]]["bare"] and views.rules(tb)["triage"]:
        return -LAST_TO_GO
    return shift_of(tb, row)


@leaf
def goes_for_good(slot: Records) -> bool:
    """Whether nobody makes the instance on a host again, and that counts; O(1)."""
    return slot["shift"] < 0.0


@leaf
def further_cost(slot: Records) -> float:
    """What a victim costs beside being one, where victims are counted; O(1)."""
    return FOR_GOOD if goes_for_good(slot) else 0.0


@leaf
def breaks_at(tb: State, cls: int, at: float) -> float:
    """When a promise breaks that by the budget of the present window would at ``at``; O(1).

    Where that lasts to the end of the calendar window, the next one's counts from there.
    """
    theirs = views.classes(tb)[cls]
    if theirs["windowed"] == CALENDAR and at >= theirs["ends"]:
        return theirs["ends"] + theirs["next_grant"]
    return at


@kernel
def fill_slot(tb: State, row: int, slot: Records, since: float, on: float) -> None:
    """Write the ledger of an instance into its slot, on its host since ``since`` and running from ``on`` on; O(1)."""
    cls = whole(slot["cls"])
    slot["e"], slot["p"] = own_seconds(tb, row, cls, since)
    slot["since"] = since
    slot["on"] = on
    slot["overhead"] = views.instances(tb)[row]["overhead"]
    slot["shift"] = slot_shift_of(tb, row)
    if slot["request"] >= 0 or not has_window(tb, cls):
        return
    slot["overhead"] -= views.accounts(tb)[row]["spent"]
    slot["request"] = FLAT if views.accounts(tb)[row]["flat"] else OWN
    if views.classes(tb)[cls]["windowed"] == CALENDAR:
        outlast_window(tb, row, slot, since)


@kernel
def outlast_window(tb: State, row: int, slot: Records, now: float) -> None:
    """Where what is left of the budget lasts to the end of the calendar window, the metric falls until then; O(1).

    As if a start-up went on to the end of the window; running time stands still in the overhead C meanwhile.
    """
    theirs = views.classes(tb)[slot["cls"]]
    sigma = own_promise(tb, row, whole(slot["cls"]))
    e, lost = slot["e"], slot["p"] + (min(now, slot["on"]) - slot["since"])
    if now > slot["on"]:
        e += now - slot["on"]
    allowed = entitled(e, sigma) - e
    if now + (allowed - lost) < theirs["ends"]:
        return
    slot["e"] = e
    slot["on"] = theirs["ends"]
    slot["p"] = allowed - (theirs["ends"] + theirs["next_grant"] - slot["since"])


@kernel
def lasts_from(tb: State, row: int, slot: Records) -> float:
    """When the budget of one that runs on lasts to the end of its calendar window; inf: not before that ends; O(1)."""
    theirs = views.classes(tb)[slot["cls"]]
    on, ends = slot["on"], theirs["ends"]
    if not on < ends:
        return np.inf
    sigma = own_promise(tb, row, whole(slot["cls"]))
    lost = slot["p"] + (on - slot["since"])
    at = on + np.rint((ends - on - (entitled(slot["e"], sigma) - slot["e"] - lost)) * sigma * GRID) / GRID
    while at > on and left_at(slot, sigma, lost, at - 1.0 / GRID) >= ends:
        at -= 1.0 / GRID
    while left_at(slot, sigma, lost, at) < ends:
        at += 1.0 / GRID
    return at if at < ends else np.inf


@leaf
def left_at(slot: Records, sigma: float, lost: float, at: float) -> float:
    """Until when the budget lasts of one that ran on to ``at`` and is stopped then; O(1)."""
    e = slot["e"] + (at - slot["on"])
    return at + (entitled(e, sigma) - e - lost)


@leaf
def runs_from(tb: State, row: int) -> float:
    """When what an instance on a host has of it begins to count as running; O(1)."""
    instance, accounting = views.instances(tb)[row], views.rules(tb)["accounting"]
    pending = accounting == ALWAYS or (accounting == RESTART and instance["starts"] > 1)
    return instance["since"] + instance["startup"] if pending else instance["since"]


@kernel
def next_move(tb: State, row: int, slot: Records) -> float:
    """When the metric of an instance on a host leaves its present straight line, if it runs on; inf: never; O(1)."""
    cls = whole(slot["cls"])
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    if theirs["windowed"] == CALENDAR:
        return lasts_from(tb, row, slot)
    on = runs_from(tb, row)
    e = received(views.instances(tb)[row], views.rules(tb)["accounting"])
    if not account["flat"]:
        return on + (theirs["good"] - (e - account["base"]))
    if account["cursor"] != 0:
        return on + (views.outages(tb)[account["cursor"]]["at"] + theirs["good"] - e)
    if (
        withheld(on - views.admission(tb)[row], e) > account["booked"]
    ):  # its present start-up is the only one that counts
        return on + theirs["good"]
    return np.inf


@leaf
def owed_lifetime(tb: State, row: int, cls: int, now: float) -> float:
    """Seconds over which an instance, or the request whose ledger decides for it, was promised something; O(1)."""
    theirs, q = views.classes(tb)[cls], decider_of(tb, row)
    if q >= 0:
        return request_ledger.owed_lifetime(tb, q, now)
    lived = now - views.admission(tb)[row]
    if theirs["windowed"] == LIFETIME:
        return lived
    if theirs["windowed"] == ROLLING:
        return min(lived, theirs["length"])
    return min(lived, now - theirs["begins"])


@kernel
def count_anew(tb: State, row: int, cls: int) -> None:
    """Let an account count as its class says now, from what it has kept; O(outages)."""
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    account["flat"], account["forgiven"], account["cursor"] = 0, account["dropped"], account["head"]
    if theirs["whole_budget"]:
        account["flat"] = 1
        account["forgiven"] += theirs["grant"]
    forget(tb, row, cls, received(views.instances(tb)[row], views.rules(tb)["accounting"]))


@kernel
def turn_account(tb: State, row: int, cls: int, now: float) -> None:
    """A calendar window began at ``now``, as the class says already: what was before counts no more; O(1)."""
    account = views.accounts(tb)[row]
    e = received_at(tb, row, now)
    account["base"] = e
    account["spent"] = views.instances(tb)[row]["overhead"]
    account["dropped"] = withheld(now - views.admission(tb)[row], e)
    count_anew(tb, row, cls)


@kernel
def note_calendar(tb: State, row: int, cls: int, begun: float, length: float, now: float, e: float) -> None:
    """Remember the share that was lost of the calendar window which began at ``begun``, up to ``now``; O(1).

    ``e`` is what the instance has received by now, in all.
    """
    account = views.accounts(tb)[row]
    lived = now - max(begun, views.admission(tb)[row])
    owed = length if views.classes(tb)[cls]["whole_budget"] else lived
    if owed > 0.0:
        lost = withheld(lived, e - account["base"])
        account["short"] = max(account["short"], lost / owed)


@leaf
def received_at(tb: State, row: int, now: float) -> float:
    """E of a live instance at ``now``, nothing of it left out; O(1)."""
    instance = views.instances(tb)[row]
    e = received(instance, views.rules(tb)["accounting"])
    if instance["state"] == PLACED or instance["state"] == LEAVING:
        e += max(0.0, now - runs_from(tb, row))
    elif instance["state"] == EXCUSED:
        e += max(0.0, now - instance["since"])
    return e


@kernel
def book(tb: State, row: int, cls: int, now: float) -> None:
    """Note what an instance lost up to ``now`` since it last received anything, before its ledger changes; O(1)
    amortised, O(MOST_OUTAGES) where outages are forgotten or become one."""
    account, instance = views.accounts(tb)[row], views.instances(tb)[row]
    e = received(instance, views.rules(tb)["accounting"])
    until = now
    if instance["state"] == PLACED or instance["state"] == LEAVING:
        until = min(now, runs_from(tb, row))
    elif instance["state"] == EXCUSED:
        until = min(now, instance["since"])
    lost = withheld(until - views.admission(tb)[row], e) - account["booked"]
    if lost > 0.0:
        note_loss(tb, row, cls, e, lost, until)
        window_outages.record(tb, row, NOBODY, until, lost, 0.0)


@kernel
def note_loss(tb: State, row: int, cls: int, e: float, lost: float, until: float) -> None:
    """Add ``lost`` seconds up to ``until``, when ``e`` had been received, to an account; as long as :func:`book`."""
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    if theirs["windowed"] == CALENDAR:
        account["booked"] += lost
        return
    forget(tb, row, cls, e)  # what is late to be forgotten is so before it may become one with others
    account["booked"] += lost
    window_outages.add(tb, account, e, lost)
    note_rolling(tb, account, theirs["length"], views.admission(tb)[row], until)


@kernel
def forget(tb: State, row: int, cls: int, e: float) -> bool:
    """Count no more what needs not count when ``e`` seconds were received; whether that is more than before; O(1) for
    each outage."""
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    if theirs["windowed"] != ROLLING or e - account["base"] < theirs["good"]:
        return False
    changed = account["flat"] == 0
    if changed:
        account["flat"] = 1
        account["forgiven"] += theirs["grant"]
    while account["cursor"] != 0:
        oldest = views.outages(tb)[account["cursor"]]
        if oldest["at"] + theirs["good"] > e:
            break
        account["forgiven"] += oldest["length"]
        account["cursor"] = oldest["next"]
        changed = True
    return changed


@kernel
def note_rolling(tb: State, account: Records, length: float, admission: float, until: float) -> None:
    """Remember the share of the rolling window which ends with an outage at ``until`` that was lost; O(outages).

    Outages that lie before the window and do not count are let go.
    """
    outages, begin = views.outages(tb), until - length
    before, lost, k = account["dropped"], 0.0, whole(account["head"])
    while k != 0:
        at = admission + outages[k]["at"] + before
        before += outages[k]["length"]
        if k == account["head"] and k != account["cursor"] and at + outages[k]["length"] <= begin:
            account["head"] = outages[k]["next"]
            account["dropped"] += outages[k]["length"]
            account["count"] -= 1
            k_next = whole(outages[k]["next"])
            window_outages.free(tb, k)
            k = k_next
            continue
        lost += max(0.0, at + outages[k]["length"] - max(at, begin))
        k = whole(outages[k]["next"])
    account["short"] = max(account["short"], lost / length)


@kernel
def begin_anew(tb: State, row: int, cls: int, now: float) -> None:
    """What an instance was promised is of another kind from ``now`` on: what was before counts no more."""
    account = views.accounts(tb)[row]
    close_account(tb, row)
    e = received_at(tb, row, now)
    account["base"], account["spent"], account["short"] = e, views.instances(tb)[row]["overhead"], 0.0
    account["booked"] = account["dropped"] = withheld(now - views.admission(tb)[row], e)
    account["begun"] = now
    count_anew(tb, row, cls)


@kernel
def uncounted(tb: State, row: int, cls: int, now: float) -> float:
    """What :func:`forget` would let an account forgive at ``now``, if it was told; O(outages)."""
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    e, forgiven = received_at(tb, row, now), account["forgiven"]
    if theirs["windowed"] != ROLLING or e - account["base"] < theirs["good"]:
        return forgiven
    if not account["flat"]:
        forgiven += theirs["grant"]
    k = whole(account["cursor"])
    while k != 0 and views.outages(tb)[k]["at"] + theirs["good"] <= e:
        forgiven += views.outages(tb)[k]["length"]
        k = whole(views.outages(tb)[k]["next"])
    begun = received_at(tb, row, -np.inf)
    if k == 0 and e > begun and begun + theirs["good"] <= e:  # the present start-up, which is not noted yet
        forgiven += withheld(now - views.admission(tb)[row], e) - account["booked"]
    return forgiven


@kernel
def slack_at(tb: State, row: int, cls: int, now: float) -> float:
    """Q of an instance at ``now`` were it to wait from then on, seconds, whether or not it was told of all that time
    alone did; O(outages)."""
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    e, alpha = received_at(tb, row, now), theirs["alpha"]
    lost = withheld(now - views.admission(tb)[row], e) - uncounted(tb, row, cls, now)
    e -= account["base"]
    full = account["flat"] or (theirs["windowed"] == ROLLING and e >= theirs["good"])
    key = waiting_key(e, lost, 1.0 if full else theirs["slo"], alpha, now)
    return breaks_at(tb, cls, key + alpha) - alpha - now


@kernel
def lost_in_window(tb: State, row: int, cls: int, now: float) -> tuple[float, float]:
    """Seconds that an instance lost in the window that ends at ``now``, and of how many; O(outages)."""
    theirs, account = views.classes(tb)[cls], views.accounts(tb)[row]
    admission, e = views.admission(tb)[row], received_at(tb, row, now)
    if theirs["windowed"] == CALENDAR:
        lived = now - max(theirs["begins"], admission)
        owed = theirs["ends"] - theirs["begins"] if theirs["whole_budget"] else lived
        return withheld(lived, e - account["base"]), owed
    begin, before, lost, k = now - theirs["length"], account["dropped"], 0.0, whole(account["head"])
    while k != 0:
        at = admission + views.outages(tb)[k]["at"] + before
        before += views.outages(tb)[k]["length"]
        lost += max(0.0, at + views.outages(tb)[k]["length"] - max(at, begin))
        k = whole(views.outages(tb)[k]["next"])
    at = admission + received_at(tb, row, -np.inf) + account["booked"]
    late = withheld(now - admission, e) - account["booked"]
    lost += max(0.0, at + late - max(at, begin))
    owed = theirs["length"]
    if not theirs["whole_budget"]:
        owed = min(owed, now - max(admission, account["begun"]))
    return lost, owed


@kernel
def close_account(tb: State, row: int) -> None:
    """Give back the places of an instance that is no more; what it lost at worst stays known; O(its outages)."""
    window_outages.free_all(tb, views.accounts(tb)[row])
