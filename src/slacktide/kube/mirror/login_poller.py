"""Where workloads' users log in, asked of Prometheus now and then, for pods that do not say it themselves."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence

import aiohttp
import msgspec

from slacktide.config import KubeSettings
from slacktide.errors import ConfigError, SlacktideError
from slacktide.kube.client.http import OK
from slacktide.kube.mirror.network import NetworkMirror
from slacktide.model.logins import Logins, shares_of

LONGEST_SECONDS = 30.0
SHOWN = 200


class AccessCountsError(SlacktideError):
    """Prometheus did not answer a query, or not with counts by workload and place."""


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct, rename="camel"):
    result_type: str
    result: msgspec.Raw


class _Answer(msgspec.Struct, rename="camel"):
    status: str
    data: _Data | None = None
    error_type: str = ""
    error: str = ""


async def shares(
    url: str,
    query: str,
    label: str = "node",
    *,
    workload: Sequence[str] = ("namespace", "workload"),
    token: str = "",
    timeout: float = LONGEST_SECONDS,
) -> dict[str, Logins]:
    """Shares of each workload's accesses by place, from one instant query to a Prometheus at ``url``.

    The query gives counts (or rates) with the place in ``label`` and the workload in the labels ``workload``, joined
    by a slash as the result's keys, such as
    ``sum by (namespace, workload, node) (increase(http_requests_total[10m]))``. Series without one of these labels,
    negative counts and NaN are not counted, several series of one place are added up.

    Raises :class:`AccessCountsError`.
    """
    where = f"{url.rstrip('/')}/api/v1/query"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout), headers=headers) as session,
            session.post(where, data={"query": query}, allow_redirects=False) as response,
        ):
            status, body = response.status, await response.read()
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        said = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise AccessCountsError(f"{where}: {said}") from None
    return _shares(where, _vector(where, query, status, body), label, workload)


def _vector(where: str, query: str, status: int, body: bytes) -> list[_Sample]:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        said = body[:SHOWN].decode("utf-8", "replace").strip()
        raise AccessCountsError(f"{where}: found status {status} and {said!r}, expected Prometheus' answer") from None
    if status != OK or answer.status != "success" or answer.data is None:
        raise AccessCountsError(f"{where}: query {query!r}: {answer.error_type or status}: {answer.error}")
    if answer.data.result_type != "vector":
        raise AccessCountsError(
            f"{where}: query {query!r}: found a {answer.data.result_type}, expected an instant vector"
        )
    try:
        return msgspec.json.decode(answer.data.result, type=list[_Sample])
    except msgspec.DecodeError as error:
        raise AccessCountsError(f"{where}: query {query!r}: {error}") from None


def _shares(where: str, samples: list[_Sample], label: str, workload: Sequence[str]) -> dict[str, Logins]:
    counts: dict[str, dict[str, float]] = {}
    for sample in samples:
        name = [sample.metric.get(one, "") for one in workload]
        place = sample.metric.get(label, "")
        try:
            value = float(sample.value[1])
        except ValueError:
            raise AccessCountsError(f"{where}: found the count {sample.value[1]!r}, expected a number") from None
        if not place or not all(name) or not value > 0.0 or not math.isfinite(value):
            continue
        places = counts.setdefault("/".join(name), {})
        places[place] = places.get(place, 0.0) + value
    return {name: shares_of(places) for name, places in counts.items()}


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
