"""A score that knows how often hosts fail, beside the built-in one: promises kept, with hosts that fail unequally.

    PYTHONPATH=src python bench/reliability.py [--seeds 5] [--days 7]

40 hosts, of which half fail every four hours for a quarter of an hour, the others every 30 days (both exponential).
120 services of one instance, a tenth of a host to a third of it, 70 % of the capacity, which take a minute to start:
.999, .99 and .9 in a rolling day, one third each. Nothing tells which hosts fail but that they did
(``examples/04_host_numbers.py``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from measuring import announce, parsed, settings, table

from slacktide.metrics import per_class
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.model.window import Window
from slacktide.sim import run

ROOT = Path(__file__).resolve().parent.parent
SCORES = {"default": "default", "balanced": "balanced", "reliable": f"{ROOT}/examples/04_host_numbers.py:reliable"}
HOSTS, SERVICES, LOAD = 40, 120, 0.7
EVERY, DOWN = (4 * 3600.0, 30 * 86400.0), 900.0
CLASSES = (
    ServiceClass("gold", 0.999, 1, window=Window(rolling=86400.0)),
    ServiceClass("silver", 0.99, 2, window=Window(rolling=86400.0)),
    ServiceClass("bronze", 0.9, 3, window=Window(rolling=86400.0)),
)


def inputs(seed: int, end: float) -> tuple[Workload, Hosts, str]:
    """Services, hosts, and host events as text."""
    draw = np.random.default_rng(seed)
    size = draw.uniform(0.1, 1 / 3, SERVICES)
    size *= LOAD * HOSTS / size.sum()
    size = np.round(np.minimum(size, 0.5), 3)
    ids = np.arange(SERVICES)
    workload = Workload(
        ids, np.zeros(SERVICES), np.full(SERVICES, np.inf), np.repeat(size[:, None], 2, 1),
        draw.permutation(np.arange(SERVICES) % 3).astype(np.int16), ids, np.zeros(SERVICES, np.bool_),
        np.zeros(SERVICES, np.int32), classes=CLASSES,
    )  # fmt: skip
    hosts = Hosts(np.arange(HOSTS), tuple(f"h{i}" for i in range(HOSTS)), np.ones((HOSTS, 2)), ({},) * HOSTS)
    lines = []
    for host in range(HOSTS):
        at = draw.exponential(EVERY[host % 2])
        while at < end:
            lines.append((at, f"{at!r},h{host},fail"))
            at += draw.exponential(DOWN)
            lines.append((at, f"{at!r},h{host},repair"))
            at += draw.exponential(EVERY[host % 2])
    return workload, hosts, "\n".join(["time,host,event", *(text for _, text in sorted(lines))]) + "\n"


def main() -> None:
    given = parsed(__doc__, seeds=5, days=7.0)
    end = given.days * 86400.0
    rows = []
    for name, score in SCORES.items():
        kept, delivered, preemptions = np.zeros((given.seeds, 3)), np.zeros((given.seeds, 3)), 0
        for seed in range(given.seeds):
            workload, hosts, events = inputs(seed, end)
            with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
                file.write(events)
                file.flush()
                changes = {"policy.score": score, "simulation.end": end, "simulation.seed": seed}
                changes |= {"failures.file": file.name, "startup.hot": "constant:60", "startup.cold": "constant:60"}
                result = run(workload, hosts, settings("recommended", changes))
            found = per_class(result.requests, workload.service_class, CLASSES, "restart")
            kept[seed] = [one.fulfilment["restart"] for one in found]
            delivered[seed] = [one.availability["restart"].mean for one in found]
            preemptions += result.preemptions
        cells = [f"{k:.1%}, {d:.4f}" for k, d in zip(kept.mean(0), delivered.mean(0), strict=True)]
        rows.append([name, *cells, f"{preemptions / given.seeds:,.0f}"])
    announce()
    print(table(("score", *(f"{one.name} {one.slo:g}: kept, delivered" for one in CLASSES), "preemptions"), rows))


if __name__ == "__main__":
    main()
