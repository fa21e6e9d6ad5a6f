"""Delay-aware placement (docs/delay-aware.md): the host on which users wait least.

``views.missing(tb)`` is demand less free amounts, as for other scores: a host's residual
amount is the demand less that. Every sum is taken in the order written here, so that the
twin finds the same delays to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from slacktide.kernels.feasible import free_index, grants, site_tree
from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.place.scores import comparing
from slacktide.kernels.runtime.compiling import addressed, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.network_records import BANDWIDTH, BITS, FREE, IMAGES, MOST_SERVED, SERVED
from slacktide.kernels.tables.schema import NOBODY, State

FAR = 2.0**36  # seconds; delays are not told apart beyond
UNIT = 2.0**20
IN_ORDER = 8  # places looked at in the order of their bounds
_AIMS: tuple[Any, ...] = (np.bool_(False), np.bool_(True))  # not literals, so that kernels are compiled once
LEAST, BEST = _AIMS


@leaf
def processing_delay(tb: State, shape: int, cpu: int) -> float:
    """Equation 8, seconds: the data's CPU-seconds on what is granted; O(1)."""
    seconds = views.access(tb)[shape]["processing"]
    if seconds == 0.0:
        return 0.0
    if cpu <= 0:
        return FAR
    return seconds / (cpu * views.rules(tb)["cpu_unit"])


@leaf
def fetching(tb: State, image: int, bandwidth: int) -> float:
    """Seconds that fetching an image takes with so much of resource ``network``, whole amounts; O(1)."""
    record = views.images(tb)[image]
    if record["size"] == 0.0:
        return record["seconds"]
    return record["size"] / (bandwidth * views.rules(tb)["network_unit"]) if bandwidth > 0 else FAR


@leaf
def image_delay(tb: State, h: int, shape: int) -> float:
    """t_image of host ``h``, seconds: 0 where the image is present; O(1)."""
    image, network = whole(views.access(tb)[shape]["image"]), views.rules(tb)["network"]
    if image < 0 or views.image_on(tb)[image, h]:
        return 0.0
    return fetching(tb, image, whole(views.capacity(tb)[h, network]) if network >= 0 else whole(0))


@kernel
def reach(tb: State, shape: int, place: int, h: int) -> float:
    """The last term of equation 11, seconds, by the shares of the users; 0 for those on host ``h``; O(logins)."""
    asks = views.access(tb)[shape]
    total = 0.0
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        login = views.logins(tb)[i]
        if login["host"] < 0 or login["host"] != h:
            away = (views.rtt(tb)[place, login["place"]] + views.places(tb)[place]["sigma"]) / 2.0
            total += login["share"] * away
    return total


@leaf
def weighed(tb: State, shape: int, residual: int, image: float, away: float, served: int) -> float:
    """Algorithm 2, lines 2 to 9, seconds: of a host with this residual CPU, ``image`` seconds to fetch the image,
    ``away`` from the users, that serves so many; O(1)."""
    rules = views.rules(tb)
    processing = processing_delay(tb, shape, grants.granted(tb, shape, whole(0), residual))
    network = rules["fetching"] * image + views.access(tb)[shape]["transfer"] + away
    total = rules["weight"] * processing + (1.0 - rules["weight"]) * network
    if served > 0:
        total += views.gamma(tb)[min(served, MOST_SERVED) - 1]
    return min(total, FAR)


@leaf
def omega(tb: State, h: int, shape: int, away: float) -> float:
    """Delay of host ``h`` that is ``away`` from the users, seconds; O(1)."""
    residual = whole(views.demand(tb)[shape, 0] - views.missing(tb)[0])
    return weighed(tb, shape, residual, image_delay(tb, h, shape), away, whole(views.hosts(tb)[h]["count"]))


@leaf
def residual_of(tb: State, shape: int) -> float:
    """The smaller of the residual CPU and memory (algorithm 2, line 17), memory in units of CPU; O(1)."""
    rules = views.rules(tb)
    cpu = (views.demand(tb)[shape, 0] - views.missing(tb)[0]) * rules["cpu_unit"]
    return min(cpu, (views.demand(tb)[shape, 1] - views.missing(tb)[1]) * rules["memory_in_cpu"])


@addressed
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


@addressed
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
def delay_at(tb: State, h: int, kind: int, shape: int, away: float) -> float:
    """Delay of host ``h``, inf where an instance of the kind cannot go there; leaves ``missing``; O(resources)."""
    views.control(tb)["operations"] += 1
    return omega(tb, h, shape, away) if comparing.open_with_room(tb, h, kind, shape) else np.inf


@leaf
def least_image_delay(tb: State, shape: int, node: int) -> float:
    """No host below a node has the image sooner, seconds; O(1)."""
    image = views.access(tb)[shape]["image"]
    if image < 0 or (views.site_tree(tb)[node, IMAGES] >> (image % BITS)) & 1:
        return 0.0
    return fetching(tb, whole(image), whole(views.site_tree(tb)[node, BANDWIDTH]))


@leaf
def bound(tb: State, shape: int, node: int, away: float) -> float:
    """No host below a node of its place's tree has less delay; inf where none can have room; O(resources)."""
    if not site_tree.has_room(tb, node, shape):
        return np.inf
    residual, served = whole(views.site_tree(tb)[node, FREE]), whole(views.site_tree(tb)[node, SERVED])
    return weighed(tb, shape, residual, least_image_delay(tb, shape, node), away, served)


