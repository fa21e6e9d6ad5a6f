"""TSRA (Yin et al. 2018): as many tasks as possible within their deadlines.

A task's time is its execution, for which the host's tasks share its CPU equally up to
each one's limit, and the transmission of its image and its data. Chosen where the
source leaves it open: the host where most tasks more than before keep their deadlines,
among equals where the new one is done first, then by draw; the data of users on the
host itself are not sent; round-trip times do not enter; instances without data are no
tasks.
"""

from __future__ import annotations

import numpy as np

from slacktide.kernels.feasible.free_index import NOWHERE
from slacktide.kernels.place.scores import delay_aware
from slacktide.kernels.runtime.compiling import addressed, kernel, leaf, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import NOBODY, State

UNIT = 2.0**20


@leaf
def most(tb: State, shape: int) -> float:
    """CPUs that a task can use: its limit, or its demand where it has none; O(1)."""
    amount = views.demand(tb)[shape, 0]
    if len(views.limit(tb)) > 0:
        amount = max(amount, views.limit(tb)[shape, 0])
    return amount * views.rules(tb)["cpu_unit"]


@kernel
def task_time(tb: State, h: int, shape: int, tasks: int) -> float:
    """Execution on host ``h`` beside ``tasks - 1`` others and transmission, seconds; O(logins)."""
    asks = views.access(tb)[shape]
    cpu = min(most(tb, shape), views.capacity(tb)[h, 0] * views.rules(tb)["cpu_unit"] / tasks)
    away = 0.0
    for i in range(asks["logins_at"], asks["logins_at"] + asks["logins"]):
        if views.logins(tb)[i]["host"] != h:
            away += views.logins(tb)[i]["share"]
    executing = 0.0
    if asks["processing"] > 0.0:
        executing = asks["processing"] / cpu if cpu > 0.0 else delay_aware.FAR
    return min(executing + asks["transfer"] * away + delay_aware.image_delay(tb, h, shape), delay_aware.FAR)


@leaf
def in_time(tb: State, h: int, shape: int, tasks: int) -> int:
    """1 where a task beside ``tasks - 1`` others keeps its deadline, else 0."""
    return whole(1) if task_time(tb, h, shape, tasks) <= views.access(tb)[shape]["deadline"] else whole(0)


@leaf
def tasks_on(tb: State, h: int) -> int:
    """How many tasks host ``h`` has; O(instances on it)."""
    number = whole(0)
    for i in range(views.hosts(tb)[h]["count"]):
        if views.access(tb)[views.slots(tb)[h, i]["shape"]]["data"] > 0.0:
            number += 1
    return number


@kernel
def gained(tb: State, h: int, shape: int, tasks: int) -> int:
    """How many tasks more keep their deadlines on host ``h`` with the instance; O(instances on it * logins)."""
    if views.access(tb)[shape]["data"] == 0.0:
        return whole(0)
    change = whole(in_time(tb, h, shape, tasks + 1))
    for i in range(views.hosts(tb)[h]["count"]):
        other = whole(views.slots(tb)[h, i]["shape"])
        if views.access(tb)[other]["data"] > 0.0:
            change += in_time(tb, h, other, tasks + 1) - in_time(tb, h, other, tasks)
    return change


@addressed
def score(tb: State, h: int, shape: int) -> int:
    """The new task's time on host ``h``, 2^-20 s, negative; O(instances on it)."""
    return whole(-np.rint(task_time(tb, h, shape, whole(tasks_on(tb, h)) + 1) * UNIT))


@addressed
def choose(tb: State, shape: int) -> int:
    """The best of the hosts whose points are not NOWHERE, or -1; O(instances * logins)."""
    host, best, soonest = NOBODY, whole(NOWHERE), whole(NOWHERE)
    for h in range(len(views.hosts(tb))):
        if views.points(tb)[h] == NOWHERE:
            continue
        tasks = whole(tasks_on(tb, h))
        mine, soon = whole(gained(tb, h, shape, tasks)), whole(-np.rint(task_time(tb, h, shape, tasks + 1) * UNIT))
        equal = mine == best and soon == soonest and views.hosts(tb)[h]["tie"] > views.hosts(tb)[host]["tie"]
        if mine > best or (mine == best and soon > soonest) or equal:
            host, best, soonest = whole(h), mine, soon
    return host


CALLED = {"score": score, "choose": choose}
