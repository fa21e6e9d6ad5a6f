"""Records of delay-aware placement: what instances ask of the network, and where hosts are in it.

Equations are those of Lai, Wang and Wei, 'Delay-Aware Container Scheduling in Kubernetes'.
"""

from __future__ import annotations

import numpy as np

# By shape: which users an instance has, and what it does for them (:class:`slacktide.model.Access`).
ACCESS = np.dtype(
    [
        ("data", "f8"),
        ("processing", "f8"),  # CPU-seconds that its data take
        ("transfer", "f8"),  # seconds that its data travel over its bandwidth
        ("deadline", "f8"),  # seconds
        ("application", "i8"),  # its job, for ElasticFog
        ("image", "i8"),  # or -1
        ("logins_at", "i8"),  # in ``logins``
        ("logins", "i8"),
        ("preferred", "i8"),  # host, or -1
        ("preferred_place", "i8"),  # of that host, or the place itself; -1 for none
    ],
    align=True,
)

LOGIN = np.dtype([("host", "i8"), ("place", "i8"), ("share", "f8")], align=True)  # host: -1 where no host has the name

IMAGE = np.dtype([("seconds", "f8"), ("size", "f8")], align=True)  # size: over a host's bandwidth; else seconds

PLACE = np.dtype(
    [
        ("sigma", "f8"),  # s, deviation of a host's round-trip times to the other hosts (equation 12)
        ("reach", "f8"),  # scratch: s, round trips of users to a host that nobody logs in at
        ("bound", "f8"),  # scratch: s, no host there has less delay
        ("looked", "i8"),  # scratch: it has been looked at
        ("root", "i8"),  # its tree in ``site_tree``
        ("width", "i8"),  # leaves of the tree
        ("first", "i8"),  # its hosts in ``place_hosts``
        ("hosts", "i8"),
    ],
    align=True,
)

SERVED, IMAGES, BANDWIDTH, FREE = 0, 1, 2, 3
"""Columns of ``site_tree``, of the hosts below a node: the fewest instances, a bit for each image that is present, the
largest capacity of resource ``network``, and from there the largest free amounts."""
BITS = 60  # images beyond share bits

MOST_SERVED = (
    64  # Gamma (equation 18) is that of this many where a host serves more: it has outgrown all delays long before
)
