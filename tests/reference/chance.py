"""Chance: a hash of what is decided, never of when (docs/semantics.md, Chance)."""

from __future__ import annotations

from collections.abc import Sequence

WORD = (1 << 64) - 1

STARTUP = 1
VICTIM = 2
HOST = 3
GRACE = 5
RETURN = 6


def mix(x: int) -> int:
    """The splitmix64 finaliser over unsigned 64-bit words."""
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


def draw(seed: int, stream: int, a: int, b: int) -> int:
    """63 random bits; a negative seed is taken modulo 2^64."""
    return mix(mix(mix(mix(seed & WORD) ^ stream) ^ a) ^ b) >> 1


def startup_delay(seed: int, row: int, earlier_starts: int, table: Sequence[float]) -> float:
    """Seconds of start-up of this start of the request, from the hot or the cold table."""
    return float(table[draw(seed, STARTUP, row, earlier_starts) % len(table)])


def share_of_grace(seed: int, row: int, starts: int, table: Sequence[float]) -> float:
    """How much of its grace period the preempted request takes."""
    return float(table[draw(seed, GRACE, row, starts) % len(table)])


def seconds_away(seed: int, row: int, starts: int, table: Sequence[float]) -> float:
    """How long after a stop the next instance of a batch request comes."""
    return float(table[draw(seed, RETURN, row, starts) % len(table)])


def victim_tie(seed: int, row: int, starts: int) -> int:
    """Decides between equal victims on a host: the larger goes first."""
    return draw(seed, VICTIM, row, starts)


def host_tie(seed: int, host_row: int, changes: int) -> int:
    """Decides between equal hosts: the larger wins."""
    return draw(seed, HOST, host_row, changes)
