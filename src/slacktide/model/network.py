"""Where users are, how far each host is from them, and what has to travel: what delay-aware placement looks at."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Image:
    """A container image. Fetching it takes ``seconds``, or ``size`` over the host's capacity of resource ``network``;
    nothing on hosts where it is ``present`` (their names)."""

    name: str
    seconds: float = 0.0
    size: float = 0.0
    present: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """What an instance has to do with its users; equal ones are stored once in a workload.

    data       f, the volume that is sent to the instance and processed there
    image      name of an image of the network, "" for none
    logins     (name of a host or place, share of the users there); shares sum to 1
    preferred  host or place that network-aware placement prefers, "" for none
    deadline   seconds from admission to the end of processing, for TSRA
    """

    data: float = 0.0
    image: str = ""
    logins: tuple[tuple[str, float], ...] = ()
    preferred: str = ""
    deadline: float = math.inf


NO_ACCESS = Access()


@dataclass(frozen=True, slots=True)
class Network:
    """Round-trip times between places. A place is a site with any number of hosts, or one node, or where users log in
    without there being a host (the master).

    places    names, unique
    rtt       float64, shape (p, p), seconds, symmetric; the diagonal is between two hosts of one place
    site_key  attribute that names a host's place; "", and for hosts without it: the host's own name does
    images    what instances may need to fetch

    A host whose place is not among ``places`` is as far from everybody as the largest round-trip time.
    Raises :class:`ConfigError` where the matrix is not one.
    """

    places: tuple[str, ...]
    rtt: NDArray[np.float64]
    site_key: str = ""
    images: tuple[Image, ...] = field(default=())

    def __post_init__(self) -> None:
        count = len(self.places)
        if self.rtt.shape != (count, count):
            raise ConfigError(f"network: found round-trip times of shape {self.rtt.shape}, expected {(count, count)}")
        if len(set(self.places)) != count:
            raise ConfigError("network: a place is named twice")
        if not (np.isfinite(self.rtt).all() and (self.rtt >= 0).all() and (self.rtt == self.rtt.T).all()):
            raise ConfigError("network: expected round-trip times that are finite, 0 or more, and symmetric")
