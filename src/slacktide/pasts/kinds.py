"""Which kinds of objects a story is about."""

from __future__ import annotations

from typing import Any

from slacktide.kube.client.kinds import Kind
from slacktide.kube.resources import objects

TOLD: tuple[Kind[Any], ...] = (
    objects.NAMESPACE, objects.SERVICE_CLASS, objects.NODE, objects.SERVICE, objects.REPLICATION_CONTROLLER,
    objects.POD_DISRUPTION_BUDGET, objects.DEPLOYMENT, objects.REPLICA_SET, objects.STATEFUL_SET, objects.JOB,
    objects.CRON_JOB, objects.PERSISTENT_VOLUME, objects.PERSISTENT_VOLUME_CLAIM, objects.STORAGE_CLASS,
    objects.CSI_DRIVER, objects.CSI_STORAGE_CAPACITY, objects.CSI_NODE, objects.VOLUME_ATTACHMENT,
    objects.DEVICE_CLASS, objects.RESOURCE_SLICE, objects.RESOURCE_CLAIM, objects.POD,
)  # fmt: skip
"""What decides where a pod may run, whose it is and what it is promised, in the order in which it is told. No
Secret, no ConfigMap."""
NEEDED = (objects.NODE, objects.POD)
"""Without them there is nothing to simulate."""


def _group(kind: Kind[Any]) -> str:
    return kind.api_version.rpartition("/")[0]


BY_KIND = {(_group(one), one.kind): one for one in TOLD}
"""By API group and kind. Any version of a group will do: what is read is the same in all that are served."""
BY_RESOURCE = {(_group(one), one.plural): one for one in TOLD}
"""By API group and plural."""


def kind_of(api_version: str, kind: str) -> Kind[Any] | None:
    """The kind that an object says it is of, where a story is about it."""
    return BY_KIND.get((api_version.rpartition("/")[0], kind))
