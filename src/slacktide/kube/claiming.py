"""Claims that wait for their first pod: provisioners are told its node, and it is bound once its volumes are there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from slacktide.kube.bodies import encode_annotations
from slacktide.kube.connection import MERGE_PATCH, ApiError, Connection, Unreachable
from slacktide.kube.entries import Entry
from slacktide.kube.intake import Intake
from slacktide.kube.objects import PERSISTENT_VOLUME_CLAIM
from slacktide.kube.storage import SELECTED_NODE

LOOK_AGAIN_SECONDS = 0.2
PROVISION_SECONDS = 600.0
"""How long a provisioner may take."""


class Claiming:
    """Follows the annotation protocol of volume provisioning. ``leading`` is asked before every act."""

    def __init__(
        self, connection: Connection, intake: Intake, clock: Callable[[], float], leading: Callable[[], bool]
    ) -> None:
        self._connection, self._intake, self._clock, self._leading = connection, intake, clock, leading

    async def ready(self, entry: Entry, host: str) -> str:
        """Wait until the volumes of a pod that is to be on ``host`` are there; else why they will not be."""
        names = entry.needs.provision
        for name in names:
            if problem := await self._select(entry, name, host):
                return problem
        storage, namespace = self._intake.world.storage, entry.pod.metadata.namespace
        until = self._clock() + PROVISION_SECONDS
        told: set[str] = set()
        while self._clock() < until:
            if entry.uid not in self._intake.pods:
                return "the pod is gone"
            if not self._leading():
                return "another replica leads"
            needs = storage.needs(entry.pod)
            if not needs.provision and not needs.waits:
                return ""
            for name in names:
                selected = storage.selected(namespace, name)
                if selected == host:
                    told.add(name)
                elif selected is None:
                    return f"claim {name} is gone"
                elif selected or name in told:
                    return f"no volume for claim {name} could be made for node {host}"
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        return f"no volumes for its claims within {PROVISION_SECONDS:.0f} s"

    async def _select(self, entry: Entry, name: str, host: str) -> str:
        """Write the node onto a claim; why that cannot be, or empty."""
        namespace = entry.pod.metadata.namespace
        selected = self._intake.world.storage.selected(namespace, name)
        if selected == host:
            return ""
        if selected:
            return f"a volume for claim {name} is being made for node {selected}"
        path = PERSISTENT_VOLUME_CLAIM.path(namespace, name)
        body = encode_annotations({SELECTED_NODE: host})
        try:
            await self._connection.patch(path, body, MERGE_PATCH, permit=self._leading)
        except (ApiError, Unreachable) as error:
            return f"claim {name}: {error}"
        return ""
