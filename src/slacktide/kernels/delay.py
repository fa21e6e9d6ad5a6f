"""Delay-aware placement (specification, section 9; docs/delay-aware.md): the host on which users wait least.

``views.missing(tb)`` is demand less free amounts, as for other scores: a host's residual
amount is the demand less that. Every sum is taken in the order written here, so that the
twin finds the same delays to the bit.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels import board, free_index, grants, views
from slacktide.kernels.access_records import MOST_SERVED
from slacktide.kernels.compiling import kernel, leaf, whole
from slacktide.kernels.free_index import NOWHERE
from slacktide.kernels.tables import NOBODY, State

FAR = 2.0**36  # seconds; delays are not told apart beyond
UNIT = 2.0**20


@leaf
def processing_delay(tb: State, shape: int, cpu: int) -> float:
    """Equation 8, seconds: the data's CPU-seconds on what is granted; O(1)."""
    seconds = views.asks(tb)[shape]["processing"]
    if seconds == 0.0:
        return 0.0
    if cpu <= 0:
        return FAR
    return seconds / (cpu * views.rules(tb)["cpu_unit"])


@leaf
def image_delay(tb: State, h: int, shape: int) -> float:
    """t_image of host ``h``, seconds: 0 where the image is present; O(1)."""
    image = views.asks(tb)[shape]["image"]
    if image < 0 or views.image_on(tb)[image, h]:
        return 0.0
    record, network = views.images(tb)[image], views.rules(tb)["network"]
    if record["size"] == 0.0:
        return record["seconds"]
    if network < 0 or views.capacity(tb)[h, network] == 0:
        return FAR
    return record["size"] / (views.capacity(tb)[h, network] * views.rules(tb)["network_unit"])


@kernel
def reach(tb: State, shape: int, place: int, h: int) -> float:
    """The last term of equation 11, seconds, by the shares of the users; 0 for those on host ``h``; O(logins)."""
    asks = views.asks(tb)[shape]
    total = 0.0
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        login = views.logins(tb)[i]
        if login["host"] < 0 or login["host"] != h:
            away = (views.rtt(tb)[place, login["place"]] + views.places(tb)[place]["sigma"]) / 2.0
            total += login["share"] * away
    return total


@leaf
def omega(tb: State, h: int, shape: int, away: float) -> float:
    """Algorithm 2, lines 2 to 9, seconds: delay of host ``h`` that is ``away`` from the users; O(1)."""
    rules = views.rules(tb)
    residual = views.demand(tb)[shape, 0] - views.missing(tb)[0]
    processing = processing_delay(tb, shape, grants.granted(tb, shape, whole(0), residual))
    network = image_delay(tb, h, shape) + views.asks(tb)[shape]["transfer"] + away
    total = rules["weight"] * processing + (1.0 - rules["weight"]) * network
    served = views.hosts(tb)[h]["count"]
    if served > 0:
        total += views.gamma(tb)[min(served, MOST_SERVED) - 1]
    return min(total, FAR)


@leaf
def residual_of(tb: State, shape: int) -> float:
    """The smaller of the residual CPU and memory (algorithm 2, line 17), memory in units of CPU; O(1)."""
    rules = views.rules(tb)
    cpu = (views.demand(tb)[shape, 0] - views.missing(tb)[0]) * rules["cpu_unit"]
    return min(cpu, (views.demand(tb)[shape, 1] - views.missing(tb)[1]) * rules["memory_in_cpu"])


@kernel
def score(tb: State, h: int, shape: int) -> int:
    """As an allocation score: the delay in units of 2^-20 s, negative; O(logins)."""
    away = reach(tb, shape, whole(views.place(tb)[h]), h)
    return whole(-np.rint(omega(tb, h, shape, away) * UNIT))


@leaf
def is_better(tb: State, residual: float, best: float, h: int, host: int) -> bool:
    """Whether host ``h`` of this residual beats ``host`` (or -1) of residual ``best`` among final candidates; O(1)."""
    if host < 0 or residual > best:
        return True
    return residual == best and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]


@kernel
def choose(tb: State, shape: int) -> int:
    """Algorithm 2 among the hosts whose ``points`` are not NOWHERE: the final candidate of most points, then of the
    largest residual; or -1; O(hosts * logins)."""
    least, points, hosts = np.inf, views.points(tb), len(views.hosts(tb))
    for h in range(hosts):
        if points[h] == NOWHERE:
            continue
        free_index.has_room(tb, h, shape)
        delay = omega(tb, h, shape, reach(tb, shape, whole(views.place(tb)[h]), h))
        views.omega(tb)[h] = delay
        least = min(least, delay)
    host, best, most = NOBODY, 0.0, whole(NOWHERE)
    for h in range(hosts):
        if points[h] == NOWHERE or views.omega(tb)[h] > least + views.rules(tb)["near"] or points[h] < most:
            continue
        free_index.has_room(tb, h, shape)
        residual = residual_of(tb, shape)
        if points[h] > most or is_better(tb, residual, best, h, host):
            host, best, most = whole(h), residual, whole(points[h])
    return host


