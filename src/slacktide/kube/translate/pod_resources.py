"""What a pod takes of a node and what a node has, as kube-scheduler 1.36 computes it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from slacktide.kube.client.quantities import amount, nanos, quantity
from slacktide.kube.resources.objects import Container, ContainerStatus, Node, Pod
from slacktide.kube.translate.unschedulable import Unschedulable

PODS = "pods"
RESIZE_PENDING, INFEASIBLE = "PodResizePending", "Infeasible"
ANY_ADDRESS = "0.0.0.0"  # a host port without an address; no socket of ours

_POD_LEVEL = ("cpu", "memory")
MOST_KNOWN = 10_000
"""So many demands are remembered; before one more, all are forgotten."""
_HUGE_PAGES = "hugepages-"


def requests(pod: Pod) -> dict[str, int]:
    """Effective requests by resource: millicores of ``cpu``, whole units of all others, ``pods`` 1; none is 0.

    The larger of what the containers with all sidecars need and what initialisation needs at its worst (each init
    container beside the sidecars started before it), for each resource; a pod's own ``resources`` take the place of
    that where given; overhead is added. While a container is resized, the largest of asked for, allocated and in
    force counts. Raises :class:`Unschedulable` naming the container, the resource and the value.
    """
    return _effective(pod, pending_resize(pod) == INFEASIBLE)


def wanted(pod: Pod) -> dict[str, int]:
    """As :func:`requests`, as if no resize were infeasible: what the pod would take on a node that can give it."""
    return _effective(pod, infeasible=False)


def pending_resize(pod: Pod) -> str:
    """Why the kubelet does not carry out a pod's resize (Deferred, Infeasible); empty where none waits."""
    return next((one.reason for one in pod.status.conditions if one.type == RESIZE_PENDING), "")


def _effective(pod: Pod, infeasible: bool) -> dict[str, int]:
    spec = pod.spec
    statuses = {one.name: one for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    running: dict[str, int] = {}
    for container in spec.containers:
        _add(running, _container(container, statuses.get(container.name), infeasible))
    starting: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.init_containers:
        if container.restart_policy == "Always":
            own = _container(container, statuses.get(container.name), infeasible)
            _add(running, own)
            _add(sidecars, own)
            _raise(starting, sidecars)
        else:
            own = dict(_container(container, None, infeasible))
            _add(own, sidecars)
            _raise(starting, own)
    _raise(running, starting)
    if spec.resources is not None:
        asked = _parsed("spec.resources", spec.resources.requests)
        if pod.status.resources is not None:
            asked = {} if infeasible else asked
            _raise(asked, _parsed("status.resources", pod.status.resources.requests))
            _raise(asked, _parsed("status.allocatedResources", pod.status.allocated_resources))
        running.update({name: nano for name, nano in asked.items() if _pod_level(name)})
    _add(running, _parsed("spec.overhead", spec.overhead))
    found = {name: amount(name, nano) for name, nano in running.items() if nano}
    found[PODS] = 1
    return found


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """The node's ports a pod takes, as (protocol, address, port), sorted; no address is 0.0.0.0, which is all.

    Of init containers only sidecars count: the others' ports are free again before the pod runs.
    """
    spec = pod.spec
    found: set[tuple[str, str, int]] = set()
    for container in (*spec.containers, *(one for one in spec.init_containers if one.restart_policy == "Always")):
        for port in container.ports:
            if port.host_port > 0:
                found.add((port.protocol or "TCP", port.host_ip or ANY_ADDRESS, port.host_port))
    return tuple(sorted(found)) if found else ()


def allocatable(node: Node) -> dict[str, int]:
    """What pods can take of a node, by resource, in the units of :func:`requests`; ``pods`` is 0 where not given.

    Raises :class:`ValueError` naming the resource and the value.
    """
    found = {PODS: 0}
    for name, text in node.status.allocatable.items():
        try:
            found[name] = quantity(name, text)
        except ValueError as error:
            raise ValueError(f"status.allocatable[{name}]: {error}") from None
    return found


def _pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _container(container: Container, status: ContainerStatus | None, infeasible: bool) -> Mapping[str, int]:
    where = f"container {container.name}"
    asked = _parsed(where, container.resources.requests) if container.resources is not None else {}
    if status is None or status.resources is None:
        return asked
    found = {} if infeasible else dict(asked)
    _raise(found, _parsed(where, status.resources.requests))
    _raise(found, _parsed(where, status.allocated_resources))
    return found


def _parsed(where: str, quantities: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for name, text in quantities.items():
        try:
            found[name] = nanos(text)
        except ValueError as error:
            raise Unschedulable(f"{where}: request for {name}: {error}") from None
    return found


def _add(total: dict[str, int], further: Mapping[str, int]) -> None:
    for name, nano in further.items():
        total[name] = total.get(name, 0) + nano


def _raise(least: dict[str, int], further: Mapping[str, int]) -> None:
    for name, nano in further.items():
        if nano > least.get(name, -1):
            least[name] = nano


class Demands:
    """Effective requests of pods, worked out once for all pods alike."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[tuple[str, int], ...] | str] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, pod: Pod) -> tuple[tuple[str, int], ...] | str:
        """What a pod takes, sorted by resource, or why that cannot be read."""
        status = pod.status
        if status.container_statuses or status.init_container_statuses or status.resources is not None:
            # These may say more.
            return self._count(pod)
        spec = pod.spec
        key = self._encode((spec.containers, spec.init_containers, spec.overhead, spec.resources))
        found = self._known.get(key)
        if found is None:
            if len(self._known) > MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = self._count(pod)
        return found

    @staticmethod
    def _count(pod: Pod) -> tuple[tuple[str, int], ...] | str:
        try:
            return tuple(sorted(requests(pod).items()))
        except Unschedulable as problem:
            return problem.reason
