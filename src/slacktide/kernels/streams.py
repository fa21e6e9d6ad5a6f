"""Who is next in a pass, where decisions change what waiting instances are worth.

The waiting instances of a request whose ledger decides have one metric: they are a
*stream*, taken in order of row. The streams stand in a heap by (tier, metric, row);
a decision that changes a request's metric moves its stream. All other instances keep
the order they had when the pass began.
"""

from __future__ import annotations

from slacktide.kernels import requests, views
from slacktide.kernels.compiling import kernel, leaf, whole
from slacktide.kernels.tables import Records, State


@kernel
def tier_of(tb: State, cls: int, mine: float) -> int:
    """Where in the queue's order a class stands with this metric: below the margin by rank, then all others; O(1)."""
    if not views.rules(tb)["by_importance"]:
        return whole(0)
    theirs = views.classes(tb)[cls]
    return theirs["level"] if mine < theirs["margin"] else views.rules(tb)["levels"]


@leaf
def stands_before(a: Records, b: Records) -> bool:
    """Whether stream ``a`` is served before ``b``; O(1)."""
    if a["tier"] != b["tier"]:
        return a["tier"] < b["tier"]
    if a["metric"] != b["metric"]:
        return a["metric"] < b["metric"]
    return a["row"] < b["row"]


@kernel
def exchange(tb: State, i: int, k: int) -> None:
    """Exchange two streams in the heap; the last place is spare."""
    streams = views.streams(tb)
    spare = len(streams) - 1
    streams[spare] = streams[i]
    streams[i] = streams[k]
    streams[k] = streams[spare]
    views.requests(tb)[streams[i]["request"]]["stream"] = i
    views.requests(tb)[streams[k]["request"]]["stream"] = k


@kernel
def settle_place(tb: State, i: int) -> None:
    """Move the stream at place ``i`` to where it belongs; O(log streams)."""
    streams, count = views.streams(tb), views.control(tb)["streams"]
    while i > 0 and stands_before(streams[i], streams[(i - 1) >> 1]):
        exchange(tb, i, (i - 1) >> 1)
        i = (i - 1) >> 1
    while True:
        child = 2 * i + 1
        if child >= count:
            return
        if child + 1 < count and stands_before(streams[child + 1], streams[child]):
            child += 1
        if not stands_before(streams[child], streams[i]):
            return
        exchange(tb, i, child)
        i = child


@kernel
def open_streams(tb: State, entries: Records, first: int, count: int) -> None:
    """Streams of the entries from ``first`` on, which are in order of (request, row); O(n + streams log streams)."""
    control = views.control(tb)
    for i in range(control["streams"]):  # those of a pass whose decisions came from outside
        views.requests(tb)[views.streams(tb)[i]["request"]]["stream"] = -1
    control["streams"] = 0
    at = first
    while at < count:
        q = whole(entries[at]["request"])
        stop = at + 1
        while stop < count and entries[stop]["request"] == q:
            stop += 1
        stream = views.streams(tb)[control["streams"]]
        stream["request"], stream["at"], stream["stop"] = q, at, stop
        views.requests(tb)[q]["stream"] = control["streams"]
        control["streams"] += 1
        place_anew(tb, entries, q)
        at = stop


@kernel
def place_anew(tb: State, entries: Records, q: int) -> None:
    """Weigh a request's stream afresh and move it; O(log streams)."""
    place = whole(views.requests(tb)[q]["stream"])
    stream = views.streams(tb)[place]
    stream["metric"] = requests.weigh_waiting(tb, q, views.control(tb)["now"])
    stream["tier"] = tier_of(tb, whole(views.requests(tb)[q]["cls"]), stream["metric"])
    stream["row"] = entries[stream["at"]]["row"]
    settle_place(tb, place)


@kernel
def close_stream(tb: State, q: int) -> None:
    """Take a request's stream out of the heap; O(log streams)."""
    control = views.control(tb)
    place = whole(views.requests(tb)[q]["stream"])
    last = whole(control["streams"] - 1)
    if place != last:
        exchange(tb, place, last)
    control["streams"] = last
    views.requests(tb)[q]["stream"] = -1
    if place != last:
        settle_place(tb, place)


@kernel
def weigh_stream(tb: State, entries: Records, q: int) -> None:
    """A decision of this pass concerned the request: move its stream where it has one; O(log streams)."""
    if q >= 0 and views.requests(tb)[q]["stream"] >= 0:
        place_anew(tb, entries, q)


@kernel
def go_on(tb: State, entries: Records, q: int) -> None:
    """The first of a request's stream has been served; O(log streams)."""
    stream = views.streams(tb)[views.requests(tb)[q]["stream"]]
    stream["at"] += 1
    if stream["at"] >= stream["stop"]:
        close_stream(tb, q)
    else:
        place_anew(tb, entries, q)


@kernel
def comes_first(tb: State, entry: Records) -> bool:
    """Whether the first stream is served before this entry, which its own ledger decides for; O(1)."""
    first = views.streams(tb)[0]
    mine = entry["key"] - views.control(tb)["now"]
    tier = tier_of(tb, whole(views.kinds(tb)[entry["kind"]]["cls"]), mine)
    if first["tier"] != tier:
        return first["tier"] < tier
    if first["metric"] != mine:
        return first["metric"] < mine
    return first["row"] < entry["row"]


@kernel
def metric_of_entry(tb: State, entry: Records, now: float) -> float:
    """Q of a waiting instance, seconds; O(1)."""
    if entry["request"] >= 0:
        return requests.weigh_waiting(tb, whole(entry["request"]), now)
    return entry["key"] - now
