"""Figures 3 and 4 and tables 6 and 7 of Lai, Wang and Wei beside ours: a figure, and what differs (docs/edge.md).

    python bench/edge_published.py docs/figures/edge.svg
    python bench/edge_published.py --sentences       # what their text says of the figures, and whether it is so here
    python bench/edge_published.py --completion      # tables 6 and 7

Placements are the simulator's, runs those of ``slacktide edge replay``, with 20 draws of ties. Of their figures we have
the text alone: numbers of pods are stated there, delays are only compared with each other.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import log
from pathlib import Path
from statistics import fmean
from typing import Any

from edge_fit import COMPLETION, METHODS
from measuring import table

from slacktide import settings
from slacktide.drawing import PAGE, alone, style, svg
from slacktide.edge.replay import LOADS, place
from slacktide.edge.testbed import Run, read_run, read_testbed
from slacktide.palette import CLASSES, GRID, TEXT

EDGE = Path(__file__).parent.parent / "examples" / "edge"
NODES = ("n1", "n2", "n3")
SEEDS = range(20)
SHORT = ("KS", "EF", "TSRA", "NAS", "KCSS", ".25", ".5", ".75")
"""Of METHODS, as in their figures; numbers are the delay-aware method's alphas."""
AWARE = METHODS[5:]
TIE = 1e-4
"""Logarithms of two times that differ by less."""
ABOUT = "Pods by node, processing delay by node, network delay and completion of all methods, published and simulated"


@dataclass(frozen=True)
class Seen:
    """A method in a scenario, means over its runs: pods by node; seconds by load, of processing by node too."""

    pods: dict[str, float]
    processing: dict[str, dict[str, float]]
    network: dict[str, float]
    completion: dict[str, float]

    def mean(self, load: str) -> float:
        """Of processing, over all pods."""
        return sum(self.processing[load][node] * self.pods[node] for node in NODES) / sum(self.pods.values())


def seen(number: int, method: str, behaviour: Run) -> Seen:
    """``nas (n1)`` prefers this node; ``nas`` is the mean over all three."""
    folder = EDGE / f"scenario-{number}"
    testbed, config = read_testbed(folder), settings.load(folder / "settings.yaml")
    name, _, rest = method.partition(" ")
    if name == "delay-aware":
        config = replace(config, delay=replace(config.delay, alpha=float(rest)))
    ways = [rest.strip("()")] if rest.startswith("(") else list(NODES) if name == "nas" else [""]
    seeds = SEEDS if name not in ("nas", "delay-aware") else SEEDS[:1]
    placements = [place(testbed, name, config, preferred=way, seed=seed) for way in ways for seed in seeds]
    pods = {node: fmean(list(one.values()).count(node) for one in placements) for node in NODES}
    runs = {load: [testbed.run(one, behaviour, load) for one in placements] for load in LOADS}
    there = {
        load: {node: [pod.processing for run in runs[load] for pod in run.pods if pod.node == node] for node in NODES}
        for load in LOADS
    }
    return Seen(
        pods,
        {load: {node: fmean(some) if some else 0.0 for node, some in there[load].items()} for load in LOADS},
        {load: fmean(run.network for run in runs[load]) for load in LOADS},
        {load: fmean(run.completion for run in runs[load]) for load in LOADS},
    )


def all_seen() -> dict[int, dict[str, Seen]]:
    """By scenario and method; of NAS each preferred node, too."""
    behaviour = read_run(EDGE / "run.yaml")
    names = (*METHODS, *(f"nas ({node})" for node in NODES))
    return {number: {name: seen(number, name, behaviour) for name in names} for number in (1, 2)}


Said = tuple[str, str, bool]
"""Where their text says something, what, and whether it is so here."""


