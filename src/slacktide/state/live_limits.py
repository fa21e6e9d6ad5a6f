"""Limits on disruption in a live cluster: accounts of controllers, which come, change and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from slacktide.kernels.tables.arrays import Tables
from slacktide.model import DisruptionLimits
from slacktide.state.growing_arrays import lengthen
from slacktide.state.layout import on_grid
from slacktide.state.limit_tables import limit_table

DAY = 86400.0
BEFORE, AHEAD, AGAIN = DAY, 28 * DAY, 14 * DAY
"""Allowed hours are known from so long before an instant to so long after it, and worked out again after so long."""
NOBODY = -1
LONG_AGO = -1.0
"""Stands for the instant at which a disruption began of which it is not known when it was."""


class LiveLimits:
    """The accounts are numbered as their controllers' requests. Times are seconds since 1970."""

    def __init__(self, tables: Tables) -> None:
        self._tb = tables
        self._known: list[DisruptionLimits] = []
        """Limits by number; what nobody has stays until another set takes its number."""
        self._used: Counter[DisruptionLimits] = Counter()
        self._of: dict[int, DisruptionLimits] = {}
        self._from = -np.inf
        self._rings: dict[int, list[int]] = {}
        """Beginnings of rings that nobody has, by length."""
        self._end = 0

    def of(self, q: int) -> DisruptionLimits | None:
        """The limits of an account that is kept."""
        return self._of.get(q)

    def refresh(self, now: float) -> None:
        """Work out allowed hours where those known end soon; O(1) unless they do."""
        if self._known and not self._from <= now < self._from + AGAIN:
            self._write(now)

    def assign(self, q: int, limits: DisruptionLimits | None, now: float) -> int:
        """Account ``q`` has these limits from now on; what it suffered still counts. Its number, -1 for none."""
        if limits is not None and not limits.counts:
            limits = None
        suffered, before = self.begun(q), self._of.get(q)
        if limits == before:
            return NOBODY if limits is None else q
        control = self._tb.control
        control["loosened"] += 1
        control["tightened"] = control["looks"] + 1
        if before is not None:
            self._release(q, before)
        if limits is None:
            return NOBODY
        self._of[q] = limits
        self._used[limits] += 1
        if q >= len(self._tb["disruption_accounts"]):
            lengthen(self._tb, "disruption_accounts", max(64, q + q // 2 + 1))
        account = self._tb["disruption_accounts"][q : q + 1]
        if before is None:
            account["recovering"], account["ended"], account["tried"] = 0, -np.inf, 0
        account["limits"], account["several"] = self._number(limits, now), 1
        account["first"] = self._ring(limits.most or 0)
        self.put(q, suffered)
        return q

    def begun(self, q: int) -> list[float]:
        """When the latest disruptions of an account began that it remembers, in order; O(max)."""
        limits = self._of.get(q)
        if limits is None or not limits.most:
            return []
        account, most = self._tb["disruption_accounts"][q], limits.most
        begun, first = int(account["begun"]), int(account["first"])
        ring = self._tb["disruptions"][first : first + most].tolist()
        latest = [ring[i % most] for i in range(max(0, begun - most), begun)]
        return [at for at in latest if at > -np.inf]  # -inf: one was taken back

    def put(self, q: int, begun: Sequence[float]) -> None:
        """An account has suffered these disruptions, in order, and remembers as many as its limits ask for."""
        most = self._of[q].most or 0
        kept = list(begun)[-most:] if most else []
        account = self._tb["disruption_accounts"][q : q + 1]
        first = int(account["first"][0])
        ring = self._tb["disruptions"][first : first + most]
        ring[:] = -np.inf
        ring[: len(kept)] = kept
        account["begun"] = len(kept)

    def _release(self, q: int, limits: DisruptionLimits) -> None:
        del self._of[q]
        self._used[limits] -= 1
        self._rings.setdefault(limits.most or 0, []).append(int(self._tb["disruption_accounts"][q]["first"]))

    def _ring(self, most: int) -> int:
        """The beginning of a ring of this length."""
        free = self._rings.get(most)
        if free:
            return free.pop()
        first, self._end = self._end, self._end + most
        if len(self._tb["disruptions"]) < self._end:
            lengthen(self._tb, "disruptions", self._end + self._end // 2)
        return first

    def _number(self, limits: DisruptionLimits, now: float) -> int:
        if limits not in self._known:
            unused = next((number for number, one in enumerate(self._known) if not self._used[one]), None)
            if unused is None:
                self._known.append(limits)
                unused = len(self._known) - 1
            else:
                del self._used[self._known[unused]]
                self._known[unused] = limits
            self._write(now)
        return self._known.index(limits)

    def _write(self, now: float) -> None:
        table, hours = limit_table(self._known, now - BEFORE, now + AHEAD)
        self._tb.put("disruption_limits", table)
        self._tb.put("open_hours", on_grid(hours) if len(hours) else hours)
        self._from = now


def recovering(tables: Tables, rows: Sequence[int]) -> list[int]:
    """Of these rows those whose disruptions have not ended; O(rows)."""
    at: Any = tables["disrupted_at"]
    return [row for row in rows if at[row] > -np.inf]
