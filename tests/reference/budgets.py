"""How many instances may be disrupted (docs/semantics.md, Neighbours, preferences and budgets)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from slacktide.model import Budget, Workload

if TYPE_CHECKING:
    from reference.state import Instance


@dataclass(eq=False)
class Guarded:
    """One budget and all the instances it will ever have; nothing is kept, everything is counted when asked for."""

    budget: Budget
    instances: list[Instance] = field(default_factory=list)

    def expected(self) -> list[Instance]:
        """Those admitted and neither completed nor removed."""
        return [k for k in self.instances if k.admitted and k.gone is None]

    def healthy(self, t: float) -> list[Instance]:
        """Those on a host and past their start-up, in whatever accounting."""
        return [k for k in self.expected() if k.host is not None and not k.leaving and t >= k.ready()]

    def left(self, t: float) -> int:
        """How many more may be disrupted at ``t``."""
        needed = self.budget.min_available
        if needed is None:
            assert self.budget.max_unavailable is not None
            needed = len(self.expected()) - self.budget.max_unavailable
        return max(0, len(self.healthy(t)) - needed)


def spares(k: Instance, taken: Sequence[Instance], t: float) -> bool:
    """Whether its budget lets ``k`` go besides those already ``taken`` for the same placement."""
    if k.budget is None:
        return True
    return k.budget.left(t) >= 1 + sum(other.budget is k.budget for other in taken)


def guard(workload: Workload, instances: Sequence[Instance]) -> None:
    """Tell the instances their budgets."""
    if workload.budget is None:
        return
    made = [Guarded(budget) for budget in workload.budgets]
    for k in instances:
        index = int(workload.budget[k.row])
        if index >= 0:
            k.budget = made[index]
            made[index].instances.append(k)
