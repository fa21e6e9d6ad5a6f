"""Which devices claims get: rules one by one, and small cases at random beside a search that knows no order."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from slacktide.kube.resources.devices import Device, DeviceAttribute, DeviceTaint, ResourceClaim
from slacktide.kube.resources.objects import DEVICE_CLASS, RESOURCE_CLAIM
from slacktide.kube.translate.devices.allocation import (
    FEW_STEPS,
    MOST_HARD,
    MOST_STEPS,
    CannotAllocate,
    Effort,
    Solution,
    allocate,
    allocation,
    devices_of,
    how_many,
)
from slacktide.kube.translate.devices.claims import Ask, Wish, wish_of
from slacktide.kube.translate.devices.pools import DeviceId, NodeDevices, Offered, PoolCounters
from slacktide.kube.translate.unschedulable import Unschedulable
from support.made_objects import decoded

DRIVER = "d.example"
MEMORY = "gpu", "memory"
OPAQUE = {"opaque": {"driver": DRIVER, "parameters": {"kind": "C"}}}
CLASSES = {
    name: decoded(DEVICE_CLASS, {"metadata": {"name": name}, "spec": {"selectors": selectors, "config": config}})
    for name, selectors, config in (
        ("any", [], [OPAQUE]),
        ("small", [{"cel": {"expression": 'device.attributes["d.example"].size == 1'}}], []),
        ("odd", [{}], []),
    )
}


def offered(name: str, **fields: Any) -> Offered:
    attributes = {
        key: DeviceAttribute(whole=value) if isinstance(value, int) else DeviceAttribute(string=value)
        for key, value in fields.pop("attributes", {"size": 1}).items()
    }
    memory = fields.pop("memory", 0)
    device = Device(name, attributes, **fields)
    kind = msgspec.msgpack.encode((attributes, fields, memory))
    return Offered(DeviceId(DRIVER, "p", name), device, True, None, kind, {MEMORY: memory} if memory else {})


def with_memory(devices: Sequence[Offered], memory: int) -> NodeDevices:
    """Devices of a pool that share an amount of memory."""
    shared = PoolCounters({MEMORY: memory, ("gpu", "cores"): 0}, tuple((one.id, one.takes) for one in devices))
    return NodeDevices(tuple(devices), counters={(DRIVER, "p"): shared})


def claim(*requests: Any, constraints: Sequence[Any] = (), config: Sequence[Any] = ()) -> ResourceClaim:
    made = [{"name": f"r{at}", **one} for at, one in enumerate(requests)]
    spec = {"devices": {"requests": made, "constraints": list(constraints), "config": list(config)}}
    return decoded(RESOURCE_CLAIM, {"metadata": {"name": "c", "uid": "c"}, "spec": spec})


def exactly(service: str = "any", **more: Any) -> Any:
    return {"exactly": {"deviceClassName": service, **more}}


def wish(*requests: Any, **more: Any) -> Wish:
    return wish_of(claim(*requests, **more), CLASSES)


def found(solution: Solution | None) -> list[list[str]] | None:
    return None if solution is None else [[one.offered.id.device for one in given] for given in solution]


def given_on(devices: Sequence[Offered], *wishes: Wish, in_use: Sequence[str] = ()) -> list[list[str]] | None:
    used = {DeviceId(DRIVER, "p", name) for name in in_use}
    return found(allocate(wishes, NodeDevices(tuple(devices)), used))


def test_the_first_free_devices_are_given() -> None:
    devices = [offered(name) for name in "wxyz"]
    assert given_on(devices, wish(exactly(count=2)), wish(exactly()), in_use=["w"]) == [["x", "y"], ["z"]]
    assert given_on(devices, wish(exactly(count=2)), wish(exactly(count=3))) is None


def test_a_choice_is_taken_back_where_what_follows_needs_it() -> None:
    devices = [offered("x", attributes={"size": 1}), offered("y", attributes={"size": 2})]
    assert given_on(devices, wish(exactly(), exactly("small"))) == [["y", "x"]]


def test_all_devices_or_none() -> None:
    devices = [offered("x"), offered("y", attributes={"size": 2}), offered("z")]
    assert given_on(devices, wish(exactly("small", allocationMode="All"))) == [["x", "z"]]
    assert given_on(devices, wish(exactly("small", allocationMode="All")), in_use=["z"]) is None
    assert given_on(devices, wish(exactly("small", allocationMode="All")), in_use=["y"]) == [["x", "z"]]
    assert given_on([], wish(exactly(allocationMode="All"))) is None
    with pytest.raises(CannotAllocate, match="request r0 asks for all devices: it is being updated"):
        allocate([wish(exactly(allocationMode="All"))], NodeDevices((), "it is being updated"), set())


def test_the_first_alternative_that_can_be_had() -> None:
    several = {
        "firstAvailable": [
            {"name": "three", "deviceClassName": "any", "count": 3},
            {"name": "one", "deviceClassName": "any"},
        ]
    }
    devices = [offered("x"), offered("y"), offered("z")]
    solution = allocate([wish(several)], NodeDevices(tuple(devices)), {devices[0].id})
    assert found(solution) == [["y"]]
    assert solution is not None
    assert solution[0][0].ask.name == "r0/one"
    # An alternative of a request is given up for the sake of those that follow.
    assert given_on(devices, wish(several, exactly())) == [["x", "y"]]


def test_constraints() -> None:
    devices = [offered(name, attributes={"board": board}) for name, board in zip("wxyz", "abcb", strict=True)]
    alike, apart = {"matchAttribute": f"{DRIVER}/board"}, {"distinctAttribute": f"{DRIVER}/board"}
    assert given_on(devices, wish(exactly(count=2), constraints=[alike])) == [["x", "z"]]
    assert given_on(devices, wish(exactly(count=3), constraints=[apart])) == [["w", "x", "y"]]
    assert given_on(devices, wish(exactly(count=3), constraints=[alike])) is None
    only = {**alike, "requests": ["r1", "r2"]}
    assert given_on(devices, wish(exactly(), exactly(), exactly(), constraints=[only])) == [["w", "x", "z"]]
    assert given_on([offered("v")], wish(exactly(), constraints=[alike])) is None


def test_admin_access_does_not_ask_who_has_a_device() -> None:
    devices = [offered("x"), offered("y")]
    admin = wish(exactly(adminAccess=True, allocationMode="All"))
    assert given_on(devices, admin, in_use=["x", "y"]) == [["x", "y"]]
    assert given_on(devices, wish(exactly(adminAccess=True), exactly(adminAccess=True))) == [["x", "y"]]
    assert given_on(devices[:1], wish(exactly(adminAccess=True), exactly(adminAccess=True))) is None


@pytest.mark.parametrize(
    ("toleration", "holds"),
    [
        ({}, True),
        ({"key": "bad", "operator": "Exists"}, True),
        ({"key": "bad", "operator": "Equal", "value": "1"}, True),
        ({"key": "bad", "operator": "Equal", "value": "2"}, False),
        ({"key": "bad", "operator": "Exists", "effect": "NoExecute"}, False),
        (None, False),
    ],
)
def test_taints(toleration: Any, holds: bool) -> None:
    tainted = offered("x", taints=(DeviceTaint("bad", "1", "NoSchedule"), DeviceTaint("said", "1", "None")))
    tolerations = [] if toleration is None else [{"operator": "Exists", **toleration}]
    assert (given_on([tainted], wish(exactly(tolerations=tolerations))) is not None) == holds


def test_parts_of_a_device_share_its_counters() -> None:
    whole, *parts = offered("whole", memory=80), *(offered(name, memory=40) for name in "xyz")
    node = with_memory([whole, *parts], 80)
    one, two = wish(exactly()), wish(exactly(count=2))
    assert found(allocate([one], node, set())) == [["whole"]]
    assert found(allocate([two], node, set())) == [["x", "y"]]
    assert allocate([one, one, one], node, set()) is None
    assert found(allocate([one], node, {parts[0].id})) == [["y"]]
    assert allocate([one], node, {parts[0].id, parts[2].id}) is None
    assert allocate([one], node, {whole.id}) is None


def test_some_devices_are_given_to_nobody() -> None:
    for field in ({"allow_multiple_allocations": True}, {"binding_conditions": ("a",)}):
        assert given_on([offered("x", **field)], wish(exactly())) is None


def test_a_claim_gets_32_devices_and_no_more() -> None:
    devices = [offered(f"d{at:02}") for at in range(40)]
    assert given_on(devices, wish(exactly(count=32))) is not None
    assert given_on(devices, wish(exactly(count=33))) is None
    assert given_on(devices, wish(exactly(count=20), exactly(count=13))) is None
    assert given_on(devices, wish(exactly(count=20)), wish(exactly(count=20))) is not None


def test_a_selector_that_fails_says_where() -> None:
    with pytest.raises(CannotAllocate, match=r"request r0: device d.example/p/x: CEL expression"):
        given_on([offered("x", attributes={})], wish(exactly("small")))


def test_a_selector_that_fails_on_a_later_device_does_no_harm_until_then() -> None:
    """As in kube-scheduler, which looks at a device only when it needs one more."""
    devices = [offered("x"), offered("y"), offered("z", attributes={})]
    assert given_on(devices, wish(exactly("small", count=2))) == [["x", "y"]]
    node = NodeDevices(tuple(devices))
    assert [how_many([wish(exactly("small", count=count))], node, set(), 9) for count in (1, 2)] == [2, 1]
    with pytest.raises(CannotAllocate):
        how_many([wish(exactly("small", count=3))], node, set(), 9)
    with pytest.raises(CannotAllocate):
        given_on(devices, wish(exactly("small", count=3)))


def test_a_search_without_end_is_given_up() -> None:
    devices = [offered(f"d{at:02}", attributes={"board": f"b{at}"}) for at in range(40)]
    alike = {"matchAttribute": f"{DRIVER}/board"}
    with pytest.raises(CannotAllocate, match="after 20000 attempts"):
        given_on(devices, wish(exactly(count=8)), wish(exactly(count=8)), wish(exactly(count=2), constraints=[alike]))


def test_who_asks_for_what_cannot_be_had_anywhere_is_searched_for_ever_less() -> None:
    """Else a claim could keep the scheduler busy: its devices are counted on every node, and again and again."""
    devices = [offered(f"d{at:02}", attributes={"board": f"b{at}"}) for at in range(40)]
    alike = {"matchAttribute": f"{DRIVER}/board"}
    hard = [wish(exactly(count=8)), wish(exactly(count=8)), wish(exactly(count=2), constraints=[alike])]
    node, effort = NodeDevices(tuple(devices)), Effort()
    said = []
    for _ in range(MOST_HARD + 2):
        with pytest.raises(CannotAllocate) as problem:
            how_many(hard, node, set(), 9, effort)
        said.append(str(problem.value))
    few = f"no devices were found after {FEW_STEPS} attempts"
    assert said == [f"no devices were found after {MOST_STEPS} attempts"] * MOST_HARD + [few] * 2
    pair = NodeDevices((*devices, replace(devices[0], id=DeviceId(DRIVER, "p", "twin"))))
    easy = [wish(exactly(count=2), constraints=[alike])]
    assert found(allocate(easy, pair, set(), effort)) == [["d00", "twin"]]
    assert effort.limit == MOST_STEPS


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ([exactly("absent")], r"requests\[0\].exactly.deviceClassName: device class absent does not exist"),
        ([exactly(capacity={"requests": {"memory": "1Gi"}})], r"requests\[0\].exactly.capacity"),
        ([exactly(), exactly(allocationMode="Most")], r"requests\[1\].exactly.allocationMode: found Most"),
        ([exactly(selectors=[{}])], r"requests\[0\].exactly.selectors\[0\]"),
        ([exactly("odd")], r"device class odd: spec.selectors\[0\]"),
        ([{}], r"requests\[0\]: found neither exactly nor firstAvailable"),
        ([{"firstAvailable": [{"name": "a", "deviceClassName": "absent"}]}], r"requests\[0\].firstAvailable\[0\]"),
    ],
)
def test_what_is_not_done_is_refused_by_its_field(requests: list[Any], said: str) -> None:
    with pytest.raises(Unschedulable, match=said):
        wish(*requests)
    with pytest.raises(Unschedulable, match=r"constraints\[0\]"):
        wish(exactly(), constraints=[{"requests": ["r0"]}])


def test_what_is_written_of_an_allocation() -> None:
    asked = claim(
        exactly(tolerations=[{"key": "a", "operator": "Exists"}], adminAccess=True),
        exactly("small"),
        config=[{**OPAQUE, "requests": ["r1"]}, {**OPAQUE, "requests": ["r9"]}, OPAQUE],
    )
    devices = NodeDevices((offered("x"), offered("y")))
    solution = allocate([wish_of(asked, CLASSES)], devices, set())
    assert solution is not None
    written = allocation(asked, solution[0], "n1")
    assert written["devices"]["results"] == [
        {"request": "r0", "driver": DRIVER, "pool": "p", "device": "x", "adminAccess": True,
         "tolerations": [{"key": "a", "operator": "Exists"}]},
        {"request": "r1", "driver": DRIVER, "pool": "p", "device": "y"},
    ]  # fmt: skip
    assert written["devices"]["config"] == [
        {"source": "FromClass", "requests": ["r0"], **OPAQUE},
        {"source": "FromClaim", "requests": ["r1"], **OPAQUE},
        {"source": "FromClaim", **OPAQUE},
    ]
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    assert written["nodeSelector"] == {"nodeSelectorTerms": [{"matchFields": [here]}]}


# -- beside a search that knows no order -----------------------------------------------------------------------------


def every_choice(ask: Ask, devices: Sequence[Offered]) -> Iterator[tuple[Offered, ...]]:
    meant = [one for one in devices if ask.service.metadata.name != "small" or one.device.attributes["size"].whole == 1]
    if ask.all:
        yield from [tuple(meant)] if meant else []
    else:
        yield from itertools.combinations(meant, ask.body.count)


def possible(wishes: Sequence[Wish], devices: Sequence[Offered], used: set[DeviceId], memory: int) -> bool:
    size = {one.id: one.takes.get(MEMORY, 0) for one in devices}
    memory -= sum(size[one] for one in used)
    requests = [choices for one in wishes for choices in one.choices]
    board_of = {one.id: one.device.attributes["board"] for one in devices}
    for asks in itertools.product(*requests):
        for chosen in itertools.product(*(every_choice(ask, devices) for ask in asks)):
            ids = [one.id for each in chosen for one in each]
            if len(set(ids)) < len(ids) or used & set(ids):
                continue
            if memory < sum(size[one] for one in ids) and any(size[one] for one in ids):
                continue
            split = iter(chosen)
            boards = [[board_of[one.id] for _ in one_wish.choices for one in next(split)] for one_wish in wishes]
            if all(_agree(one, held) for one, held in zip(wishes, boards, strict=True)):
                return True
    return False


def _agree(one: Wish, boards: list[DeviceAttribute]) -> bool:
    kinds = [bool(each.match_attribute) for each in one.constraints]
    different = len({each.string for each in boards})
    return all(different <= 1 if alike else different == len(boards) for alike in kinds)


def at_random(draw: random.Random) -> tuple[list[Wish], list[Offered], set[DeviceId], int]:
    devices = [
        offered(
            f"d{at}",
            attributes={"size": draw.choice([1, 2]), "board": draw.choice("abc")},
            memory=draw.choice([0, 0, 1, 2]),
        )
        for at in range(draw.randint(1, 6))
    ]
    wishes = []
    for _ in range(draw.randint(1, 2)):
        requests = []
        for _ in range(draw.randint(1, 2)):
            made = [
                {"name": f"s{at}", "deviceClassName": draw.choice(["any", "small"]), "count": draw.randint(1, 3)}
                for at in range(draw.randint(1, 2))
            ]
            if draw.random() < 0.2:
                made[0] |= {"allocationMode": "All"}
            requests.append({"firstAvailable": made} if draw.random() < 0.5 else {"exactly": made[0]})
        sort = draw.choice(["matchAttribute", "distinctAttribute", ""])
        constraints = [{sort: f"{DRIVER}/board"}] if sort else []
        wishes.append(wish(*requests, constraints=constraints))
    used = {one.id for one in devices if draw.random() < 0.2}
    return wishes, devices, used, draw.randint(2, 6)


def one_after_the_other(wishes: Sequence[Wish], node: NodeDevices, used: set[DeviceId]) -> int:
    taken, count = set(used), 0
    while (solution := allocate(wishes, node, taken)) is not None:
        taken |= {one for each in devices_of(solution) for one in each}
        count += 1
    return count


def test_devices_are_found_exactly_where_there_are_any() -> None:
    draw = random.Random(18)
    seen = {True: 0, False: 0}
    for _ in range(600):
        wishes, devices, used, memory = at_random(draw)
        solution = allocate(wishes, with_memory(devices, memory), used)
        assert (solution is not None) == possible(wishes, devices, used, memory)
        seen[solution is not None] += 1
        counted = how_many(wishes, with_memory(devices, memory), used, 9)
        assert counted == one_after_the_other(wishes, with_memory(devices, memory), used)
        plain = [wish(exactly(draw.choice(["any", "small"]), count=draw.randint(1, 3)))]
        there = NodeDevices(tuple(replace(one, takes={}) for one in devices))
        assert how_many(plain, there, used, 2) == min(one_after_the_other(plain, there, used), 2)
    assert min(seen.values()) > 100
