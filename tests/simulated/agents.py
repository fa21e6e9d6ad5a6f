"""What all parts of a modelled cluster share: they follow the store, and do what they do a moment later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from decimal import Decimal
from functools import lru_cache
from math import ceil

from simulated.api_model import ApiModel
from simulated.chance import Chance
from simulated.pod_model import OVER
from simulated.resources import BY_NAME, Json, Refused, Target
from simulated.store import Change, Key, Store

PODS, NODES = BY_NAME["pods"], BY_NAME["nodes"]


class Agent:
    """A controller: ``wake`` has it look at a key once more, soon. What it does takes no time, and no network."""

    pace = (0.01, 0.5)

    def __init__(self, api: ApiModel, chance: Chance) -> None:
        self.api, self.store, self.chance = api, api.store, chance
        self._loop = asyncio.get_running_loop()
        self._due: set[Key] = set()
        self._subject = type(self).__name__
        self.store.followers.append(self.see)

    @property
    def now(self) -> float:
        return self.store.now()

    def see(self, change: Change) -> None:
        """Something was written."""

    def sync(self, key: Key) -> None:
        """Bring what is into line with what is wished."""

    def later(self, seconds: float, call: Callable[..., None], *args: object) -> None:
        self._loop.call_later(seconds, call, *args, context=Context())

    def soon(self) -> float:
        return self.chance.between(self._subject, *self.pace)

    def wake(self, key: Key) -> None:
        if key not in self._due:
            self._due.add(key)
            self.later(self.soon(), self._turn, key)

    def _turn(self, key: Key) -> None:
        self._due.discard(key)
        self.sync(key)


def is_over(pod: Json) -> bool:
    return pod["status"].get("phase") in OVER


def is_active(pod: Json) -> bool:
    """As controllers count replicas."""
    return not is_over(pod) and not pod["metadata"].get("deletionTimestamp")


def owner_of(body: Json) -> Json | None:
    """Its controller."""
    for one in body["metadata"].get("ownerReferences", ()):
        if one.get("controller"):
            return one  # type: ignore[no-any-return]
    return None


def reference(owner: Json) -> Json:
    metadata = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"],
            "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}  # fmt: skip


def owned(store: Store, plural: str, uid: str) -> list[Json]:
    """What has this controller, oldest first."""
    found = [
        one
        for one in store.objects[plural].values()
        for owner in one["metadata"].get("ownerReferences", ())
        if owner["uid"] == uid and owner.get("controller")
    ]
    return sorted(found, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))


def remove(api: ApiModel, plural: str, body: Json, grace: int | None = None) -> None:
    """Delete an object, as a controller or a kubelet does: this very one, where it is still there."""
    metadata = body["metadata"]
    options: Json = {"preconditions": {"uid": metadata["uid"]}}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    try:
        api.delete(Target(BY_NAME[plural], metadata.get("namespace", ""), metadata["name"], ""), options)
    except Refused as no:
        if no.code not in (404, 409):
            raise


def amounts(pod: Json) -> tuple[int, int]:
    """Millicores and bytes that it asks for, or that its kubelet has given it where it asked for other ones since."""
    cpu = memory = 0
    told = pod["status"].get("containerStatuses", ())
    given = {one["name"]: one["allocatedResources"] for one in told if "allocatedResources" in one}
    for one in pod["spec"].get("containers", ()):
        asked = given.get(one["name"]) or one.get("resources", {}).get("requests", {})
        cpu += millicores(asked.get("cpu", "0"))
        memory += octets(asked.get("memory", "0"))
    return cpu, memory


UNITS = {name: f"1e{power}" for name, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)}
UNITS |= {f"{name}i": str(1024**power) for power, name in enumerate("KMGTPE", 1)}


@lru_cache(4096)
def quantity(text: str) -> Decimal:
    """What a quantity says."""
    unit = next((one for one in (text[-2:], text[-1:]) if one in UNITS), "")
    return Decimal(text.removesuffix(unit)) * Decimal(UNITS.get(unit, "1"))


@lru_cache(4096)
def millicores(text: str) -> int:
    return ceil(quantity(text) * 1000)


@lru_cache(4096)
def octets(text: str) -> int:
    return ceil(quantity(text))


def room(node: Json) -> tuple[int, int, int]:
    """Millicores, bytes and pods that it has."""
    has = node["status"]["allocatable"]
    return millicores(has["cpu"]), octets(has["memory"]), int(has["pods"])


def taken(pods: list[Json]) -> tuple[int, int, int]:
    """What those take that are not over."""
    several = [amounts(one) for one in pods if not is_over(one)]
    return sum(cpu for cpu, _ in several), sum(memory for _, memory in several), len(several)


def on_node(store: Store, name: str) -> list[Json]:
    return [one for one in store.objects["pods"].values() if one["spec"].get("nodeName") == name]
