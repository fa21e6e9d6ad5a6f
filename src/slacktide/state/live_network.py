"""Where hosts and users of a live cluster are: the tables of delay-aware placement while both come, go and move.

Nothing is kept where the score does not ask. What changes where hosts are (a host, its
place, its images, a round-trip time) is noted, and the tables are made anew once before
the next pass (:meth:`slacktide.state.growth.Growing.settle`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.kernels.tables.arrays import Presence, Tables
from slacktide.kernels.tables.network_records import ACCESS, LOGIN
from slacktide.model import Access, Hosts, Image, Network
from slacktide.model.constraint import FOREIGN
from slacktide.model.network import NO_ACCESS
from slacktide.state import cluster, network_tables
from slacktide.state.growing_arrays import along, lengthen, lengthen_along
from slacktide.state.network_tables import Geography

EVERYWHERE = Network(("",), np.zeros((1, 1)))

Further = tuple[tuple[int, ...], Access, str]
"""By what shapes are told apart besides their demand: limit, access, application."""
NOTHING: Further = ((), NO_ACCESS, "")


@dataclass(frozen=True, slots=True)
class Units:
    """CPUs, GiB and units of bandwidth in a whole amount: millicores, bytes, and what the resource counts."""

    cpu: float = 1e-3
    memory: float = 2.0**-30
    network: float = 1.0


class LiveNetwork:
    """Tables of limits, users, images and places. ``used``: whether the score looks at them at all.

    ``places`` and ``rtt`` (p, p), seconds, are as last told. ``images`` says what each takes where it is absent
    (seconds, or a size over the bandwidth of a host), ``on_host`` which images each host is known to have.
    """

    def __init__(self, config: Config) -> None:
        self.used = cluster.asks_for_users(config)
        self.grants = cluster.grants_more(config)
        self.delay = config.delay
        self.units = Units()
        self.places: tuple[str, ...] = ()
        self.site_key = ""
        self.rtt: NDArray[np.float64] = np.zeros((0, 0))
        self.images: dict[str, tuple[float, float]] = {}
        self.on_host: dict[str, frozenset[str]] = {}
        self.moved = self.used
        """Whether the tables say something else than what was told since."""
        self._fetched: dict[str, set[str]] = {}  # images that pods brought to a host that does not list them yet
        self._listed: dict[str, frozenset[str]] = {}  # as the tables have it
        self._asks: list[tuple[Access, float, int]] = []  # of each shape: access, bandwidth, application
        self._wanted: dict[str, int] = {}  # images that somebody asks for
        self._applications: dict[str, int] = {}
        self._logins = 0
        self._host_names: tuple[str, ...] = ()  # as the tables have them
        self._geography = Geography(Hosts(np.arange(0), (), np.zeros((0, 2)), ()), lenient=True)

    def begin(self, tb: Tables) -> None:
        """Say what does not change later."""
        if self.used:
            tb.put("gamma", network_tables.gamma(self.delay))
            tb.rules["cpu_unit"], tb.rules["network_unit"] = self.units.cpu, self.units.network

    # -- what is told ----------------------------------------------------------------------------------------------

    def move(self, places: tuple[str, ...], site_key: str, changes: Iterable[tuple[int, int, float]]) -> None:
        """Places by name, and round-trip times (two places, seconds) that are others than before; the rest stays."""
        if places != self.places:
            kept = [(i, self.places.index(name)) for i, name in enumerate(places) if name in set(self.places)]
            rtt = np.zeros((len(places), len(places)))
            if kept:
                new, old = np.array(kept).T
                rtt[np.ix_(new, new)] = self.rtt[np.ix_(old, old)]
            self.places, self.rtt = places, rtt
        for i, j, seconds in changes:
            self.rtt[i, j] = self.rtt[j, i] = seconds
        self.site_key = site_key
        self.moved = self.used

    def image(self, name: str, seconds: float, size: float) -> None:
        """What fetching an image takes."""
        if self.images.get(name) != (seconds, size):
            self.images[name] = (seconds, size)
            self.moved |= name in self._wanted

    def list_images(self, host: str, names: frozenset[str]) -> None:
        """Which images a host has."""
        before = self.on_host.get(host, frozenset())
        self.on_host[host] = names
        self.moved |= any(name in self._wanted for name in names ^ before)

    def forget_host(self, name: str) -> None:
        """A host is no more."""
        self.on_host.pop(name, None)
        self._fetched.pop(name, None)
        self._listed.pop(name, None)
        self.moved = self.used

    # -- shapes ----------------------------------------------------------------------------------------------------

    def add_shape(self, tb: Tables, shape: int, demand: NDArray[np.int64], bandwidth: int, further: Further) -> None:
        """Enter what instances of a new shape ask; O(logins)."""
        limit, wanted, application = further
        for name in along("shapes", Presence.NETWORK):
            if len(tb[name]) <= shape:
                lengthen(tb, name, max(64, 2 * shape))
        tb["limit"][shape] = np.maximum(limit, demand)
        number = self._applications.setdefault(application, len(self._applications))
        self._asks.append((wanted, bandwidth * self.units.network, number))
        if wanted.image and wanted.image not in self._wanted:
            self._wanted[wanted.image] = len(self._wanted)
            self.moved = True
        if not self.moved:
            self._write(tb, shape)

    def forget_shapes(self, tb: Tables) -> None:
        """Forget what instances ask."""
        if self.used:
            self._asks.clear()
            self._wanted.clear()
            self._applications.clear()
            self._logins = 0
            tb.put("limit", tb["limit"][:0])
            tb.put("access", tb["access"][:0])
            tb.put("logins", np.zeros(0, LOGIN))
            self._note_fetched(tb)
            self.moved = True

    def _write(self, tb: Tables, shape: int) -> None:
        wanted, bandwidth, application = self._asks[shape]
        record, logins = network_tables.ask(wanted, bandwidth, self.delay, self._geography)
        record["application"], record["logins_at"] = application, self._logins
        tb["access"][shape] = record
        last = self._logins + len(logins)
        if len(tb["logins"]) < last:
            lengthen(tb, "logins", max(64, 2 * last))
        if logins:
            tb["logins"][self._logins : last] = np.array(logins, LOGIN)
        self._logins = last

    # -- hosts -----------------------------------------------------------------------------------------------------

    def lengthen(self, tb: Tables, hosts: int) -> None:
        """Room for so many hosts, which are nowhere until the tables are made anew."""
        if self.used:
            lengthen_along(tb, "hosts", hosts, Presence.NETWORK, at=-1)
            self.moved = True

    def settle(self, tb: Tables, hosts: Hosts) -> None:
        """Make the tables anew; the free index and the places' trees are the caller's to fill; O(places^2 + hosts)."""
        self._note_fetched(tb)
        named = zip(hosts.names, hosts.attributes, strict=True)
        count = np.array([bool(name) and FOREIGN not in attributes for name, attributes in named])
        count &= hosts.capacity.any(axis=1)
        self._host_names = hosts.names
        self._geography = geography = Geography(
            replace(hosts, network=self.described(set(hosts.names))), count, lenient=True
        )
        for name, array in network_tables.geography_arrays(hosts, geography).items():
            tb.put(name, array)
        self._listed = {host: names & self._wanted.keys() for host, names in self.on_host.items()}
        self._logins = 0
        if self._asks:
            tb.put("access", np.zeros(max(64, 2 * len(self._asks)), ACCESS))
        for shape in range(len(self._asks)):
            self._write(tb, shape)
        self._set_units(tb, hosts, hosts.capacity[count].sum(axis=0))
        self.moved = False

    def described(self, hosts: Collection[str]) -> Network:
        """Where hosts are as last told, with the images that somebody asks for; all at one place if nothing was."""
        present: dict[str, list[str]] = {name: [] for name in self._wanted}
        for listing in (self.on_host, self._fetched):
            for host, names in listing.items():
                if host in hosts:
                    for name in names & self._wanted.keys():
                        present[name].append(host)
        images = tuple(
            Image(name, *self.images.get(name, (0.0, 0.0)), present=tuple(present[name])) for name in self._wanted
        )
        if self.places:
            return Network(self.places, self.rtt, self.site_key, images)
        return replace(EVERYWHERE, images=images)

    def _note_fetched(self, tb: Tables) -> None:
        """Remember images that pods brought: they are there though the host does not list them (yet)."""
        names = list(self._geography.images)
        for i, h in np.argwhere(tb["image_on"][: len(names)]).tolist():
            host = self._host_names[h] if h < len(self._host_names) else ""
            if host and names[i] not in self._listed.get(host, ()):
                self._fetched.setdefault(host, set()).add(names[i])
        for host, fetched in self._fetched.items():
            fetched.difference_update(self.on_host.get(host, ()))

    def _set_units(self, tb: Tables, hosts: Hosts, total: NDArray[np.float64]) -> None:
        rules, units = tb.rules, self.units
        cpu, memory = float(total[0]) * units.cpu, float(total[1]) * units.memory
        worth = self.delay.memory_per_cpu or (memory / cpu if cpu > 0.0 and memory > 0.0 else 1.0)
        rules["cpu_unit"], rules["memory_in_cpu"] = units.cpu, units.memory / worth
        rules["network"] = hosts.resources.index(cluster.NETWORK) if cluster.NETWORK in hosts.resources else -1
        rules["network_unit"] = units.network
