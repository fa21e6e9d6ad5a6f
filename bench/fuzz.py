"""Plays clusters whose objects are drawn at random, for as long as it is told (``make fuzz``).

    PYTHONPATH=src:tests python bench/fuzz.py --hours 1
    PYTHONPATH=src:tests python bench/fuzz.py --seed 4711       one of them again, with what it says

Each fault is shown once, with the seed that plays it again. Ends with 1 where there was any.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
import time

from measuring import parsed

from support import virtual_time
from support.fuzzed_cluster import STEPS, Fault, FuzzedCluster

ABOUT = 300
"""So many characters at the end of what a fault says, without names and numbers, tell it from others."""


def fault_of(seed: int, steps: int) -> str:
    """What is wrong where the cluster of a seed is played, or nothing."""
    cluster = FuzzedCluster(seed)
    try:
        virtual_time.run(lambda: cluster.live(steps))
    except Fault as fault:
        return str(fault)
    return ""


def kind_of(text: str) -> str:
    """What faults of one kind have in common."""
    return re.sub(r"uid-[0-9]+|[0-9]+|'[^']*'", "#", text.partition("\nafter ")[0])[-ABOUT:]


def main() -> int:
    chosen = parsed(__doc__, hours=1.0, seed=int, steps=STEPS)
    logging.getLogger("slacktide").propagate = chosen.seed is not None
    end = time.monotonic() + 3600.0 * chosen.hours
    first = secrets.randbelow(10**9) if chosen.seed is None else chosen.seed
    seen: dict[str, int] = {}
    played = 0
    while not played or (chosen.seed is None and time.monotonic() < end):
        if fault := fault_of(first + played, chosen.steps):
            kind = kind_of(fault)
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] == 1:
                print(f"seed {first + played}: {fault}\n", flush=True)
        played += 1
    print(f"{played} clusters from seed {first} on: {len(seen)} kinds of faults, {sum(seen.values())} faults")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
