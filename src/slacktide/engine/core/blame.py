"""Whose doing it is that an instance delivers nothing (docs/causes.md): the cluster's, the workload's or an operator's.

Time that the cluster has not lost counts as running: the tables are told that the instance is ready, or, where it is on
no host, that it is excused. What it was in truth is summed up here, by cause. A controller whose class counts
``everything`` has the same sums, and its tables are told the truth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from slacktide.engine.core import types
from slacktide.engine.core.types import MOST_SECONDS, Controller, Pod
from slacktide.kernels.drive import live_events
from slacktide.state.growth import Growing


@dataclass(frozen=True, slots=True)
class Span:
    """An instance delivers nothing since then. ``counted``: its tables were told that it does."""

    cause: int
    since: float
    counted: bool


class Blame:
    """Spans by row, as long as they last. A row is *excused* in a span that counts."""

    def __init__(self, tables: Growing) -> None:
        self._tables = tables
        self.spans: dict[int, Span] = {}
        self.forgiven: dict[int, float] = {}
        """Of batch instances, running seconds that were no work of theirs: a stop does not discard them."""

    def is_excused(self, row: int) -> bool:
        """Whether the tables count an instance as running that delivers nothing."""
        span = self.spans.get(row)
        return span is not None and span.counted

    def begin(self, controller: Controller, row: int, cause: int, at: float, *, on_host: bool) -> None:
        """An instance that is not ready delivers nothing for a cause that is not the cluster's."""
        counted = not controller.everything
        self.spans[row] = Span(cause, at, counted)
        if counted:
            (live_events.ready if on_host else live_events.excuse)(self._tables.tb.state, row, at)

    def end(self, controller: Controller, row: int, at: float, *, on_host: bool) -> None:
        """What an instance loses from now on is the cluster's; it is not ready."""
        span = self._over(controller, row, at)
        if span is not None and span.counted:
            (live_events.unready if on_host else live_events.charge)(self._tables.tb.state, row, at)

    def _over(self, controller: Controller, row: int, at: float) -> Span | None:
        span = self.spans.pop(row, None)
        if span is not None:
            seconds = max(0.0, at - span.since)
            controller.lost[span.cause] += seconds
            if span.counted:
                controller.excused += seconds
                if controller.batch:
                    self.forgiven[row] = self.forgiven.get(row, 0.0) + seconds
        return span

    # -- a pod on a host -------------------------------------------------------------------------------------------

    def ready(self, controller: Controller, pod: Pod, at: float) -> None:
        """A pod on a host is ready."""
        pod.ready = True
        span = self._over(controller, pod.row, at)
        if span is None or not span.counted:
            live_events.ready(self._tables.tb.state, pod.row, at)

    def unready(self, controller: Controller, pod: Pod, at: float) -> None:
        """A pod on a host is ready no more, for the cause that it has."""
        pod.ready = False
        counted = bool(pod.cause) and not controller.everything
        if pod.cause:
            self.spans[pod.row] = Span(pod.cause, at, counted)
        if not counted:
            live_events.unready(self._tables.tb.state, pod.row, at)

    def change(self, controller: Controller, pod: Pod, cause: int, at: float) -> None:
        """What a pod does not deliver has another cause from now on. It does not wait in the queue."""
        pod.cause = cause
        if pod.ready:
            return
        on_host = pod.state in (types.PLACED, types.LEAVING)
        span = self.spans.get(pod.row)
        if span is not None and cause:
            self._over(controller, pod.row, at)
            self.spans[pod.row] = Span(cause, at, span.counted)
        elif cause:
            self.begin(controller, pod.row, cause, at, on_host=on_host)
        else:
            self.end(controller, pod.row, at, on_host=on_host)

    # -- sums ------------------------------------------------------------------------------------------------------

    def open_spans(self, controller: Controller) -> Iterator[Span]:
        """Spans that last, of a controller's instances."""
        return (self.spans[row] for row in controller.rows if row in self.spans) if self.spans else iter(())

    def concerns(self, controller: Controller) -> bool:
        """Whether anything that a controller did not deliver is, or was, another's doing than the cluster's."""
        return bool(
            controller.excused or any(controller.lost) or controller.suspended[0] or controller.suspended_for
        ) or any(self.open_spans(controller))

    def sums(self, controller: Controller, at: float) -> tuple[list[float], float]:
        """Seconds lost by cause, in the order of :data:`CAUSES` (the cluster's are not known here: 0), and how many
        of them counted as running; O(instances)."""
        lost, excused = list(controller.lost), controller.excused
        for span in self.open_spans(controller):
            seconds = max(0.0, at - span.since)
            lost[span.cause] += seconds
            excused += seconds if span.counted else 0.0
        return lost, excused

    def suspended(self, controller: Controller, at: float) -> float:
        """Seconds in which a controller was suspended, times the instances that it would have had. These are no
        lifetime of anybody's."""
        count, since = controller.suspended
        return min(controller.suspended_for + count * max(0.0, at - since), MOST_SECONDS)
