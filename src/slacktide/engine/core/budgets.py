"""Disruption budgets of a live cluster: how many of their pods may be preempted now."""

from __future__ import annotations

from slacktide.kernels.tables import affinity_records
from slacktide.state.growth import Growing


class Budgets:
    """``numbers`` are the budgets' in the tables, by name."""

    def __init__(self, tables: Growing) -> None:
        self.tables = tables
        self.numbers: dict[str, int] = {}
        self._free: list[int] = []

    def put(self, name: str, left: int) -> bool:
        """How many pods with a budget may be disrupted now; whether it is a new one."""
        b, control = self.numbers.get(name), self.tables.tb.control
        is_new = b is None
        if b is None:
            b = self.numbers[name] = self._free.pop() if self._free else len(self.numbers)
            self.tables.make_budgets(b + 1)
        before = self.tables.tb["budgets"]["amount"][b]
        if left > before:
            control["loosened"] += 1
        elif left < before:
            control["tightened"] = control["looks"] + 1
        self.tables.tb["budgets"][b] = (affinity_records.GIVEN, left, 0, 0, 0)
        return is_new

    def overdrawn(self, name: str) -> bool:
        """Whether more of a budget's pods were told to go than it allows, as far as it was told."""
        b = self.numbers.get(name)
        return b is not None and bool(self.tables.tb["budgets"]["amount"][b] < 0)

    def remove(self, name: str) -> None:
        """A budget is no more: its pods have none."""
        self._free.append(self.numbers.pop(name))
        self.tables.tb.control["loosened"] += 1

    def assign(self, row: int, name: str) -> None:
        """An instance is of a budget, or of none where it is not known."""
        self.tables.tb["budget"][row] = self.numbers.get(name, -1)
