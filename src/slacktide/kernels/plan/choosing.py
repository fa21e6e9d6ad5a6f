"""Which pools a plan looks at beside the whole cluster (:mod:`.pools`): what is there, and what is asked for there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.plan import pools, record
from slacktide.kernels.runtime.compiling import kernel, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State


@kernel
def count_kinds(tb: State, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of these rows are of each kind; O(rows)."""
    number = np.zeros(len(views.kinds(tb)), np.int64)
    for row in rows:
        number[views.instances(tb)[row]["kind"]] += 1
    return number


@kernel
def find_room(tb: State, pool: int, outside: pools.Outside, room: NDArray[np.float64]) -> None:
    """What there is of a pool for each level: what is taken and what is free, as a share, without what those of more
    important levels take who are not bound to it; O(hosts + instances + terms * groups of hosts)."""
    levels, inside = len(room), pools.hosts_of(tb, pool)
    by_level = np.zeros(levels), np.zeros(levels), np.zeros(levels), np.zeros(levels)
    total = record.free_share(tb, pool, inside, np.zeros(len(views.groups(tb)), np.int64))
    total += record.count_placed(tb, pool, inside, outside, by_level)
    _, _, others, _ = by_level
    for level in range(levels):
        room[level] = total
        total -= others[level]


@kernel
def count_asked(
    tb: State,
    number: NDArray[np.int64],
    pool: int,
    outside: pools.Outside,
    asked: NDArray[np.float64],
    planned: NDArray[np.float64],
) -> None:
    """What those who are bound to a pool ask for, by level, and of these those of classes that are planned for;
    ``number`` is how many live of each kind; O(kinds + terms * groups of hosts)."""
    for kind in range(len(number)):
        if number[kind] > 0 and pools.is_bound(tb, pool, whole(kind), outside):
            about = views.kinds(tb)[kind]
            theirs, all_of_it = (
                views.classes(tb)[about["cls"]],
                number[kind] * record.size_in(tb, pool, whole(about["shape"])),
            )
            asked[theirs["level"]] += all_of_it
            if theirs["planned"]:
                planned[theirs["level"]] += all_of_it


@kernel
def is_short(tb: State, pool: int, number: NDArray[np.int64]) -> bool:
    """Whether more is asked for in a pool than is there; ``number`` is how many live of each kind; O(hosts + instances
    + kinds + terms * groups of hosts)."""
    levels, outside = whole(views.rules(tb)["levels"]), pools.outside_of(tb, pool)
    asked, planned, room, total = np.zeros(levels), np.zeros(levels), np.zeros(levels), 0.0
    count_asked(tb, number, pool, outside, asked, planned)
    find_room(tb, pool, outside, room)
    for level in range(levels):
        total += asked[level]
        if total > room[level]:
            return True
    return False


@kernel
def pool_of(tb: State, kind: int) -> int:
    """The pool of exactly the hosts that a kind can use, or NONE; O(groups of hosts)."""
    for pool in range(1, pools.MOST + 1):
        other = whole(views.pools(tb)[pool - 1]["kind"])
        if other != pools.NONE and have_same_hosts(tb, kind, other):
            return whole(pool)
    return whole(pools.NONE)


@kernel
def have_same_hosts(tb: State, kind: int, other: int) -> bool:
    """Whether two kinds can use the same hosts; O(groups of hosts)."""
    return not pools.reaches_beyond(tb, kind, other) and not pools.reaches_beyond(tb, other, kind)


@kernel
def kind_of_pool(tb: State, kind: int, rows: NDArray[np.int64], number: NDArray[np.int64]) -> int:
    """A kind by which a pool goes on to be known: one that asks for the same at the same hosts, or else, as a rollout
    brings others for those that are gone, the first that can use the same hosts; NONE where there is none; O(kinds +
    rows), where nobody asks for the same O(kinds * groups of hosts)."""
    own, seen = views.kinds(tb)[kind], np.zeros(len(number), np.bool_)
    for other in range(len(number)):
        about = views.kinds(tb)[other]
        if number[other] > 0 and about["term"] == own["term"] and about["shape"] == own["shape"]:
            return whole(other)
    for row in rows:
        other = views.instances(tb)[row]["kind"]
        if not seen[other] and have_same_hosts(tb, whole(other), kind):
            return whole(other)
        seen[other] = True
    return whole(pools.NONE)


@kernel
def review(tb: State, rows: NDArray[np.int64], number: NDArray[np.int64]) -> None:
    """Of the pools that there are those stay to which somebody is bound, and that were short within the longest
    window."""
    now, longest = views.control(tb)["now"], record.longest_window(tb)
    for pool in range(1, pools.MOST + 1):
        about = views.pools(tb)[pool - 1]
        if about["kind"] == pools.NONE:
            continue
        about["kind"] = kind_of_pool(tb, whole(about["kind"]), rows, number)
        if about["kind"] == pools.NONE:
            continue
        if is_short(tb, whole(pool), number):
            about["short_at"] = now
        if now - about["short_at"] > longest:
            about["kind"] = pools.NONE


@kernel
def choose(tb: State, rows: NDArray[np.int64], number: NDArray[np.int64]) -> None:
    """Look at further pools, as far as there are places, where more is asked for than there is; O(candidates * (hosts +
    instances + kinds * groups of hosts))."""
    kinds = views.kinds(tb)
    review(tb, rows, number)
    tried, count, seen = np.empty(pools.CANDIDATES, np.int64), whole(0), np.zeros(len(number), np.bool_)
    for row in rows:
        kind = views.instances(tb)[row]["kind"]
        if seen[kind] or not views.classes(tb)[kinds[kind]["cls"]]["planned"]:
            continue
        seen[kind], known = True, False
        for i in range(count):
            other = kinds[tried[i]]
            known = known or (other["term"] == kinds[kind]["term"] and other["shape"] == kinds[kind]["shape"])
        if known:
            continue
        if count == pools.CANDIDATES:
            return
        tried[count] = kind
        count += 1
        if pools.is_everywhere(tb, whole(kind)) or pool_of(tb, whole(kind)) != pools.NONE:
            continue
        if not try_pool(tb, whole(kind), number):
            return


@kernel
def try_pool(tb: State, kind: int, number: NDArray[np.int64]) -> bool:
    """Look at the hosts that a kind can use from now on, where they are short; whether there was a place for them."""
    for pool in range(1, pools.MOST + 1):
        about = views.pools(tb)[pool - 1]
        if about["kind"] != pools.NONE:
            continue
        about["kind"], about["resource"] = kind, pools.scarce_resource(tb, kind)
        about["short_at"], about["since"] = views.control(tb)["now"], views.control(tb)["samples"]
        if not is_short(tb, whole(pool), number):
            about["kind"] = pools.NONE
        return True
    return False