def sentences(found: dict[int, dict[str, Seen]]) -> Iterator[Said]:
    """What their text says of the delays in figures 3 and 4."""
    one, two = found[1], found[2]
    both = [(one, "3"), (two, "4")]
    by_node = {n: {m: [x.processing[load] for load in LOADS] for m, x in found[n].items()} for n in (1, 2)}

    def higher(number: int, method: str, node: str, *others: str) -> bool:
        return all(some[node] > max(some[other] for other in others) for some in by_node[number][method])

    yield "3 (b, c)", "kube-scheduler: n3 much above n1 and n2", higher(1, "least-requested", "n3", "n1", "n2")
    for method in ("elastic-fog", "tsra"):
        yield "3 (b, c)", f"{method}: n1 above n2 and n3", higher(1, method, "n1", "n2", "n3")
    prefers = all(higher(1, f"nas ({n})", n, *(o for o in NODES if o != n)) for n in NODES)
    yield "3 (b, c)", "NAS: the preferred node above the others", prefers
    yield (
        "3 (b, c)",
        "KCSS: n2 above n1, none on n3",
        higher(1, "kcss", "n2", "n1", "n3") and one["kcss"].pods["n3"] == 0,
    )
    extra = zip(AWARE, ("n2", "n2", "n3"), strict=True)
    yield (
        "3 (b, c)",
        "delay-aware: the node with four pods above the others",
        all(higher(1, method, node, *(o for o in NODES if o != node)) for method, node in extra),
    )
    least = all(
        max(one[m].mean(load) for m in ("elastic-fog", "tsra", *AWARE))
        < min(one[m].mean(load) for m in ("least-requested", "nas", "kcss"))
        for load in LOADS
    )
    yield "3 (b, c)", "ElasticFog, TSRA and delay-aware have the least mean", least
    for scenario, number in both:
        others = [scenario[m].network["low"] for m in METHODS[:5] if m != "tsra"]
        tsra = scenario["tsra"].network["low"]
        yield f"{number} (d)", "TSRA below kube-scheduler, ElasticFog, NAS, KCSS", tsra < min(others)
        yield (
            f"{number} (d)",
            "delay-aware, each alpha, below TSRA",
            max(scenario[m].network["low"] for m in AWARE) < tsra,
        )
    networks = [two[m].network["low"] for m in AWARE]
    yield "4 (d)", "delay-aware: alpha .25 least", networks[0] < min(networks[1:])
    for method in ("least-requested", "elastic-fog"):
        halves = all(0.4 <= some["n1"] / some[n] <= 0.6 for some in by_node[2][method] for n in ("n2", "n3"))
        yield "4 (b, c)", f"{method}: n1 nearly a half of n2 and n3 (.4 to .6)", halves
    yield "4 (b, c)", "TSRA: n1 above n2 and n3", higher(2, "tsra", "n1", "n2", "n3")
    all_on = [x["n1"] for x in by_node[2]["nas (n1)"]]
    halved = [max(x["n2"], x["n3"]) for x in by_node[2]["nas (n2)"]]
    yield "4 (b, c)", "NAS: n1, when preferred, the highest", all(a > b for a, b in zip(all_on, halved, strict=True))
    close = all(abs(log(x["n2"] / x["n3"])) < 0.1 for x in by_node[2]["kcss"])
    yield "4 (b, c)", "KCSS: n2 and n3 within 10 %", close
    below = all(x["n1"] < max(x["n2"], x["n3"]) for method in AWARE for x in by_node[2][method])
    yield "4 (b, c)", "delay-aware: n1 below the higher of n2 and n3", below
    for number, alpha in ((1, "0.75"), (2, "0.25")):
        best = min(AWARE, key=lambda m: found[number][m].completion["low"] + found[number][m].completion["high"])
        yield f"table {number + 5}", f"delay-aware: done first with alpha {alpha}", best.endswith(alpha)


