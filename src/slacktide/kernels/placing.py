"""Scores that compare hosts with each other: delay-aware and its comparators, each in a file of its own.

Each chooses among the hosts whose ``points`` are not NOWHERE; points are those of an
instance's preferences, 0 where it has none. Delay-aware prefers the host of most
points among its final candidates, the comparators know no preferences.
"""

from __future__ import annotations

from slacktide.kernels import delay, elastic_fog, free_index, kcss, nas, tsra, views
from slacktide.kernels.compiling import kernel, whole
from slacktide.kernels.free_index import NOWHERE
from slacktide.kernels.tables import DELAY_AWARE, ELASTIC_FOG, KCSS, NAS, NOBODY, TSRA, State


@kernel
def allocation_score(tb: State, h: int, shape: int) -> int:
    """Score of host ``h`` when ``views.missing(tb)`` is demand less free amounts; it tells places to preempt apart."""
    score = views.rules(tb)["score"]
    if score == DELAY_AWARE:
        return delay.score(tb, h, shape)
    if score == TSRA:
        return tsra.score(tb, h, shape)
    if score == NAS:
        return nas.nearness(tb, h, shape)
    if score == KCSS:
        return kcss.score(tb, h, shape)
    return free_index.allocation_score(tb, h, shape)


@kernel
def choose(tb: State, kind: int) -> int:
    """The best of the hosts whose points are not NOWHERE, or -1."""
    score, shape, host = views.rules(tb)["score"], whole(views.kinds(tb)[kind]["shape"]), NOBODY
    if score == DELAY_AWARE:
        host = whole(delay.choose(tb, shape))
    elif score == ELASTIC_FOG:
        host = whole(elastic_fog.choose(tb, shape))
    elif score == TSRA:
        host = whole(tsra.choose(tb, shape))
    elif score == NAS:
        host = whole(nas.choose(tb, shape))
    elif score == KCSS:
        host = whole(kcss.choose(tb, shape))
    return host


@kernel
def find_free(tb: State, kind: int) -> int:
    """Best host with room for a kind without rules and preferences, or -1."""
    shape = whole(views.kinds(tb)[kind]["shape"])
    if views.rules(tb)["score"] == DELAY_AWARE and views.rules(tb)["free_index"]:
        return whole(delay.find_near(tb, kind))
    for h in range(len(views.hosts(tb))):
        views.points(tb)[h] = 0 if delay.open_with_room(tb, h, kind, shape) else NOWHERE
    views.control(tb)["operations"] += len(views.hosts(tb))
    return choose(tb, kind)
