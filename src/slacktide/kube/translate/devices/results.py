"""What is written down of an allocation: ``status.allocation`` of a claim, as kube-scheduler writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from slacktide.kube.resources.devices import DeviceConfiguration, ResourceClaim
from slacktide.kube.translate.devices.allocation import Given
from slacktide.kube.translate.devices.claims import Ask
from slacktide.kube.translate.selectors import NODE_NAME

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
