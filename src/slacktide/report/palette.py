"""Colours, dashes, markers and hatches of figures: one list for light and dark, told apart without colour as well.

Figures are drawn in the light colours. In the page each becomes a CSS variable of its name (``svg.py``), so that the
same drawing follows dark mode and print. Every colour occurs once, because the colour is the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour of drawings: its CSS variable and its value in light and dark mode (``#rrggbb``)."""

    name: str
    light: str
    dark: str


TEXT = Ink("text", "#1f2328", "#e6edf3")
MUTED = Ink("muted", "#57606a", "#a3adb8")
AXIS = Ink("axis", "#6e7781", "#8b949e")
GRID = Ink("grid", "#d8dee4", "#30363d")
GROUND = Ink("ground", "#fefefe", "#0d1117")

# In the order of the grid's policies. Against white and against the dark ground each has a contrast of at least 3.
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
ONLY_X = Ink("only-x", "#0969da", "#79c0ff")
NEITHER = Ink("neither", "#c02828", "#ff7b72")

INKS = (TEXT, MUTED, AXIS, GRID, GROUND, *POLICIES, *CLASSES, BOTH, ONLY_Y, ONLY_X, NEITHER)

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

    colour: str
    dash: Any
    marker: str
    hatch: str


def looks(names: tuple[str, ...], inks: tuple[Ink, ...]) -> dict[str, Look]:
    """A look for each name, in order; from the ninth on colours come again, with another dash, marker and hatch."""
    found = {}
    for number, name in enumerate(names):
        other = (number + number // len(inks)) % len(DASHES)
        found[name] = Look(inks[number % len(inks)].light, DASHES[other], MARKERS[other], HATCHES[other])
    return found


def css(ground: str) -> str:
    """Declarations of all colours for ``ground``, ``light`` or ``dark``."""
    return "".join(f"--{one.name}:{getattr(one, ground)};" for one in INKS)
