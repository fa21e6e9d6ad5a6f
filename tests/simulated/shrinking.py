"""``python tests/simulated/shrinking.py SEED``: cuts the story of a seed that finds something down to a short one that
finds the same, and prints that as a test.

A story consists of parts: incidents, deeds of users, kinds of weather. Parts are left out, many at first, as long as
the same is found (delta debugging: Zeller and Hildebrandt, 2002).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulated.network import Weather
from simulated.story import Outcome, told
from simulated.world import ALL_THE_WHILE, FAULTS_SECONDS, WHOLE, Cut, Part

TRIES = 120
"""So many stories are played at most."""
VARIES = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]+(\.\d+)?\b")


def kind_of(finding: str) -> str:
    """What was found, whatever its instants and names."""
    return VARIES.sub("#", finding.partition(": ")[2])


def fewest(parts: Sequence[Part], still: Callable[[Sequence[Part]], bool]) -> list[Part]:
    """As few of the parts as suffice: none of them can be left out alone, unless ``still`` ran out of tries."""
    kept, pieces = list(parts), 2
    while len(kept) > 1:
        size = ceil(len(kept) / pieces)
        for first in range(0, len(kept), size):
            fewer = kept[:first] + kept[first + size :]
            if still(fewer):
                kept, pieces = fewer, max(2, pieces - 1)
                break
        else:
            if size == 1:
                break
            pieces = min(len(kept), 2 * pieces)
    if len(kept) == 1 and still([]):
        return []
    return kept


def cut_down(seed: int, whole: Outcome, tries: int = TRIES) -> tuple[Cut, Outcome]:
    """The shortest story that was found, and what comes of it."""
    wanted = kind_of(whole.findings[0])
    every = [part for part, _ in whole.parts]
    every += [*ALL_THE_WHILE, *(Part(name, 0) for name in Weather.__dataclass_fields__)]
    best, found = WHOLE, whole

    def is_so(cut: Cut) -> bool:
        nonlocal best, found, tries
        if tries == 0:
            return False
        tries -= 1
        outcome = told(seed, cut)
        if wanted not in map(kind_of, outcome.findings):
            return False
        best, found = cut, outcome
        return True

    is_so(replace(WHOLE, ends_at_once=True))
    ends_at_once = best.ends_at_once
    fewest(every, lambda kept: is_so(Cut(frozenset(every) - frozenset(kept), ends_at_once=ends_at_once)))
    at = float(found.findings[0].split(" s:")[0])
    for seconds in (ceil(at) + 5.0, ceil(at) + 60.0):
        if seconds < best.faults_seconds and is_so(replace(best, faults_seconds=seconds)):
            break
    return best, found


def as_test(cut: Cut, outcome: Outcome, whole: Outcome) -> str:
    """The story as a test, with what happens in it."""
    kept = [part for part, _ in whole.parts if part not in cut.without]
    ends = f", faults_seconds={cut.faults_seconds:g}" if cut.faults_seconds != WHOLE.faults_seconds else ""
    weather = [name for name in Weather.__dataclass_fields__ if Part(name, 0) not in cut.without]
    others = [one.kind for one in ALL_THE_WHILE if one not in cut.without]
    return "\n".join((
        f"def test_what_seed_{outcome.seed}_found() -> None:",
        f'    """{outcome.findings[0]}',
        "",
        *(f"    {text}" for part, text in outcome.parts if part in kept),
        f"    All the while: {', '.join([*weather, *others]) or 'nothing else'}.",
        '    """',
        f"    kept = {{{', '.join(repr(tuple(one)) for one in kept)}}}",
        f"    assert told_of({outcome.seed}, kept, {[*weather, *others]!r}{ends}).findings == ()",
    ))  # fmt: skip


def told_of(
    seed: int, kept: set[tuple[str, int]], others: Sequence[str], faults_seconds: float = FAULTS_SECONDS
) -> Outcome:
    """The story of a seed with these of its incidents and deeds, and kinds of weather."""
    every = {one for kind in ("incident", "deed") for one in (Part(kind, number) for number in range(2000))}
    every |= {*ALL_THE_WHILE, *(Part(name, 0) for name in Weather.__dataclass_fields__)}
    left = {Part(*one) for one in kept} | {Part(name, 0) for name in others}
    return told(seed, Cut(frozenset(every - left), faults_seconds))


def main(words: list[str]) -> int:
    """Cut a seed's story down; 1 where it finds something."""
    whole = told(int(words[0]))
    if not whole.findings:
        sys.stdout.write("It finds nothing.\n")
        return 0
    cut, outcome = cut_down(whole.seed, whole)
    sys.stdout.write(as_test(cut, outcome, whole) + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
