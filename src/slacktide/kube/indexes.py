"""Tables of tables, or of sets, in which nothing stays that is empty."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


def take_out(index: dict[K, dict[V, Any]] | dict[K, set[V]], key: K, one: V) -> None:
    """One is not under this key any more, if it was."""
    among: Any = index.get(key, ())
    if one in among:
        among.pop(one) if isinstance(among, dict) else among.remove(one)
        if not among:
            del index[key]
