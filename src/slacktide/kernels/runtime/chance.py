"""Random choices as hashes of what is decided (docs/semantics.md, 'Chance')."""

from __future__ import annotations

import numpy as np

from slacktide.kernels.runtime.compiling import kernel, whole

STARTUP, VICTIM_TIE, HOST_TIE, SEARCH_START, GRACE, RETURN = 1, 2, 3, 4, 5, 6


@kernel
def mix(x: np.uint64) -> np.uint64:
    """The splitmix64 finaliser; O(1)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def draw(seed: np.uint64, stream: int, a: int, b: int) -> int:
    """63 random bits that depend on nothing but the arguments; O(1)."""
    x = mix(mix(mix(mix(seed) ^ np.uint64(stream)) ^ np.uint64(a)) ^ np.uint64(b))
    return whole(x >> np.uint64(1))
