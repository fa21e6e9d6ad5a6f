"""``slacktide/api/typed_settings.py``, made from the list of settings: ``python tests/support/typed_settings.py``."""

from __future__ import annotations

import sys

from slacktide.conversion import Kind
from slacktide.settings import SECTIONS, types_of
from support.repository import REPOSITORY

PATH = REPOSITORY / "src" / "slacktide" / "api" / "typed_settings.py"
HEAD = '''"""Settings as keywords, with their types; written by tests/support/typed_settings.py, do not edit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, SupportsIndex, TypedDict

import numpy as np

from slacktide.model import Network, ServiceClass


class Settings(TypedDict, total=False):
    """Every setting by section and key: ``policy_patience`` is ``policy.patience`` (docs/settings.md)."""

    classes: Sequence[ServiceClass | Mapping[str, Any]]
'''
PLAIN = {
    bool: "bool | np.bool_",
    int: "SupportsIndex",
    float: "float | np.number[Any]",
    str: "str | os.PathLike[str]",
}
WRITTEN = {
    "duration": "float | str | timedelta | np.timedelta64 | np.number[Any]",
    "share": "float | str | np.number[Any]",
}
OWN = {
    "policy_score": "str | Callable[..., float]",
    "policy_cost": "str | Callable[..., None]",
    "delay_network": "str | os.PathLike[str] | Network | None",
}


def typed(kind: Kind) -> str:
    """How a value may be given in Python."""
    if kind.choices:
        found = f"Literal[{', '.join(f'{one!r}' for one in kind.choices)}]".replace("'", '"')
    else:
        found = WRITTEN.get(kind.written) or PLAIN[kind.plain]
    return f"{found} | None" if kind.optional else found


def written() -> str:
    """The module."""
    lines = []
    for section in SECTIONS:
        for key, one in types_of(section).items():
            name = f"{section}_{key}"
            lines.append(f"    {name}: {OWN.get(name) or typed(Kind.of(one))}\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    PATH.write_text(written(), encoding="utf-8")
    sys.exit(0)
