"""Where nodes and users are: round-trip times, images and bandwidth, told to the engine where its score asks."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.inputs.network_file import read_network
from slacktide.kube.access import NO_WANTS, Accesses, Wants
from slacktide.kube.kinds import Identity
from slacktide.kube.latencies import NodeLatency, as_row
from slacktide.kube.objects import Node, Pod
from slacktide.kube.owners import Owners
from slacktide.live.engine import Engine
from slacktide.model import Image
from slacktide.model.latency import Row, latencies
from slacktide.model.logins import Logins
from slacktide.state.cluster import NETWORK, PLACERS, OwnCode, score_code

LOG = logging.getLogger(__name__)

MOST_PLACES = 1000
"""Of more places no round-trip times are kept: their number grows with the square."""
SOONEST_SECONDS = 1.0
LATEST_SECONDS = 30.0
"""Rows that changed are looked at after the first; so are all after the second, as rows grow stale by themselves."""
MEGABIT = 1e6 / 8
"""Bytes; images are told in these, as bandwidth counts them a second."""


class Edge:
    """What is known besides pods where the score asks where users are; ``asked`` says whether it does.

    Raises :class:`ConfigError` or :class:`InputError` for a network file that cannot be used.
    """

    def __init__(self, config: Config) -> None:
        score = score_code(config, OwnCode())
        self.asked = score in PLACERS.values()
        self._by_application = score == PLACERS["elastic-fog"]
        self._stale_after = config.kube.latency_stale
        self._label = config.kube.site_label
        self._bandwidth = config.kube.network_resource
        self.network = read_network(config.delay.network) if self.asked and config.delay.network else None
        self.watches = self.asked and self.network is None
        """Whether round-trip times come from NodeLatencies."""
        self.rows: dict[str, Row] = {}
        self.logins: dict[str, Logins] = {}
        """Where users of workloads (NAMESPACE/NAME) were counted; for pods that do not say it."""
        self._known = Accesses()
        self._nodes: dict[str, str] = {}  # the place of each
        self._listed: dict[str, tuple[str, ...]] = {}  # images of each
        self._sizes: dict[str, float] = {}  # of images, megabits
        self._wide: set[str] = set()  # nodes with bandwidth
        self._file_images = {} if self.network is None else {one.name: one for one in self.network.images}
        self._changed = True
        self._soonest = self._latest = float("-inf")
        self._told: tuple[tuple[str, ...], NDArray[np.float64]] = ((), np.zeros((0, 0)))
        self._too_many = False

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
            if container.image in self._file_images:
                return container.image
            size = self._sizes.get(name, -1.0)
            if size > most:
                best, most = name, size
        return best

    # -- nodes -----------------------------------------------------------------------------------------------------

    def see_node(self, node: Node, engine: Engine | None) -> None:
        """A node, new or changed."""
        if not self.asked:
            return
        name = node.metadata.name
        place = node.metadata.labels.get(self._label, name) if self._label else name
        if self._nodes.get(name) != place:
            self._nodes[name] = place
            self._changed = True
        self._see_bandwidth(name, node.status.allocatable.get(self._bandwidth, "0") != "0", engine)
        here = [(one, image.size_bytes) for image in node.status.images or () for one in image.names or ()]
        for one, size in here:
            self._see_size(one, size / MEGABIT, engine)
        listed = tuple(one for one, _ in here)
        listed += tuple(one.name for one in self._file_images.values() if name in one.present)
        if self._listed.get(name, ()) != listed:
            self._listed[name] = listed
            if engine is not None:
                engine.images(name, listed)

    def drop_node(self, name: str) -> None:
        """A node is gone."""
        self._changed |= self._nodes.pop(name, None) is not None
        self._listed.pop(name, None)
        self._wide.discard(name)

    def _see_bandwidth(self, name: str, wide: bool, engine: Engine | None) -> None:
        before = bool(self._wide)
        if wide:
            self._wide.add(name)
        else:
            self._wide.discard(name)
        if before != bool(self._wide) and engine is not None:
            self._tell_sizes(engine)

    def _see_size(self, name: str, size: float, engine: Engine | None) -> None:
        if self._sizes.get(name) != size and name not in self._file_images:
            self._sizes[name] = size
            if engine is not None:
                self._tell_size(engine, name)

    def _tell_size(self, engine: Engine, name: str) -> None:
        """Without bandwidth anywhere nobody knows how long fetching takes: then it takes no time."""
        engine.image(name, 0.0, self._sizes[name] if self._wide else 0.0)

    def _tell_sizes(self, engine: Engine) -> None:
        for name in self._sizes:
            self._tell_size(engine, name)

    # -- round-trip times ------------------------------------------------------------------------------------------

    def see_row(self, found: NodeLatency) -> None:
        """A row that a node's agent published, new or changed."""
        self.rows[found.metadata.name] = as_row(found)
        self._changed = True

    def drop_row(self, identity: Identity) -> None:
        """A row is gone."""
        self._changed |= self.rows.pop(identity.name, None) is not None

    def begin(self, engine: Engine, now: float) -> None:
        """Tell a new engine all."""
        if not self.asked:
            return
        for one in self._file_images.values():
            self._tell_file_image(engine, one)
        self._tell_sizes(engine)
        for name, listed in self._listed.items():
            engine.images(name, listed)
        self._told, self._soonest, self._changed = ((), np.zeros((0, 0))), float("-inf"), True
        if self.network is not None:
            self._tell(engine, self.network.places, np.array(self.network.rtt), self.network.site_key)
        self.refresh(engine, now)

    @staticmethod
    def _tell_file_image(engine: Engine, one: Image) -> None:
        engine.image(one.name, one.seconds, one.size)

    def refresh(self, engine: Engine, now: float) -> None:
        """Tell the engine round-trip times that are others than before, if that is due; before a pass."""
        if not self.watches or now < (self._soonest if self._changed else self._latest):
            return
        sites = self._places()
        found = latencies(self.rows.values(), now, self._stale_after, names=tuple(self._nodes), place_of=sites)
        self._changed = False
        # As long again as this takes, many times over, it is left alone; a large cluster has news every second.
        self._soonest = now + max(SOONEST_SECONDS, len(self._nodes) * SOONEST_SECONDS / 200)
        self._latest = now + LATEST_SECONDS
        if len(found.names) > MOST_PLACES:
            if not self._too_many:
                LOG.warning(
                    "%d places are too many, expected at most %d: no round-trip times are used; kube.site_label names "
                    "a label of nodes that are at one place", len(found.names), MOST_PLACES,
                )  # fmt: skip
            self._too_many = True
            self._tell(engine, (), np.zeros((0, 0)), "")
            return
        self._too_many = False
        self._tell(engine, found.names, np.round(found.rtt, 6), self._label if sites else "")

    def _places(self) -> Mapping[str, str] | None:
        """The place of each node with another than itself; None where there is none."""
        found = {name: place for name, place in self._nodes.items() if place != name}
        return found or None

    def _tell(self, engine: Engine, places: tuple[str, ...], rtt: NDArray[np.float64], site_key: str) -> None:
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
            engine.network(places, site_key, [(i, j, float(rtt[i, j])) for i, j in differ.tolist()])
            self._told = (places, rtt)


def tagged(image: str) -> str:
    """An image's name as nodes list it where it was given without a tag."""
    last = image.rpartition("/")[2]
    return image if not image or ":" in last or "@" in last else f"{image}:latest"
