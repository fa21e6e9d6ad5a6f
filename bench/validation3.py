"""Validation run 3: services of two instances by approach and policy, over seeds; tables, and a figure as thesis 7.10.

    python bench/validation3.py [--measured] [--seeds 10] [--svg docs/figures/FILE.svg]
    python bench/validation3.py --left-out [--seeds 60]     priority: how many services lack one of the six places
    python bench/validation3.py --intervals --measured      published settings: by how often there is a pass

Runs as measured for the thesis: one hour, watchdog 10 s, hot start-up times for every start, accounting ``always``,
alpha 22.37107 s. Start-up times are the published ones with ``--measured`` (looked for in $SLACKTIDE_DATA or
../shared/data), else drawn from a distribution like theirs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
from figure import STYLE
from measuring import ALPHA, HOUR, announce, each, options, overheads, settings, share, table
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.inputs.generators.registry import generated
from slacktide.metrics import ClassSummary, per_class
from slacktide.model import APPROACHES, Hosts, Workload
from slacktide.sim import RunResult, run

LIKE_MEASURED = "lognormal:2.4,0.25"
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "published": ("published", {}),
    "published-tuned": ("published-tuned", {}),
    "recommended": ("recommended", {}),
    "recommended, `overload = share`": ("recommended", {"policy.overload": "share"}),
    "recommended, `gang`": ("recommended", {"policy.gang": True}),
    "priority": ("recommended", {"policy.name": "priority"}),
}
MEASURED = {  # thesis, 7.2.6: mean availability on a cluster, qos-driven and priority
    "independent": (0.911, 0.886),
    "concurrent": (0.925, 0.905),
    "aggregated": (0.933, 0.943),
}
SHOWN = tuple(name for name in SETTINGS if "gang" not in name)
"""In the tables; bench/requests.py shows what a gang changes."""
INTERVALS = (2.5, 4.0, 5.0, 7.5, 10.0, 15.0, 30.0)
HEAD = ("settings", "mean (thesis)", "second: mean, min, fulfilled", "third", "missed", "preemptions")


@dataclass(frozen=True)
class Outcome:
    """A run: availability and SLO of every request, shape (requests,), in the accounting of decisions; its classes."""

    result: RunResult
    availability: NDArray[np.float64]
    slo: NDArray[np.float64]
    classes: list[ClassSummary]
    accounting: str

    @property
    def missed(self) -> int:
        """How many are below their promise."""
        return int(np.count_nonzero(self.availability < self.slo - 1e-9))


def outcome(workload: Workload, hosts: Hosts, config: Config) -> Outcome:
    """One run of requests of several instances."""
    result = run(workload, hosts, config)
    if result.instances is None or workload.request is None:
        raise ValueError("workload.requests: found none, expected requests of several instances")
    codes = workload.service_class[result.requests["first"]]
    return Outcome(
        result,
        result.requests[f"availability_{config.qos.startup}"],
        np.array([one.slo for one in workload.classes])[codes],
        per_class(result.requests, codes, workload.classes, config.qos.startup),
        config.qos.startup,
    )


def runs(approach: str, name: str, seeds: Sequence[int], startup: str, watchdog: float = 10.0) -> Iterator[Outcome]:
    """The same settings with workloads and runs of different seeds."""
    preset, changes = SETTINGS[name]
    common = {"qos.alpha": ALPHA, "qos.startup": "always", "simulation.end": HOUR, "scheduler.watchdog": watchdog}
    common |= {"startup.hot": startup, "startup.cold": startup}
    for seed in seeds:
        inputs = generated("validation-3", {"approach": approach}, seed)
        yield outcome(*inputs, settings(preset, common | changes | {"simulation.seed": seed}))


def row(name: str, approach: str, found: Sequence[Outcome]) -> list[str]:
    """One line: means over the seeds, of availability also the least of all."""
    which = {"published": 0, "priority": 1}.get(name)
    thesis = "" if which is None else f" ({MEASURED[approach][which]:.3f})"
    cells = [name, share(mean(float(one.availability.mean()) for one in found)) + thesis]
    for index in range(1, len(found[0].classes)):  # the first has missed its promise of 1 by its first start-up
        got = [one.classes[index] for one in found]
        accounting: Any = found[0].accounting
        middle = mean(one.availability[accounting].mean for one in got)
        least = min(one.availability[accounting].min for one in got)
        cells.append(f"{share(middle)}, {share(least)}, {mean(one.fulfilment[accounting] for one in got):.1%}")
    cells.append(f"{mean(one.missed for one in found):.1f}")
    return [*cells, f"{mean(one.result.preemptions for one in found):,.0f}"]


def panel(left: int, approach: str, outcomes: dict[str, Outcome]) -> list[str]:
    """One approach of the figure: a dot for each service and policy, ordered by class and availability."""
    parts = [f'<text class="head" x="{left}" y="20">{approach}</text>']
    parts.append(f'<path class="axis" fill="none" d="M{left - 6} 32V252H{left + 216}"/>')
    slo = outcomes["priority"].slo
    for css, found in outcomes.items():
        order = np.lexsort((-found.availability, -slo))
        for place, service in enumerate(order):
            y = 242 - 200 * found.availability[service]
            parts.append(f'<circle class="{css}" cx="{left + 4 * place}" cy="{y:.1f}" r="2.4"/>')
    at = 0
    for promised in sorted(set(slo), reverse=True):
        count = int(np.count_nonzero(slo == promised))
        begin, end, y = left + 4 * at - 2, left + 4 * (at + count) - 2, 242 - 200 * promised
        parts.append(f'<path class="promise" d="M{begin} {y:.1f}H{end}"/>')
        parts.append(f'<text x="{(begin + end) / 2:.0f}" y="268" text-anchor="middle">{promised:g}</text>')
        at += count
    return parts


def drawing(of: dict[str, dict[str, Outcome]]) -> str:
    """The figure: final availability of each service, a panel for each approach."""
    about = "Final availability of each service by approach, under the priority and the qos-driven policy"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 790 310" role="img" aria-label="{about}">', STYLE]
    parts += [f'<text x="38" y="{246 - 20 * n}" text-anchor="end">{n / 10:g}</text>' for n in range(0, 11, 2)]
    for number, (approach, outcomes) in enumerate(of.items()):
        parts += panel(52 + 250 * number, approach, outcomes)
    parts.append('<text x="52" y="298">services by promise (lines)</text>')
    for x, css, name in ((300, "priority", "priority"), (400, "qos", "qos-driven, published settings")):
        parts.append(f'<circle class="{css}" cx="{x}" cy="294" r="5"/><text x="{x + 12}" y="298">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def left_out(seeds: Sequence[int]) -> list[list[str]]:
    """Under priority, by how many services have an instance that hardly ran: how many seeds, and mean availability."""
    found: dict[int, list[tuple[float, float]]] = {}
    both = (runs(approach, "priority", seeds, LIKE_MEASURED) for approach in ("independent", "aggregated"))
    for worst, mean_of_both in zip(*both, strict=True):
        services = int(np.count_nonzero(worst.availability < 0.05))
        pair = float(worst.availability.mean()), float(mean_of_both.availability.mean())
        found.setdefault(services, []).append(pair)
    return [
        [f"{services}", f"{len(each)}", *(share(mean(one[at] for one in each)) for at in (0, 1))]
        for services, each in sorted(found.items())
    ]


def intervals(seeds: Sequence[int], startup: str) -> Iterator[list[str]]:
    """Mean availability under the published settings, and preemptions, with a pass every so many seconds."""
    for seconds in INTERVALS:
        found = {one: list(runs(one, "published", seeds, startup, seconds)) for one in APPROACHES}
        means = (share(mean(float(one.availability.mean()) for one in each)) for each in found.values())
        preemptions = mean(one.result.preemptions for each in found.values() for one in each)
        yield [f"{seconds:g}", *means, f"{preemptions:,.0f}"]


def main() -> None:
    """Print the tables, and write the figure where it is named."""
    parser = options(__doc__)
    parser.add_argument("--measured", action="store_true", help="the published start-up times")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the figure (seed 0)")
    parser.add_argument("--left-out", action="store_true", help="only that table")
    parser.add_argument("--intervals", action="store_true", help="only that table")
    arguments = parser.parse_args()
    if arguments.left_out:
        announce(f", {arguments.seeds} seeds:")
        head = ("services of which an instance hardly ran", "seeds", "independent, concurrent", "aggregated")
        print(table(head, left_out(range(arguments.seeds))))
        return
    startup = overheads(cold=False)["startup.hot"] if arguments.measured else LIKE_MEASURED
    if arguments.intervals:
        announce(f", {arguments.seeds} seeds:")
        print(table(("a pass every, s", *APPROACHES, "preemptions"), intervals(range(arguments.seeds), startup)))
        return
    announce(f", {arguments.seeds} seeds:")
    lines = []
    first: dict[str, dict[str, Outcome]] = {}
    for approach in APPROACHES:
        found = {name: list(runs(approach, name, range(arguments.seeds), startup)) for name in SHOWN}

        def line(name: str, outcomes: Sequence[Outcome], approach: str = approach) -> list[str]:
            return row(name, approach, outcomes)

        lines += [f"**{approach}**", table(HEAD, each(found, line))]
        first[approach] = {"priority": found["priority"][0], "qos": found["published"][0]}
    print("\n\n".join(lines), flush=True)
    if arguments.svg is not None:
        arguments.svg.parent.mkdir(parents=True, exist_ok=True)
        arguments.svg.write_text(drawing(first), encoding="utf-8")


if __name__ == "__main__":
    main()
