"""The least that placing and releasing costs with records of the simulator's size: what its time is to be seen beside.

    python bench/least.py [--requests 1000000] [--hosts 1000 12500] [--repeats 5]

The workload is ``light``. For each request: a search for the host with most free CPU in a binary tree of seven amounts
a node, an event in a heap, a ledger of 88 bytes and a place of 104 bytes on the host that are written, two updates of
the tree. There are no classes, metrics, queues or victims, and who finds no room is turned away: nothing that decides
as the simulator does can be faster by much. Compiled by Numba; processor seconds, without compiling.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
from measuring import announce, parsed, table
from numba import njit
from numpy.typing import NDArray

from slacktide.inputs.generators.light import CORES
from slacktide.inputs.generators.registry import generated
from slacktide.model import Workload

FIELDS = 7  # amounts in a node of the tree
LEDGER, SLOT = 11, 13  # words of 8 bytes: of an instance's ledger, and of what a host knows of an instance
HEAD = ("hosts", "requests", "µs per request", "turned away")

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


@njit
def push(times: Real, rows: Whole, count: int, time: float, row: int) -> None:
    """Add to a heap of ``count`` events."""
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if times[above] <= time:
            break
        times[at], rows[at] = times[above], rows[above]
        at = above
    times[at], rows[at] = time, row


@njit
def pop(times: Real, rows: Whole, count: int) -> int:
    """The row of the earliest of ``count`` events, which is removed."""
    first = rows[0]
    last = count - 1
    time, row = times[last], rows[last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        if below + 1 < last and times[below + 1] < times[below]:
            below += 1
        if time <= times[below]:
            break
        times[at], rows[at] = times[below], rows[below]
        at = below
    times[at], rows[at] = time, row
    return first


@njit
def update(tree: Whole, host: int, free: int) -> None:
    """Write the leaf of a host, and what follows above it."""
    node = (tree.shape[0] >> 1) + host
    for field in range(FIELDS):
        tree[node, field] = free * (field + 1)
    node >>= 1
    while node:
        for field in range(FIELDS):
            tree[node, field] = max(tree[2 * node, field], tree[2 * node + 1, field])
        node >>= 1


@njit
def search(tree: Whole) -> int:
    """The host with the largest amount."""
    leaves = tree.shape[0] >> 1
    node = 1
    while node < leaves:
        node = 2 * node + (1 if tree[2 * node + 1, 0] > tree[2 * node, 0] else 0)
    return node - leaves


@njit
def simulate(
    admission: Real, duration: Real, demand: Whole, free: Whole, tree: Whole, ledgers: Whole, slots: Whole
) -> int:
    """Place all requests in order and release them; how many are turned away."""
    for host in range(len(free)):
        update(tree, host, free[host])
    times, rows, live = np.empty(len(admission)), np.empty(len(admission), np.int64), 0
    count, host_of = np.zeros(len(free), np.int64), np.empty(len(admission), np.int32)
    turned_away = 0
    for row in range(len(admission)):
        while live and times[0] <= admission[row]:
            now = times[0]
            ended = pop(times, rows, live)
            live -= 1
            host = host_of[ended]
            ledgers[ended, 2] = np.int64(now)
            count[host] -= 1
            slots[host * CORES + count[host]] = 0
            free[host] += demand[ended]
            update(tree, host, free[host])
        if tree[1, 0] < demand[row]:
            turned_away += 1
            continue
        host = search(tree)
        free[host] -= demand[row]
        update(tree, host, free[host])
        ledgers[row] = 1
        slots[host * CORES + count[host]] = 1
        count[host] += 1
        host_of[row] = host
        push(times, rows, live, admission[row] + duration[row], row)
        live += 1
    return turned_away


def least(workload: Workload, hosts: int) -> tuple[float, int]:
    """Processor seconds for ``workload`` (one of ``light``), and how many requests are turned away."""
    leaves = 1 << max(hosts - 1, 1).bit_length()
    arrays = (
        *(np.full(hosts, 1000 * CORES), np.zeros((2 * leaves, FIELDS), np.int64)),
        *(np.zeros((len(workload), LEDGER), np.int64), np.zeros((hosts * CORES, SLOT), np.int64)),
    )
    demand = (1000 * workload.demand[:, 0]).astype(np.int64)
    begun = time.process_time()
    turned_away = simulate(workload.admission, workload.duration, demand, *arrays)
    return time.process_time() - begun, turned_away


def measured(workload: Workload, hosts: int, repeats: int) -> tuple[float, int]:
    """Median of processor seconds, and how many are turned away."""
    least(generated("light", {"hosts": 2, "requests": 10})[0], 2)  # compiles
    seconds, turned_away = zip(*(least(workload, hosts) for _ in range(repeats)), strict=True)
    return statistics.median(seconds), turned_away[0]


def main() -> None:
    """Print the table."""
    arguments = parsed(__doc__, requests=1_000_000, hosts=[1000, 12500], repeats=5)
    announce(f", medians of {arguments.repeats}:")
    rows = []
    for hosts in arguments.hosts:
        workload, _ = generated("light", {"hosts": hosts, "requests": arguments.requests})
        seconds, turned_away = measured(workload, hosts, arguments.repeats)
        each = seconds / arguments.requests * 1e6
        rows.append([f"{hosts:,}", f"{arguments.requests:,}", f"{each:.2f}", f"{turned_away:,}"])
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