@leaf
def open_with_room(tb: State, h: int, kind: int, shape: int) -> bool:
    """Whether an instance of the kind fits on host ``h`` and may go there; leaves ``missing``; O(resources)."""
    record, host = views.kinds(tb)[kind], views.hosts(tb)[h]
    if host["down"] or not free_index.has_room(tb, h, shape):
        return False
    return views.allowed(tb)[record["term"], host["group"]] != 0 and not board.has_sibling(tb, h, whole(record["job"]))


@kernel
def look_at_host(tb: State, h: int, kind: int, shape: int, away: float, least: float, count: int) -> tuple[float, int]:
    """Adds host ``h`` to the ``count`` candidates in ``found`` where it is within lambda of the ``least`` delay so far;
    both as they are then; O(1)."""
    if open_with_room(tb, h, kind, shape):
        delay = omega(tb, h, shape, away)
        if delay <= least + views.rules(tb)["near"]:
            views.found(tb)[count] = h
            views.omega(tb)[h] = delay
            return min(least, delay), count + 1
    return least, count


@leaf
def bound(tb: State, shape: int, away: float) -> float:
    """No host so far from the users has less delay: none is granted more than the limit; O(1)."""
    most = views.demand(tb)[shape, 0]
    if len(views.limit(tb)) > 0:
        most = max(most, views.limit(tb)[shape, 0])
    network = 0.0 + views.asks(tb)[shape]["transfer"] + away
    weight = views.rules(tb)["weight"]
    return min(weight * processing_delay(tb, shape, whole(most)) + (1.0 - weight) * network, FAR)


@kernel
def collect(tb: State, kind: int, shape: int) -> tuple[float, int]:
    """The least delay, and how many hosts ``found`` holds, which all those within lambda of it are among.

    First where users log in, then place by place from the nearest on, until none can be near enough any more:
    O(places + hosts of the places that could be).
    """
    asks, places = views.asks(tb)[shape], views.places(tb)
    least, count, near = np.inf, whole(0), views.rules(tb)["near"]
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        h = whole(views.logins(tb)[i]["host"])
        if h >= 0:
            away = reach(tb, shape, whole(views.place(tb)[h]), h)
            least, count = look_at_host(tb, h, kind, shape, away, least, count)
    nearest, closest = NOBODY, np.inf
    for p in range(len(places)):
        places[p]["reach"] = reach(tb, shape, whole(p), NOBODY)
        if places[p]["hosts"] > 0 and places[p]["reach"] < closest:
            nearest, closest = whole(p), places[p]["reach"]
    for turn in range(len(places) + 1):
        p = nearest if turn == 0 else whole(turn - 1)
        if p < 0 or (turn > 0 and p == nearest):
            continue
        away = places[p]["reach"]
        if bound(tb, shape, away) > least + near:
            continue
        views.control(tb)["bounds"] += 1
        for i in range(places[p]["first"], places[p]["first"] + places[p]["hosts"]):
            h = whole(views.place_hosts(tb)[i])
            if not logs_in(tb, shape, h):
                least, count = look_at_host(tb, h, kind, shape, away, least, count)
                views.control(tb)["operations"] += 1
    return least, count


@leaf
def logs_in(tb: State, shape: int, h: int) -> bool:
    """Whether users of the shape log in at host ``h``; O(logins)."""
    asks = views.asks(tb)[shape]
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        if views.logins(tb)[i]["host"] == h:
            return True
    return False


@kernel
def find_near(tb: State, kind: int) -> int:
    """As :func:`choose`, for a kind without rules and preferences, without looking at places too far away; or -1."""
    shape = whole(views.kinds(tb)[kind]["shape"])
    least, count = collect(tb, kind, shape)
    host, best = NOBODY, 0.0
    for i in range(count):
        h = whole(views.found(tb)[i])
        if views.omega(tb)[h] > least + views.rules(tb)["near"]:
            continue
        free_index.has_room(tb, h, shape)
        residual = residual_of(tb, shape)
        if is_better(tb, residual, best, h, host):
            host, best = h, residual
    return host


@leaf
def note_image(tb: State, h: int, shape: int) -> None:
    """An instance of the shape began on host ``h``: its image is present there from now on; O(1)."""
    if len(views.asks(tb)) > 0 and views.rules(tb)["keep_images"]:
        image = views.asks(tb)[shape]["image"]
        if image >= 0:
            views.image_on(tb)[image, h] = 1
