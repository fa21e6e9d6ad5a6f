"""What programs share that measure cases in several sizes, by policy: their options, their table, exponents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import NamedTuple

from measuring import announce, options, table


class Point(NamedTuple):
    """A size, and what was spent there."""

    size: float
    spent: float


def exponent(first: Point, last: Point) -> str:
    """By which power of the size costs grow between two sizes; nothing for one and the same."""
    if last.size == first.size:
        return ""
    return f"{log(last.spent / first.spent) / log(last.size / first.size):.1f}"


def tell(*words: str) -> None:
    """What is measured now, on stderr."""
    print(", ".join(words), "...", file=sys.stderr, flush=True)


def measure(
    description: str | None,
    head: Sequence[str],
    cases: Sequence[str],
    policies: Sequence[str],
    measured: Callable[[str, str, int, float], Iterable[list[str]]],
    load_kernels: Callable[[], object],
) -> None:
    """The whole of a program: read the command line, load the kernels by some tiny run, and print the table.

    ``measured`` gives the lines of a case under a policy, with that many repetitions, all sizes times a factor.
    """
    parser = options(description)
    parser.add_argument("--case", nargs="+", default=[], help="those whose names begin so (all)")
    parser.add_argument("--policy", nargs="+", choices=policies, default=list(policies))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of all sizes, to try the program (1)")
    asked = parser.parse_args()
    chosen = [name for name in cases if not asked.case or any(name.startswith(word) for word in asked.case)]
    if not chosen:
        parser.error(f"--case: found {' '.join(asked.case)}, expected the beginning of one of: {'; '.join(cases)}")
    load_kernels()
    pairs = [(name, policy) for name in chosen for policy in asked.policy]
    lines = [line for name, policy in pairs for line in measured(name, policy, asked.repeats, asked.scale)]
    announce(f", the shortest of {asked.repeats}:")
    print(table(head, lines))
