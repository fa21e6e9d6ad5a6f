"""The one palette of slacktide: figures, the report, plans, pages and the README take their colours from here.

Each colour has a light and a dark value. In pages it is a CSS variable of its name (:func:`css`), so that one drawing
follows dark mode and print. Every light value occurs once: drawings are made with it, and by it the variable is found.

Nothing is said by colour alone: a policy or class also has a dash, a marker and a hatch (:func:`looks`). A policy that
has a name of slacktide's own (:data:`KNOWN`) has the same colour everywhere, whatever it is compared with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour: its CSS variable and its value on light and on dark ground (``#rrggbb``)."""

    name: str
    light: str
    dark: str


TEXT = Ink("text", "#1f2328", "#e6edf3")
MUTED = Ink("muted", "#57606a", "#a3adb8")
AXIS = Ink("axis", "#6e7781", "#8b949e")
GRID = Ink("grid", "#d8dee4", "#30363d")
GROUND = Ink("ground", "#fefefe", "#0d1117")
LINK = Ink("link", "#0550ae", "#79c0ff")
PANEL = Ink("panel", "#f6f8fa", "#161b22")
"""The ground of a box that stands out from the page's."""

# Against both grounds each has a contrast of at least 3.
POLICIES = (
    Ink("policy-1", "#c8501a", "#ff9c6b"),
    Ink("policy-2", "#0b62a4", "#6cb6ff"),
    Ink("policy-3", "#007a5a", "#3ccf9f"),
    Ink("policy-4", "#8b4590", "#d79bdc"),
    Ink("policy-5", "#7a6000", "#e0c04a"),
    Ink("policy-6", "#444c56", "#c0c8d0"),
    Ink("policy-7", "#a3194f", "#ff8fb0"),
    Ink("policy-8", "#2a7f9e", "#8fd8ff"),
)
KNOWN = {"published": 3, "share": 2, "recommended": 1, "qos-driven": 1, "hybrid": 4, "delay-aware": 7, "priority": 0}
"""Place in :data:`POLICIES` of a policy or preset by this name; of several in one name the first here counts."""

# In the order of importance; the first three are what the usual names say.
CLASSES = (
    Ink("class-1", "#b07d00", "#e3b341"),
    Ink("class-2", "#7d8a97", "#aab6c2"),
    Ink("class-3", "#8f4a22", "#d08860"),
    Ink("class-4", "#2b7a78", "#56c7c3"),
    Ink("class-5", "#6f42c1", "#b898f5"),
    Ink("class-6", "#4a7c1f", "#93cf5f"),
    Ink("class-7", "#b0306a", "#f58fbf"),
    Ink("class-8", "#1f5fa8", "#7fb5f5"),
)
# Quadrants of the paired heat maps, as in the papers.
BOTH = Ink("both", "#6b4c9a", "#b79be6")
ONLY_Y = Ink("only-y", "#1a7f37", "#56d364")
ONLY_X = Ink("only-x", "#0969da", "#79c0fe")
NEITHER = Ink("neither", "#c02828", "#ff7b72")
# What came of a promise. As the colour of a text each has a contrast of at least 4.5 to both grounds and to PANEL.
KEPT = Ink("kept", "#116329", "#4ac26b")
AT_RISK = Ink("at-risk", "#7d4e00", "#d4a72c")
MISSED = Ink("missed", "#a40e26", "#ff8182")
UNKNOWN = Ink("unknown", "#59636e", "#9198a1")
# The same as areas: missed and kept differ by luminance here, too, for who sees no red; at least 3 to each other.
KEPT_FILL = Ink("kept-fill", "#a3d4ad", "#1d5433")
AT_RISK_FILL = Ink("at-risk-fill", "#d69a2d", "#8d6708")
STATES = {"Kept": KEPT, "AtRisk": AT_RISK, "Missed": MISSED, "Unknown": UNKNOWN}
"""By the states of a promise on a cluster."""

INKS = (
    *(TEXT, MUTED, AXIS, GRID, GROUND, LINK, PANEL, *POLICIES, *CLASSES, BOTH, ONLY_Y, ONLY_X, NEITHER),
    *(KEPT, AT_RISK, MISSED, UNKNOWN, KEPT_FILL, AT_RISK_FILL),
)

DASHES: tuple[Any, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.4)),
    (0, (6, 2, 1, 2)),
    (0, (9, 3)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (2, 2)),
    (0, (8, 2, 2, 2)),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "..", "xxx", "\\\\\\\\", "---", "+++", "oo")


@dataclass(frozen=True, slots=True)
class Look:
    """How one policy or class looks in every figure; ``dash`` is a line style of matplotlib."""

    ink: Ink
    dash: Any
    marker: str
    hatch: str

    @property
    def colour(self) -> str:
        """In which it is drawn."""
        return self.ink.light


def policies(names: Sequence[str]) -> dict[str, Look]:
    """A look for each policy: those known have their own, the others what is left, in their order."""
    places: dict[str, int] = {}
    for one in names:
        place = _known(one)
        if place is not None and place not in places.values():
            places[one] = place
    free = [place for place in range(len(POLICIES)) if place not in places.values()]
    for one in names:
        if one not in places:
            places[one] = free.pop(0) if free else len(places)
    return {one: _look(places[one], POLICIES) for one in names}


def _known(name: str) -> int | None:
    words = re.split(r"[\s,:/()]+", name.lower())
    return next((place for known, place in KNOWN.items() if known in words), None)


def classes(names: Iterable[str]) -> dict[str, Look]:
    """A look for each class, most important first; from the ninth on colours come again with another dash."""
    return {one: _look(number, CLASSES) for number, one in enumerate(names)}


def _look(number: int, inks: Sequence[Ink]) -> Look:
    other = (number + number // len(inks)) % len(DASHES)
    return Look(inks[number % len(inks)], DASHES[other], MARKERS[other], HATCHES[other])


def css(ground: Literal["light", "dark"]) -> str:
    """Declarations of all colours as CSS variables: ``--text:#1f2328;...``."""
    return "".join(f"--{one.name}:{getattr(one, ground)};" for one in INKS)


def style(rules: dict[str, Ink], more: str = "") -> str:
    """A ``<style>`` of an SVG that stands alone: stroke and fill of each selector by its ink, in both modes."""
    light, dark = (
        " ".join(f"{selector} {{ stroke: {getattr(ink, ground)}; fill: {getattr(ink, ground)} }}"
                 for selector, ink in rules.items())
        for ground in ("light", "dark")
    )  # fmt: skip
    return (
        f"<style>\n  text {{ fill: {TEXT.light}; stroke: none !important }} {light}\n"
        f"  @media (prefers-color-scheme: dark) {{ text {{ fill: {TEXT.dark} }} {dark} }}\n  {more}\n</style>"
    )
