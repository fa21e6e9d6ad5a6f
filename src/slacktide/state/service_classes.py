"""The service classes of a live cluster, by number."""

from __future__ import annotations

import numpy as np

from slacktide.config import Config, SimulationSettings
from slacktide.kernels.drive import live_events
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.arrays import Tables
from slacktide.model import ServiceClass
from slacktide.state import cluster, layout, windows

SINCE_1970 = Config(simulation=SimulationSettings(epoch="1970-01-01T00:00:00Z"))
"""A live cluster counts seconds since then."""
AHEAD = 30 * 366 * 86_400.0
"""Calendar windows are worked out for so many seconds to come, each time that classes change."""
NEVER = float("inf")


def _told_apart_by(service: ServiceClass) -> tuple[str, int, float | None]:
    return service.name, service.priority, service.alpha


class ServiceClasses:
    """The part of :class:`slacktide.state.growth.Growing` that knows service classes."""

    config: Config
    tb: Tables
    classes: list[ServiceClass]
    clock: float
    """The latest instant that anybody told, seconds since 1970; 0: none yet."""
    _reaches: float
    """Until then calendar windows are worked out."""
    _regroup: bool
    _resized: bool

    def class_number(self, service: ServiceClass) -> int:
        """The number of a class; a new one where none is told apart as it is; where that is another one now, it
        takes its place."""
        for number, known in enumerate(self.classes):
            if _told_apart_by(known) == _told_apart_by(service):
                if known != service:
                    self.classes[number] = service
                    self._write_classes()
                    if (known.window, known.slo) != (service.window, service.slo):
                        live_events.classes_changed(self.tb.state, number, self.clock)
                    live_events.weigh_queue(self.tb.state)
                return number
        self.classes.append(service)
        self._write_classes()
        return len(self.classes) - 1

    def begin_at(self, service: ServiceClass, now: float) -> None:
        """Have this class only, and let it be ``now``, be that earlier than before or not."""
        self.classes = [service]
        self.tb.control["now"] = self.clock = now
        self._write_classes()

    def catch_up(self, now: float) -> None:
        """It is ``now``: old outages leave their windows, and calendar windows begin."""
        self.clock = max(self.clock, now)
        self._let_pass(now)
        if now > self._reaches:
            self._write_classes()

    def ensure_capacity(self) -> None:
        """Make room for what time alone, and then one instance more, may enter into tables."""
        raise NotImplementedError

    def _let_pass(self, now: float) -> None:
        """Time goes on, for all accounts at once: each may note an outage, for which there has to be room.

        Before the first plan there is no shortage to record: a new leader may know but some of the pods.
        """
        self.ensure_capacity()
        control = self.tb.control
        if not control["plans"]:
            control["sample_at"] = max(now, float(control["sample_at"]))
        live_events.catch_up(self.tb.state, now)

    def turns_by(self, now: float) -> bool:
        """Whether a calendar window begins by ``now`` that has not yet."""
        return bool(self.tb.control["turns_at"] <= now) or now > self._reaches

    def overloaded(self) -> dict[str, bool]:
        """Whether each class, by its name, was overloaded in the last pass (``policy.overload = triage``).

        None is where nobody waits: there are no passes then that would find that out.
        """
        marks, waiting = self.tb["classes"]["overloaded"], self.tb.control["queue"] + self.tb.control["incoming"]
        # Before the first class is known the table has a row that is nobody's.
        found: dict[str, bool] = {}
        for one, mark in zip(self.classes, marks, strict=False):  # of one name are several priorities and alphas
            found[one.name] = found.get(one.name, False) or bool(mark and waiting)
        return found

    def keep_classes(self, numbers: list[int]) -> None:
        """Forget all classes but these, which are numbered from 0 in their order."""
        kept = numbers or [0]
        self.classes = [self.classes[number] for number in kept if number < len(self.classes)]
        self.tb.put("classes", self.tb["classes"][kept])
        self._write_classes()

    def _plan_anew(self, table: schema.Records) -> None:
        """Other classes need another plan in the next pass; what is known of lives is kept, and the record of the
        shortage where it has the same levels."""
        before, levels = self.tb["classes"], int(table["level"].max()) + 1
        known = min(len(before), len(table))
        for name in ("ended", "lived"):
            table[name][:known] = before[name][:known]
        self.tb.control["plan_at"] = self.tb.control["plan_soon_at"] = -np.inf
        if self.tb["usable"].shape[1] not in (0, levels):
            self.tb.control["samples"], self.tb.control["step"] = 0, 0.0
            for name, array in cluster.plan_arrays(levels, True).items():
                self.tb.put(name, array)

    def _write_classes(self) -> None:
        """Write the classes as they are now; what was found out with others no longer holds."""
        now = self.clock
        self._let_pass(now)
        config = self.config
        table = layout.class_table(self.classes, config, cluster.in_order(config))
        self.tb.put("turns", windows.fill_classes(table, self.classes, SINCE_1970, now + AHEAD, now))
        self.tb.control["turns_at"] = windows.next_turn(table)
        self._reaches = now + AHEAD / 2 if len(self.tb["turns"]) else NEVER
        self._plan_anew(table)
        self.tb.put("classes", table)
        self.tb.put("class_numbers", cluster.class_numbers(table))
        cluster.note_classes(self.tb.rules, table)
        self._regroup = self._resized = True
