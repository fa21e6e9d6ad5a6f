"""The best limit of preemption overhead for the papers' settings, on inputs of which no other page tells anything.

    python bench/overhead_limit.py [--limit .05 ...] [--kind cell ...] [--seed 1 2]

Kinds of inputs, all generated, each with every seed (no page has a generated input of these seeds, or this load):

    cell         the generated cell on .9 and .8 of its hosts, an hour
    equal sizes  20 hosts of ten places, as in the papers' validation runs; 205 to 280 requests, of classes drawn
    short        jobs of 5 to 60 minutes of two classes on 20 hosts, too much of them for an hour
    long         services without an end on 10 hosts, 108 and 125 % of the capacity, two days

The preset is ``published`` with ``policy.overhead_limit``; ``none`` is the papers' limit, 1 - slo. ``kept`` is the
share of promises that was kept, mean over the classes of an input, then over inputs; ``penalty`` that of
docs/metrics.md over the penalty with the papers' limit, as a geometric mean. The best limit keeps most over all kinds,
each of which counts alike, of those under which no more is owed than with the papers' limit.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import exp, log
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow.parquet as pq
from bound import Case, on_share
from measuring import ALPHA, announce, options, simulated, table
from promises_parts.inputs import DAY, HOUR, Input, alone, loaded, machines, minutes

from slacktide.inputs.generators.registry import generated
from slacktide.metrics.penalties import ALL, penalties
from slacktide.model import DEFAULT_CLASSES
from slacktide.results.tables import request_rows
from slacktide.settings import load

NONE = "none"
LIMITS = (NONE, "0", "0.01", "0.015", "0.02", "0.025", "0.03", "0.05", "0.07", "0.1", "0.15", "0.2", "0.3", "0.5")
STARTS = ("startup.hot=lognormal:2.4,0.25", "startup.cold=lognormal:5,0.3")


def cell(seed: int) -> Iterator[Input]:
    """A quarter of a cell, with too few hosts."""
    workload, hosts = generated("cell", {"hosts": "310", "requests": "11500"}, seed)
    for share in (0.9, 0.8):
        few = on_share(Case("cell", workload, hosts, []), share, seed)
        yield Input(f"cell, {share:g} N", workload, few, HOUR)


def equal_sizes(seed: int) -> Iterator[Input]:
    """Requests of one size and three classes, one a second, that never complete."""
    draw = random.Random(seed)
    count = draw.randrange(205, 281)
    weights = [draw.random() + 0.2 for _ in DEFAULT_CLASSES]
    names = draw.choices([one.name for one in DEFAULT_CLASSES], weights, k=count)
    rows = [(float(at), np.inf, 0.375, name) for at, name in enumerate(names)]
    yield Input(f"{count} of equal size", alone(rows, DEFAULT_CLASSES), machines(20, 3.75), HOUR)


def short(seed: int) -> Iterator[Input]:
    """Jobs of two classes of different and of equal importance."""
    for ranks in ("1+2", "1+1"):
        yield minutes(seed, ranks, 1.25)


def long(seed: int) -> Iterator[Input]:
    """Services whose promises are over their lives, for two days."""
    for load_ in (1.08, 1.25):
        yield replace(loaded(load_, "lifetime", seed=seed), end=2 * DAY)


KINDS: dict[str, Callable[[int], Iterator[Input]]] = {
    "cell": cell,
    "equal sizes": equal_sizes,
    "short": short,
    "long": long,
}


def measured(one: Input, limit: str, seed: int) -> tuple[list[float], float, int]:
    """Share of promises kept of each class that there is, the penalty, and preemptions."""
    words = [f"qos.alpha={ALPHA}", *STARTS, f"simulation.end={one.end}", f"simulation.seed={seed}", *one.words]
    config = load(None, "published", [*words, f"policy.overhead_limit={limit}"])
    found = simulated(one.workload, one.hosts, config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests.parquet"
        request_rows(one.workload, found.result.requests, config.qos.startup).write(path)
        owing = penalties(pq.read_table(path), one.workload.classes, config.qos.startup, one.end)
    owed = dict(zip(owing["class"].to_pylist(), owing["penalty"].to_pylist(), strict=True))[ALL]
    kept = [each.fulfilment[config.qos.startup] for each in found.classes.values() if each.requests]
    return kept, owed, found.result.preemptions


def main() -> None:
    """Print a table of all limits, and the best one."""
    parser = options(__doc__)
    parser.add_argument("--limit", nargs="+", default=list(LIMITS), help="to try (the best of these is told)")
    parser.add_argument("--kind", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seed", type=int, nargs="+", default=[101, 102, 103])
    asked = parser.parse_args()
    limits = list(dict.fromkeys([NONE, *asked.limit]))
    kept: dict[str, dict[str, list[float]]] = {limit: {kind: [] for kind in asked.kind} for limit in limits}
    owed: dict[str, list[float]] = {limit: [] for limit in limits}
    preemptions: dict[str, int] = dict.fromkeys(limits, 0)
    for kind in asked.kind:
        for seed in asked.seed:
            for one in KINDS[kind](seed):
                first = 0.0
                for limit in limits:
                    shares, penalty, stops = measured(one, limit, seed)
                    first = penalty if limit == NONE else first
                    kept[limit][kind].append(mean(shares))
                    owed[limit].append(log((penalty + 1.0) / (first + 1.0)))
                    preemptions[limit] += stops
                    print(f"{one.name}, seed {seed}, {limit}: {mean(shares):.4f}", file=sys.stderr, flush=True)
    score = {limit: mean(mean(kept[limit][kind]) for kind in asked.kind) for limit in limits}
    announce()
    rows = [
        [
            "1 - slo" if limit == NONE else limit,
            *(f"{mean(kept[limit][kind]):.2%}" for kind in asked.kind),
            f"{score[limit]:.2%}",
            f"{exp(mean(owed[limit])):.2f}",
            f"{preemptions[limit]:,}",
        ]
        for limit in limits
    ]
    print(table(("limit", *asked.kind, "kept", "penalty", "preemptions"), rows))
    fair = [limit for limit in limits if mean(owed[limit]) <= 0.0]
    print(f"\nThe best: {max(fair, key=lambda limit: (score[limit], -preemptions[limit]))}")


if __name__ == "__main__":
    main()
