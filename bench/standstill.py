"""What passes cost in which nothing can change: five months in which some pods fit nowhere.

    python bench/standstill.py [--settings policy.name=priority ...] [--end 13000000]

Converts Alibaba's GPU cluster of 2023 (openb) and simulates its pods on the eight nodes of the conversion, and on eight
equal nodes of one model, on which most of the pods wait for months. Each run is made with `optimize.standstill` and
without; both must decide alike.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import announce, options, published, simulated, slacktide, table

from slacktide import settings
from slacktide.inputs import align, read_hosts, read_workload
from slacktide.inputs.statistics import homeless
from slacktide.model import Hosts

END = 13_000_000
NODES = 8
EQUAL = {"104 cores, 512 GiB, 2 GPUs": (104.0, 512.0, 2.0), "16 cores, 120 GiB, 2 GPUs": (16.0, 120.0, 2.0)}


def equal_nodes(hosts: Hosts, capacity: tuple[float, ...]) -> Hosts:
    """The first nodes of this capacity, of the model that most of them have."""
    found = np.flatnonzero((hosts.capacity == np.array(capacity)).all(axis=1)).tolist()
    models = Counter(str(hosts.attributes[row]) for row in found)
    rows = [row for row in found if str(hosts.attributes[row]) == models.most_common(1)[0][0]][:NODES]
    return replace(
        hosts,
        ids=hosts.ids[rows],
        names=tuple(hosts.names[row] for row in rows),
        attributes=tuple(hosts.attributes[row] for row in rows),
        capacity=hosts.capacity[rows],
    )


def main() -> None:
    """Print the table."""
    parser = options(__doc__)
    chosen = ["policy.name=priority", "policy.name=qos-driven,policy.overload=share", "policy.name=qos-driven"]
    parser.add_argument("--settings", nargs="+", default=chosen, metavar="SECTION.KEY=VALUE,...")
    parser.add_argument("--end", type=float, default=END, help="seconds (13000000)")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "openb"
        slacktide("trace", "convert", "openb", published("openb"), "--out", out)
        workload, nodes = read_workload(out / "workload.parquet"), read_hosts(out / "all-hosts.parquet")
        sets = {"as converted": read_hosts(out / "hosts.parquet")}
    sets |= {name: equal_nodes(nodes, capacity) for name, capacity in EQUAL.items()}
    for name, hosts in sets.items():
        requests, machines = align(workload, hosts, workload_file="workload", hosts_file=name)
        nowhere = sum(map(len, homeless(requests, machines)))
        for words in arguments.settings:
            config = settings.load(None, None, [*words.split(","), f"simulation.end={arguments.end:.0f}"])
            off = replace(config, optimize=replace(config.optimize, standstill=False))
            short = replace(config, simulation=replace(config.simulation, end=1000.0))
            simulated(requests, machines, short)  # compiles
            found, plain = (simulated(requests, machines, one, decisions=True) for one in (config, off))
            same = "same" if found.decisions == plain.decisions else "**other**"
            passes = f"{found.result.pass_count:,}"
            seconds = (f"{plain.seconds:.2f}", f"{found.seconds:.2f}")
            rows.append([name, f"{nowhere:,}", f"`{words.replace(',', '`, `')}`", passes, *seconds, same])
    announce(":")
    head = ["8 nodes", "pods that fit nowhere", "settings", "passes", "processor s without", "with", "decisions"]
    print(table(head, rows))


if __name__ == "__main__":
    main()
