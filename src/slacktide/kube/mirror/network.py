"""Where nodes and users are: places, images, bandwidth, round-trip times; kept where the score asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from slacktide.config import Config
from slacktide.inputs.formats.network_file import read_network
from slacktide.kube.client.kinds import Identity
from slacktide.kube.mirror.changes import Changes
from slacktide.kube.resources.node_latency import NodeLatency, as_row
from slacktide.kube.resources.objects import Node, Pod
from slacktide.kube.translate.owners import Owners
from slacktide.kube.translate.user_access import NO_WANTS, Accesses, Wants
from slacktide.model.latency import Row
from slacktide.model.logins import Logins
from slacktide.state.cluster import NETWORK, asks_for_users, by_application

MEGABIT = 1e6 / 8
"""Bytes; images are told in these, as bandwidth counts them a second."""


class NetworkMirror:
    """What is known besides pods where the score asks where users are; ``asked`` says whether it does.

    ``followers`` hear of images. Raises :class:`ConfigError` or :class:`InputError` for a network file that cannot be
    used.
    """

    def __init__(self, config: Config, followers: Sequence[Changes] = ()) -> None:
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
        self._followers = followers
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

    def see_logins(self, logins: Mapping[str, Logins]) -> None:
        """Where users of workloads (NAMESPACE/NAME) were counted; for pods that do not say it."""
        self.logins = logins

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
            self._see_size(one, size / MEGABIT)
        listed = tuple(one for one, _ in here)
        listed += tuple(one.name for one in self.file_images.values() if name in one.present)
        if self.listed.get(name, ()) != listed:
            self.listed[name] = listed
            for follower in self._followers:
                follower.images_listed(name, listed)

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
            for follower in self._followers:
                follower.image_sizes(self.sizes)

    @property
    def has_bandwidth(self) -> bool:
        """Whether any node has bandwidth, by which it is known how long fetching an image takes."""
        return bool(self._wide)

    def _see_size(self, name: str, size: float) -> None:
        if self.sizes.get(name) != size and name not in self.file_images:
            self.sizes[name] = size
            for follower in self._followers:
                follower.image_sizes((name,))

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
