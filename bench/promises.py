"""Promises over windows where there is too little room: how many each policy keeps, and what that takes.

    python bench/promises.py INPUT ... [--policy NAME ...] [--set SECTION.KEY=VALUE] [--budget whole]
    python bench/promises.py equal:n=21/24/30,slo=.99 mix zone:hours=48 --policy priority --policy recommended
    python bench/promises.py drawn:seed=0..99 --quiet --policy priority --policy new=recommended,policy.patience=120

INPUT is a name and, after a colon, ``KEY=VALUE,...``: ``3/5`` stands for several values, ``1..5`` for whole numbers
from 1 to 5; ``issue`` stands for a list of them. The inputs, with their keys and defaults:

INPUTS

NAME of a policy is ``priority``, ``published``, ``published-tuned`` or ``recommended``, or ``NAME=BASE,WORD,...`` of
your own: a base of these and settings for it; the word ``limit=.05`` is the overhead limit of all classes. ``--set``
holds for all policies but the priority policy. ``--budget`` gives every window this budget. ``--each 1d`` looks at the
promises after each day, not at the end alone. ``--bound`` adds what no policy can exceed (bench/windowed_fluid.py), and
as its preemptions how many it takes at least to keep so many (nothing where hosts fail, or requests have several
instances).

``kept`` is the fulfilment times the requests of each class: a promise over windows is kept where its worst one is.
``each`` is the preemptions for each request without an end (for each request where all end). ``longest`` is the longest
time in one piece that one waited, hours. Seconds are the processor's. With several inputs there is a table of means,
and of the inputs on which a class keeps less than under the first policy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from inspect import signature
from statistics import mean

from measuring import announce, table
from promises_parts.inputs import INPUTS, ISSUE, Input, inputs
from promises_parts.outcome import Found, Policy, bounded, measured

from slacktide.model.durations import parse_duration, write_duration

BASES = {
    "priority": Policy("priority", words=("policy.name=priority",)),
    "published": Policy("published", "published"),
    "published-tuned": Policy("published-tuned", "published-tuned"),
    "recommended": Policy("recommended"),
}
HEAD = ("input", "policy", "kept", "preemptions", "each", "longest, h", "seconds")
BOUND = "bound"
WORSE = 0.02
"""Share of a class by which keeping less than another policy is told."""


def policy(text: str, words: list[str]) -> Policy:
    """The policy of this name, or that ``NAME=BASE,WORD,...`` makes; ``words`` come last."""
    name, own, rest = text.partition("=")
    base, *more = rest.split(",") if own else [name]
    if base not in BASES:
        raise SystemExit(f"--policy {text}: found {base!r}, expected one of {', '.join(BASES)}")
    limits = [float(word.removeprefix("limit=")) for word in more if word.startswith("limit=")]
    more = [word for word in more if not word.startswith("limit=")]
    last = [] if base == "priority" else words
    return Policy(name, BASES[base].preset, (*BASES[base].words, *more, *last), limits[-1] if limits else None)


def chosen(asked: argparse.Namespace) -> Iterator[Input]:
    """The inputs, one by one."""
    for text in asked.input:
        for one in ISSUE if text == "issue" else (text,):
            yield from inputs(one)


def instants(one: Input, each: float | None) -> list[float]:
    """When promises are looked at."""
    if each is None:
        return [one.end]
    return [each * number for number in range(1, int(one.end / each) + 1)]


def line(one: Input, name: str, found: Found, end: float) -> list[str]:
    """A row of the table."""
    classes = [each.name for each in one.workload.classes]
    told = zip(classes, found.kept, found.requests, strict=True)
    kept = ", ".join(f"{name} {kept} of {count} ({kept / count:.1%})" for name, kept, count in told if count)
    longest = zip(found.longest, found.requests, strict=False)  # of the bound there is none
    known = found.preemptions >= 0
    return [
        one.name if end == one.end else f"{one.name}, after {write_duration(end)}",
        name,
        kept,
        f"{found.preemptions:,}" if known else "",
        f"{found.preemptions / found.services:,.1f}" if known else "",
        ", ".join(f"{hours:.1f}" for hours, count in longest if count),
        f"{found.seconds:.1f}",
    ]


class Means:
    """Shares of promises kept over inputs: of each class and policy."""

    def __init__(self, policies: list[str]) -> None:
        self.policies = policies
        self.shares: dict[str, dict[str, list[float]]] = {}
        self.preemptions: dict[str, list[int]] = {name: [] for name in policies}
        self.worse: list[list[str]] = []

    def add(self, one: Input, found: dict[str, Found]) -> None:
        """Those of one input under every policy."""
        for name in self.policies:
            self.preemptions[name].append(found[name].preemptions)
        for code, each in enumerate(one.workload.classes):
            first = found[self.policies[0]]
            if not first.requests[code]:
                continue
            for name in self.policies:
                kept, count = found[name].kept[code], found[name].requests[code]
                self.shares.setdefault(each.name, {}).setdefault(name, []).append(kept / count)
                if kept < first.kept[code]:
                    few = kept / count < first.kept[code] / count - WORSE
                    row = [one.name, name, each.name, f"{first.kept[code]} to {kept} of {count}", "yes" if few else ""]
                    self.worse.append(row)

    def told(self) -> str:
        """Both tables."""
        rows = [
            [each, str(len(shares[self.policies[0]])), *(f"{mean(shares[name]):.1%}" for name in self.policies)]
            for each, shares in self.shares.items()
        ]
        counts = {name: [one for one in self.preemptions[name] if one >= 0] for name in self.policies}
        rows.append(["preemptions", "", *(f"{mean(counts[name]):,.0f}" if counts[name] else "" for name in counts)])
        text = table(["class", "inputs", *self.policies], rows)
        if self.worse:
            head = ["input", "policy", "class", f"keeps less than {self.policies[0]}", f"by more than {WORSE:.0%}"]
            text += "\n\n" + table(head, self.worse)
        return text


def keys() -> str:
    """The inputs with the keys that each has."""
    lines = []
    for name, make in INPUTS.items():
        words = ", ".join(f"{key}={one.default}" for key, one in signature(make).parameters.items())
        lines.append(f"    {name}: {words}\n        {(make.__doc__ or '').splitlines()[0]}")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    text = (__doc__ or "").replace("INPUTS", keys(), 1)
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="+", help="as above, or issue")
    parser.add_argument("--policy", action="append", help="again for more (priority, recommended); none: no policy")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="a setting")
    parser.add_argument("--budget", choices=("accrued", "whole"), help="of every window")
    parser.add_argument("--each", type=parse_duration, metavar="DURATION", help="look at promises after each")
    parser.add_argument("--bound", action="store_true", help="what no policy can exceed, too")
    parser.add_argument("--quiet", action="store_true", help="only the means")
    asked = parser.parse_args()
    names = asked.policy or ("priority", "recommended")
    asked.policy = [policy(text, asked.set) for text in names if text != "none"]
    return asked


def main() -> None:
    """Print the table."""
    asked = arguments()
    announce()
    means, several = Means([one.name for one in asked.policy] + [BOUND] * asked.bound), 0
    if not asked.quiet:
        print(table(HEAD, []), flush=True)
    for one in chosen(asked):
        several += 1
        for end in instants(one, asked.each):
            found = {}
            for by in asked.policy:
                print(f"{one.name}, {by.name} ...", file=sys.stderr)
                promising = one.promising(asked.budget, by.limit)
                found[by.name] = measured(promising, by, end)
                if not asked.quiet:
                    print("| " + " | ".join(line(one, by.name, found[by.name], end)) + " |", flush=True)
        if asked.bound:
            found[BOUND] = bounded(one)
            if not asked.quiet:
                print("| " + " | ".join(line(one, BOUND, found[BOUND], one.end)) + " |", flush=True)
        means.add(one, found)
    if several > 1:
        print("\n" + means.told())


if __name__ == "__main__":
    main()
