"""What the programs of this folder share: inputs, timed processes, tables, curves.

The published files are looked for in $SLACKTIDE_DATA or ../shared/data; programs that need
them say so and stop. Everything runs with the interpreter and the slacktide that run the program.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide import palette
from slacktide.config import Config
from slacktide.inputs import align, read_hosts, read_workload
from slacktide.metrics import ClassSummary, per_class
from slacktide.model import Hosts, Workload
from slacktide.settings import load
from slacktide.sim import RunResult, run

Floats = NDArray[np.float64]

DATA = Path(os.environ.get("SLACKTIDE_DATA", Path(__file__).parents[2] / "shared" / "data"))
ALPHA = 22.37107  # seconds; the published runs'
HOUR = 3600.0
PER_MB = 2**20 if sys.platform == "darwin" else 2**10
"""Of the unit in which the system tells a process's memory."""


def published(*parts: str) -> Path:
    """A published file; stops the program where it is absent."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        sys.exit(f"{'/'.join(parts)} is absent: this needs the published inputs; name their folder in SLACKTIDE_DATA")
    return path


SUMS = Path(__file__).parents[1] / "examples" / "experiments" / "one-hour.sha256"
"""Of the published one-hour samples, as sha256sum writes them."""


def checked(path: Path) -> Path:
    """The path; ends the program where the file is not the one that all figures are of."""
    wanted = dict(reversed(line.split()) for line in SUMS.read_text().splitlines())
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if wanted[path.name] != found:
        sys.exit(
            f"{path}: SHA-256: found {found}, expected {wanted[path.name]}; take the file as it was published "
            "(docs/experiments.md)"
        )
    return path


def one_hour_files(which: str) -> tuple[Path, Path]:
    """Workload ('lower' or 'higher' contention) and hosts of the one-hour sample."""
    workload, hosts = (published("one-hour", name) for name in (f"workload-{which}-contention.erl", "hosts-620.erl"))
    return checked(workload), checked(hosts)


def overheads(*, cold: bool = True) -> dict[str, str]:
    """The measured start-up times as settings; without ``cold`` the hot ones for every start."""
    hot = str(published("overheads", "hot.erl"))
    return {"startup.hot": hot, "startup.cold": str(published("overheads", "cold.erl")) if cold else hot}


def read(workload: Path, hosts: Path) -> tuple[Workload, Hosts]:
    """Both files with equal resources."""
    return align(read_workload(workload), read_hosts(hosts), workload_file=str(workload), hosts_file=str(hosts))


def plain(
    admission: Floats, duration: Floats, demand: Floats, service_class: NDArray[np.integer[Any]], **more: Any
) -> Workload:
    """Requests of one instance, in order of admission; those who ask by one number ask for as much memory as CPU."""
    count = len(admission)
    rest = {
        "ids": np.arange(count),
        "job": np.arange(count),
        "anti_affinity": np.zeros(count, np.bool_),
        "term": np.zeros(count, np.int32),
    }
    columns = demand if demand.ndim == 2 else np.stack([demand, demand], axis=1)
    return Workload(**rest | more, admission=admission, duration=duration, demand=columns, service_class=service_class)


def adjusted(config: Config, values: dict[str, Any]) -> Config:
    """Settings by ``section.key``."""
    for name, value in values.items():
        section, key = name.split(".")
        config = replace(config, **{section: replace(getattr(config, section), **{key: value})})
    return config


def settings(name: str, values: dict[str, Any]) -> Config:
    """A preset with some settings changed."""
    return adjusted(load(None, name), values)


@dataclass(frozen=True)
class Outcome:
    """A run in this process: processor seconds without reading, classes by name, and what it decided."""

    seconds: float
    result: RunResult
    classes: dict[str, ClassSummary]
    decisions: str
    """Hash of the decision log, empty where none was kept."""


def simulated(workload: Workload, hosts: Hosts, config: Config, *, decisions: bool = False) -> Outcome:
    """One run, timed without reading and compiling (run something first).

    Processor time: runs are single-threaded, and others may be at work on the machine.
    """
    begun = time.process_time()
    result = run(workload, hosts, config, decisions=decisions)
    seconds = time.process_time() - begun
    codes = workload.service_class[result.requests["row" if result.instances is None else "first"]]
    classes = per_class(result.requests, codes, workload.classes, config.qos.startup)
    return Outcome(seconds, result, {one.name: one for one in classes}, fingerprint(result))


def fingerprint(result: RunResult) -> str:
    """A hash of every decision with its instant, host and victims."""
    if result.decisions is None:
        return ""
    digest = hashlib.sha256()
    for name in ("time", "row", "host", "count", "victims"):
        digest.update(result.decisions[name].tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Ended:
    """A process from its start to its end: wall and processor seconds, its most resident memory in MB, and what it
    printed and said on stderr."""

    seconds: float
    processor: float
    megabytes: float
    printed: str
    said: str


def process(*words: str | Path, **environment: str) -> Ended:
    """Run the interpreter with these words; the program ends where that fails."""
    command = [sys.executable, *map(str, words)]
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        child = subprocess.Popen(command, stdout=printed, stderr=said, env=os.environ | environment)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - begun
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = [file.read().decode() for file in (printed, said) if file.seek(0) == 0]
    if child.returncode:
        sys.exit(f"{texts[1]}{shlex.join(command)} failed with exit code {child.returncode}")
    return Ended(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / PER_MB, *texts)


def slacktide(*words: str | Path) -> tuple[float, str]:
    """Wall seconds of a process ``slacktide WORDS``, its start included, and what it printed."""
    done = process("-m", "slacktide", *words)
    return done.seconds, done.printed


def children() -> float:
    """Processor seconds of the processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(repeats: int, *words: str | Path) -> tuple[float, dict[str, Any]]:
    """Median wall seconds of ``slacktide WORDS --json``, and its object with the median ``cpu_seconds`` and the
    largest ``peak_rss_mb`` of all repetitions."""
    runs = []
    for _ in range(repeats):
        seconds, text = slacktide(*words, "--json")
        runs.append((seconds, json.loads(text)))
    found = runs[-1][1]
    found["cpu_seconds"] = statistics.median(one["cpu_seconds"] for _, one in runs)
    found["peak_rss_mb"] = max(one["peak_rss_mb"] for _, one in runs)
    return statistics.median(seconds for seconds, _ in runs), found


