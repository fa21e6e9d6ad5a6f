"""The hosts of a generated cell: shapes and attributes in the proportions of the sample."""

from __future__ import annotations

import numpy as np

from slacktide.inputs.generators import cell_tables as tables
from slacktide.model import Hosts


def cell_hosts(count: int, rng: np.random.Generator) -> Hosts:
    """``count`` hosts; CPU and memory relative to the biggest."""
    shares = np.array([shape[0] for shape in tables.SHAPES])
    # Shape by quota, so that a small cell has the proportions of a large one, then shuffled.
    bounds = np.rint(np.cumsum(shares) / shares.sum() * count).astype(np.int64)
    shape = rng.permutation(np.searchsorted(bounds, np.arange(count), side="right"))
    kernel = rng.choice(len(tables.KERNELS), count, p=_normalised([share for _, share in tables.KERNELS]))
    turbo, drained, reserved = (rng.random(count) < share for share in (tables.TURBO, tables.DRAINED, tables.RESERVED))
    rack = rng.integers(0, max(int(count / tables.HOSTS_PER_RACK), 1), count)
    board = rng.integers(0, max(int(count * 6 / tables.HOSTS_PER_BOARD), 1), count)
    attributes = []
    for row in range(count):
        _, cpu, _, generation = tables.SHAPES[shape[row]]
        found = {
            "platform": tables.PLATFORM[cpu],
            "sockets": tables.SOCKETS[cpu],
            "generation": generation,
            "kernel": tables.KERNELS[kernel[row]][0],
            "rack": f"r{rack[row]}",
            "board": f"b{board[row]}",
            "drained": str(int(drained[row])),
            "reserved": str(int(reserved[row])),
        }
        if turbo[row]:
            found["turbo"] = "2"
        attributes.append(found)
    return Hosts(
        ids=np.arange(1, count + 1),
        names=tuple(f"host-{number}" for number in range(1, count + 1)),
        capacity=np.array([tables.SHAPES[number][1:3] for number in shape], dtype=np.float64),
        attributes=tuple(attributes),
    )


def _normalised(shares: list[float]) -> list[float]:
    total = sum(shares)
    return [share / total for share in shares]
