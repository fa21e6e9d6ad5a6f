"""Images and round-trip times, told to the engine where its score asks where users are."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core.engine import Engine
from slacktide.kube.mirror.network import NetworkMirror
from slacktide.model.latency import latencies

LOG = logging.getLogger(__name__)

MOST_PLACES = 1000
"""Of more places no round-trip times are kept: their number grows with the square."""
SOONEST_SECONDS = 1.0
LATEST_SECONDS = 30.0
"""Rows that changed are looked at after the first; so are all after the second, as rows grow stale by themselves."""


class NetworkFeed:
    """Tells an engine what the mirror knows of the network. Rows older than ``stale_after`` seconds do not count."""

    def __init__(self, mirror: NetworkMirror, engine: Engine, stale_after: float) -> None:
        self._mirror, self._engine, self._stale_after = mirror, engine, stale_after
        self._version = -1
        self._soonest = self._latest = float("-inf")
        self._told: tuple[tuple[str, ...], NDArray[np.float64]] = ((), np.zeros((0, 0)))
        self._too_many = False

    def tell_all(self, now: float) -> None:
        """Tell a new engine all."""
        mirror = self._mirror
        if not mirror.asked:
            return
        for one in mirror.file_images.values():
            self._engine.image(one.name, one.seconds, one.size)
        self.image_sizes(mirror.sizes)
        for node, listed in mirror.listed.items():
            self._engine.images(node, listed)
        if mirror.network is not None:
            self._tell(mirror.network.places, np.array(mirror.network.rtt), mirror.network.site_key)
        self.refresh(now)

    def image_sizes(self, names: Iterable[str]) -> None:
        """Tell the sizes of images. Without bandwidth nobody knows how long fetching takes: then it takes no time."""
        for name in names:
            self._engine.image(name, 0.0, self._mirror.sizes[name] if self._mirror.has_bandwidth else 0.0)

    def refresh(self, now: float) -> None:
        """Tell round-trip times that are others than before, if that is due; before a pass."""
        mirror = self._mirror
        changed = mirror.version != self._version
        if not mirror.watches or now < (self._soonest if changed else self._latest):
            return
        sites = self._sites()
        found = latencies(mirror.rows.values(), now, self._stale_after, names=tuple(mirror.places), place_of=sites)
        self._version = mirror.version
        # As long again as this takes, many times over, it is left alone; a large cluster has news every second.
        self._soonest = now + max(SOONEST_SECONDS, len(mirror.places) * SOONEST_SECONDS / 200)
        self._latest = now + LATEST_SECONDS
        if len(found.names) > MOST_PLACES:
            if not self._too_many:
                LOG.warning(
                    "found %d places, expected at most %d: round-trip times are not used; set kube.site_label to a "
                    "label that nodes of one place share", len(found.names), MOST_PLACES,
                )  # fmt: skip
            self._too_many = True
            self._tell((), np.zeros((0, 0)), "")
            return
        self._too_many = False
        self._tell(found.names, np.round(found.rtt, 6), mirror.site_label if sites else "")

    def _sites(self) -> Mapping[str, str] | None:
        """The place of each node with another than itself; None where there is none."""
        found = {name: place for name, place in self._mirror.places.items() if place != name}
        return found or None

    def _tell(self, places: tuple[str, ...], rtt: NDArray[np.float64], site_key: str) -> None:
        before, old = self._told
        if places != before:
            known = {name: number for number, name in enumerate(before)}
            kept = [(i, known[name]) for i, name in enumerate(places) if name in known]
            now = np.zeros_like(rtt)
            if kept:
                i, j = np.array(kept).T
                now[np.ix_(i, i)] = old[np.ix_(j, j)]
            old = now
        differ = np.argwhere(np.triu(rtt != old))
        if len(differ) or places != before:
            self._engine.network(places, site_key, [(i, j, float(rtt[i, j])) for i, j in differ.tolist()])
            self._told = (places, rtt)