@kernel
def bound_places(tb: State, shape: int) -> None:
    """What each place's users and hosts allow at best, into ``places``; O(places * (logins + resources))."""
    places = views.places(tb)
    for p in range(len(places)):
        places[p]["bound"], places[p]["looked"] = np.inf, 0
        if places[p]["width"] > 0:
            places[p]["reach"] = reach(tb, shape, whole(p), NOBODY)
            places[p]["bound"] = bound(tb, shape, whole(places[p]["root"]) + 1, places[p]["reach"])


@leaf
def next_place(tb: State) -> int:
    """The place of the least bound that has not been looked at, or -1; O(places)."""
    places, best, least = views.places(tb), NOBODY, np.inf
    for p in range(len(places)):
        if places[p]["bound"] < least and not places[p]["looked"]:
            best, least = whole(p), places[p]["bound"]
    return best


@leaf
def residual_bound(tb: State, node: int) -> float:
    """No host below a node has a larger residual in the sense of :func:`residual_of`; O(1)."""
    rules, tree = views.rules(tb), views.site_tree(tb)
    return min(tree[node, FREE] * rules["cpu_unit"], tree[node, FREE + 1] * rules["memory_in_cpu"])


@leaf
def consider(
    tb: State, h: int, kind: int, shape: int, away: float, compare: bool, most: float, host: int, best: float
) -> tuple[float, int, float]:
    """LEAST: ``most``, seconds, or the delay of host ``h`` where that is less. BEST: the better one of ``host`` of
    residual ``best`` and host ``h``, if its delay is at most ``most``, and its residual. O(resources)."""
    delay = delay_at(tb, h, kind, shape, away)
    if not compare:
        return min(most, delay), host, best
    if delay <= most:
        residual = residual_of(tb, shape)
        if is_better(tb, residual, best, h, host):
            return most, h, residual
    return most, host, best


@kernel
def search_place(
    tb: State, p: int, kind: int, shape: int, compare: bool, most: float, host: int, best: float
) -> tuple[float, int, float]:
    """:func:`consider` the hosts of a place at which no user logs in; O(those that could matter)."""
    place = views.places(tb)[p]
    root, width, away = whole(place["root"]), whole(place["width"]), place["reach"]
    stack = np.empty(64, np.int64)
    stack[0], top = 1, 0
    while top >= 0:
        node = whole(stack[top])
        top -= 1
        views.control(tb)["bounds"] += 1
        if compare and host >= 0 and residual_bound(tb, root + node) < best:
            continue
        delay = bound(tb, shape, root + node, away)
        if delay > most or (delay == most and not compare):
            continue
        if node < width:
            left, right = 2 * node, 2 * node + 1
            first = left
            if compare and residual_bound(tb, root + right) > residual_bound(tb, root + left):
                first = right
            stack[top + 1], stack[top + 2] = left + right - first, first
            top += 2
            continue
        h = whole(views.place_hosts(tb)[place["first"] + node - width])
        if not logs_in(tb, shape, h):
            most, host, best = consider(tb, h, kind, shape, away, compare, most, host, best)
    return most, host, best


@kernel
def search_logins(tb: State, kind: int, shape: int, compare: bool, most: float) -> tuple[float, int, float]:
    """:func:`consider` the hosts at which users log in; O(logins * (logins + resources))."""
    asks, host, best = views.access(tb)[shape], NOBODY, 0.0
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        h = whole(views.logins(tb)[i]["host"])
        if h >= 0:
            away = reach(tb, shape, whole(views.place(tb)[h]), h)
            most, host, best = consider(tb, h, kind, shape, away, compare, most, host, best)
    return most, host, best


@kernel
def least_delay(tb: State, kind: int, shape: int) -> float:
    """The least delay of all hosts, inf where an instance of the kind can go nowhere.

    First where users log in, then place by place from the most promising on, until none can have less.
    """
    places = views.places(tb)
    least, host, best = search_logins(tb, kind, shape, LEAST, np.inf)
    for _ in range(IN_ORDER):
        p = next_place(tb)
        if p < 0 or places[p]["bound"] >= least:
            return least
        places[p]["looked"] = 1
        least, host, best = search_place(tb, p, kind, shape, LEAST, least, host, best)
    for p in range(len(places)):  # looking for the next one would take longer than these places
        if places[p]["bound"] < least and not places[p]["looked"]:
            least, host, best = search_place(tb, whole(p), kind, shape, LEAST, least, host, best)
    return least


@leaf
def logs_in(tb: State, shape: int, h: int) -> bool:
    """Whether users of the shape log in at host ``h``; O(logins)."""
    asks = views.access(tb)[shape]
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        if views.logins(tb)[i]["host"] == h:
            return True
    return False


@addressed
def find_near(tb: State, kind: int) -> int:
    """As :func:`choose`, for a kind without rules and preferences, without looking where bounds exclude it; or -1."""
    shape = whole(views.kinds(tb)[kind]["shape"])
    bound_places(tb, shape)
    least = least_delay(tb, kind, shape)
    if least == np.inf:
        return NOBODY
    places = views.places(tb)
    most, host, best = search_logins(tb, kind, shape, BEST, least + views.rules(tb)["near"])
    for p in range(len(places)):
        if places[p]["bound"] <= most:
            most, host, best = search_place(tb, whole(p), kind, shape, BEST, most, host, best)
    return host


@leaf
def note_image(tb: State, h: int, shape: int) -> None:
    """An instance of the shape began on host ``h``: its image is present there from now on; O(1)."""
    if len(views.access(tb)) > 0 and views.rules(tb)["keep_images"]:
        image = views.access(tb)[shape]["image"]
        if image >= 0 and not views.image_on(tb)[image, h]:
            views.image_on(tb)[image, h] = 1
            views.image_bits(tb)[h] |= whole(1) << (image % BITS)
            site_tree.update(tb, h)


CALLED = {"score": score, "choose": choose, "near": find_near}
