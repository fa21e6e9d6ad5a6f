"""The hosts: capacity per named resource, and attributes that constraints refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slacktide.model.network import Network

ATTACHABLE = "attachable-volumes-csi-"
"""How the names of resources begin that are a CSI driver's volumes, as many as a host can have attached."""
DEVICES = "devices/"
"""How the names of resources begin that stand for claims on devices, as many as a host has free devices for."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts in the order of their file.

    ids         int64    shape (h,), unique
    names       one per host, unique
    capacity    float64  shape (h, len(resources)), >= 0, any consistent unit
    attributes  one mapping ``key -> value`` per host (equal mappings may be shared)
    network     where hosts and users are, or None: nobody asks
    """

    ids: NDArray[np.int64]
    names: tuple[str, ...]
    capacity: NDArray[np.float64]
    attributes: tuple[Mapping[str, str], ...]
    resources: tuple[str, ...] = ("cpu", "memory")
    network: Network | None = None

    def __len__(self) -> int:
        return len(self.ids)
