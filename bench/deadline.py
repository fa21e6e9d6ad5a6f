"""A metric of one's own beside availability: who had ``slo`` times an hour of running within the first hour.

    PYTHONPATH=src python bench/deadline.py [--hosts 62 49] [--end 3600]

A generated cell of 62 hosts, on all of them and on some: those that are there from the beginning and never end, by
class, under the built-in policy and under ``examples/07_deadline.py`` (``slacktide.policy.metrics.throughput``).
"""

from __future__ import annotations

import runpy
from dataclasses import replace
from pathlib import Path

import numpy as np
from measuring import announce, parsed, settings, table

from slacktide.inputs.generators.registry import generated
from slacktide.sim import run

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "07_deadline.py"


def main() -> None:
    """Print the table."""
    given = parsed(__doc__, hosts=[62, 49], end=3600.0)
    workload, every = generated("cell", {"hosts": 62, "requests": 2300})
    policies = {"published": None, "recommended": None, "by deadline": runpy.run_path(str(EXAMPLE))["by_deadline"]}
    rows = []
    for count in given.hosts:
        some = {name: getattr(every, name)[:count] for name in ("ids", "names", "capacity", "attributes")}
        for name, own in policies.items():
            preset = "published" if own is not None else name
            config = settings(preset, {"policy.name": "qos-driven", "simulation.end": given.end})
            found = run(workload, replace(every, **some), config, own=own)
            row = found.requests["row"]
            stays = (workload.admission[row] == 0.0) & np.isinf(workload.duration[row])
            received = found.requests["running"] + found.requests["startup_first"]
            kept = []
            for number, one in enumerate(workload.classes):
                theirs = stays & (workload.service_class[row] == number)
                kept.append(f"{(received[theirs] >= one.slo * given.end - 1e-6).mean():.1%} of {theirs.sum()}")
            rows.append([str(count), name, *kept, f"{found.preemptions:,}"])
    announce()
    print(table(("hosts", "policy", *(f"{one.name} {one.slo:g}" for one in workload.classes), "preemptions"), rows))


if __name__ == "__main__":
    main()