def warm(workload: Path, hosts: Path) -> None:
    """Compile where that is still to be done, so that no measurement contains it."""
    slacktide("simulate", workload, hosts, "--end", "1", "--json")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def options(text: str | None) -> argparse.ArgumentParser:
    """What a program of this text takes."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


@dataclass(frozen=True)
class Some:
    """Of an option: any of these names, by default all of them or ``default``."""

    names: Iterable[str]
    default: Sequence[str] | None = None


@dataclass(frozen=True)
class One:
    """Of an option: one of these names."""

    names: Iterable[str]
    default: str


def parsed(text: str | None, *files: str, **defaults: Any) -> argparse.Namespace:
    """The command line of a program with this text: files by their place, and an option for each default.

    An option is of its default's type. A list takes one or more, ``False`` is a switch, a type has no default.
    """
    parser = options(text)
    for name in files:
        parser.add_argument(name, type=Path)
    for name, value in defaults.items():
        given: dict[str, Any] = {"type": type(value), "default": value}
        if isinstance(value, Some):
            names = list(value.names)
            given = {"nargs": "+", "choices": names, "default": names if value.default is None else value.default}
        elif isinstance(value, One):
            given = {"choices": list(value.names), "default": value.default}
        elif isinstance(value, list):
            given = {"nargs": "+", "type": type(value[0]), "default": value}
        elif isinstance(value, type):
            given = {"type": value}
        elif value is False:
            given = {"action": "store_true"}
        parser.add_argument("--" + name.replace("_", "-"), **given)
    return parser.parse_args()


def announce(*more: str) -> None:
    """Print the command that makes what follows."""
    print("`" + shlex.join(["python", f"bench/{Path(sys.argv[0]).name}", *sys.argv[1:]]) + "`" + "".join(more) + "\n")


def millions(count: float) -> str:
    """A count in millions with three digits."""
    return f"{count / 1e6:.3g}" if count < 1e9 else f"{count / 1e6:,.0f}"


def share(value: float | None) -> str:
    """A share of 1 to four places; a dash where there is nobody of whom it could be told."""
    return "-" if value is None else f"{value:.4f}"


def per_cent(value: float | None) -> str:
    """A share of 1 in per cent, as :func:`share`."""
    return "-" if value is None else f"{value:.2%}"


Point = tuple[float, float]

STYLE = palette.style(
    {".axis, .grid": palette.AXIS, ".a": palette.POLICIES[1], ".b": palette.POLICIES[0]},
    "text { font: 12px system-ui, sans-serif } .grid { stroke-dasharray: 2 4 } path { fill: none !important }",
)


def curves(title: str, x_name: str, y_name: str, lines: dict[str, list[Point]]) -> str:
    """An SVG of up to two curves on doubly logarithmic axes; every point is labelled with its value."""
    from math import log

    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    low_y, high_y = min(ys) / 1.5, max(ys) * 1.5

    def place(x: float, y: float) -> Point:
        return (
            60 + 380 * log(x / min(xs)) / log(max(xs) / min(xs)),
            250 - 200 * log(y / low_y) / log(high_y / low_y),
        )

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 500 310" role="img" aria-label="{title}">', STYLE]
    parts += [f'<text x="10" y="18">{title}</text>', f'<text x="250" y="300" text-anchor="middle">{x_name}</text>']
    parts += [f'<text x="10" y="38">{y_name}</text>', '<path class="axis" d="M50 50V255H460"/>']
    for x in sorted(set(xs)):
        parts.append(f'<text x="{place(x, low_y)[0]:.0f}" y="272" text-anchor="middle">{x:,.0f}</text>')
    for css, (name, points) in zip("ab", lines.items(), strict=False):
        where = [place(x, y) for x, y in points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in where)
        parts.append(f'<path class="{css}" stroke-width="2" d="M{path}"/>')
        for (x, y), (_, value) in zip(where, points, strict=True):
            parts.append(f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
            parts.append(f'<text class="{css}" x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{value:.3g}</text>')
        parts.append(f'<text class="{css}" x="{200 + 130 * "ab".index(css)}" y="38">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def each(values: dict[str, Any], call: Callable[[str, Any], list[str]]) -> Iterable[list[str]]:
    """Rows one by one, with a word on stderr about which is being measured."""
    for name, value in values.items():
        print(f"{name} ...", file=sys.stderr)
        yield call(name, value)
