"""What operators declare, kept by events: PodDisruptionBudgets, MaintenanceWindows and PromiseQuotas."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from slacktide.kube.client.quantities import cpu_text, memory_text, nanos
from slacktide.kube.indexes import take_out
from slacktide.kube.resources.objects import MaintenanceWindow, Pod, PodDisruptionBudget, PromiseQuota, condition_of
from slacktide.kube.translate.selectors import Selector, compiled
from slacktide.kube.translate.unschedulable import Unschedulable

LOG = logging.getLogger(__name__)

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
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        found = [
            key
            for key, selector in self._selectors.items()
            if key[0] == namespace and selector is not None and selector.matches(labels)
        ]
        if len(found) > 1:
            return SEVERAL
        return "/".join(found[0]) if found else ""

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


class Maintenance:
    """Windows by name."""

    def __init__(self) -> None:
        self._windows: dict[str, tuple[MaintenanceWindow, Selector | None]] = {}

    def see(self, found: MaintenanceWindow) -> None:
        """A window, new or changed. One that cannot be read is about no node, and a warning says why."""
        name, spec = found.metadata.name, found.spec
        self._windows.pop(name, None)
        if spec.end <= spec.start:
            LOG.warning(
                "MaintenanceWindow %s: spec.end: found a time that is not after spec.start; it covers no nodes: give "
                "it a later end", name,
            )  # fmt: skip
            return
        try:
            where = "spec.nodeSelector"
            selector = None if spec.node_selector is None else compiled(spec.node_selector, where)
        except Unschedulable as problem:
            LOG.warning("MaintenanceWindow %s: %s; it covers no nodes: correct its selector", name, problem.reason)
            return
        self._windows[name] = found, selector

    def drop(self, name: str) -> None:
        """A window is gone."""
        self._windows.pop(name, None)

    def until(self, labels: Mapping[str, str], now: float) -> float:
        """The end of the longest window that is about a node of these labels now, seconds since 1970; 0: none is."""
        is_about = (one for one, selector in self._open(now) if selector is None or selector.matches(labels))
        return max((float(one.spec.end) for one in is_about), default=0.0)

    def latest(self, now: float) -> float:
        """The end of the longest window that is open now; 0: none is."""
        return max((float(one.spec.end) for one, _ in self._open(now)), default=0.0)

    def active(self, now: float) -> frozenset[str]:
        """Names of the windows that are open now."""
        return frozenset(one.metadata.name for one, _ in self._open(now))

    def _open(self, now: float) -> list[tuple[MaintenanceWindow, Selector | None]]:
        return [(one, about) for one, about in self._windows.values() if one.spec.start <= now < one.spec.end]


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota's limits: nano-CPUs and nano-bytes times promise, and workloads; ``None`` is no limit."""

    name: str
    cpu: int | None = None
    memory: int | None = None
    workloads: int | None = None
    problem: str = ""
    """What it says and cannot be read."""

    def reason(self, of: str) -> str:
        """Why a pod gets no promise where those who came first have all that there is ``of`` something."""
        if of == "workloads":
            said = f"{self.workloads} workloads"
        else:
            amount = cpu_text(self.cpu or 0) if of == "cpu" else memory_text(self.memory or 0)
            said = f"{amount} {of} times promise"
        return f"PromiseQuota {self.name!r} exceeded: it allows {said}"


class Quotas:
    """Quotas by namespace and class."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, tuple[str, Quota]]] = {}
        self.objects: dict[tuple[str, str], PromiseQuota] = {}
        """All of them as they were last seen, by namespace and name."""

    def see(self, found: PromiseQuota) -> bool:
        """A quota, new or changed; whether it says anything else than before.

        What it says and cannot be read allows nothing, and a warning says so.
        """
        known = self.objects.get((found.metadata.namespace, found.metadata.name))
        self.objects[found.metadata.namespace, found.metadata.name] = found
        if known is not None and known.spec == found.spec:
            return False
        self._read(found)
        return True

    def _read(self, found: PromiseQuota) -> None:
        namespace, name, hard = found.metadata.namespace, found.metadata.name, found.spec.hard
        limits: dict[str, int | None] = {}
        problem = ""
        for field, said in (("cpu", hard.cpu), ("memory", hard.memory)):
            try:
                limits[field] = None if said is None else nanos(str(said))
            except ValueError as error:
                limits[field] = 0
                problem = f"spec.hard.{field}: {error}"
                LOG.warning(
                    "PromiseQuota %s/%s: spec.hard.%s: %s; the quota allows no pods", namespace, name, field, error
                )
        quota = Quota(name, limits["cpu"], limits["memory"], hard.workloads, problem)
        self._found.setdefault(namespace, {})[name] = found.spec.class_, quota

    def drop(self, namespace: str, name: str) -> None:
        """A quota is gone."""
        self.objects.pop((namespace, name), None)
        take_out(self._found, namespace, name)

    def namespaces(self) -> list[str]:
        """Those that have any."""
        return list(self._found)

    def of(self, namespace: str, service_class: str) -> list[Quota]:
        """All that bound a class in a namespace, by name."""
        known = self._found.get(namespace)
        return [] if known is None else [one for _, (named, one) in sorted(known.items()) if named == service_class]
