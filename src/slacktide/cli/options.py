"""What several commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
"""A file or directory; whoever reads or writes it says what is wrong with it."""


def echo_json(value: object) -> None:
    """One JSON object on stdout; NaN and infinity, which JSON has not, become null."""
    click.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """What JSON can say: mappings and sequences of its own kinds; NaN and infinity, which it has not, are None."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def key_values(words: Sequence[str], form: str = "KEY=VALUE", example: str = "hosts=100") -> dict[str, str]:
    """What ``--set KEY=VALUE``, given any number of times, says. Raises :class:`click.UsageError`."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"--set: found {word!r}, expected {form}, for example {example}")
        found[key.strip()] = value.strip()
    return found
