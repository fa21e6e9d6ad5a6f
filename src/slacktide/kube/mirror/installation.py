"""Whether the API server has the custom resources without which nothing can be promised, and no ledger be kept."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from slacktide.kube.client.http import ApiError, Connection, KubeError, Unreachable
from slacktide.kube.client.kinds import Kind
from slacktide.kube.client.status_codes import NOT_FOUND
from slacktide.kube.resources.objects import AVAILABILITY, SERVICE_CLASS

LOG = logging.getLogger(__name__)

NEEDED: dict[Kind[Any], str] = {SERVICE_CLASS: "00-serviceclasses.yaml", AVAILABILITY: "01-availabilities.yaml"}
"""By kind the manifest that defines it, in ``src/slacktide/kube/manifests``."""
LOOK_AGAIN_SECONDS, MISSING_SECONDS = 30.0, 1.0
"""Between two looks: while all is there, and while something is missing."""


async def installed(connection: Connection) -> None:
    """Raises :class:`KubeError` saying what is to be applied, where something is missing."""
    if missing := await Installation(connection).look():
        raise KubeError(missing)


class Installation:
    """Looks now and then; ``missing`` says what is to be applied, and is empty while nothing is."""

    def __init__(self, connection: Connection) -> None:
        self.missing = ""
        self._connection = connection

    async def run(self) -> None:
        """Looks until cancelled; what is missing is told when it begins to be."""
        while True:
            found = await self.look()
            if found and not self.missing:
                LOG.error("%s", found)
            elif self.missing and not found:
                LOG.info("the custom resource definitions are installed now")
            self.missing = found
            await asyncio.sleep(MISSING_SECONDS if found else LOOK_AGAIN_SECONDS)

    async def look(self) -> str:
        """What is missing now, and what to do; nothing where the API server does not say so."""
        gone = [kind for kind in NEEDED if await self._is_missing(kind.path())]
        if not gone:
            return ""
        names = " and no ".join(f"{kind.plural}.{kind.api_version.partition('/')[0]}" for kind in gone)
        files = ", ".join(NEEDED[kind] for kind in gone)
        return (
            f"the API server has no {names}: nothing is placed until they are there; "
            f"kubectl apply -f src/slacktide/kube/manifests ({files})"
        )

    async def _is_missing(self, path: str) -> bool:
        try:
            await self._connection.get(path, query={"limit": "1"})
        except ApiError as error:
            return error.status == NOT_FOUND
        except Unreachable:
            return False  # the watches tell of that
        return False
