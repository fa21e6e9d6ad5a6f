"""The README's figure: promised against delivered per class, under priority and qos-driven, as an SVG.

    python bench/figure.py docs/figures/promised-and-delivered.svg

Both runs are those of ``make demo``: the generated ``cell`` with its default parameters and seed 0, an hour,
recommended settings. For each class and policy: the range from the least availability to the mean, the mean as
a dot, the promise as a line, and the share of requests that got what they were promised.
"""

from __future__ import annotations

from measuring import HOUR, Outcome, parsed, settings, simulated

from slacktide import palette
from slacktide.inputs.generators.registry import generated

_INKS = palette.policies(("priority", "qos-driven"))
STYLE = palette.style(
    {
        ".priority": _INKS["priority"].ink,
        ".qos": _INKS["qos-driven"].ink,
        ".axis": palette.AXIS,
        ".promise": palette.TEXT,
    },
    "text { font: 13px system-ui, sans-serif } .head { font-weight: 600 } .promise { stroke-width: 2 } "
    ".axis { fill: none }",
)
LEFT, WIDTH = 150, 330
POLICIES = {"priority": "priority", "qos-driven": "qos"}


def place(availability: float) -> float:
    """Horizontal place of an availability."""
    return LEFT + WIDTH * availability


def strip(y: int, policy: str, css: str, name: str, found: Outcome) -> list[str]:
    """One policy's line in one class."""
    one = found.classes[name]
    got = one.availability["restart"]
    low, mean = place(got.min), place(got.mean)
    kept = f"{one.fulfilment['restart']:.1%} kept"
    return [
        f'<text x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{policy}</text>',
        f'<path class="{css}" stroke-width="6" stroke-linecap="round" d="M{low:.1f} {y}H{mean:.1f}"/>',
        f'<circle class="{css}" cx="{mean:.1f}" cy="{y}" r="7"/>',
        f'<text x="{LEFT + WIDTH + 22}" y="{y + 4}">{kept}</text>',
    ]


def drawing(outcomes: dict[str, Outcome]) -> str:
    """The figure."""
    about = "Availability promised and delivered per class under the priority and the qos-driven policy"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 310" role="img" aria-label="{about}">', STYLE]
    y = 24
    for name, one in outcomes["priority"].classes.items():
        text = f"{name}: promised {one.slo:g}, {one.requests:,} requests"
        parts.append(f'<text class="head" x="10" y="{y}">{text}</text>')
        for number, (policy, css) in enumerate(POLICIES.items()):
            parts += strip(y + 20 + 26 * number, policy, css, name, outcomes[policy])
        parts.append(f'<path class="promise" d="M{place(one.slo):.1f} {y + 8}V{y + 58}"/>')
        y += 86
    parts.append(f'<path class="axis" d="M{LEFT} {y - 8}H{LEFT + WIDTH}"/>')
    for tenth in range(0, 11, 2):
        x = place(tenth / 10)
        parts.append(f'<path class="axis" d="M{x:.0f} {y - 8}v5"/>')
        parts.append(f'<text x="{x:.0f}" y="{y + 12}" text-anchor="middle">{tenth / 10:g}</text>')
    parts.append(f'<text x="{LEFT + WIDTH + 22}" y="{y + 12}">availability</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    """Run both policies and write the file."""
    target = parsed(__doc__, "svg").svg
    workload, hosts = generated("cell")
    common = {"simulation.end": HOUR}
    outcomes = {
        name: simulated(workload, hosts, settings("recommended", common | {"policy.name": name})) for name in POLICIES
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(drawing(outcomes), encoding="utf-8")
    print(f"wrote {target}")


if __name__ == "__main__":
    main()
