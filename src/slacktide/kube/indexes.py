"""Tables of tables, of sets or of counts, in which nothing stays that is empty."""

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


def one_less(counts: dict[K, int], key: K) -> None:
    """What is counted under this key is one fewer."""
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]
