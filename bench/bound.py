"""How near to the limit: promises kept and penalty of each policy, beside what no policy can exceed.

    python bench/bound.py INPUT ... [--share .8] [--seed 11] [--policy priority] [--set SECTION.KEY=VALUE]

INPUT is ``higher`` or ``lower`` (the published one-hour samples, which must be at hand), ``cell``, ``validation-1``,
``validation-2``, ``validation-3`` (generated, seed 0), or ``WORKLOAD,HOSTS`` (two files). For each input and each
``--share`` of its hosts (of the resource that binds; --seed says which hosts go, and is the simulator's seed) there is
a line with the bound of bench/fluid.py and one for each ``--policy``: ``priority``, ``priority-balanced`` (with the
score that qos-driven has), ``published``, ``published-tuned``, ``share`` (recommended with ``policy.overload=share``),
``recommended``; ``none`` leaves all out, and ``--no-bound`` the bound, which takes most of the time. Figures are means
over the seeds.
``of the bound`` is kept promises by those of the bound, by class; ``least`` is the least availability of any request.
The bound is by importance: a policy that keeps fewer of an important class may exceed it in another. With ``--set``
other settings hold for all policies but the priority policy.

Promises over windows have a bound of their own: bench/windowed_fluid.py, and ``bench/promises.py --bound``.

One run each in this process, decisions by the accounting ``restart`` (``always`` for validation-3). Start-up times of
the samples are the published ones; of the validation runs a distribution like them; else the defaults, or what
``--hot`` and ``--cold`` say.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

import fluid
import pyarrow.parquet as pq
from measuring import ALPHA, HOUR, announce, one_hour_files, overheads, read, simulated, table

from slacktide.config import Config
from slacktide.inputs.generators.registry import generated
from slacktide.inputs.prepare import host_sets
from slacktide.metrics.penalties import ALL, penalties
from slacktide.model import Hosts, Workload
from slacktide.results.tables import request_rows
from slacktide.settings import load

POLICIES = {
    "priority": ("recommended", ["policy.name=priority"]),
    "priority-balanced": ("recommended", ["policy.name=priority", "policy.score=balanced"]),
    "published": ("published", []),
    "published-tuned": ("published-tuned", []),
    "share": ("recommended", ["policy.overload=share"]),
    "recommended": ("recommended", []),
}
GENERATED = ("cell", "validation-1", "validation-2", "validation-3")
LIKE_MEASURED = "lognormal:2.4,0.25"
HEAD = (
    "input",
    "policy",
    "kept",
    "of the bound",
    "least",
    "preemptions",
    "penalty, cpu-s",
    "bound's share of it",
    "seconds",
)


@dataclass(frozen=True)
class Case:
    """An input: what runs on how many hosts, and settings of all its runs as words."""

    name: str
    workload: Workload
    hosts: Hosts
    words: list[str]


@dataclass
class Line:
    """A line of the table: one place per seed."""

    kept: list[list[int]] = field(default_factory=list)
    """Of each class."""
    least: list[list[float]] = field(default_factory=list)
    """Availability, of each class."""
    preemptions: list[int] = field(default_factory=list)
    penalty: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Of a run processor seconds; of the bound, too, HiGHS's among them."""


def case(name: str, words: list[str]) -> Case:
    """The input of this name."""
    if name in ("higher", "lower"):
        starts = [f"{key}={value}" for key, value in overheads().items()]
        return Case(name, *read(*one_hour_files(name)), [*starts, *words])
    if name in GENERATED:
        own = [] if name == "cell" else [f"startup.hot={LIKE_MEASURED}", f"startup.cold={LIKE_MEASURED}"]
        own += ["qos.startup=always"] if name == "validation-3" else []
        own += ["scheduler.watchdog=30"] if name in ("validation-1", "validation-2") else []
        return Case(name, *generated(name), own + words)
    workload, comma, hosts_file = name.partition(",")
    if not comma:
        sys.exit(f"{name}: expected higher, lower, {', '.join(GENERATED)}, or WORKLOAD,HOSTS")
    return Case(Path(workload).name, *read(Path(workload), Path(hosts_file)), words)


def on_share(one: Case, share: float, seed: int) -> Hosts:
    """Its hosts without randomly chosen ones, so that the rest has this share of the resource that binds."""
    return host_sets(one.workload, one.hosts, [share], of="hosts", seed=seed)[share]


def configuration(one: Case, policy: str, seed: int, end: float, words: Sequence[str] = ()) -> Config:
    """The settings of a run under one of :data:`POLICIES`, and of the bound; ``words`` come last."""
    base, policy_words = POLICIES.get(policy, ("recommended", []))
    own = [f"qos.alpha={ALPHA}", f"simulation.end={end}", f"simulation.seed={seed}", *one.words, *policy_words]
    return load(None, base, [*own, *words])


