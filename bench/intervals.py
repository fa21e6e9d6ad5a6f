"""How often a '95 %' interval of ``bootstrap`` holds the true mean, where that is known (docs/metrics.md).

    python bench/intervals.py                                  all lines; half a minute
    python bench/intervals.py --lines "5 x 5" "2 x 5"          only these

An experiment's results are normally distributed, workloads as different from each other as seeds are. Equal numbers on
every machine.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from measuring import Some, announce, parsed, table

from slacktide.metrics.confidence import bootstrap


class Design(NamedTuple):
    """How many runs an experiment has, and whether its mean is meant for workloads that it has not seen."""

    workloads: int
    seeds: int
    beyond: bool = True


DESIGNS = {
    "30 x 5": Design(30, 5),
    "1 x 30, of this workload": Design(1, 30, beyond=False),
    "30 x 1": Design(30, 1),
    "5 x 5": Design(5, 5),
    "1 x 5, of this workload": Design(1, 5, beyond=False),
    "2 x 5": Design(2, 5),
}


def held(design: Design, experiments: int) -> float:
    """The share of experiments whose interval holds the mean, which is 0."""
    random = np.random.default_rng(1)
    shape = (design.workloads, design.seeds)
    workload, seed = np.indices(shape).reshape(2, -1)
    found = 0
    for _ in range(experiments):
        value = random.normal(size=(design.workloads, 1)) * design.beyond + random.normal(size=shape)
        columns = {"class": ["all"] * value.size, "workload": workload, "seed": seed, "value": value.ravel()}
        (one,) = bootstrap(pa.table(columns), ["class"], ["value"]).to_pylist()
        found += one["low"] <= 0.0 <= one["high"]
    return found / experiments


def main() -> None:
    """Print the table below the command that makes it."""
    asked = parsed(__doc__, lines=Some(DESIGNS), experiments=300)
    rows = [[name, f"{held(DESIGNS[name], asked.experiments):.0%}".replace("%", " %")] for name in asked.lines]
    announce()
    print(table(("workloads x seeds", "held the mean"), rows))


if __name__ == "__main__":
    main()
