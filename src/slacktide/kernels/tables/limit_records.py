"""Records of limits on disruption and of accounts, of the arrays in :mod:`slacktide.kernels.tables.arrays`."""

from __future__ import annotations

import numpy as np

# What a class, or one workload, may suffer (docs/semantics.md, 'Limits on disruption').
DISRUPTION_LIMITS = np.dtype(
    [
        ("most", "i8"),  # disruptions that begin in ``per`` seconds, or -1: any number
        ("per", "f8"),
        ("cooldown", "f8"),
        ("hours_at", "i8"),  # its allowed intervals in ``open_hours``
        ("hours", "i8"),  # how many they are, or -1: all times are allowed
    ],
    align=True,
)

# Whose disruptions count together: a request, or a row where there are none of several instances.
ACCOUNT = np.dtype(
    [
        ("limits", "i8"),
        ("first", "i8"),  # its ring of instants in ``disruptions``, as long as its limits' ``most``
        ("several", "i8"),  # whether it may have more than one instance
        ("begun", "i8"),  # disruptions so far; the next is written to this place of the ring, modulo its length
        ("tried", "i8"),  # disruptions of the trial under way
        ("recovering", "i8"),  # instances whose disruption has not ended
        ("ended", "f8"),  # when the last that ended did, or -inf
    ],
    align=True,
)
ALLOWED, TOO_MANY, COOLING, CLOSED = range(4)  # what forbids a disruption
