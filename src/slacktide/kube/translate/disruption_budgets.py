"""PodDisruptionBudgets: which pods they select, and how many of those may be disrupted."""

from __future__ import annotations

from collections.abc import Iterator

from slacktide.kube.resources.objects import Pod, PodDisruptionBudget
from slacktide.kube.resources.pods import condition_of
from slacktide.kube.translate.selectors import Selector, compiled
from slacktide.kube.translate.unschedulable import Unschedulable

UNLIMITED = 2**31 - 1
SEVERAL = "several"
"""Budget of pods that more than one PodDisruptionBudget selects: the API server refuses to evict them."""
ALWAYS_ALLOW = "AlwaysAllow"
PENDING = "Pending"


class Budgets:
    """The PodDisruptionBudgets of a cluster, kept by events."""

    def __init__(self, best_effort: bool = False) -> None:
        self._best_effort = best_effort
        self.found: dict[tuple[str, str], PodDisruptionBudget] = {}
        self._selectors: dict[tuple[str, str], Selector | None] = {}

    def see(self, budget: PodDisruptionBudget) -> bool:
        """A budget, new or changed; whether it may be about other pods than before."""
        key = budget.metadata.namespace, budget.metadata.name
        before = self.found.get(key)
        self.found[key] = budget
        if before is not None and before.spec.selector == budget.spec.selector:
            return _lets_unready_go(before) != _lets_unready_go(budget)
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
        """The name of a pod's budget for the engine; empty: it has none, or is not ready and may go whatever that says,
        without using it up (as the API server has it)."""
        name = self.selecting(pod)
        if not name or pod.status.phase == PENDING:
            return ""
        if name == SEVERAL or condition_of(pod, "Ready")[0]:
            return name
        return "" if _lets_unready_go(self.found[pod.metadata.namespace, name.partition("/")[2]]) else name

    def selecting(self, pod: Pod) -> str:
        """The name of the budget that selects a pod, whether that is ready or not; empty: none does."""
        found = list(self._about(pod))
        if len(found) > 1:
            return SEVERAL
        return "/".join(found[0]) if found else ""

    def _about(self, pod: Pod) -> Iterator[tuple[str, str]]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        for key, selector in self._selectors.items():
            if key[0] == namespace and selector is not None and selector.matches(labels):
                yield key

    def left(self, budget: PodDisruptionBudget | None) -> int:
        """How many pods of a budget (None: of several) may be disrupted, as its controller last said."""
        if self._best_effort:
            return UNLIMITED
        return 0 if budget is None else max(0, budget.status.disruptions_allowed)


def _lets_unready_go(budget: PodDisruptionBudget) -> bool:
    """Whether its pods that are not ready may be evicted now: always, or where enough of the others are."""
    if budget.spec.unhealthy_pod_eviction_policy == ALWAYS_ALLOW:
        return True
    status = budget.status
    return status.current_healthy >= status.desired_healthy > 0
