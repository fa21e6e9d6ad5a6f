"""Which devices claims get on a node: a search through all possibilities, as k8s.io/dynamic-resource-allocation does.

Claims, requests and alternatives are served in their order, devices tried in that of their pools; the first solution
counts. A device is given once, unless it is asked for with admin access.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from slacktide.kube.resources.objects import DeviceAttribute, DeviceConfiguration, ResourceClaim
from slacktide.kube.translate.devices.claims import MOST_DEVICES, Ask, Wish
from slacktide.kube.translate.devices.pools import Counters, DeviceId, NodeDevices, Offered, PoolId
from slacktide.kube.translate.devices.selectors import SelectorError, attribute, matches
from slacktide.kube.translate.selectors import NODE_NAME

MOST_STEPS = 20_000
"""Devices that are tried for one node and pod. kube-scheduler gives up after ten seconds; steps are the same on every
machine."""
FEW_STEPS = 500
MOST_HARD = 16


@dataclass(slots=True)
class Effort:
    """How much is searched for claims that ask for the same, on node after node.

    Whoever may make claims can ask for what takes all steps on every node, as devices of thousands of nodes are counted
    again and again. So where more than :data:`FEW_STEPS` led nowhere on :data:`MOST_HARD` nodes, no more than these are
    taken on others, until the claims can be had somewhere.
    """

    hard: int = 0

    @property
    def limit(self) -> int:
        """The most steps on the next node."""
        return MOST_STEPS if self.hard < MOST_HARD else FEW_STEPS

    def learn(self, steps: int, found: bool) -> None:
        """So many steps were taken on a node, and led somewhere or not."""
        self.hard = 0 if found else self.hard + (steps > FEW_STEPS)


@dataclass(frozen=True, slots=True)
class Given:
    """A device for a request."""

    ask: Ask
    offered: Offered


Solution = tuple[tuple[Given, ...], ...]
"""The devices of each claim."""


class CannotAllocate(Exception):  # noqa: N818  # an answer, not a mistake
    """Why the claims cannot have devices on a node, whoever else has some."""


def allocate(
    wishes: Sequence[Wish], node: NodeDevices, in_use: Container[DeviceId], effort: Effort | None = None
) -> Solution | None:
    """Devices for all claims, or None where there are none free.

    Raises :class:`CannotAllocate` where selectors or pools cannot be read, or the search takes too long.
    """
    effort = effort or Effort()
    search, found = _Search(wishes, node, in_use, effort.limit), None
    try:
        found = search.run()
    finally:
        effort.learn(search.steps, found is not None)
    return found


def devices_of(solution: Solution) -> list[tuple[DeviceId, ...]]:
    """Of each claim the devices that are in use by it: not those that it has with admin access."""
    return [tuple(one.offered.id for one in given if not one.ask.body.admin_access) for given in solution]


def how_many(
    wishes: Sequence[Wish], node: NodeDevices, in_use: Container[DeviceId], most: int, effort: Effort | None = None
) -> int:
    """How many times the claims can all have devices at once, one after the other; ``most`` where that many or more.

    Raises :class:`CannotAllocate` where not even the first time is found out.
    """
    ask = _only(wishes)
    if ask is not None and not node.counters:
        search, free = _Search(wishes, node, in_use, given=[[]]), 0
        try:
            for one in node.devices:
                free += search.is_free(0, ask, one) and _means(ask, one)
        except CannotAllocate:
            if free < ask.body.count:
                raise
        return min(free // ask.body.count, most)
    taken = _Also(in_use)
    for count in range(most):
        try:
            found = allocate(wishes, node, taken, effort)
        except CannotAllocate:
            if not count:
                raise
            return count
        more = {one for each in devices_of(found or ()) for one in each}
        if not more:
            return most if found else count  # nobody is in the way of admin access
        taken.more |= more
    return most


def _only(wishes: Sequence[Wish]) -> Ask | None:
    """The only thing that claims ask for, where no device is worth more than another to them: then they are counted."""
    if len(wishes) != 1 or wishes[0].constraints or len(wishes[0].choices) != 1 or len(wishes[0].choices[0]) != 1:
        return None
    ask = wishes[0].choices[0][0]
    return ask if not ask.all and not ask.body.admin_access and 0 < ask.body.count <= MOST_DEVICES else None


class _Also:
    """Devices in use, and some more."""

    def __init__(self, first: Container[DeviceId]) -> None:
        self._first = first
        self.more: set[DeviceId] = set()

    def __contains__(self, device: object) -> bool:
        return device in self.more or device in self._first


@dataclass(slots=True)
class _Search:
    wishes: Sequence[Wish]
    node: NodeDevices
    in_use: Container[DeviceId]
    limit: int = MOST_STEPS
    given: list[list[Given]] = field(default_factory=list)
    taken: set[DeviceId] = field(default_factory=set)
    left: dict[PoolId, Counters] = field(default_factory=dict)
    steps: int = 0

    def run(self) -> Solution | None:
        self.given = [[] for _ in self.wishes]
        for _ in self._claim(0):
            return tuple(map(tuple, self.given))
        return None

    # Each of these yields once for every way to go on to the end; what it took is given back when it is asked on.

    def _claim(self, at: int) -> Iterator[None]:
        if at == len(self.wishes):
            yield
        else:
            yield from self._request(at, 0)

    def _request(self, claim: int, at: int) -> Iterator[None]:
        choices = self.wishes[claim].choices
        if at == len(choices):
            yield from self._claim(claim + 1)
            return
        for ask in choices[at]:
            devices = self._all_meant(ask) if ask.all else self.node.devices
            wanted = len(devices) if ask.all else ask.body.count
            if 0 < wanted <= MOST_DEVICES - len(self.given[claim]):
                yield from self._devices((claim, at), ask, devices, wanted, 0)

    def _devices(
        self, place: tuple[int, int], ask: Ask, devices: Sequence[Offered], wanted: int, first: int
    ) -> Iterator[None]:
        claim, request = place
        if not wanted:
            yield from self._request(claim, request + 1)
            return
        tried: set[tuple[bytes, bool, bool]] = set()  # where one leads nowhere, another that is like it does not either
        for at in range(first, len(devices) - wanted + 1):
            self.steps += 1
            if self.steps > self.limit:
                raise CannotAllocate(f"no devices were found after {self.limit} attempts")
            one = devices[at]
            if not self.is_free(claim, ask, one) or not _means(ask, one):
                continue
            marked = one.id not in self.taken
            alike = one.kind, marked, one.id in self.in_use
            if alike in tried:
                continue
            tried.add(alike)
            if not self._take(one):
                continue
            self.given[claim].append(Given(ask, one))
            self.taken.add(one.id)
            yield from self._devices(place, ask, devices, wanted - 1, at + 1)
            self.given[claim].pop()
            self._give_back(one)
            if marked:
                self.taken.discard(one.id)

    def _all_meant(self, ask: Ask) -> Sequence[Offered]:
        """The devices that a request for all of them means, whoever has them."""
        if self.node.unready:
            raise CannotAllocate(f"request {ask.name} asks for all devices: {self.node.unready}")
        return [one for one in self.node.devices if _means(ask, one)]

    def is_free(self, claim: int, ask: Ask, one: Offered) -> bool:
        if ask.body.admin_access:
            if any(each.offered.id == one.id for each in self.given[claim]):
                return False
        elif one.id in self.in_use or one.id in self.taken:
            return False
        return not refused(one) and ask.tolerates(one.device.taints) and self._agrees(claim, ask, one)

    def _take(self, one: Offered) -> bool:
        """Take of its pool's counters what a device takes; whether there is enough."""
        if not one.takes:
            return True
        left = self._left(one.id[:2])
        for key, amount in one.takes.items():
            left[key] -= amount
        if min(left.values()) >= 0:
            return True
        self._give_back(one)
        return False

    def _give_back(self, one: Offered) -> None:
        for key, amount in one.takes.items():
            self._left(one.id[:2])[key] += amount

    def _left(self, pool: PoolId) -> Counters:
        """What devices in use leave of a pool's counters."""
        if pool not in self.left:
            shared = self.node.counters[pool]
            left = self.left[pool] = dict(shared.total)
            for device, takes in shared.takes:
                for key, amount in takes.items() if device in self.in_use else ():
                    left[key] -= amount
        return self.left[pool]

    def _agrees(self, claim: int, ask: Ask, one: Offered) -> bool:
        """Whether the constraints of the claim hold with a device beside those that it has."""
        for constraint in self.wishes[claim].constraints:
            name = constraint.match_attribute or constraint.distinct_attribute
            if constraint.requests and not {ask.name, ask.request} & set(constraint.requests):
                continue
            value = _attribute(one, name)
            if value is None:
                return False
            others = [
                _attribute(each.offered, name)
                for each in self.given[claim]
                if not constraint.requests or {each.ask.name, each.ask.request} & set(constraint.requests)
            ]
            if constraint.match_attribute and any(other != value for other in others):
                return False
            if not constraint.match_attribute and value in others:
                return False
        return True


