"""What several commands share."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

FILE = click.Path(path_type=Path)
"""A file or directory; whoever reads or writes it says what is wrong with it."""


def echo_json(value: object) -> None:
    """One JSON object on stdout; NaN and infinity, which JSON has not, become null."""
    click.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
