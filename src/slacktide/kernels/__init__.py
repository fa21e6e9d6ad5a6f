"""Compiled leaves of the core: arrays in, arrays out; no clock, no I/O, no hidden randomness.

Machine code is cached per user under a name that holds a hash of this package's
sources, because a kernel inlines helpers of its neighbours and Numba's own check
would not notice an edit there.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numba


def _fingerprint() -> str:
    digest = hashlib.sha256(f"{numba.__version__}".encode())
    here = Path(__file__).parent
    for source in sorted(here.rglob("*.py")):
        digest.update(str(source.relative_to(here)).encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_directory() -> Path:
    """Where compiled kernels are kept; ``SLACKTIDE_CACHE`` overrides the user's cache folder."""
    base = os.environ.get("SLACKTIDE_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slacktide" / f"kernels-{_fingerprint()}"


if "NUMBA_CACHE_DIR" not in os.environ:
    numba.config.CACHE_DIR = str(cache_directory())  # type: ignore[attr-defined]


def compiled_before() -> bool:
    """Whether a cache for exactly these sources exists, so that a run starts at once."""
    return any(Path(str(numba.config.CACHE_DIR)).rglob("*.nbc"))  # type: ignore[attr-defined]
