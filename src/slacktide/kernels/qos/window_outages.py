"""The outages that an account keeps: a chain, oldest first, of bounded length (docs/metric.md, 'Windows')."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.runtime.compiling import kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.log_records import OUTAGE
from slacktide.kernels.tables.schema import NOBODY, RECORD_OUTAGES, Records, State
from slacktide.kernels.tables.window_records import MOST_OUTAGES


@kernel
def add(tb: State, account: Records, at: float, length: float) -> None:
    """Add an outage of ``length`` seconds when ``at`` seconds had been received, the latest of all; O(1), seldom
    O(MOST_OUTAGES)."""
    outages = views.outages(tb)
    if account["tail"] != 0 and outages[account["tail"]]["at"] == at:
        outages[account["tail"]]["length"] += length
        return
    append(tb, account, at, length, 0.0)


@kernel
def append(tb: State, account: Records, at: float, length: float, width: float) -> None:
    """Add an outage behind all others, in which ``width`` seconds were received; O(1), seldom O(MOST_OUTAGES)."""
    outages = views.outages(tb)
    k = new(tb)
    outages[k]["at"], outages[k]["length"] = at, length
    outages[k]["width"], outages[k]["next"] = width, 0
    if account["tail"] == 0:
        account["head"] = k
    else:
        outages[account["tail"]]["next"] = k
    account["tail"] = k
    account["count"] += 1
    if account["cursor"] == 0:
        account["cursor"] = k
    if account["count"] > MOST_OUTAGES:
        unite_nearest(tb, account)


@kernel
def record(tb: State, row: int, by: int, until: float, lost: float, received: float) -> None:
    """Append the event that ``lost`` seconds up to ``until`` were lost, while ``received`` were received, in a
    simulation that records outages; of an instance, or, ``by`` OF_REQUEST, of the ledger ``row``; O(1)."""
    if views.rules(tb)["live"] or not views.rules(tb)["record"] & RECORD_OUTAGES:
        return
    event = views.events(tb)[views.control(tb)["events"]]
    event["time"], event["kind"], event["row"], event["by"] = until, OUTAGE, row, by
    event["qos"], event["received"], event["host"] = lost, received, NOBODY
    views.control(tb)["events"] += 1


@kernel
def new(tb: State) -> int:
    """A free place for an outage; there must be one; O(1)."""
    control = views.control(tb)
    k = whole(control["free_outage"])
    if k != 0:
        control["free_outage"] = views.outages(tb)[k]["next"]
        return k
    control["outages"] += 1
    return whole(control["outages"])


@leaf
def free(tb: State, k: int) -> None:
    """Give a place back; O(1)."""
    views.outages(tb)[k]["next"] = views.control(tb)["free_outage"]
    views.control(tb)["free_outage"] = k


@kernel
def unite_nearest(tb: State, account: Records) -> None:
    """Make one of the two neighbours that then lie nearest together, both of which count or neither; O(its outages).

    Of the first such pair. They count until the later one would not.
    """
    outages = views.outages(tb)
    best, least, k = whole(0), np.inf, whole(account["head"])
    while outages[k]["next"] != 0:
        after = outages[whole(outages[k]["next"])]
        width = after["at"] - outages[k]["at"] + outages[k]["width"]
        if outages[k]["next"] != account["cursor"] and width < least:
            best, least = k, width
        k = whole(outages[k]["next"])
    gone = whole(outages[best]["next"])
    outages[best]["at"] = outages[gone]["at"]
    outages[best]["length"] += outages[gone]["length"]
    outages[best]["width"] = least
    outages[best]["next"] = outages[gone]["next"]
    if account["tail"] == gone:
        account["tail"] = best
    free(tb, gone)
    account["count"] -= 1


@kernel
def free_all(tb: State, account: Records) -> None:
    """Give back all places of an account; O(its outages)."""
    k = whole(account["head"])
    while k != 0:
        after = whole(views.outages(tb)[k]["next"])
        free(tb, k)
        k = after
    account["head"] = account["tail"] = account["cursor"] = account["count"] = 0
