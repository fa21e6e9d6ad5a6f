"""What each metric costs on a month's requests: seconds, reading included, and the largest memory.

    python bench/metrics.py                      25 million requests
    python bench/metrics.py --requests 1000000   fewer
    python bench/metrics.py --folder DIR         where its two files of requests go (5 GB; default: a temporary one)

Writes two requests.parquet of random but plausible rows (as under two policies) with the simulator's own writer, then
takes each metric in a process of its own. The demand is that of such a workload, made in the process, which is most of
its memory; the confidence intervals are those of 4,176 intervals of ten workloads with five seeds each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import announce, options, plain, process, table

from slacktide.metrics import confidence, contention, demand, distributions, paired, penalties, use
from slacktide.model import DEFAULT_CLASSES, Workload
from slacktide.results.tables import request_rows

MONTH = 29 * 86400.0
REACHED = "availability_restart"


def workload(count: int) -> Workload:
    random = np.random.default_rng(1)
    duration = np.minimum(random.lognormal(5.5, 1.8, count), MONTH)
    admission = np.sort(random.uniform(0.0, MONTH, count))
    demands = random.integers(1, 100, (count, 2)) / 1000.0
    return plain(admission, duration, demands, random.choice(3, count, p=(0.15, 0.25, 0.6)).astype(np.int16))


def outcome(work: Workload, seed: int) -> dict[str, Any]:
    """What a run might have made of it: a fifth waited, the more so the less important."""
    random = np.random.default_rng([seed, 2])
    count = len(work)
    running = np.minimum(work.duration, MONTH - work.admission)
    waits = random.random(count) < np.array([0.01, 0.1, 0.3])[work.service_class]
    restarts = np.where(waits, random.integers(0, 5, count), 0)
    return {
        "row": np.arange(count),
        "completed": np.where(running == work.duration, work.admission + running, np.nan),
        "running": running,
        "pending": np.where(waits, running * random.exponential(0.6, count), 0.0),
        "startup_first": random.integers(2, 9, count).astype(np.float64),
        "startup_restarts": restarts * 3.0,
        "discarded": np.zeros(count),
        "wasted_startup": restarts * 2.0,
        "preemptions": restarts,
        "starts": 1 + restarts,
        "hosts_used": 1 + restarts,
    }


def make(folder: Path, count: int) -> None:
    work = workload(count)
    for seed in range(2):
        request_rows(work, outcome(work, seed), "restart").write(folder / f"requests-{seed}.parquet")


def read(folder: Path, *names: str, which: int = 0) -> pa.Table:
    return pq.read_table(folder / f"requests-{which}.parquet", columns=list(dict.fromkeys(["class", *names])))


def observations() -> pa.Table:
    """A month of intervals under each of ten workloads with five seeds."""
    random = np.random.default_rng(3)
    runs, rows = 50, 4176 * 3
    made = {
        "workload": np.repeat(np.arange(10), 5 * rows),
        "seed": np.tile(np.repeat(np.arange(5), rows), 10),
        "time": np.tile(np.repeat(np.arange(1, 4177) * 600.0, 3), runs),
        "class": np.tile([one.name for one in DEFAULT_CLASSES], 4176 * runs),
        **{name: random.random(rows * runs) for name in contention.FAIRNESS},
    }
    found = pa.table(made)
    levels = contention.contention_levels(found.slice(0, rows), DEFAULT_CLASSES)
    return contention.by_level(found, levels)


C, A = DEFAULT_CLASSES, "restart"
METRICS: dict[str, Callable[[Path, int], object]] = {
    "availability_ecdf": lambda f, _: distributions.availability_ecdf(read(f, REACHED), C, A),
    "availability_histogram": lambda f, _: distributions.availability_histogram(read(f, REACHED), C, A),
    "availability_quantiles": lambda f, _: distributions.availability_quantiles(read(f, REACHED), C, A),
    "deficit_ecdf": lambda f, _: distributions.deficit_ecdf(read(f, REACHED), C, A),
    "slo_fulfilment": lambda f, _: distributions.slo_fulfilment(read(f, REACHED), C, A),
    "penalties": lambda f, _: penalties.penalties(read(f, REACHED, *penalties.COLUMNS), C, A, MONTH),
    "quadrants": lambda f, _: paired.quadrants(read(f, "id", REACHED), read(f, "id", REACHED, which=1), C, A),
    "heat_map": lambda f, _: paired.heat_map(read(f, "id", REACHED), read(f, "id", REACHED, which=1), C, A),
    "waste": lambda f, _: use.waste(read(f, *use.WASTE), C),
    "demand_at": lambda _, count: demand.demand_at(workload(count), np.arange(0.0, MONTH, 600.0)),
    "contention_levels, by_level, bootstrap": lambda *_: confidence.bootstrap(observations()),
}


def measure(name: str, folder: Path, count: int) -> None:
    begun = time.perf_counter()
    METRICS[name](folder, count)
    seconds = time.perf_counter() - begun
    print(seconds)


def main() -> None:
    """Print a row per metric."""
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, default=25_000_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", choices=["make", *METRICS], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only == "make":
        make(arguments.folder, arguments.requests)
    elif arguments.only:
        measure(arguments.only, arguments.folder, arguments.requests)
    else:
        with tempfile.TemporaryDirectory() as spare:
            folder = arguments.folder or Path(spare)
            folder.mkdir(parents=True, exist_ok=True)
            words = ("--requests", str(arguments.requests), "--folder", str(folder), "--only")
            process(__file__, *words, "make")
            size = sum(file.stat().st_size for file in folder.glob("requests-?.parquet")) / 2e9
            announce(f" (each requests.parquet {size:.1f} GB):")
            rows = []
            for name in METRICS:
                print(f"{name} ...", file=sys.stderr)
                done = process(__file__, *words, name)
                rows.append([f"`{name}`", f"{float(done.printed):.1f}", f"{done.megabytes / 1024:.2f}"])
            print(table(("metric", "s", "GB"), rows))


if __name__ == "__main__":
    main()
