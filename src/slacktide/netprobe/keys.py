"""The key that all agents of a cluster share, from a file (a mounted Secret) or the environment."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from slacktide.errors import ConfigError

VARIABLE = "SLACKTIDE_NETPROBE_KEY"
SHORTEST = 32
MOST = 4
EXPECTED = (
    f"1 to {MOST} keys, one a line, of at least {SHORTEST} characters each, such as openssl rand -base64 32 gives"
)


def read_keys(path: Path | None) -> tuple[bytes, ...]:
    """Keys from a file, or without one from ``SLACKTIDE_NETPROBE_KEY``; the first one seals, all of them open.

    Two lines let a key be changed without a gap. Raises :class:`ConfigError`, which never shows a key.
    """
    if path is None:
        where, text = VARIABLE, os.environ.get(VARIABLE, "")
        if not text.strip():
            raise ConfigError(f"--key-file: found nothing, and {VARIABLE} is not set; expected {EXPECTED}")
    else:
        where = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigError(f"{where}: cannot be read: {said}; expected {EXPECTED}") from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not 1 <= len(lines) <= MOST:
        raise ConfigError(f"{where}: found {len(lines)} keys, expected {EXPECTED}")
    for number, line in enumerate(lines, 1):
        if len(line) < SHORTEST:
            raise ConfigError(f"{where}:{number}: found a key of {len(line)} characters, expected {EXPECTED}")
    return tuple(
        hashlib.sha256(b"slacktide netprobe 1\0" + line.encode("utf-8", "surrogateescape")).digest() for line in lines
    )
