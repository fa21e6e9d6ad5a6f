"""Where nodes and users are: places, images, bandwidth, round-trip times, logins; kept where the score asks for it."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping, Sequence

import aiohttp
import msgspec

from slacktide.config import Config, KubeSettings
from slacktide.errors import ConfigError, SlacktideError
from slacktide.inputs.formats.network_file import read_network
from slacktide.kube.client.http import OK
from slacktide.kube.mirror.barrier import Changes
from slacktide.kube.resources.objects import Identity, Node, NodeLatency, Pod, as_row
from slacktide.kube.translate.owners import Owners
from slacktide.kube.translate.user_access import NO_WANTS, Accesses, Wants
from slacktide.model.latency import Row
from slacktide.model.logins import Logins, shares_of
from slacktide.state.cluster import NETWORK, asks_for_users, by_application

LOG = logging.getLogger(__name__)

MEGABIT = 1e6 / 8
"""Bytes; images are told in these, as bandwidth counts them a second."""


class NetworkMirror:
    """What is known besides pods where the score asks where users are; ``asked`` says whether it does.

    ``followers`` hear of images. Raises :class:`ConfigError` or :class:`InputError` for a network file that cannot be
    used.
    """

    def __init__(self, config: Config, followers: Changes | None = None) -> None:
        self.asked = asks_for_users(config)
        self.site_label = config.kube.site_label
        self.network = read_network(config.delay.network) if self.asked and config.delay.network else None
        self.watches = self.asked and self.network is None
        """Whether round-trip times come from NodeLatencies."""
        self.rows: dict[str, Row] = {}
        """Round-trip times as nodes' agents published them."""
        self.places: dict[str, str] = {}
        """The place of each node: the value of ``site_label``, else the node itself."""
        self.version = 0
        """Counts changes of ``rows`` and ``places``."""
        self.listed: dict[str, tuple[str, ...]] = {}
        """Images of each node."""
        self.sizes: dict[str, float] = {}
        """Of images, megabits."""
        self.file_images = {} if self.network is None else {one.name: one for one in self.network.images}
        self._followers = followers or Changes()
        self._by_application = by_application(config)
        self._bandwidth = config.kube.network_resource
        self.logins: Mapping[str, Logins] = {}
        self._known = Accesses()
        self._wide: set[str] = set()  # nodes with bandwidth

    # -- pods and amounts ------------------------------------------------------------------------------------------

    def named(self, amounts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
        """Amounts with bandwidth under its name in the core."""
        if not self.asked or not self._bandwidth:
            return tuple(amounts)
        return tuple((NETWORK if name == self._bandwidth else name, amount) for name, amount in amounts)

    def wants_of(self, pod: Pod, owners: Owners) -> Wants:
        """What a pod asks beyond its demand; nothing where no score looks at it. Raises :class:`Unschedulable`."""
        if not self.asked:
            return NO_WANTS
        application = ""
        counted: Logins = ()
        if (self._by_application or self.logins) and (target := owners.target_of(pod.metadata)) is not None:
            application = target.key if self._by_application else ""
            counted = self.logins.get(f"{pod.metadata.namespace}/{target.name}", ())
        return self._known.of(pod, self._image_of(pod), application, counted)

    def _image_of(self, pod: Pod) -> str:
        """The largest image of its containers that is known; empty where none is."""
        best, most = "", -1.0
        for container in pod.spec.containers:
            name = tagged(container.image)
            if container.image in self.file_images:
                return container.image
            size = self.sizes.get(name, -1.0)
            if size > most:
                best, most = name, size
        return best

    # -- nodes -----------------------------------------------------------------------------------------------------

    def on_node_update(self, node: Node) -> None:
        """A node, new or changed."""
        if not self.asked:
            return
        name = node.metadata.name
        place = node.metadata.labels.get(self.site_label, name) if self.site_label else name
        if self.places.get(name) != place:
            self.places[name] = place
            self.version += 1
        self._see_bandwidth(name, node.status.allocatable.get(self._bandwidth, "0") != "0")
        here = [(one, image.size_bytes) for image in node.status.images or () for one in image.names or ()]
        for one, size in here:
            if self.sizes.get(one) != size / MEGABIT and one not in self.file_images:
                self.sizes[one] = size / MEGABIT
                self._followers.image_sizes((one,))
        listed = tuple(one for one, _ in here)
        listed += tuple(one.name for one in self.file_images.values() if name in one.present)
        if self.listed.get(name, ()) != listed:
            self.listed[name] = listed
            self._followers.images_listed(name, listed)

    def on_node_delete(self, name: str) -> None:
        """A node is gone."""
        self.version += self.places.pop(name, None) is not None
        self.listed.pop(name, None)
        self._wide.discard(name)

    def _see_bandwidth(self, name: str, wide: bool) -> None:
        before = self.has_bandwidth
        if wide:
            self._wide.add(name)
        else:
            self._wide.discard(name)
        if before != self.has_bandwidth:
            self._followers.image_sizes(self.sizes)

    @property
    def has_bandwidth(self) -> bool:
        """Whether any node has bandwidth, by which it is known how long fetching an image takes."""
        return bool(self._wide)

    # -- round-trip times ------------------------------------------------------------------------------------------

    def on_row_update(self, found: NodeLatency) -> None:
        """A row that a node's agent published, new or changed."""
        self.rows[found.metadata.name] = as_row(found)
        self.version += 1

    def on_row_delete(self, identity: Identity) -> None:
        """A row is gone."""
        self.version += self.rows.pop(identity.name, None) is not None


def tagged(image: str) -> str:
    """An image's name as nodes list it where it was given without a tag."""
    last = image.rpartition("/")[2]
    return image if not image or ":" in last or "@" in last else f"{image}:latest"


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
        self._network.logins = {workload: in_steps(logins) for workload, logins in found.items()}


def in_steps(logins: Logins) -> Logins:
    """Shares in twentieths that sum to 1; places of less than half of one are left out, but for the largest."""
    kept = {place: round(share * STEPS) for place, share in logins}
    if logins and not any(kept.values()):
        kept[max(logins, key=lambda one: one[1])[0]] = 1
    total = sum(kept.values())
    return tuple((place, number / total) for place, number in sorted(kept.items()) if number)