def completion(found: dict[int, dict[str, Seen]]) -> str:
    """Tables 6 and 7 beside ours, the mean error, and the pairs that are in another order or tie."""
    errors, rows, wrong = [], [], []
    for (number, load), published in COMPLETION.items():
        ours = [found[number][method].completion[load] for method in METHODS]
        for method, theirs, mine in zip(METHODS, published, ours, strict=True):
            errors.append(abs(log(mine / theirs)))
            rows.append([f"{number}, {load}", method, f"{theirs:.2f}", f"{mine:.2f}", f"{mine / theirs - 1:+.1%}"])
        for a, b in combinations(range(len(METHODS)), 2):
            apart = log(ours[b] / ours[a]) * (1 if published[b] > published[a] else -1)
            if apart < TIE:
                how = "tie" if apart > -TIE else "the other way round"
                times = [f"{some[a]:.2f}, {some[b]:.2f}" for some in (published, ours)]
                wrong.append([f"{number}, {load}", f"{METHODS[a]}, {METHODS[b]}", *times, how])
    head = ["scenario, load", "method", "published s", "ours s", "difference"]
    pairs = ["scenario, load", "pair", "published s", "ours s", "ours"]
    ties = sum(row[-1] == "tie" for row in wrong)
    summary = f"Mean error of the logarithm: {fmean(errors):.2%}. "
    summary += f"Of 112 pairs {len(wrong) - ties} are in another order, {ties} tie."
    return f"{table(head, rows)}\n{summary}\n\n{table(pairs, wrong)}"


def drawing(found: dict[int, dict[str, Seen]]) -> str:
    """A row for each scenario: panels (a) to (d) as in figures 3 and 4, then completion with the published times."""
    from matplotlib.figure import Figure

    inks = [ink.light for ink in CLASSES[:3]]
    with style(PAGE):
        figure: Any = Figure(figsize=(PAGE.width, 11.0), layout="constrained")
        grid = figure.subplots(5, 2, sharex=True)
        for column, (number, methods) in enumerate(found.items()):
            some = [methods[name] for name in METHODS]
            rows = [axes[column] for axes in grid]
            rows[0].set_title(f"scenario {number} (figure {number + 2}, table {number + 5})")
            for node, ink, shift in zip(NODES, inks, (-0.27, 0.0, 0.27), strict=True):
                places = [x + shift for x in range(len(METHODS))]
                rows[0].bar(places, [one.pods[node] for one in some], 0.25, color=ink, label=node)
                for row, load in ((1, "low"), (2, "high")):
                    rows[row].bar(places, [one.processing[load][node] for one in some], 0.25, color=ink)
            rows[3].bar(
                range(len(METHODS)), [one.network["low"] for one in some], 0.5, color=GRID.light, edgecolor=TEXT.light
            )
            for load, mark in zip(LOADS, ("o", "s"), strict=True):
                rows[4].plot(
                    [one.completion[load] for one in some], mark, color=inks[0], label=f"{load} load, simulated"
                )
                rows[4].plot(
                    COMPLETION[number, load], "_", color=TEXT.light, markersize=16, label=f"{load} load, published"
                )
            rows[4].set_yscale("log")
            rows[4].set_xticks(range(len(METHODS)), SHORT)
        names = (
            "(a) pods",
            "(b) processing s, low load",
            "(c) processing s, high load",
            "(d) network s, low load",
            "completion s",
        )
        for axes, name in zip(grid, names, strict=True):
            axes[0].set_ylabel(name)
        grid[0][0].legend(ncols=3)
        grid[4][0].legend(ncols=2)
        return alone(svg(figure, "edge", ABOUT, ABOUT), modes=True)


def main() -> None:
    """Print what is asked for, or write the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("svg", type=Path, nargs="?")
    parser.add_argument("--sentences", action="store_true")
    parser.add_argument("--completion", action="store_true")
    asked = parser.parse_args()
    found = all_seen()
    if asked.sentences:
        rows = [[where, said, "yes" if so else "no"] for where, said, so in sentences(found)]
        print(table(["figure", "what the text says", "so here"], rows))
    if asked.completion:
        print(completion(found))
    if asked.svg is not None:
        asked.svg.write_text(drawing(found), encoding="utf-8")
        print(f"wrote {asked.svg}")


if __name__ == "__main__":
    main()
