"""What the papers claim of the qos-driven policy beside the priority policy, on the published one-hour samples.

    python bench/claims.py [--input higher lower] [--share 1 .9 .8] [--seed 11 12 13] [--length due]

Da Silva et al. 2020 had ten samples of 29 days, of which one hour each of two was published, so the same shape is all
that can be expected. For each part of a sample's 620 hosts (N; --seed says which go, and is the simulator's): by how
much the penalties of priority exceed the policy's (figure 8; ``--length`` is what a penalty counts with, as
docs/metrics.md has it), the share of promises kept by class, and of all pairs (availability under priority, under the
policy) the share above, on and below the identity line (figure 6). Sums over the seeds. In parentheses stands what was
published.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bound import case, configuration, on_share
from measuring import HOUR, One, announce, parsed, simulated, table

from slacktide.metrics.distributions import slo_fulfilment
from slacktide.metrics.paired import quadrants
from slacktide.metrics.penalties import ALL, Length, penalties
from slacktide.results.tables import request_rows

POLICIES = ("priority", "published", "published-tuned", "recommended")
PUBLISHED = {1.0: "+91.5 %", 0.9: "+193.7 %", 0.8: "+3 %"}
"""By how much the penalties of priority exceeded those of the qos-driven policy, on ten samples of 29 days."""
MANY = 20.0
HEAD = ("hosts", "policy", "preemptions", "penalty, cpu-s", "priority owes (published)", "kept: gold, silver, bronze",
        "silver: above, on, below", "bronze: above, on, below")  # fmt: skip


class Runs:
    """What runs of one policy on one part of the hosts came to, seed by seed."""

    def __init__(self) -> None:
        self.requests: list[pa.Table] = []
        self.owed = 0.0
        self.preemptions = 0
        self.kept = np.zeros(3)
        self.asked = np.zeros(3)

    def add(self, which: Any, hosts: Any, config: Any, length: Length) -> None:
        """One run."""
        found = simulated(which.workload, hosts, config)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "requests.parquet"
            request_rows(which.workload, found.result.requests, config.qos.startup).write(path)
            rows = pq.read_table(path)
        owing = penalties(rows, which.workload.classes, config.qos.startup, HOUR, length)
        self.owed += dict(zip(owing["class"].to_pylist(), owing["penalty"].to_pylist(), strict=True))[ALL]
        kept = slo_fulfilment(rows, which.workload.classes, config.qos.startup)
        self.kept += np.array(kept["fulfilled"].to_pylist())
        self.asked += np.array(kept["requests"].to_pylist())
        self.preemptions += found.result.preemptions
        self.requests.append(rows)


def above(priority: Runs, other: Runs, classes: Any) -> list[str]:
    """Of silver and bronze, the shares of pairs above, on and below the identity line."""
    shares = np.zeros((len(classes), 3))
    for x, y in zip(priority.requests, other.requests, strict=True):
        found = quadrants(x, y, classes, "restart")
        shares += np.array([found[name].to_pylist() for name in ("above", "on", "below")]).T / len(other.requests)
    return [", ".join(f"{share:.1%}" for share in row) for row in shares[1:]]


def increment(priority: Runs, other: Runs) -> str:
    """By how much priority owes more than the policy."""
    if other.owed > 0.0:
        times = priority.owed / other.owed
        return f"{times:,.0f} times as much" if times > MANY else f"{times - 1:+.1%}".replace("%", " %")
    return "both owe nothing" if priority.owed == 0.0 else "the policy owes nothing"


def main() -> None:
    """Print a table per sample."""
    asked = parsed(
        __doc__,
        input=["higher", "lower"],
        share=[1.0, 0.9, 0.8],
        seed=[11, 12, 13],
        length=One(get_args(Length), "due"),
    )
    announce()
    for name in asked.input:
        which = case(name, [])
        print(f"**{name} contention**\n\n{table(HEAD, [])}", flush=True)
        for share in asked.share:
            runs = {policy: Runs() for policy in POLICIES}
            for seed in asked.seed:
                hosts = on_share(which, share, seed)
                for policy, one in runs.items():
                    print(f"{name}, {share:g} N, seed {seed}, {policy} ...", file=sys.stderr)
                    one.add(which, hosts, configuration(which, policy, seed, HOUR), asked.length)
            for policy, one in runs.items():
                first = policy == POLICIES[0]
                row = [
                    f"{share:g} N",
                    policy,
                    f"{one.preemptions / len(asked.seed):,.0f}",
                    f"{one.owed / len(asked.seed):,.0f}",
                    "" if first else increment(runs["priority"], one) + (
                        f" ({PUBLISHED[share]})" if policy == "published" and share in PUBLISHED else ""
                    ),
                    ", ".join(f"{kept:.2%}" for kept in one.kept / one.asked),
                    *(["", ""] if first else above(runs["priority"], one, which.workload.classes)),
                ]  # fmt: skip
                print("| " + " | ".join(row) + " |", flush=True)
        print()


if __name__ == "__main__":
    main()
