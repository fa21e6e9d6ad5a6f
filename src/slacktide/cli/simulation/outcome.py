"""What a run came to, for people."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from slacktide.cli.text import kept_text, paint, paragraph, table
from slacktide.config import Accounting, Config
from slacktide.for_people import count, counted, duration, share
from slacktide.metrics import ApproachSummary, Availability, ClassSummary, Unserved

HEAD = (
    "class",
    "requests",
    "promised",
    "delivered",
    "least",
    "fulfilled",
    "preempted",
    "wasted startup",
)
"""What fits on 80 columns; ``--json`` has more (p05, deficits)."""
APPROACH_HEAD = ("class", "kind", "approach", "requests", "instances", "promised", "delivered", "least", "fulfilled")
COMPILING_SHOWN = 0.5
"""Seconds of compiling from which on it is worth a word."""


def text(
    classes: Sequence[ClassSummary],
    everyone: Mapping[Accounting, Availability],
    config: Config,
    totals: Mapping[str, Any],
    costs: Mapping[str, float],
    hosts: int,
    approaches: Sequence[ApproachSummary] = (),
) -> str:
    """The summary table and what the run cost.

    ``totals["instances"]``, where it is there, says of how many instances the requests were; ``approaches``
    (``metrics.per_approach``) get a table of their own where more than one kind or approach occurs.
    """
    which = config.qos.startup
    rows = [_row(one, which) for one in classes]
    whole = everyone[which]
    wasted = sum(one.wasted_startup for one in classes)
    rows.append(
        (
            *("all", count(totals["requests"]), "", share(whole.mean), share(whole.min), ""),
            *(count(totals["preemptions"]), duration(wasted)),
        )
    )
    compiling = costs["compile_seconds"]
    first = f", {compiling:.1f} s of it compiling for the first time" if compiling >= COMPILING_SHOWN else ""
    return "\n".join(
        [
            (
                f"{config.policy.name} on {counted(hosts, 'host')}, seed {config.simulation.seed}; availability in the "
                f"accounting '{which}'"
            ),
            "",
            table(HEAD, rows),
            "",
            *_by_approach(approaches, which),
            paragraph(
                f"{_instances(totals)}{count(totals['completed'])} completed; "
                f"{counted(totals['placements'], 'placement')} and {counted(totals['operations'], 'operation')} in "
                f"{counted(totals['passes'], 'pass', 'passes')}; "
                f"simulated until {duration(totals['end'])}"
            ),
            *_resizes(totals),
            *_windows(config, totals["end"]),
            (
                f"{costs['wall_seconds']:.2f} s{first}; {costs['cpu_seconds']:.2f} s of processor time, "
                f"{costs['peak_rss_mb']:.0f} MB at most"
            ),
        ]
    )


def never_served(found: Sequence[Unserved]) -> str:
    """A warning about instances that never had a host."""
    total, large = sum(one.instances for one in found), sum(one.too_large for one in found)
    whose = ", ".join(f"{one.service} {count(one.instances)}" for one in found)
    said = f"slacktide: warning: {count(total)} {'instance' if total == 1 else 'instances'} never had a host ({whose})"
    said = paint(said, "risk", sys.stderr)
    if not large:
        return f"{said}."
    return (
        f"{said}; {count(large)} of them {'fits' if large == 1 else 'fit'} on no host of this set, even an empty one. "
        "Compare their demand and constraints with the hosts: slacktide inspect WORKLOAD HOSTS."
    )


def _windows(config: Config, end: float) -> list[str]:
    """What promises over windows mean in a run that is much shorter than these."""
    long = [one for one in config.classes if one.window is not None and one.window.is_much_longer_than(end)]
    if not long:
        return []
    names = ", ".join(f"{one.name} ({one.window.name})" for one in long if one.window is not None)
    return [
        (
            f"{names}: this run is less than a tenth of a window. A request that lives much shorter than that is "
            "better served by a promise over its lifetime (window: lifetime): of a whole budget it may wait for "
            "all its life, and one that is accrued decides as over a lifetime."
        )
    ]


DELAY_HEAD = ("users of", "mean delay", "p95", "p99", "network", "processing", "image")


def delays(rows: Sequence[Mapping[str, Any]]) -> str:
    """What users saw (rows of ``metrics.delay.user_delay``), in milliseconds."""
    names = ("mean", "p95", "p99", "network", "processing", "image")
    cells = [
        (str(one["class"]), *("-" if one[name] is None else f"{1000.0 * one[name]:.1f} ms" for name in names))
        for one in rows
    ]
    return table(DELAY_HEAD, cells)


def _instances(totals: Mapping[str, Any]) -> str:
    """Of how many instances, where that is another number."""
    requests, instances = totals["requests"], totals.get("instances", totals["requests"])
    return "" if instances == requests else f"{counted(requests, 'request')} of {counted(instances, 'instance')}; "


def _resizes(totals: Mapping[str, Any]) -> list[str]:
    """A line, or nothing where no demand changed."""
    resizes, moves, deferrals = totals["resizes"], totals["moves"], totals["deferrals"]
    if not resizes + moves + deferrals:
        return []
    return [f"{count(resizes)} resizes in place, {count(moves)} by moving; {count(deferrals)} waited for room"]


def _by_approach(approaches: Sequence[ApproachSummary], which: Accounting) -> list[str]:
    """A table and an empty line, or nothing where all requests are measured alike."""
    if len({(one.kind, one.approach) for one in approaches}) < 2:
        return []
    rows = [
        (
            *(one.service_class, one.kind, one.approach, count(one.requests), count(one.instances), f"{one.slo:g}"),
            *(share(one.availability[which].mean), share(one.availability[which].min)),
            kept_text(one.fulfilment[which]),
        )
        for one in approaches
    ]
    return [table(APPROACH_HEAD, rows, left=3), ""]


def _row(one: ClassSummary, which: Accounting) -> tuple[str, ...]:
    got = one.availability[which]
    kept = one.fulfilment[which]
    return (
        one.name,
        count(one.requests),
        f"{one.slo:g}",
        share(got.mean),
        share(got.min),
        "-" if one.requests == 0 else kept_text(kept),
        count(one.preemptions),
        duration(one.wasted_startup),
    )