def ran(one: Case, hosts: Hosts, config: Config, line: Line, end: float) -> None:
    """A policy's run."""
    found = simulated(one.workload, hosts, config)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "requests.parquet"
        request_rows(one.workload, found.result.requests, config.qos.startup).write(path)
        owing = penalties(pq.read_table(path), one.workload.classes, config.qos.startup, end)
    sums = dict(zip(owing["class"].to_pylist(), owing["penalty"].to_pylist(), strict=True))
    classes = [found.classes[each.name] for each in one.workload.classes]
    line.kept.append([round(c.fulfilment[config.qos.startup] * c.requests) if c.requests else 0 for c in classes])
    line.least.append([c.availability[config.qos.startup].min if c.requests else 1.0 for c in classes])
    line.preemptions.append(found.result.preemptions)
    line.penalty.append(sums[ALL])
    line.seconds.append(found.seconds)


def bounded(one: Case, hosts: Hosts, config: Config, line: Line, asked: argparse.Namespace) -> None:
    """The bound for a run of this configuration."""
    begun = time.process_time()
    kept = fluid.kept(one.workload, hosts, config, asked.end, asked.length)
    line.kept.append(kept)
    # Where all may be kept there may be nothing to owe.
    all_kept = kept == [fluid.members(one.workload, asked.end, code) for code in range(len(kept))]
    line.penalty.append(0.0 if all_kept else fluid.penalty(one.workload, hosts, asked.end, asked.penalty_length))
    line.seconds.append(time.process_time() - begun)


def measured(one: Case, share: float, asked: argparse.Namespace) -> Iterator[list[str]]:
    """The bound's line and the policies' lines."""
    sizes = [fluid.members(one.workload, asked.end, code) for code in range(len(one.workload.classes))]
    lines = {name: Line() for name in (*asked.bound, *asked.policy) if name != "none"}
    for seed in asked.seed:
        hosts = on_share(one, share, seed)
        for name, line in lines.items():
            print(f"{one.name}, {share:g} of the hosts, seed {seed}, {name} ...", file=sys.stderr)
            config = configuration(one, name, seed, asked.end, () if name.startswith("priority") else asked.set)
            if name == "bound":
                bounded(one, hosts, config, line, asked)
            else:
                ran(one, hosts, config, line, asked.end)
    best = lines.get("bound")
    there = [code for code, size in enumerate(sizes) if size]
    for name, line in lines.items():
        kept = [mean(of[code] for of in line.kept) for code in there]
        most = [mean(of[code] for of in best.kept) if best else 0 for code in there]
        penalty, least = mean(line.penalty), mean(best.penalty) if best else 0.0
        yield [
            f"{one.name}, {share:g} N",
            name,
            ", ".join(f"{got / sizes[code]:.2%}" for got, code in zip(kept, there, strict=True)),
            ", ".join(f"{got / limit:.3f}" if limit else "-" for got, limit in zip(kept, most, strict=True)),
            ", ".join(f"{min(of[code] for of in line.least):.2f}" for code in there) if line.least else "",
            f"{mean(line.preemptions):,.0f}" if line.preemptions else "",
            f"{penalty:,.1f}",
            f"{least / penalty:.3f}" if best and penalty > 0.0 else "-",
            f"{mean(line.seconds):.1f}",
        ]


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="+", help="higher, lower, cell, validation-1, -2, -3, or WORKLOAD,HOSTS")
    parser.add_argument("--share", type=float, action="append", help="of the hosts, 0 to 1; again for more (1)")
    parser.add_argument("--seed", type=int, action="append", help="again for more (0)")
    parser.add_argument("--policy", choices=[*POLICIES, "none"], action="append", help="again for more (all)")
    parser.add_argument("--no-bound", dest="bound", action="store_const", const=(), default=("bound",), help="skip it")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="a setting")
    parser.add_argument("--hot", help="start-up times, as the setting startup.hot")
    parser.add_argument("--cold", help="as startup.cold")
    parser.add_argument("--end", type=float, default=HOUR, help="seconds (3600)")
    parser.add_argument("--length", type=float, default=60.0, help="seconds of an interval for promises (60)")
    parser.add_argument("--penalty-length", type=float, default=600.0, help="the same for penalties (600)")
    asked = parser.parse_args()
    asked.share, asked.seed, asked.policy = asked.share or [1.0], asked.seed or [0], asked.policy or list(POLICIES)
    return asked


def main() -> None:
    """Print the table."""
    asked = arguments()
    words = [f"startup.{name}={value}" for name, value in (("hot", asked.hot), ("cold", asked.cold)) if value]
    announce()
    print(table(HEAD, []), flush=True)
    for name in asked.input:
        one = case(name, words)
        if asked.policy != ["none"]:  # no measurement shall contain compiling
            simulated(one.workload, one.hosts, load(None, None, [*one.words, "simulation.end=1"]))
        for share in asked.share:
            for row in measured(one, share, asked):
                print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
