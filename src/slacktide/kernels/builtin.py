"""Every built-in policy, allocation score and preemption cost: the one place where each is registered.

An entry says what ``slacktide policies`` prints, and where the code is, as an entry point
of a user's own does. Kernels tell the built-in ones apart by whole numbers; they are
assigned here, by position, and nowhere else.

The rules themselves: :mod:`slacktide.kernels.policies` (a file for each policy, with its cost),
:mod:`slacktide.kernels.feasible.free_index` (scores of what is free on a host) and
:mod:`slacktide.kernels.place.scores` (scores that ask where users are).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

DEFAULT = "default"
"""The name of the score and of the cost that the policy has of its own."""

OWN, OF_PIECES = -1, -2
"""In place of a number: a user's own score or cost, called by the address of its machine code; and the cost that is a
piece of a user's own policy."""


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A policy, score or cost that the settings can name."""

    name: str
    description: str
    code: int
    """The number by which kernels know it; policies that decide alike share one."""
    module: str = ""
    """Of a score that asks where users are: the module whose functions kernels call by address."""
    score: str = ""
    """Of a policy that serves in order of admission and preempts nobody: the score that it brings along."""

    def addresses(self) -> dict[str, int]:
        """Rules ``placer_*``: the addresses of the functions of ``module``; compiles them, seconds without a cache."""
        if not self.module:
            return {}
        found: dict[str, Any] = importlib.import_module(self.module).CALLED
        return {f"placer_{part}": function.address for part, function in found.items()}


def _numbered(*entries: tuple[str, ...]) -> dict[str, BuiltIn]:
    """Entries (name, description, module) by name, numbered from 0."""
    return {name: BuiltIn(name, text, code, *rest) for code, (name, text, *rest) in enumerate(entries)}


_AT_USERS = "slacktide.kernels.place.scores"

SCORES = _numbered(
    ("least-requested", "the host with the largest free share of CPU and memory"),
    ("balanced", "the host whose CPU and memory are used most evenly"),
    ("mean", "mean of least-requested and balanced"),
    (
        "delay-aware",
        "the host on which users wait least, by round-trip times, data and CPU granted",
        f"{_AT_USERS}.delay_aware",
    ),
    ("elastic-fog", "in proportion to the traffic of each host (ElasticFog)", f"{_AT_USERS}.elastic_fog"),
    ("tsra", "most tasks within their deadlines (TSRA)", f"{_AT_USERS}.tsra"),
    ("nas", "the preferred host, then the nearest to it (network-aware scheduling)", f"{_AT_USERS}.nas"),
    ("kcss", "packs, by five criteria (KCSS, TOPSIS)", f"{_AT_USERS}.kcss"),
    ("packed", "the host whose larger free share, of CPU or of memory, is the smallest"),
)
DEFAULT_SCORE = (DEFAULT, "balanced, but mean for priority, as for kube-scheduler")
LEAST_REQUESTED, BALANCED, MEAN = (SCORES[name].code for name in ("least-requested", "balanced", "mean"))
PACKED = SCORES["packed"].code

COSTS = _numbered(
    ("slack", "hurt no important class, violate least, prefer victims with most slack"),
    ("fewest-victims", "fewest victims of the most important class, then of the next"),
)
SLACK, FEWEST_VICTIMS = (COSTS[name].code for name in ("slack", "fewest-victims"))
DEFAULT_COST = (DEFAULT, "slack for qos-driven, fewest-victims for priority")

AT_USERS = tuple(name for name, entry in SCORES.items() if entry.module)
"""Scores that ask where users are."""

POLICIES = _numbered(
    ("qos-driven", "whoever is furthest above its promise lends to whoever is about to miss it"),
    ("priority", "the Kubernetes reference: strictly by the class's importance"),
    ("hybrid", "qos-driven while the queue is short, by priority while it is long"),
)
QOS_DRIVEN, PRIORITY, HYBRID = (POLICIES[name].code for name in ("qos-driven", "priority", "hybrid"))
POLICIES |= {
    name: BuiltIn(
        name, "in order of admission, without preemption, by the score of that name", PRIORITY, score=name
    )  # by priority, where all are equally important
    for name in (*AT_USERS, "least-requested")
}


def offers() -> list[tuple[str, str, str]]:
    """What the settings can name: (group of entry points, name, description)."""
    return [
        *(("policies", one.name, one.description) for one in POLICIES.values()),
        ("scores", *DEFAULT_SCORE),
        *(("scores", one.name, one.description) for one in SCORES.values()),
        ("costs", *DEFAULT_COST),
        *(("costs", one.name, one.description) for one in COSTS.values()),
    ]
