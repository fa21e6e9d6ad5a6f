"""Whether the API server has the custom resources without which nothing can be promised, and no ledger be kept."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from slacktide.kube.client.http import FORBIDDEN, NOT_FOUND, ApiError, Connection, KubeError, Unreachable
from slacktide.kube.resources.objects import AVAILABILITY, SERVICE_CLASS, Kind

LOG = logging.getLogger(__name__)

NEEDED: dict[Kind[Any], str] = {SERVICE_CLASS: "00-serviceclasses.yaml", AVAILABILITY: "01-availabilities.yaml"}
"""By kind the manifest that defines it, in ``src/slacktide/kube/manifests``."""
POLICIES = ("class", "quota", "annotations", "default-class")
"""Admission policies of ``30-admission.yaml``, each with a binding of its name, by their names behind the release's."""
LOOKS_PASSED_OVER = 120
"""After the account was not allowed to look at them: about an hour, as an API server that begins allows nobody."""
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
LOOK_AGAIN_SECONDS, MISSING_SECONDS = 30.0, 1.0
"""Between two looks: while all is there, and while something is missing."""


async def installed(connection: Connection) -> None:
    """Raises :class:`KubeError` saying what is to be applied, where something is missing."""
    if missing := await Installation(connection).look():
        raise KubeError(missing)


class Installation:
    """Looks now and then; ``missing`` says what is to be applied, and is empty while nothing is.

    ``policies_missing`` counts admission policies and bindings of ``release`` that are not there: ``None`` where nobody
    knows, as where the account may not look, which it may where the chart has them.
    """

    def __init__(self, connection: Connection, release: str = "") -> None:
        self.missing = ""
        self.policies_missing: int | None = None
        self._release = release
        self._passes_over = 0
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
            if self._release and not found:
                await self.look_for_policies()
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

    async def look_for_policies(self) -> None:
        """Counts the admission policies that are missing; where that is not allowed, not again for a while."""
        if self._passes_over:
            self._passes_over -= 1
            return
        missing = 0
        for name in POLICIES:
            for plural in ("validatingadmissionpolicies", "validatingadmissionpolicybindings"):
                try:
                    await self._connection.get(f"{ADMISSION}/{plural}/{self._release}-{name}")
                except ApiError as error:
                    if error.status == FORBIDDEN:
                        self.policies_missing, self._passes_over = None, LOOKS_PASSED_OVER
                        return
                    missing += error.status == NOT_FOUND
                except Unreachable:
                    return
        self.policies_missing = missing

    async def _is_missing(self, path: str) -> bool:
        try:
            await self._connection.get(path, query={"limit": "1"})
        except ApiError as error:
            return error.status == NOT_FOUND
        except Unreachable:
            return False  # the watches tell of that
        return False
