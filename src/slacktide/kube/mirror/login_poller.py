"""Where workloads' users log in, asked of Prometheus now and then, for pods that do not say it themselves."""

from __future__ import annotations

import asyncio
import logging

from slacktide.config import KubeSettings
from slacktide.errors import ConfigError
from slacktide.kube.client.access_counts import AccessCountsError, shares
from slacktide.kube.mirror.network import NetworkMirror
from slacktide.model.logins import Logins

LOG = logging.getLogger(__name__)

STEPS = 20
"""Shares are told in twentieths: else hardly two pods would ask for the same, and every query bring others."""


class LoginPoller:
    """Tells the mirror of the network where users log in.

    Raises :class:`ConfigError` where only one of address and query is given.
    """

    def __init__(self, settings: KubeSettings, network: NetworkMirror) -> None:
        if bool(settings.access_url) != bool(settings.access_query):
            given, missing = ("access_url", "access_query") if settings.access_url else ("access_query", "access_url")
            raise ConfigError(f"kube.{given}: found it alone, expected kube.{missing}, too")
        self._settings, self._network = settings, network
        self._failed = ""

    async def run(self) -> None:
        """PodTerms until cancelled; returns at once where nobody is to be asked, or no score looks at users."""
        if not (self._network.asked and self._settings.access_url):
            return
        while True:
            await self.ask()
            await asyncio.sleep(self._settings.access_interval)

    async def ask(self) -> None:
        """PodTerms once; what was known stays where no answer comes, which is logged when it begins and ends."""
        url, query = self._settings.access_url or "", self._settings.access_query or ""
        try:
            found = await shares(url, query)
        except AccessCountsError as problem:
            if str(problem) != self._failed:
                LOG.warning("access counts: %s", problem)
            self._failed = str(problem)
            return
        if self._failed:
            LOG.info("access counts: Prometheus answers again")
        self._failed = ""
        self._network.see_logins({workload: in_steps(logins) for workload, logins in found.items()})


def in_steps(logins: Logins) -> Logins:
    """Shares in twentieths that sum to 1; places of less than half of one are left out, but for the largest."""
    kept = {place: round(share * STEPS) for place, share in logins}
    if logins and not any(kept.values()):
        kept[max(logins, key=lambda one: one[1])[0]] = 1
    total = sum(kept.values())
    return tuple((place, number / total) for place, number in sorted(kept.items()) if number)
