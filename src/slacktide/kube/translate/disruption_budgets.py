"""PodDisruptionBudgets: which pods they select, and how many of those may be disrupted."""

from __future__ import annotations

from collections.abc import Iterator

from slacktide.kube.resources.objects import Pod, PodDisruptionBudget
from slacktide.kube.translate.selectors import Selector, compiled
from slacktide.kube.translate.unschedulable import Unschedulable

UNLIMITED = 2**31 - 1
SEVERAL = "several"
"""Budget of pods that more than one PodDisruptionBudget selects: the API server refuses to evict them."""


class Budgets:
    """The PodDisruptionBudgets of a cluster, kept by events."""

    def __init__(self, best_effort: bool = False) -> None:
        self._best_effort = best_effort
        self.found: dict[tuple[str, str], PodDisruptionBudget] = {}
        self._selectors: dict[tuple[str, str], Selector | None] = {}

    def see(self, budget: PodDisruptionBudget) -> bool:
        """A budget, new or changed; whether it may select other pods than before."""
        key = budget.metadata.namespace, budget.metadata.name
        before = self.found.get(key)
        self.found[key] = budget
        if before is not None and before.spec.selector == budget.spec.selector:
            return False
        try:
            self._selectors[key] = compiled(budget.spec.selector, "spec.selector")
        except Unschedulable:
            self._selectors[key] = None  # the API server's controller cannot read it either
        return True

    def drop(self, namespace: str, name: str) -> None:
        """A budget is gone."""
        self.found.pop((namespace, name), None)
        self._selectors.pop((namespace, name), None)

    def of(self, pod: Pod) -> str:
        """The name of a pod's budget for the engine; empty: it has none."""
        names = list(self._about(pod))
        if len(names) > 1:
            return SEVERAL
        return names[0] if names else ""

    def _about(self, pod: Pod) -> Iterator[str]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        for (where, name), selector in self._selectors.items():
            if where == namespace and selector is not None and selector.matches(labels):
                yield f"{where}/{name}"

    def left(self, budget: PodDisruptionBudget | None) -> int:
        """How many pods of a budget (None: of several) may be disrupted, as its controller last said."""
        if self._best_effort:
            return UNLIMITED
        return 0 if budget is None else max(0, budget.status.disruptions_allowed)
