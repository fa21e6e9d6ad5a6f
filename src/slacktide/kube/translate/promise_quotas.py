"""How much of its classes a namespace may use: PromiseQuotas, kept by events."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from slacktide.kube.client.quantities import cpu_text, memory_text, nanos
from slacktide.kube.resources.objects import PromiseQuota

LOG = logging.getLogger(__name__)


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
        known = self._found.get(namespace, {})
        known.pop(name, None)
        if not known:
            self._found.pop(namespace, None)

    def namespaces(self) -> list[str]:
        """Those that have any."""
        return list(self._found)

    def of(self, namespace: str, service_class: str) -> list[Quota]:
        """All that bound a class in a namespace, by name."""
        known = self._found.get(namespace)
        return [] if known is None else [one for _, (named, one) in sorted(known.items()) if named == service_class]