def _attribute(one: Offered, name: str) -> DeviceAttribute | None:
    found = attribute(one.device, one.id.driver, name)
    return None if found == DeviceAttribute() else found


def _means(ask: Ask, one: Offered) -> bool:
    key = ask.expressions
    if key not in one.meant:
        try:
            one.meant[key] = all(matches(expression, one.device, one.id.driver) for expression in key)
        except SelectorError as error:
            raise CannotAllocate(f"request {ask.name}: device {'/'.join(one.id)}: {error}") from error
    return one.meant[key]


def refused(one: Offered) -> str:
    """The field of a device for which it is given to nobody here; empty where there is none."""
    device = one.device
    if device.allow_multiple_allocations:
        return "allowMultipleAllocations"
    return "bindingConditions" if device.binding_conditions else ""


Json = dict[str, Any]


def allocation(claim: ResourceClaim, given: Sequence[Given], node: str) -> Json:
    """The devices of a claim that is to be used on a node, their configuration, and from where they can be used."""
    devices: Json = {"results": [_result(one) for one in given]}
    config = [*_of_classes(given), *_of_claim(claim, given)]
    if config:
        devices["config"] = config
    selector = node_selector(given, node)
    return {"devices": devices} | ({"nodeSelector": selector} if selector else {})


def node_selector(given: Sequence[Given], node: str) -> Json:
    """From which nodes the devices can be used, all of them; empty where from every node."""
    if any(one.offered.local for one in given):
        here = {"key": NODE_NAME, "operator": "In", "values": [node]}
        return {"nodeSelectorTerms": [{"matchFields": [here]}]}
    term: dict[str, list[Json]] = {}
    for one in given:
        selector = one.offered.selector
        for requirements in map(msgspec.to_builtins, selector.node_selector_terms if selector else ()):
            for sort in ("matchFields", "matchExpressions"):
                found = term.setdefault(sort, [])
                found += [each for each in requirements.get(sort, ()) if each not in found]
    term = {sort: found for sort, found in term.items() if found}
    return {"nodeSelectorTerms": [term]} if term else {}


