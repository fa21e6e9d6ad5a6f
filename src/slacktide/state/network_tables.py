"""Tables of delay-aware placement: limits, users, images, and where hosts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import DelaySettings
from slacktide.errors import ConfigError
from slacktide.kernels.tables.network_records import (
    ACCESS,
    BITS,
    FREE,
    IMAGE,
    IMAGES,
    LOGIN,
    MOST_SERVED,
    PLACE,
    SERVED,
)
from slacktide.model import Access, Hosts, Network
from slacktide.state.layout import on_grid

FULL = 2**40  # instances that no host has
NOBODY_FITS = -(2**60)

Arrays = dict[str, NDArray[Any]]


class Geography:
    """Places of a network and hosts at them; the last place is that of hosts that are at none, where there are any.

    ``rtt`` (p, p) is in seconds on the grid of times, ``place`` (h,) each host's place. Only hosts that ``count``
    (bool, (h,); all, unless given) are others in the sense of equation 12. Where ``lenient``, names that nobody
    knows are at that last place.
    """

    def __init__(self, hosts: Hosts, count: NDArray[np.bool_] | None = None, *, lenient: bool = False) -> None:
        network = hosts.network or Network(("",), np.zeros((1, 1)))
        self.network = network
        self.given = hosts.network is not None
        self.places = {name: number for number, name in enumerate(network.places)}
        self.hosts = {name: number for number, name in enumerate(hosts.names)}
        self.images = {image.name: number for number, image in enumerate(network.images)}
        self.count = count
        nowhere = len(network.places)
        self.unknown = nowhere if lenient else -1
        everywhere_one = network.places == ("",)
        self.place = np.array(
            [
                0 if everywhere_one else self.places.get(_place_name(network, name, attributes), nowhere)
                for name, attributes in zip(hosts.names, hosts.attributes, strict=True)
            ],
            np.int32,
        )
        self.rtt = on_grid(network.rtt)
        if lenient or (self.place == nowhere).any():  # never distance 0: as far as the farthest
            self.rtt = np.pad(self.rtt, (0, 1), constant_values=self.rtt.max(initial=0.0))

    def place_of(self, name: str) -> int:
        """The place of that name, or of the host of that name; for neither ``unknown``, -1 unless it is lenient."""
        host = self.hosts.get(name)
        return self.places.get(name, self.unknown) if host is None else int(self.place[host])

    def sigma(self) -> NDArray[Any]:
        """Standard deviation of the round-trip times from a host of each place to all other hosts, shape (p,), s.

        Equations 12 and 13; the sums are exact, as times are on their grid.
        """
        place = self.place if self.count is None else self.place[self.count]
        count = np.bincount(place, minlength=len(self.rtt))
        others = count[None, :] - np.eye(len(count), dtype=np.int64)
        others = np.maximum(others, 0)  # of a place without hosts there is no host to leave out
        number = np.maximum(others.sum(axis=1), 1)
        mean = (others * self.rtt).sum(axis=1) / number
        squares = (others * self.rtt**2).sum(axis=1) / number
        deviation: NDArray[Any] = np.sqrt(np.maximum(squares - mean * mean, 0.0))
        return deviation


def _place_name(network: Network, name: str, attributes: Any) -> str:
    return str(attributes.get(network.site_key, name)) if network.site_key else name


def geography_arrays(hosts: Hosts, geography: Geography) -> Arrays:
    """Where hosts are, and which images they have."""
    count, place = len(hosts), geography.place
    places = np.zeros(len(geography.rtt), PLACE)
    places["sigma"] = geography.sigma()
    places["hosts"] = np.bincount(place, minlength=len(places))
    places["first"] = np.cumsum(places["hosts"]) - places["hosts"]
    widths = np.array([1 << int(number - 1).bit_length() if number else 0 for number in places["hosts"]], np.int64)
    places["width"] = widths
    places["root"] = np.cumsum(2 * widths) - 2 * widths
    order = np.lexsort((*hosts.capacity.T[::-1], place))  # equal hosts side by side, so that bounds are close
    leaf = np.empty(count, np.int32)
    leaf[order] = np.arange(count) - places["first"][place[order]] + widths[place[order]]
    images = np.zeros(len(geography.network.images), IMAGE)
    image_on = np.zeros((len(images), count), np.uint8)
    for i, image in enumerate(geography.network.images):
        images[i] = image.seconds, image.size
        for name in image.present:
            if name in geography.hosts:
                image_on[i, geography.hosts[name]] = 1
    bits = np.zeros(count, np.int64)
    for i in range(len(images)):
        bits |= image_on[i].astype(np.int64) << (i % BITS)
    site_tree = np.full((int(2 * widths.sum()), FREE + hosts.capacity.shape[1]), NOBODY_FITS, np.int64)
    site_tree[:, SERVED], site_tree[:, IMAGES] = FULL, 0
    return {
        "places": places,
        "place": place,
        "place_hosts": order.astype(np.int32),
        "site_tree": site_tree,
        "site_leaf": leaf,
        "image_bits": bits,
        "rtt": geography.rtt,
        "images": images,
        "image_on": image_on,
        "omega": np.zeros(count),
    }


def gamma(delay: DelaySettings) -> NDArray[Any]:
    """Equation 18 for 1, 2, ... instances on a host, seconds."""
    return delay.context_switch + 2.0 ** np.arange(MOST_SERVED) * delay.competition


def ask(access: Access, bandwidth: float, delay: DelaySettings, geography: Geography) -> tuple[Any, list[Any]]:
    """A record of ACCESS (its logins begin at 0) and its records of LOGIN.

    ``bandwidth`` is the demand of resource ``network``; an instance that demands none waits for no transfer.
    Raises :class:`ConfigError` for a name that the network does not know.
    """
    numbers = geography.images
    if access.image and access.image not in numbers:
        raise ConfigError(f"image: found {access.image!r}, expected {_expected('an image', list(numbers), geography)}")
    logins = [(geography.hosts.get(name, -1), _known("users", name, geography), share) for name, share in access.logins]
    record = np.zeros(1, ACCESS)[0]
    record["data"] = access.data
    record["processing"] = delay.processing * access.data
    record["transfer"] = delay.transfer * access.data / bandwidth if bandwidth > 0 else 0.0
    record["deadline"] = access.deadline
    record["image"] = numbers.get(access.image, -1)
    record["logins"] = len(logins)
    record["preferred"] = geography.hosts.get(access.preferred, -1)
    record["preferred_place"] = _known("preferred", access.preferred, geography) if access.preferred else -1
    return record, logins


def _known(column: str, name: str, geography: Geography) -> int:
    found = geography.place_of(name)
    if found < 0:
        known = list(dict.fromkeys([*filter(None, geography.places), *geography.hosts]))
        raise ConfigError(f"{column}: found {name!r}, expected {_expected('a host or a place', known, geography)}")
    return found


def _expected(what: str, names: Sequence[str], geography: Geography) -> str:
    if geography.given:
        return f"{what} of the network: {_some(names)}"
    without = "as there is no network (delay.network)"
    return f"a host, {without}: {_some(names)}" if names else f"none, {without}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") if names else "there is none"


def ask_arrays(
    accesses: Sequence[Access],
    ids: Sequence[int],
    bandwidth: NDArray[np.float64],
    delay: DelaySettings,
    geography: Geography,
) -> Arrays:
    """What each shape asks, by its access and its demand of resource ``network`` (shapes,); ``ids`` are those of
    requests that ask so, for errors."""
    records = np.zeros(len(accesses), ACCESS)
    logins: list[Any] = []
    for shape, access in enumerate(accesses):
        try:
            records[shape], mine = ask(access, float(bandwidth[shape]), delay, geography)
        except ConfigError as error:
            raise ConfigError(f"request {ids[shape]}: {error}") from error
        records[shape]["logins_at"] = len(logins)
        logins.extend(mine)
    return {"access": records, "logins": np.array(logins, LOGIN), "gamma": gamma(delay)}
