"""What a run came to, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from slacktide.cli.text import count, seconds, share, table
from slacktide.config import Accounting, Config
from slacktide.metrics import Availability, ClassSummary

HEAD = (
    "class",
    "requests",
    "promised",
    "delivered",
    "p05",
    "min",
    "fulfilled",
    "deficit",
    "preemptions",
    "wasted startup",
)
COMPILING_SHOWN = 0.5
"""Seconds of compiling from which on it is worth a word."""


def text(
    classes: Sequence[ClassSummary],
    everyone: Mapping[Accounting, Availability],
    config: Config,
    totals: Mapping[str, Any],
    costs: Mapping[str, float],
    hosts: int,
) -> str:
    """The summary table and what the run cost."""
    which = config.qos.startup
    rows = [_row(one, which) for one in classes]
    whole = everyone[which]
    wasted = sum(one.wasted_startup for one in classes)
    rows.append(
        (
            *("all", count(totals["requests"]), "", share(whole.mean), share(whole.p05), share(whole.min), "", ""),
            *(count(totals["preemptions"]), seconds(wasted)),
        )
    )
    compiling = costs["compile_seconds"]
    first = f", {compiling:.1f} s of it compiling for the first time" if compiling >= COMPILING_SHOWN else ""
    return "\n".join(
        [
            (
                f"{config.policy.name} on {count(hosts)} hosts, seed {config.simulation.seed}; availability in the "
                f"accounting '{which}'"
            ),
            "",
            table(HEAD, rows),
            "",
            (
                f"{count(totals['completed'])} completed; {count(totals['placements'])} placements and "
                f"{count(totals['operations'])} operations in {count(totals['passes'])} passes; "
                f"simulated until {seconds(totals['end'])}"
            ),
            (
                f"{costs['wall_seconds']:.2f} s{first}; {costs['cpu_seconds']:.2f} s of processor time, "
                f"{costs['peak_rss_mb']:.0f} MB at most"
            ),
        ]
    )


def _row(one: ClassSummary, which: Accounting) -> tuple[str, ...]:
    got = one.availability[which]
    kept = one.fulfilment[which]
    return (
        one.name,
        count(one.requests),
        f"{one.slo:g}",
        share(got.mean),
        share(got.p05),
        share(got.min),
        "-" if one.requests == 0 else f"{share(kept * 100, 2)} %",
        f"{one.deficit_mean:.4f}",
        count(one.preemptions),
        seconds(one.wasted_startup),
    )
