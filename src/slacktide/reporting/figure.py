"""What every figure of the report is: a drawing, what it says in words, and the table of what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from slacktide import palette
from slacktide.drawing import Sheet
from slacktide.palette import Look

SHOWN_PANELS = 6
"""Of many workloads this many are drawn; the table has all."""
SHOWN_POLICIES = 8
"""Of many policies this many are drawn: each has a colour of its own."""
SHOWN_NAMES = 12
"""Of many panels that are left out this many are named."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a report is about, in the order in which figures show it.

    workloads, hosts, policies  the names of the grid
    classes                     most important first
    slos                        promised availability of each class
    reference                   the policy that others are compared with
    """

    workloads: tuple[str, ...]
    hosts: tuple[str, ...]
    policies: tuple[str, ...]
    classes: tuple[str, ...]
    slos: Mapping[str, float]
    reference: str
    policy_looks: Mapping[str, Look] = field(init=False)
    class_looks: Mapping[str, Look] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "policy_looks", palette.policies(self.policies))
        object.__setattr__(self, "class_looks", palette.classes(self.classes))

    @property
    def others(self) -> tuple[str, ...]:
        """All policies but the reference."""
        return tuple(one for one in self.policies if one != self.reference)


def drawn(scene: Scene, judged: str | None) -> tuple[Scene, tuple[str, ...]]:
    """The scene with as many policies as can be told apart, and a note where it has more.

    The reference and the one that is judged are among them, then the first ones, in the order of the grid.
    """
    if len(scene.policies) <= SHOWN_POLICIES:
        return scene, ()
    first = dict.fromkeys([scene.reference, *([judged] if judged else []), *scene.policies])
    kept = list(first)[:SHOWN_POLICIES]
    note = f"Drawn: {SHOWN_POLICIES} of {len(scene.policies)} policies; the table has all of them."
    return replace(scene, policies=tuple(one for one in scene.policies if one in kept)), (note,)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the report.

    key          unique, of letters, digits and hyphens: its place in the page and its file name
    title        what is shown
    description  what is to be seen, for those who do not see it, and as the text below
    reading      how to read it and how it is worked out
    draw         a matplotlib figure of it for a sheet; None where nothing is to be drawn (``description`` says why)
    table        the numbers that are drawn (pyarrow)
    idle         the same with all panels, also those in which nothing happens, for whom asks for this very figure;
                 None where nothing is known
    units        unit of a column of the table, where it has one
    """

    key: str
    title: str
    description: str
    reading: str
    draw: Callable[[Sheet], Any] | None
    table: Any
    units: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    idle: Callable[[Sheet], Any] | None = None


Rows = list[dict[str, Any]]
P = TypeVar("P")
Places = list[list[P | None]]
"""Rows of panels, one column below the other; None: nothing to be drawn in this place."""


def where(rows: Rows, **wanted: object) -> Rows:
    """The rows that have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def of_panel(rows: Rows, place: tuple[str, str]) -> Rows:
    """The rows of a panel: a class on a host set."""
    return where(rows, hosts=place[1], **{"class": place[0]})


def limited(names: Sequence[str], what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The first names that are drawn, and a note where some are not."""
    if len(names) <= SHOWN_PANELS:
        return tuple(names), ()
    return tuple(names[:SHOWN_PANELS]), (
        f"Drawn: the first {SHOWN_PANELS} of {len(names)} {what}; the table has all of them.",
    )


def known(rows: Iterable[Sequence[P]], there: Callable[[P], object]) -> Places[P]:
    """The panels of which something is known."""
    return [[one if there(one) else None for one in row] for row in rows]


def busy(
    places: Sequence[Sequence[P | None]], happens: Callable[[P], bool], name: Callable[[P], str], idle: str
) -> tuple[Places[P], tuple[str, ...]]:
    """The panels in which something happens, and a sentence about those that are left out: ``idle`` in A, B and C."""
    rows = [[one if one is not None and happens(one) else None for one in row] for row in places]
    rows = [row for row in rows if any(one is not None for one in row)]
    left = [name(one) for row in places for one in row if one is not None and not happens(one)]
    if not left:
        return rows, ()
    named = ", ".join(left[:SHOWN_NAMES]) + (f" and {len(left) - SHOWN_NAMES} more" if len(left) > SHOWN_NAMES else "")
    return rows, (f"Left out: {named}. {idle}",)
