"""The sources that machine code of kernels is made from, as one number, and where such code is kept."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
OUTSIDE = ("model/service_class.py",)
"""Modules of other packages that kernels take numbers from."""


@cache
def fingerprint(*more: str) -> str:
    """A hash of all these sources, and of ``more``: what inlines a helper depends on the helper's file, too."""
    digest = hashlib.sha256("\0".join(more).encode())
    inside = (one for suffix in ("py", "ll") for one in PACKAGE.rglob(f"*.{suffix}"))
    for source in sorted([*inside, *(PACKAGE.parent / name for name in OUTSIDE)]):
        digest.update(source.relative_to(PACKAGE.parent).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


def cache_directory(compiler: str) -> Path:
    """Where what this compiler made is kept; ``SLACKTIDE_CACHE`` overrides the user's cache folder."""
    base = os.environ.get("SLACKTIDE_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "slacktide" / f"kernels-{fingerprint(compiler)}"
