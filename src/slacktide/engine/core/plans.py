"""Whom the plans of passes give up (docs/plan.md), and since when: from operations alone, as a record has them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slacktide.engine.core.types import Controller
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.schema import GIVEN_UP, SHIFT
from slacktide.model.service_class import class_name
from slacktide.model.workload import INDEPENDENT
from slacktide.state.growth import Growing


@dataclass(frozen=True, slots=True)
class Carried:
    """Of a class, as of the present plan: how many promises there are, and how many of them capacity carries."""

    promises: int = 0
    carried: int = 0

    @property
    def gives_up(self) -> int:
        """How many are given up."""
        return self.promises - self.carried


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Of a controller that is given up.

    service            its class, without an SLO of its own
    since              when the first of the plans was made that gave it up without a break, seconds since 1970
    instances          how many of its instances that concerns
    promises, carried  of the class, as :class:`Carried`
    next_plan          when it is looked at again, seconds since 1970; then or with the next pass
    every              seconds between two plans by now
    asks               what these instances ask for in all, by resource, in the engine's whole amounts
    """

    service: str
    since: float
    instances: int
    promises: int
    carried: int
    next_plan: float
    every: float
    asks: tuple[tuple[str, int], ...] = ()


class Plans:
    """What an engine remembers of plans; a new engine begins with none."""

    def __init__(self) -> None:
        self.since: dict[str, float] = {}
        """Since when the controllers have been given up that the present plan gives up, by their keys."""
        self.classes: dict[str, Carried] = {}
        """Classes that it is for, by name; one with an SLO of its own counts to the class that it is of."""
        self._made = 0

    def see(self, tables: Tables, names: list[str], controllers: Mapping[str, Controller]) -> None:
        """A pass is over: note whom it gave up, where it made a plan; ``names`` are those of classes, by number.

        O(controllers + instances) where anybody is given up, else O(classes).
        """
        control = tables.control
        if int(control["plans"]) == self._made:
            return
        self._made = int(control["plans"])
        self.classes = _by_name(tables, names)
        if not any(one.gives_up for one in self.classes.values()):
            self.since = {}
            return
        shifted = np.flatnonzero(tables["instances"]["shift"] * SHIFT > GIVEN_UP)
        of_requests = np.flatnonzero(tables["requests"]["shift"] > GIVEN_UP)
        concerned = {*tables["owner"][shifted].tolist(), *of_requests.tolist()}
        at = float(control["planned_at"])
        self.since = {key: self.since.get(key, at) for key, one in controllers.items() if one.q in concerned}

    def of(self, tables: Growing, one: Controller, now: float) -> GivenUp | None:
        """What there is to say of a controller at ``now``; None where it is kept. O(its instances)."""
        since = self.since.get(one.key)
        if since is None:
            return None
        tb, name = tables.tb, class_name(one.service.name)
        rows = [row for row in one.rows if is_given_up(tb, one, row)]
        if not rows:
            return None  # those that it was about are gone
        control, kinds = tb.control, tb["kinds"][tb["instances"]["kind"][rows]]
        asked = zip(tables.resources, tb["demand"][kinds["shape"]].sum(axis=0).tolist(), strict=True)
        every = max(0.0, float(control["plan_at"]) - float(control["planned_at"]))
        known = self.classes.get(name, Carried())
        return GivenUp(
            name, since, len(rows), known.promises, known.carried, max(now, float(control["plan_at"])),
            every if math.isfinite(every) else 0.0, tuple((name, int(amount)) for name, amount in asked if amount),
        )  # fmt: skip


def _by_name(tables: Tables, names: list[str]) -> dict[str, Carried]:
    found: dict[str, Carried] = {}
    for name, one in zip(map(class_name, names), tables["classes"], strict=False):  # a row more before the first class
        if not one["planned"]:
            continue
        before, promises = found.get(name, Carried()), int(one["promises"])
        found[name] = Carried(before.promises + promises, before.carried + promises - int(one["given_up"]))
    return found


def is_given_up(tables: Tables, one: Controller, row: int) -> bool:
    """Whether an instance of a controller is given up by the present plan; O(1)."""
    if one.approach == INDEPENDENT:
        return bool(tables["instances"]["shift"][row] * SHIFT > GIVEN_UP)
    return bool(tables["requests"]["shift"][one.q] > GIVEN_UP)
