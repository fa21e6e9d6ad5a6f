"""The table of docs/generators.md: the generated cell beside the published one-hour sample, as Markdown.

    python bench/cell_statistics.py [--seed N] [WORKLOAD HOSTS]

Without files the sample is looked for in $SLACKTIDE_DATA or ../shared/data; where it is absent, only
the generated cell is shown.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from measuring import announce, options

from slacktide.inputs import read_hosts, read_workload
from slacktide.inputs.generators.registry import generated
from slacktide.inputs.statistics import demand_over_time, describe_hosts, describe_workload
from slacktide.model import Hosts, Workload

DATA = Path(os.environ.get("SLACKTIDE_DATA", Path(__file__).parents[2] / "shared" / "data")) / "one-hour"
BEYOND = 1e6  # seconds; the sample writes 2,506,200 for what never completes


def column(workload: Workload, hosts: Hosts) -> dict[str, str]:
    """The figures of one workload, formatted."""
    about, cells = describe_workload(workload), describe_hosts(hosts)
    standing = workload.admission == workload.admission[0]
    load = demand_over_time(workload, hosts, 12)
    found = {
        "hosts (shapes)": f"{len(hosts):,} ({len(cells['shapes'])})",
        "requests (at the first instant)": f"{len(workload):,} ({about['standing']:,})",
        "jobs": f"{about['jobs']:,}",
        "tasks of a job: median, p90, p99, max": spread(about["job_size"], "p50", "p90", "p99", "max"),
        "instants of admission": f"{about['instants']:,}",
        "anti-affine": f"{about['anti_affinity']:.0%}",
        "constrained": f"{about['constrained']:.1%}",
        "distinct terms": str(about["terms"]),
        "distinct demands (share of the first)": f"{about['distinct_demands']} ({about['most_frequent_demand']:.0%})",
    }
    for index, one in enumerate(workload.classes):
        of_class = workload.service_class == index
        name = one.name
        found[f"{name}: share of requests"] = f"{of_class.mean():.1%}"
        found[f"{name}: constrained, anti-affine"] = "{constrained:.1%}, {anti_affinity:.0%}".format(
            **about["classes"][name]
        )
        for kind, rows in (("standing", of_class & standing), ("arriving", of_class & ~standing)):
            cpu, memory = workload.demand[rows].mean(axis=0)
            duration = workload.duration[rows]
            ending = duration[duration < BEYOND]
            found[f"{name}, {kind}: mean CPU, memory"] = f"{cpu:.3f}, {memory:.3f}"
            if kind == "arriving":
                values = np.quantile(ending, [0.1, 0.5, 0.9, 0.99])
                found[f"{name}, {kind}: duration p10, median, p90, p99 (s)"] = ", ".join(
                    f"{one:,.0f}" for one in values
                )
    for name in workload.resources:
        share = load[f"{name}:all"] / load[f"{name}:capacity"]
        found[f"{name} demanded / capacity: mean (min to max of 12 spans)"] = (
            f"{share.mean():.2f} ({share.min():.2f} to {share.max():.2f})"
        )
    return found


def spread(summary: dict[str, Any], *names: str) -> str:
    return ", ".join(f"{summary[name]:g}" for name in names)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a workload and its hosts")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    files = arguments.files or [DATA / "workload-higher-contention.erl", DATA / "hosts-620.erl"]
    columns = {}
    if all(path.exists() for path in files):
        columns["sample"] = column(read_workload(files[0]), read_hosts(files[1]))
    columns["cell"] = column(*generated("cell", {}, arguments.seed))
    announce()
    print("| | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in next(iter(columns.values())):
        print(f"| {name} | " + " | ".join(one[name] for one in columns.values()) + " |")


if __name__ == "__main__":
    main()
