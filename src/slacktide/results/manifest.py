"""What a run was: versions, settings, seed and inputs, enough to repeat it bit for bit."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from slacktide import __version__
from slacktide.errors import fail

FORMAT = "slacktide-results"
SCHEMA_VERSION = 2
"""Counts up when a column or key of the results changes its meaning or type, or goes."""
LIBRARIES = ("numpy", "pyarrow")


def libraries() -> dict[str, str]:
    """What a run was computed with: versions, and which kernels."""
    from slacktide.kernels.runtime.compiling import described  # what runs nothing does without kernels

    return {name: metadata.version(name) for name in LIBRARIES} | {"kernels": described()}


def manifest(
    configuration: Mapping[str, Any], inputs: Mapping[str, str], command: Sequence[str], totals: Mapping[str, Any]
) -> dict[str, Any]:
    """The content of ``manifest.json``.

    ``configuration`` are all settings (they contain the seed), ``inputs`` the SHA-256 of each input file,
    ``command`` the words of the command line. It holds no clock time and no place where it was written, so
    that equal runs leave equal manifests. It can itself be given as a settings file.
    """
    return {
        "format": FORMAT,
        "schema_version": SCHEMA_VERSION,
        "slacktide": __version__,
        "python": platform.python_version(),
        "libraries": libraries(),
        "machine": f"{platform.system()} {platform.machine()}",
        "command": list(command),
        "seed": configuration["simulation"]["seed"],
        "configuration": dict(configuration),
        "inputs": dict(inputs),
        "totals": dict(totals),
    }


def file_hashes(paths: Sequence[Path]) -> dict[str, str]:
    """SHA-256 of each file's content, by its path as given. Raises :class:`InputError` for an unreadable one."""
    found = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                found[str(path)] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise fail(path, f"a readable file ({error.strerror})") from error
    return found
