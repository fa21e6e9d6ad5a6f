"""Workloads that lived much shorter than the window of their promise."""

from __future__ import annotations

import logging

from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger.slo_status import accrue
from slacktide.kube.client.metadata import Reference
from slacktide.kube.publish.state_events import Record
from slacktide.kube.translate.owners import Target
from slacktide.model.durations import write_duration
from slacktide.model.service_class import class_name

LOG = logging.getLogger(__name__)
SHORT_LIFE = "ShortLife"
"""The reason of the event."""


class ShortLives:
    """Says once of each class, while this replica leads, that a workload lived less than a tenth of the window and is
    gone.

    A promise over the window says nothing of such a life: with a whole budget all of it may be lost.
    """

    def __init__(self, record: Record, engine: Engine) -> None:
        self._record, self._engine = record, engine
        self._told: set[str] = set()

    def ends(self, target: Target, at: float) -> None:
        """A workload is deleted; its ledger was settled ``at``, seconds since 1970."""
        controller = self._engine.controllers[target.key]
        window, rows, name = controller.service.window, controller.rows, class_name(controller.service.name)
        if window is None or controller.batch or name in self._told or not rows:
            return
        lived = float(accrue(self._engine.tables.tb, rows, len(rows), at)["lifetime"].max())
        # Where instances went before, those that are left may be younger than the workload.
        if controller.past.lifetime or not window.is_much_longer_than(lived):
            return
        self._told.add(name)
        note = (
            f"deleted after {write_duration(round(lived))}, less than a tenth of the window of class {name} "
            f"({window.name}); for workloads that live for so short a time use a class with a promise over "
            "their lifetime (window: lifetime); reported once per class"
        )
        LOG.warning("%s %s/%s: %s", target.kind, target.namespace, target.name, note)
        reference = Reference(target.api_version, target.kind, target.namespace, target.name, target.uid)
        self._record(reference, SHORT_LIFE, note, event_type="Normal", action="Promising")
