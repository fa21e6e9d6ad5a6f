"""What became of instances, with what they were delivered, by the metric that promises are judged by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.engine.core import operations
from slacktide.engine.core.operations import Operation
from slacktide.engine.core.types import Controller, Outcome
from slacktide.engine.journal.retrace import InstanceHistory, SessionHistory
from slacktide.engine.ledger.slo_status import accrue
from slacktide.errors import StateError
from slacktide.model import NO_NEIGHBOURS
from slacktide.qos.availability import TIMES
from slacktide.state.spec import Spec

KNOWN = tuple(name for name in TIMES if name != "pending")
Times = NDArray[np.float64]
"""Seconds of an instance by what it did, as :data:`TIMES` names them, shape (5,)."""


class PastHistory(SessionHistory):
    """Counts from the beginning of the story on: what an instance had got or lost before is not known.

    It follows the engine that is told the story. ``times`` has for every instance what its seconds were, by ``id``.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.times: dict[int, Times] = {}
        self._at_begin: dict[int, Times] = {}
        self._last: Operation | None = None
        self.engine.journal = self._begins
        self._kind_of = self.engine.tables.kind_of
        self.engine.tables.kind_of = self._kind_without_neighbours  # type: ignore[method-assign]

    def _kind_without_neighbours(self, spec: Spec) -> int:
        """Nothing is decided here, so that nobody's neighbours are counted: a number for each of them and each node."""
        return self._kind_of(replace(spec, placement=NO_NEIGHBOURS))

    def _begins(self, operation: Operation | None) -> None:
        """The engine is about to be told of an operation; of the one before it all is known by now."""
        last, self._last = self._last, operation
        if last is not None:
            with suppress(LookupError, StateError):  # it was refused
                self._after(last, None)
        if operation is not None:
            self._before(operation)

    def passed(self, now: float) -> None:
        self._begins(None)
        begins = not np.isfinite(self.begin)
        super().passed(now)
        if begins:
            for row, life in self.of_row.items():
                self._at_begin[id(life)] = self._stood(row, now)
                life.admission, life.lost = max(life.admission, now), ()

    def preempted(self, uid: str) -> None:
        """The cluster's scheduler preempts a pod now."""
        self._begins(None)
        pod = self.engine.pods.get(uid)
        if pod is not None:
            self._told[pod.row] = self._leaving[uid] = self.engine.latest
            self._history(self.engine.controllers[pod.key], pod.row).victim = True

    def _after(self, operation: Operation, outcome: Outcome | None) -> None:
        super()._after(operation, outcome)
        if isinstance(operation, operations.BoundElsewhere):
            self._begun[operation.uid] = operation.at

    def departs(self, controller: Controller, row: int, at: float, completed: bool) -> None:
        life = self._history(controller, row)
        self._note(row, life, at)
        super().departs(controller, row, at, completed)

    def finish(self) -> None:
        self._begins(None)
        for row, life in self.of_row.items():
            self._note(row, life, self.now)
        super().finish()

    def of_controllers(self, lives: Iterable[InstanceHistory] | None = None) -> Mapping[str, Times]:
        """Seconds of all instances together, by the key of their controller."""
        found: dict[str, Times] = defaultdict(lambda: np.zeros(len(TIMES)))
        for life in self.instances if lives is None else lives:
            found[life.controller.key] += self.times.get(id(life), 0.0)
        return found

    def _note(self, row: int, life: InstanceHistory, at: float) -> None:
        self.times[id(life)] = np.maximum(0.0, self._stood(row, at) - self._at_begin.get(id(life), 0.0))

    def _stood(self, row: int, at: float) -> Times:
        had = accrue(self.engine.tables.tb, [row], 1, at)
        named = {name: float(had[name][0]) for name in KNOWN}
        pending = max(0.0, float(had["lifetime"][0]) - sum(named.values()))
        return np.array([pending if name == "pending" else named[name] for name in TIMES])