def _result(one: Given) -> Json:
    driver, pool, device = one.offered.id
    found: Json = {"request": one.ask.name, "driver": driver, "pool": pool, "device": device}
    if one.ask.body.admin_access:
        found["adminAccess"] = True
    if one.ask.body.tolerations:
        found["tolerations"] = [msgspec.to_builtins(each) for each in one.ask.body.tolerations]
    return found


def _of_classes(given: Sequence[Given]) -> Iterator[Json]:
    """Each class's configuration once, for all requests that chose the class."""
    asks: dict[str, dict[str, Ask]] = {}
    for one in given:
        asks.setdefault(one.ask.service.metadata.name, {})[one.ask.name] = one.ask
    for named in asks.values():
        for config in next(iter(named.values())).service.spec.config:
            yield _configured("FromClass", list(named), config)


def _of_claim(claim: ResourceClaim, given: Sequence[Given]) -> Iterator[Json]:
    chosen = {name for one in given for name in (one.ask.name, one.ask.request)}
    for config in claim.spec.devices.config:
        if not config.requests or chosen & set(config.requests):
            yield _configured("FromClaim", list(config.requests), config)


def _configured(source: str, requests: list[str], config: DeviceConfiguration) -> Json:
    found: Json = {"source": source, "opaque": config.opaque}
    return found | ({"requests": requests} if requests else {})
