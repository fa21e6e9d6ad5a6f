"""Why no host serves a request: hosts counted by the first thing that stands in the way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.feasible import affinity, free_index, host_slots, pod_groups
from slacktide.kernels.place import search, search_with_rules, victims
from slacktide.kernels.policies import in_force
from slacktide.kernels.qos import request_ledger
from slacktide.kernels.runtime.compiling import entry, whole
from slacktide.kernels.tables import views
from slacktide.kernels.tables.schema import State

DOWN, CONSTRAINT, SIBLING, CPU, MEMORY, OTHER, ROOM, RULES = range(8)
TEXTS = (
    "down",
    "do not satisfy its constraints",
    "run another instance of its job",
    "insufficient cpu, also by preemption",
    "insufficient memory, also by preemption",
    "insufficient other resources, also by preemption",
    "have had room since",
    "do not satisfy its rules about neighbours",
)
COUNTS = len(TEXTS)


@entry
def count_hosts(tb: State, row: int, q_j: float, counts: NDArray[np.int64]) -> None:
    """Hosts by obstacle into ``counts`` (COUNTS,), for a waiting instance of this metric, which the plan may move;
    O(all instances)."""
    kind = whole(views.instances(tb)[row]["kind"])
    counts[:] = 0
    search.bring_metrics_up_to_date(tb)
    pod_groups.begins_to_ask(tb, row)
    with_rules = affinity.involved(tb, kind)
    if with_rules:
        affinity.prepare(tb, kind)
    shape, cls = views.kinds(tb)[kind]["shape"], views.kinds(tb)[kind]["cls"]
    q_j = in_force.standing(tb, row, kind, q_j + request_ledger.shift_of(tb, row))
    for h in range(len(views.hosts(tb))):
        host = views.hosts(tb)[h]
        if host["down"]:
            counts[DOWN] += 1
        elif not views.allowed(tb)[views.kinds(tb)[kind]["term"], host["group"]]:
            counts[CONSTRAINT] += 1
        elif host_slots.has_sibling(tb, h, views.kinds(tb)[kind]["job"]):
            counts[SIBLING] += 1
        elif with_rules and affinity.rules_at(tb, kind, h) != affinity.HOLD:
            possible = search_with_rules.choose_either(tb, h, kind, q_j, views.control(tb)["now"]) >= 0
            counts[ROOM if possible else RULES] += 1
        elif victims.choose(tb, h, shape, cls, q_j, views.control(tb)["now"]) >= 0:
            counts[ROOM] += 1
        else:
            free_index.has_room(tb, h, shape)
            first = 0
            while views.missing(tb)[first] <= 0:
                first += 1
            counts[min(CPU + first, OTHER)] += 1
    pod_groups.has_asked(tb)
