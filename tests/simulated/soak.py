"""``python tests/simulated/soak.py [--hours HOURS] [--first SEED] [--seeds SEED,SEED,...]``: stories, each of another
seed, until so many simulated hours have passed. Prints each seed that found something, and what, and cuts its story
down to a short one, a test that can stay; exit code 1 where there is one. ``python tests/simulated/retell.py SEED``
tells such a story.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulated.shrinking import as_test, cut_down
from simulated.story import Outcome, told

SHOWN_SECONDS = 60.0
SHOWN_FINDINGS = 5
GARBAGE = 50_000


def lightly() -> None:
    """Have this process look for garbage less often: what is imported is none, and a story leaves little."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 20, 20)


def outcomes(seeds: Iterator[int], processes: int) -> Iterator[Outcome]:
    """What came of each seed, in order, some at a time."""
    if processes == 1:
        lightly()
        yield from map(told, seeds)
        return
    with ProcessPoolExecutor(processes, initializer=lightly) as workers:
        under_way = [workers.submit(told, seed) for seed in itertools.islice(seeds, 2 * processes)]
        try:
            while under_way:
                yield under_way.pop(0).result()
                under_way += [workers.submit(told, seed) for seed in itertools.islice(seeds, 1)]
        finally:
            for one in under_way:
                one.cancel()


def described(outcome: Outcome) -> str:
    """What a seed found, for people."""
    findings = outcome.findings
    more = f"\n  ... and {len(findings) - SHOWN_FINDINGS} more" if len(findings) > SHOWN_FINDINGS else ""
    return f"seed {outcome.seed}:" + "".join(f"\n  {one}" for one in findings[:SHOWN_FINDINGS]) + more


def main(words: list[str]) -> int:
    """Run; 1 where a seed found something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=float("inf"), help="simulated hours")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", default="", help="these seeds alone")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--until-found", action="store_true", help="end with the first seed that finds something")
    parser.add_argument("--cut", type=int, default=1, help="so many stories that find something are cut down")
    parser.add_argument("--hashes", action="store_true", help="print what each seed's history comes to")
    asked = parser.parse_args(words)
    seeds = map(int, asked.seeds.split(",")) if asked.seeds else itertools.count(asked.first)
    began = shown = time.monotonic()
    hours, deeds, failed = 0.0, [0, 0, 0], 0
    for outcome in outcomes(iter(seeds), asked.processes):
        hours += outcome.hours
        deeds = [a + b for a, b in zip(deeds, (1, outcome.bindings, outcome.evictions), strict=True)]
        if asked.hashes:
            sys.stdout.write(f"{outcome.seed} {outcome.digest}\n")
        if outcome.findings:
            failed += 1
            sys.stdout.write(described(outcome) + "\n")
            sys.stdout.flush()
            if failed <= asked.cut:
                cut, short = cut_down(outcome.seed, outcome)
                sys.stdout.write(f"Cut down, as a test:\n\n{as_test(cut, short, outcome)}\n\n")
        if hours >= asked.hours or (failed and asked.until_found):
            break
        if time.monotonic() - shown > SHOWN_SECONDS:
            shown = time.monotonic()
            sys.stderr.write(f"{hours:.0f} h, {failed} failing, {shown - began:.0f} s\n")
    seeds_run, bindings, evictions = deeds
    sys.stdout.write(
        f"{seeds_run} seeds, {hours:.1f} simulated hours in {time.monotonic() - began:.0f} s: {bindings} bindings, "
        f"{evictions} evictions; {failed} found something\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
