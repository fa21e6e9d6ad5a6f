"""The figure of what a floor costs: promises kept against `policy.floor`, where hosts do not suffice, as an SVG.

    python bench/floor.py docs/figures/floor.svg

On the left the higher one-hour sample on 0.8 of its hosts (seed 11), on the right validation 2 (seed 0), where 221
equal requests share 200 places. Runs are those of bench/bound.py.
"""

from __future__ import annotations

import sys

import bound
import fluid
from measuring import HOUR, announce, parsed
from overload import GAP, LEFT, WIDTH, framed, keys, panel

FLOORS = (0.0, 0.05, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)


def measured(name: str, share: float, seed: int) -> tuple[dict[str, list[float]], list[float]]:
    """By class the share of promises kept with each floor, and the least availability of the last class."""
    one = bound.case(name, [])
    hosts = bound.on_share(one, share, seed)
    run = bound.Line()
    for floor in FLOORS:
        print(f"{name}, floor {floor:g} ...", file=sys.stderr)
        config = bound.configuration(one, "recommended", seed, HOUR, [f"policy.floor={floor}"])
        bound.ran(one, hosts, config, run, HOUR)
    sizes = [fluid.members(one.workload, HOUR, code) for code in range(len(one.workload.classes))]
    there = {each.name: code for code, each in enumerate(one.workload.classes) if sizes[code]}
    kept = {each: [found[code] / sizes[code] for found in run.kept] for each, code in there.items()}
    return kept, [found[max(there.values())] for found in run.least]


def main() -> None:
    """Run all and write the file."""
    asked = parsed(__doc__, "svg")
    announce()
    higher, _ = measured("higher", 0.8, 11)
    equal, least = measured("validation-2", 1.0, 0)
    (alike,) = equal.values()
    left = {"silver kept": ("silver", higher["silver"]), "bronze kept": ("bronze", higher["bronze"])}
    right = {"kept": ("triage", alike), "least availability": ("most", least)}
    second = LEFT + WIDTH + GAP
    parts = keys({name: css for name, (css, _) in left.items()})
    parts += keys({name: css for name, (css, _) in right.items()}, second)
    parts += panel(LEFT, "higher, 0.8 N", dict(left.values()), FLOORS, "")
    parts += panel(second, "validation 2", dict(right.values()), FLOORS, "")
    for name, (_, points) in (left | right).items():
        print(f"{name:20}", ", ".join(f"{one:.2%}" for one in points))
    about = "Promises kept, and the least availability, against the setting policy.floor"
    asked.svg.parent.mkdir(parents=True, exist_ok=True)
    asked.svg.write_text(framed(2, about, parts), encoding="utf-8")


if __name__ == "__main__":
    main()
