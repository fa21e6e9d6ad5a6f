"""``python tests/simulated/soak.py HOURS [--first SEED] [--processes N]``: stories one after the other, until so many
simulated hours have passed. Prints each seed that found something, and what; exit code 1 where there is one.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulated.hashing import settle
from simulated.invariants import described
from simulated.story import Outcome, told

SHOWN_SECONDS = 60.0


def main(words: list[str]) -> int:
    """Run; 1 where a seed found something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("hours", type=float, help="simulated hours")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first-failure", action="store_true", help="stop at the first seed that finds something")
    asked = parser.parse_args(words)
    began = shown = time.monotonic()
    hours, failed, deeds = 0.0, 0, [0, 0, 0]
    with ProcessPoolExecutor(asked.processes) as workers:
        seeds = itertools.count(asked.first)
        under_way = [workers.submit(told, next(seeds)) for _ in range(asked.processes * 2)]
        while under_way:
            outcome: Outcome = under_way.pop(0).result()
            hours += outcome.hours
            deeds = [a + b for a, b in zip(deeds, (1, outcome.bindings, outcome.evictions), strict=True)]
            if outcome.findings:
                failed += 1
                sys.stdout.write(f"seed {outcome.seed}: {described(list(outcome.findings))}\n")
                sys.stdout.flush()
            if hours < asked.hours and not (failed and asked.first_failure):
                under_way.append(workers.submit(told, next(seeds)))
            if time.monotonic() - shown > SHOWN_SECONDS:
                shown = time.monotonic()
                sys.stderr.write(f"{hours:.0f} h, {failed} failing, {shown - began:.0f} s\n")
    seeds_run, bindings, evictions = deeds
    sys.stdout.write(
        f"{seeds_run} seeds, {hours:.1f} simulated hours in {time.monotonic() - began:.0f} s: {bindings} bindings, "
        f"{evictions} evictions; {failed} seeds found something\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    settle()
    sys.exit(main(sys.argv[1:]))
