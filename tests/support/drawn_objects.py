"""Objects drawn at random that are valid by their kind's schema, extremes among them.

How wild an object is, is drawn as well: were all of its values extreme, the first that is refused would hide what the
others do.
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import Any

from msgspec import inspect

from slacktide.kube.client.kinds import Kind
from support.schemas import Json, called, schemas

NAMES = ("a", "b", "c")
"""Of all objects: what one says of another by its name is often right."""
SPACES = ("red", "blue")
LEVELS = 12
DEEP = 600
NEVER = frozenset({"apiVersion", "kind", "metadata", "managedFields"})
"""What the API server says itself."""

TEXTS: tuple[str, ...] = (
    "", "x", "a" * 253, "A_b.c-9", "a/b", "../..", "-1", "0", "1", "9" * 30, "9" * 4_400, "1e309", "nan", "inf", "-0",
    "0x10", "1_000", "٣", "\u0000", "\u202e\U0001f600", "é", " ", "\n", "{}", "[1", "null", "true", "%s{0}", "1 per 1h",
    "a" * 70_000, "=", ",", ";", "<", "a=b,c!=d", "*", "\\", '"',
)  # fmt: skip
QUANTITIES = (
    "0", "1", "100m", "1Gi", "64Mi", "2", "500m", "1k", "1e3", "0.5", "8E", "9223372036854775807", "-1", "1n", "1e-9",
    "100000000000000000000", "1e30", "1Ei", "0.000000001", "+1", "1e3Ki", "",
    "Gi", "x", "1e999999999", "5e-324", "1.", ".5",
)  # fmt: skip
TAME_QUANTITIES = ("0", "100m", "1", "64Mi", "1Gi")
TIMES = (
    "2026-09-21T12:00:00Z", "2026-09-21T12:00:00.123456Z", "2026-09-22T00:00:00Z", "2040-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z", "0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z",
    "2026-09-21T12:00:00+14:00", "2026-09-21T12:00:00.123456789Z",
)  # fmt: skip
WHOLE = (0, 1, 2, 3, 5, 30, 100)
EXTREME = {
    "int32": (-1, -(2**31), 2**31 - 1, 1_000_001),
    "int64": (-1, -(2**63), 2**63 - 1, 2**31, 2**53 + 1, 1_000_001),
}
NUMBERS = (0.0, 1.0, 0.5, 0.9, 0.999, -1.0, 1e-12, 5e-324, 1e308, -0.0, 12.5)
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"

POOLS: dict[str, Sequence[str]] = {
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", ""),
    "topologyKey": (HOSTNAME, ZONE, "app"),
    "whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "nodeAffinityPolicy": ("Honor", "Ignore"),
    "nodeTaintsPolicy": ("Honor", "Ignore"),
    "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
    "restartPolicy": ("Always", "Never", "OnFailure", ""),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    "accessModes": ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"),
    "volumeMode": ("Filesystem", "Block"),
    "phase": ("Pending", "Running", "Succeeded", "Failed", "Unknown", "Bound", "Lost", "Released", "Available", ""),
    "protocol": ("TCP", "UDP", "SCTP"),
    "type": ("Ready", "PodScheduled", "ContainersReady", "DisruptionTarget", "ReplicaFailure", "Complete", "Suspended"),
    "status": ("True", "False", "Unknown"),
    "reason": ("OutOfcpu", "CrashLoopBackOff", "ErrImagePull", "EvictionByEvictionAPI", "PreemptionByScheduler", ""),
    "schedulerName": ("slacktide", "slacktide", "slacktide", "default-scheduler", ""),
    "class": ("gold", "silver", "a"),
    "key": ("app", HOSTNAME, ZONE, "metadata.name", "slacktide.io/class", "example.com/t"),
    "values": ("a", "b", "c", "1", "5"),
    "value": ("a", "b", "1", "5", ""),
    "namespaces": (*SPACES, "*", "calm"),
    "priorityClassName": ("system-cluster-critical", "system-node-critical", "a", ""),
    "disruptionMode": ("Pod", "PodGroup", ""),
    "allocationMode": ("ExactCount", "All"),
    "expression": ("true", 'device.driver == "a"', 'device.attributes["a"].b == 1', "[1", "1/0 == 1", "size([1]) > 0"),
    "driver": NAMES, "pool": NAMES, "device": NAMES, "deviceClassName": NAMES,
    "approach": ("independent", "concurrent", "aggregated"),
    "counts": ("cluster", "everything"),
    "apiVersion": ("apps/v1", "batch/v1", "v1", "example.com/v1", ""),
    "kind": ("ReplicaSet", "Deployment", "Job", "StatefulSet", "DaemonSet", "Node", "Thing"),
    "addresses": ("10.0.0.1:4000", "[::1]:1", "x"),
}  # fmt: skip
AMOUNTS = (
    "cpu",
    "memory",
    "pods",
    "ephemeral-storage",
    "example.com/gpu",
    "hugepages-2Mi",
    "attachable-volumes-csi-a",
    "storage",
)
MARKED: dict[str, Sequence[str]] = {
    "app": NAMES,
    HOSTNAME: NAMES,
    ZONE: NAMES,
    "node-restriction.kubernetes.io/slacktide": ("true", "true", "false"),
    "slacktide.io/class": ("gold", "silver", "a"),
    "slacktide.io/default-class": ("gold", "silver", "a"),
    "slacktide.io/approach": ("independent", "concurrent", "aggregated"),
    "slacktide.io/slo": ("0.9", "99.9%", "1", "0"),
    "slacktide.io/alpha": ("10s", "1h", "0s"),
    "slacktide.io/disruptions": ("1 per 1h", "0 per 1h", "3 per 1d"),
    "slacktide.io/cooldown": ("10s", "1h"),
    "slacktide.io/min-running": ("10s", "99999w"),
    "slacktide.io/hours": ("Sat,Sun", "Mon-Fri 22:00-06:00", "Mon-Fri 22:00-06:00 Europe/Berlin"),
    "slacktide.io/users": ("a", "a=3,b=1", "10.0.0.1"),
    "slacktide.io/data": ("a", "b"),
    "slacktide.io/deadline": ("20ms", "1s"),
    "slacktide.io/preferred-node": NAMES,
    "slacktide.io/on-resize": ("move", "stay"),
    "scheduling.x-k8s.io/pod-group": NAMES,
    "kueue.x-k8s.io/pod-group-name": NAMES,
    "kueue.x-k8s.io/pod-group-total-count": ("1", "2", "3"),
    "volume.kubernetes.io/selected-node": NAMES,
    "pv.kubernetes.io/bind-completed": ("yes",),
    "volume.beta.kubernetes.io/storage-class": NAMES,
    "resource.kubernetes.io/extended-resource-claim": ("true",),
    "storageclass.kubernetes.io/is-default-class": ("true", "false"),
    "kubernetes.io/config.mirror": ("x",),
}
"""Labels and annotations that somebody reads, and what they say where they are right."""


class Drawer:
    """Draws objects; the same for the same seed."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.wild = self.full = 0.0

    def body(self, kind: Kind[Any], metadata: Json) -> Json:
        """An object of a kind, but for its metadata's names."""
        self.wild = self.chance.choice((0.0, 0.0, 0.02, 0.1, 0.5))
        self.full = self.chance.choice((0.15, 0.4, 0.8))
        found: Json = self.value(schemas()[called(kind)], inspect.type_info(kind.type), "")
        about = {"labels": self.marks(), "annotations": self.marks()} | metadata
        return {"apiVersion": kind.api_version, "kind": kind.kind} | found | {"metadata": about}

    def marks(self) -> dict[str, str]:
        """Labels or annotations."""
        keys = self.chance.sample(tuple(MARKED), self.chance.choice((0, 1, 2, 4)))
        found = {key: self.text(MARKED[key]) for key in keys}
        if self.is_wild(0.1):
            found |= {f"k{number}": "v" for number in range(self.chance.choice((10, 5_000)))}
        return found

    def is_wild(self, share: float = 1.0) -> bool:
        return self.chance.random() < self.wild * share

    def text(self, pool: Sequence[str]) -> str:
        """One of a pool, or anything."""
        if not self.is_wild():
            return self.chance.choice(pool)
        if self.chance.random() < 0.3:
            return "".join(self.chance.choices(string.printable, k=self.chance.randint(1, 12)))
        return self.chance.choice(TEXTS)

    # -- by schema -------------------------------------------------------------------------------------------------

    def value(self, schema: Json, read: Any, name: str, level: int = 0) -> Any:
        """A value that is valid by a schema; ``read`` is the type that the scheduler decodes it to, None where it does
        not."""
        if "$ref" in schema:
            target = schema["$ref"]
            if target.endswith(".Quantity"):
                return self.quantity()
            schema = schemas()["definitions"][target]
        if isinstance(read, inspect.UnionType):
            if schema.get("type") == "array" and self.chance.random() < 0.1:
                return None  # so Go writes a list that nobody wrote
            read = next((one for one in read.types if not isinstance(one, inspect.NoneType)), None)
        if schema.get("nullable") and self.chance.random() < 0.1:
            return None
        return self._of_type(schema, read, name, level)

    def _of_type(self, schema: Json, read: Any, name: str, level: int) -> Any:
        said, form = schema.get("type"), schema.get("format")
        if form == "anything" or (said == "object" and not {"properties", "additionalProperties"} & set(schema)):
            return self.anything()
        if form == "int-or-string":
            return self.quantity() if self.chance.random() < 0.7 else self.whole(schema)
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        if said == "object":
            return self._object(schema, read, name, level)
        if said == "array":
            return self._array(schema, read, name, level)
        if said == "integer":
            return self.whole(schema)
        if said == "number":
            return self._within(schema, self.chance.choice(NUMBERS))
        if said == "boolean":
            return self.chance.random() < 0.5
        if form == "date-time":
            return self.chance.choice(TIMES if self.is_wild(2.0) else TIMES[:4])
        if form == "byte":
            return "YQ=="
        if said == "string" or not schema.get("oneOf"):
            found = self.text(POOLS.get(name, NAMES))
            return found[: schema.get("maxLength", len(found))]
        return self.value(self.chance.choice(schema["oneOf"]), read, name, level)

    def _object(self, schema: Json, read: Any, name: str, level: int) -> Json:
        if "properties" not in schema:
            return self._map(schema["additionalProperties"], read, name, level)
        fields = {one.encode_name: one.type for one in getattr(read, "fields", ())}
        needed = {one.encode_name for one in getattr(read, "fields", ()) if one.required} | {
            *schema.get("required", ())
        }
        found: Json = {}
        for key, one in schema["properties"].items():
            if key in NEVER and level == 0:
                continue
            if key in fields:
                wanted = key in needed or (level < LEVELS and self.chance.random() < self.full)
            else:
                wanted = level < 3 and self.is_wild(0.02)
            if wanted:
                found[key] = self.value(one, fields.get(key), key, level + 1)
        return found

    def _map(self, schema: Json, read: Any, name: str, level: int) -> Json:
        if name in ("labels", "annotations"):
            return self.marks()
        amounts = str(schema.get("$ref", "")).endswith(".Quantity")
        keys: Sequence[str] = AMOUNTS if amounts else tuple(MARKED) if schema.get("type") == "string" else NAMES
        chosen = self.chance.sample(keys, self.chance.randint(0, 3))
        if self.is_wild(0.2):
            chosen.append(self.text(keys))
        inner = getattr(read, "value_type", None)
        if schema.get("type") == "string":
            return {key: self.text(MARKED.get(key, NAMES)) for key in chosen}
        return {key: self.value(schema, inner, key, level + 1) for key in chosen}

    def _array(self, schema: Json, read: Any, name: str, level: int) -> list[Any]:
        size = self.chance.choice((0, 1, 1, 2, 3))
        if name == "containers":
            size = max(1, size)
        if self.is_wild(0.05) and level > 1:
            size = self.chance.choice((101, 130))
        size = min(size, schema.get("maxItems", size))
        return [self.value(schema["items"], getattr(read, "item_type", None), name, level + 1) for _ in range(size)]

    def whole(self, schema: Json) -> int:
        extreme = EXTREME["int32" if schema.get("format") == "int32" else "int64"]
        return int(self._within(schema, self.chance.choice(extreme if self.is_wild(2.0) else WHOLE)))

    def _within(self, schema: Json, found: float) -> float:
        low, high = float(schema.get("minimum", "-inf")), float(schema.get("maximum", "inf"))
        return found if low <= found <= high else max(low, min(high, found))

    def quantity(self) -> str:
        return self.chance.choice(QUANTITIES if self.is_wild(2.0) else TAME_QUANTITIES)

    def anything(self) -> Any:
        """JSON of any form; where it is wild, of many levels."""
        found: Any = self.chance.choice((1, "x", True, None, 1e300, 2**70, [], {}))
        for _ in range(DEEP if self.is_wild(0.5) else self.chance.randint(0, 3)):
            found = [found] if self.chance.random() < 0.5 else {"a": found}
        return found if isinstance(found, dict) else {"a": found}
