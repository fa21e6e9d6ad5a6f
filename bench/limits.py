"""What limits on disruption cost, on both published one-hour samples with the recommended settings.

    python bench/limits.py [--input higher lower] [--grid]

A table per input: preemptions, the most that one request suffered, and mean, least availability and fulfilment of each
class in the accounting ``restart``; the seconds are processor time without reading, as a ratio to the run without
limits. The first lines limit all classes alike: `half` is half of the most that any request suffers without limits,
rounded down. ``--grid`` looks at 84 pairs of limits for silver and bronze, and prints the one with the fewest
preemptions of those by which no class keeps more than half a point less of its promises. Needs the published inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

from measuring import (
    ALPHA,
    HOUR,
    Outcome,
    announce,
    each,
    one_hour_files,
    overheads,
    parsed,
    read,
    settings,
    share,
    simulated,
    table,
)

from slacktide.config import Config
from slacktide.model import DisruptionLimits, Hosts, Workload

CLASSES = ("gold", "silver", "bronze")
HEAD = (
    *("limits", "preemptions", "most of one", "seconds, ratio"),
    *(f"{name}: mean, min, fulfilled" for name in CLASSES),
)
POINTS = 0.005
Limits = Mapping[str, DisruptionLimits]


def limited(workload: Workload, limits: Limits) -> Workload:
    """The workload whose classes have these limits, by name."""
    return replace(workload, classes=tuple(replace(one, limits=limits.get(one.name)) for one in workload.classes))


def alike(limits: DisruptionLimits) -> Limits:
    """The same for all classes."""
    return dict.fromkeys(CLASSES, limits)


def lines(most: int) -> dict[str, Limits]:
    """Limits by what the table calls them, where one request suffers ``most`` without any."""
    half = most // 2
    return {
        f"half: {half} per 1h": alike(DisruptionLimits(half, HOUR)),
        "3 per 1h": alike(DisruptionLimits(3, HOUR)),
        "2 per 1h": alike(DisruptionLimits(2, HOUR)),
        "1 per 1h": alike(DisruptionLimits(1, HOUR)),
        "1 per 10m": alike(DisruptionLimits(1, 600.0)),
        "cooldown 10m": alike(DisruptionLimits(cooldown=600.0)),
        "min_running 10m": alike(DisruptionLimits(min_running=600.0)),
        "bronze: never": {"bronze": DisruptionLimits(0, HOUR)},
        "bronze: 1 per 1h, silver: never": {"bronze": DisruptionLimits(1, HOUR), "silver": DisruptionLimits(0, HOUR)},
        "silver, bronze: never": dict.fromkeys(CLASSES[1:], DisruptionLimits(0, HOUR)),
    }


def row(name: str, found: Outcome, without: Outcome) -> list[str]:
    """One line of the table."""
    classes = []
    for of in CLASSES:
        got = found.classes[of].availability["restart"]
        classes.append(f"{share(got.mean)}, {share(got.min)}, {found.classes[of].fulfilment['restart']:.2%}")
    most = int(found.result.requests["preemptions"].max())
    return [name, f"{found.result.preemptions:,}", str(most), f"{found.seconds / without.seconds:.2f}", *classes]


def cheapest(workload: Workload, hosts: Hosts, config: Config, without: Outcome) -> list[str]:
    """Of many pairs of limits for silver and bronze that with the fewest preemptions that costs few promises."""

    def limits(most: int | None, cooldown: float) -> DisruptionLimits:
        return DisruptionLimits(most, 0.0 if most is None else HOUR, cooldown)

    best: tuple[str, Outcome] | None = None
    for bronze, silver, cooldown in product((0, 1, 2, 3, 4, 5, None), (0, 1, 2, None), (0.0, 300.0, 1200.0)):
        by_class = {"bronze": limits(bronze, cooldown), "silver": limits(silver, cooldown)}
        found = simulated(limited(workload, by_class), hosts, config)
        lost = max(
            without.classes[of].fulfilment["restart"] - found.classes[of].fulfilment["restart"] for of in CLASSES
        )
        if lost <= POINTS and (best is None or found.result.preemptions < best[1].result.preemptions):
            name = f"bronze {'any' if bronze is None else bronze}, silver {'any' if silver is None else silver} per 1h"
            best = f"best of the grid: {name}, cooldown {cooldown:g} s", found
    assert best is not None  # noqa: S101  # no limits at all are among the pairs
    return row(*best, without)


def main() -> None:
    """Print a table per input."""
    arguments = parsed(__doc__, input=["higher", "lower"], grid=False)
    announce(":")
    config = settings("recommended", {"qos.alpha": ALPHA, "simulation.end": HOUR, **overheads()})
    for which in arguments.input:
        workload, hosts = read(*one_hour_files(which))
        simulated(workload, hosts, config)  # so that nothing is loaded while it is measured
        without = simulated(workload, hosts, config)
        most = int(without.result.requests["preemptions"].max())

        def line(
            name: str, limits: Limits, workload: Workload = workload, hosts: Hosts = hosts, without: Outcome = without
        ) -> list[str]:
            return row(name, simulated(limited(workload, limits), hosts, config), without)

        rows = [row("none", without, without), *each(lines(most), line)]
        if arguments.grid:
            rows.append(cheapest(workload, hosts, config, without))
        print(f"{which} contention\n")
        print(table(HEAD, rows), "\n", flush=True)


if __name__ == "__main__":
    main()
