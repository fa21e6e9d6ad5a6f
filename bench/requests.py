"""What requests of several instances cost and get: grouped one-hour files, a million instances, gangs.

    python bench/requests.py grouped [--repeats 5] [--files higher lower] [--end 3600]
    python bench/requests.py jobs [--repeats 5] [--requests 10000] [--size 100] [--hosts 1000 12500]
    python bench/requests.py gang [--seeds 5] [--requests 300] [--hosts 50] [--size 8] [--load 1.1]

``grouped``: the rows of each job of the one-hour files as one request, by approach and settings, beside the ungrouped
file; seconds are medians of whole processes and, where they say so, of the simulation alone, ratios medians of those
within a repetition. Needs the published inputs. ``jobs``: requests of ``size`` instances each beside ``light`` with as
many requests of one, same load and hosts. ``gang``: validation run 3, and concurrent services that ask for more than
there is, with and without ``policy.gang``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from measuring import (
    ALPHA,
    HOUR,
    announce,
    millions,
    one_hour_files,
    overheads,
    per_cent,
    read,
    settings,
    share,
    slacktide,
    table,
    timed,
)
from measuring import warm as warm_up
from validation3 import LIKE_MEASURED, Outcome, outcome
from validation3 import runs as validation_runs

from slacktide.config import Config
from slacktide.inputs import group_by_job
from slacktide.inputs.generators.registry import generated
from slacktide.model import Hosts, Workload
from slacktide.sim import run

Words = Sequence[str]
GROUPED: dict[str, Words] = {
    "ungrouped": (),
    "independent": ("--group-by", "job"),
    "concurrent": ("--group-by", "job", "--approach", "concurrent"),
    "aggregated": ("--group-by", "job", "--approach", "aggregated"),
    "batch": ("--group-by", "job", "--kind", "batch"),
}
PRESETS: dict[str, tuple[Words, tuple[str, dict[str, Any]]]] = {
    "recommended": ((), ("recommended", {})),
    "published": (("--preset", "published"), ("published", {})),
    "priority": (("--policy", "priority"), ("recommended", {"policy.name": "priority"})),
}
CLASSES = ("gold", "silver", "bronze")
GROUPED_HEAD = (
    *("settings", "requests", "wall s", "processor s", "ratios", "simulation alone s", "ratio", "preemptions"),
    *(f"{name}: mean, min, fulfilled" for name in CLASSES),
)
JOBS: dict[str, Words] = {
    "independent": ("batch=0", "approach=independent"),
    "aggregated": ("batch=0", "approach=aggregated"),
    "concurrent": ("batch=0", "approach=concurrent"),
    "mixed, 30 % batch": ("batch=0.3", "approach=mixed"),
}
JOBS_HEAD = (
    *("workload", "requests", "instances", "wall s", "processor s", "MB", "ratios", "preemptions", "operations M"),
    "kept",
)
GANG_HEAD = (
    *("settings", "gang", "preemptions", "wasted start-up h", "in vain h", "mean"),
    *(f"{name}: mean, min, fulfilled" for name in CLASSES),
)

Measured = tuple[float, dict[str, Any]]


def rounds(names: Iterable[str], repeats: int, once: Callable[[str], Measured]) -> dict[str, list[Measured]]:
    """Seconds and object of every variant, one after the other in each repetition, so that machines are alike."""
    found: dict[str, list[Measured]] = {name: [] for name in names}
    for number in range(repeats):
        for name, runs in found.items():
            print(f"{name} {number + 1}/{repeats} ...", file=sys.stderr)
            runs.append(once(name))
    return found


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """The median of ratios within a repetition."""
    return f"{median(one / other for one, other in zip(ours, theirs, strict=True)):.2f}"


def of(runs: Sequence[Measured], name: str) -> list[float]:
    """A figure of all repetitions; ``wall`` is that of the whole process as seen from outside."""
    return [seconds if name == "wall" else float(found[name]) for seconds, found in runs]


def ratios(ours: Sequence[Measured], theirs: Sequence[Measured], names: Words) -> str:
    return ", ".join(ratio(of(ours, name), of(theirs, name)) for name in names)


def classes(found: Mapping[str, Any]) -> list[str]:
    """Per class mean, least and fulfilment in the accounting of decisions, of what ``--json`` printed."""
    cells, which = [], found["accounting"]
    for name in CLASSES:
        one = found["classes"][name]
        got, kept = one["availability"][which], one["fulfilment"][which]
        cells.append("-" if kept is None else f"{share(got['mean'])}, {share(got['min'])}, {kept:.2%}")
    return cells


def grouped(arguments: argparse.Namespace) -> str:
    """Tables of the grouped one-hour files."""
    starts = overheads()
    common = ["--hot", starts["startup.hot"], "--cold", starts["startup.cold"], "--set", f"qos.alpha={ALPHA}"]
    common += ["--end", f"{arguments.end:g}"]
    announce(f", medians of {arguments.repeats}:")
    lines = []
    for which in arguments.files:
        files = one_hour_files(which)
        warm_up(*files)
        workload, hosts = read(*files)
        workloads = {
            "ungrouped": workload,
            "batch": group_by_job(workload, approach="aggregated", batch=True),
            **{name: group_by_job(workload, approach=name) for name in list(GROUPED)[1:4]},
        }
        for preset, (words, (base, values)) in PRESETS.items():
            config = settings(base, values | starts | {"qos.alpha": ALPHA, "simulation.end": arguments.end})
            alone(workload, hosts, settings(base, {"simulation.end": 1.0}))  # loads the kernels

            def once(
                name: str, words: Words = words, files: Any = files, loaded: Any = (workloads, hosts, config)
            ) -> Measured:
                seconds, found = timed(1, "simulate", *files, *common, *words, *GROUPED[name])
                return seconds, found | {"alone": alone(loaded[0][name], *loaded[1:])}

            runs = rounds(GROUPED, arguments.repeats, once)
            rows = []
            for name, mine in runs.items():
                found, base_runs = mine[-1][1], runs["ungrouped"]
                cells = [name, f"{found['requests']:,}"]
                cells += [f"{median(of(mine, key)):.2f}" for key in ("wall", "cpu_seconds")]
                cells += [ratios(mine, base_runs, ("wall", "cpu_seconds")), f"{median(of(mine, 'alone')):.2f}"]
                rows.append([*cells, ratios(mine, base_runs, ("alone",)), f"{found['preemptions']:,}", *classes(found)])
            lines += [f"**{which} contention, {preset}**", table(GROUPED_HEAD, rows)]
    return "\n\n".join(lines)


def alone(workload: Workload, hosts: Hosts, config: Config) -> float:
    """Processor seconds of the simulation, without start, reading and summary."""
    begun = time.process_time()
    run(workload, hosts, config)
    return time.process_time() - begun


def jobs(arguments: argparse.Namespace) -> str:
    """Tables of many instances in few requests beside as many requests."""
    instances = arguments.requests * arguments.size
    announce(f", medians of {arguments.repeats}; ratios to `light` of wall and processor seconds, memory:")
    lines = []
    for hosts in arguments.hosts:
        with tempfile.TemporaryDirectory() as folder:
            files = {"light": _generated(folder, "light", f"hosts={hosts}", f"requests={instances}")}
            size = (f"hosts={hosts}", f"requests={arguments.requests}", f"size={arguments.size}")
            files |= {name: _generated(folder, "jobs", *size, *more) for name, more in JOBS.items()}
            warm_up(*files["light"])
            for preset in arguments.settings:

                def once(name: str, words: Words = PRESETS[preset][0], files: Any = files) -> Measured:
                    return timed(1, "simulate", *files[name], *words)

                runs = rounds(files, arguments.repeats, once)
                rows = []
                for name, mine in runs.items():
                    found = mine[-1][1]
                    cells = [name, f"{found['requests']:,}", f"{found['instances']:,}"]
                    cells += [f"{median(of(mine, key)):.2f}" for key in ("wall", "cpu_seconds")]
                    cells.append(f"{max(of(mine, 'peak_rss_mb')):.0f}")
                    cells.append(ratios(mine, runs["light"], ("wall", "cpu_seconds", "peak_rss_mb")))
                    kept = per_cent(found["classes"]["gold"]["fulfilment"][found["accounting"]])  # nobody else is there
                    rows.append([*cells, f"{found['preemptions']:,}", millions(found["operations"]), kept])
                lines += [f"**{hosts:,} hosts, {preset}**", table(JOBS_HEAD, rows)]
    return "\n\n".join(lines)


def _generated(folder: str, name: str, *parameters: str) -> tuple[Path, Path]:
    target = Path(folder) / "-".join([name, *parameters])
    words = [word for one in parameters for word in ("--set", one)]
    slacktide("generate", name, "--out", target, *words)
    return target / "workload.parquet", target / "hosts.parquet"


def gang(arguments: argparse.Namespace) -> str:
    """Tables of the same runs with and without ``policy.gang``."""
    announce(f", means over {arguments.seeds} seeds (`min`: the least of all):")
    lines = []
    seeds = range(arguments.seeds)
    rows = []
    for name, said in (("recommended", "no"), ("recommended, `gang`", "yes")):
        rows.append(gang_row("recommended", said, list(validation_runs("concurrent", name, seeds, LIKE_MEASURED))))
    head = [*GANG_HEAD[:6], *(f"{name}: mean, min, fulfilled" for name in ("first", "second", "third"))]
    lines += ["**validation run 3, concurrent**", table(head, rows)]
    parameters = {name: getattr(arguments, name) for name in ("hosts", "requests", "size", "load", "life")}
    parameters |= {"batch": 0.0, "approach": "concurrent", "classes": ",".join(CLASSES)}
    rows = []
    for preset, (_, (base, values)) in PRESETS.items():
        for said, wanted in (("no", False), ("yes", True)):
            found = []
            for seed in seeds:
                print(f"{preset}, gang: {said}, seed {seed} ...", file=sys.stderr)
                # Long enough for the queue that the load makes, short enough for it to last.
                changes = {"policy.gang": wanted, "simulation.end": arguments.end, "simulation.seed": seed}
                found.append(outcome(*generated("jobs", parameters, seed), settings(base, values | changes)))
            rows.append(gang_row(preset, said, found))
    told = ", ".join(f"{key}={value}" for key, value in parameters.items())
    lines += [f"**jobs** ({told}; {arguments.end:g} s)", table(GANG_HEAD, rows)]
    return "\n\n".join(lines)


def gang_row(name: str, said: str, found: Sequence[Outcome]) -> list[str]:
    """One line: ``in vain`` is running time in which not all instances of a request ran."""
    wasted = mean(float(one.result.requests["wasted_startup"].sum()) for one in found)
    cells = [name, said, f"{mean(one.result.preemptions for one in found):,.0f}", f"{wasted / HOUR:.2f}"]
    cells += [f"{mean(in_vain(one) for one in found) / HOUR:.1f}"]
    cells.append(share(mean(float(one.availability.mean()) for one in found)))
    for index in range(len(found[0].classes)):
        got: list[Any] = [one.classes[index] for one in found]
        which = found[0].accounting
        middle = mean(one.availability[which].mean for one in got)
        least = min(one.availability[which].min for one in got)
        cells.append(f"{share(middle)}, {share(least)}, {mean(one.fulfilment[which] for one in got):.1%}")
    return cells


def in_vain(found: Outcome) -> float:
    """Seconds in which instances did useful work while one of their siblings did not; of concurrent requests."""
    columns: Any = found.result.requests
    times = ("running", "pending", "startup_first", "startup_restarts", "discarded")
    lifetime = sum(columns[name] for name in times)
    return float((columns["running"] - columns["availability_always"] * lifetime).sum())


def main() -> None:
    """Print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="what", required=True)
    for name in ("grouped", "jobs", "gang"):
        one = commands.add_parser(name)
        if name != "gang":
            one.add_argument("--repeats", type=int, default=5)
    grouping, many, gangs = (commands.choices[name] for name in ("grouped", "jobs", "gang"))
    grouping.add_argument("--files", nargs="+", choices=("higher", "lower"), default=["higher", "lower"])
    grouping.add_argument("--end", type=float, default=HOUR)
    many.add_argument("--requests", type=int, default=10_000)
    many.add_argument("--size", type=int, default=100)
    many.add_argument("--hosts", type=int, nargs="+", default=[1000, 12_500])
    many.add_argument("--settings", nargs="+", choices=list(PRESETS), default=["recommended", "priority"])
    gangs.add_argument("--seeds", type=int, default=5)
    gangs.add_argument("--requests", type=int, default=300)
    gangs.add_argument("--hosts", type=int, default=50)
    gangs.add_argument("--size", type=int, default=8)
    gangs.add_argument("--load", type=float, default=1.1)
    gangs.add_argument("--life", type=float, default=1800.0)
    gangs.add_argument("--end", type=float, default=4 * HOUR)
    arguments = parser.parse_args()
    print({"grouped": grouped, "jobs": jobs, "gang": gang}[arguments.what](arguments), flush=True)


if __name__ == "__main__":
    main()
