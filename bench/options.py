"""What each option of the qos-driven policy does, alone and together, on all published inputs.

    python bench/options.py [--seeds 5] [--input validation1 lower higher] [--lines priority recommended]

A table per input: preemptions, and mean, least availability and fulfilment of silver and bronze in the accounting
``restart`` (gold too where it is not fulfilled). Settings that come out as earlier ones are named below the table.
Validation 1: means over the seeds (fulfilment, too), watchdog 30 s, hot start-up times for every start; one-hour
files: seed 0, watchdog 10 s, hot and cold. Alpha 22.37107 s and 3,600 s everywhere. Needs the published inputs.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from measuring import (
    ALPHA,
    HOUR,
    Outcome,
    announce,
    each,
    one_hour_files,
    options,
    overheads,
    published,
    read,
    settings,
    share,
    simulated,
    table,
)

from slacktide.config import TUNED_LIMIT
from slacktide.model import Hosts, Workload

NEEDED = {"policy.preempt_when": "needed"}
PATIENT = {"policy.patience": 60.0}
SAME_PASS = {"policy.victims": "same-pass"}
OTHERS: dict[str, dict[str, Any]] = {
    "`queue_order = metric`": {"policy.queue_order": "metric", "policy.overload": "share"},
    "`victim_order = metric`": {"policy.victim_order": "metric", "policy.overload": "share"},
    "both orders `metric`": {
        "policy.queue_order": "metric",
        "policy.victim_order": "metric",
        "policy.overload": "share",
    },
    "`overhead_scope = same-class`": {"policy.overhead_scope": "same-class"},
    "`overhead_scope = all`": {"policy.overhead_scope": "all"},
    "`overhead_scope = none`": {"policy.overhead_scope": "none"},
    "`cost = fewest-victims`": {"policy.cost": "fewest-victims"},
    "`score = least-requested`": {"policy.score": "least-requested"},
    "`score = balanced`": {"policy.score": "balanced"},
    "`reprieve`": {"policy.reprieve": True},
}
SHARE: dict[str, dict[str, Any]] = {"`overload = share`": {"policy.overload": "share"}}
IN_PUBLISHED: dict[str, dict[str, Any]] = {
    "`cost = slack`": {"policy.cost": "slack"},
    "`score = mean`": {"policy.score": "mean"},
    "no `reprieve`": {"policy.reprieve": False},
}
RECOMMENDED = ("`cost = fewest-victims`", "`score = balanced`", "`reprieve`")
PATIENCES: dict[str, dict[str, Any]] = {
    f"`patience = {s}`": {"policy.patience": float(s)} for s in (0, 15, 30, 120, 240)
}
FROM_PUBLISHED: dict[str, dict[str, Any]] = {
    "**published**": {},
    "**published-tuned**": {"policy.overhead_limit": TUNED_LIMIT},
    "`preempt_when = needed`": NEEDED,
    "`patience = 60`": PATIENT,
    "`victims = same-pass`": SAME_PASS,
    "`needed`, `patience = 60`": NEEDED | PATIENT,
    "`needed`, `same-pass`": NEEDED | SAME_PASS,
    "`patience = 60`, `same-pass`": PATIENT | SAME_PASS,
    **OTHERS,
}
HEAD = (
    "settings",
    "preemptions",
    *(f"{name} {what}" for name in ("silver", "bronze") for what in ("mean", "min", "fulfilled")),
)


def lines() -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of a line, its preset and what it changes."""
    found: dict[str, tuple[str, dict[str, Any]]] = {"priority": ("recommended", {"policy.name": "priority"})}
    found |= {name: ("published", values) for name, values in FROM_PUBLISHED.items()}
    whole = (
        "**recommended** = published, `needed`, `patience = 60`, `same-pass`, `reprieve`, `fewest-victims`, "
        "`balanced`, `triage`"
    )
    found[whole] = ("recommended", {})
    for name, values in (SHARE | PATIENCES | IN_PUBLISHED | OTHERS).items():
        if name in RECOMMENDED:
            continue
        besides = ", `share`" if "policy.overload" in values and name not in SHARE else ""  # triage refuses such orders
        found[f"recommended, {name}{besides}"] = ("recommended", values)
    return found


def row(name: str, outcomes: Sequence[Outcome]) -> list[str]:
    """One line of the table: means over runs of different seeds."""
    cells = [name, f"{statistics.mean(one.result.preemptions for one in outcomes):,.0f}"]
    for of in ("silver", "bronze"):
        got = [one.classes[of] for one in outcomes]
        cells.append(share(statistics.mean(one.availability["restart"].mean for one in got)))
        cells.append(share(statistics.mean(one.availability["restart"].min for one in got)))
        cells.append(f"{statistics.mean(one.fulfilment['restart'] for one in got):.2%}")
    gold = statistics.mean(one.classes["gold"].fulfilment["restart"] for one in outcomes)
    if gold < 1.0:
        cells[0] += f" (gold fulfilled: {gold:.2%})"
    return cells


def distinct(rows: Sequence[list[str]]) -> tuple[list[list[str]], str]:
    """The lines that differ from all before them, and a list of what comes out as one of these."""
    first: dict[tuple[str, ...], list[str]] = {}
    same: dict[str, list[str]] = {}
    for one in rows:
        earlier = first.setdefault(tuple(one[1:]), one)
        if earlier is not one:
            of = earlier[0].partition(" = published")[0]
            same.setdefault(of, []).append(one[0].removeprefix("recommended, " if of == "**recommended**" else ""))
    return list(first.values()), "\n".join(f"- The same as {of}: {'; '.join(names)}" for of, names in same.items())


def main() -> None:
    """Print a table per input."""
    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="runs of validation 1 per line")
    parser.add_argument("--input", nargs="+", default=["validation1", "lower", "higher"])
    parser.add_argument("--lines", nargs="+", help="these only, by what stands before '=' in the first column")
    arguments = parser.parse_args()
    wanted = {
        name: line
        for name, line in lines().items()
        if arguments.lines is None or name.partition(" = ")[0].strip("*`") in arguments.lines
    }
    announce(":")
    for which in arguments.input:
        small = which == "validation1"
        files = (published(which, "workload.erl"), published(which, "hosts-20.erl")) if small else one_hour_files(which)
        inputs = read(*files)
        common = {"qos.alpha": ALPHA, "simulation.end": HOUR, **overheads(cold=not small)}
        common["scheduler.watchdog"] = 30.0 if small else 10.0

        def runs(
            name: str,
            line: tuple[str, dict[str, Any]],
            inputs: tuple[Workload, Hosts] = inputs,
            common: dict[str, Any] = common,
            small: bool = small,
        ) -> list[str]:
            config, changes = line
            seeds = range(arguments.seeds if small else 1)
            return row(
                name,
                [simulated(*inputs, settings(config, common | changes | {"simulation.seed": s})) for s in seeds],
            )

        if len(arguments.input) > 1:
            print(f"{which}\n")
        shown, same = distinct(list(each(wanted, runs)))
        print(f"{table(HEAD, shown)}\n\n{same}".rstrip() + "\n", flush=True)


if __name__ == "__main__":
    main()
