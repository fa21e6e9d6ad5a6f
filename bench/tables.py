"""Every table between marks in docs/, measured one after the other: ``make benchmarks``.

    python bench/tables.py [NAME ...]            measure all (or these), and put the tables into the pages
    python bench/tables.py --small [NAME ...]    the same with tiny sizes, on copies of the pages: that all of it works
    python bench/tables.py --list                the names, pages and commands

Each program runs in a process of its own. What it prints goes between the marks of its name in its page, below a line
with the state of the program, the machine and the day. Where a program fails its table stays as it was, the others are
measured all the same, and the exit code is 1. Kernels must come from their library (``make library``), the published
inputs from SLACKTIDE_DATA, and the machine should be free: each line says how much others used of it.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from measuring import DATA, children

import slacktide
from slacktide.kernels.runtime import library

BENCH = Path(__file__).parent
REPOSITORY = BENCH.parent
FOLDER = "FOLDER"
"""In the words of a table: docs/figures, or with --small a temporary folder."""


@dataclass(frozen=True)
class Table:
    """What is between two marks of a page."""

    name: str
    page: str
    words: str
    """The program and its arguments."""
    small: str
    """Arguments for a few seconds."""
    published: bool = False
    """Needs the published inputs."""
    programs: tuple[str, ...] = ()
    """Needs these on PATH."""
    exact: bool = False
    """The same on every machine; tests/website/test_numbers.py compares those that take little."""

    def command(self, small: bool, folder: str) -> list[str]:
        """The words with the interpreter's, from the repository's folder."""
        words = f"{self.words.split()[0]} {self.small}" if small else self.words
        return ["python", *("bench/" + words).replace(FOLDER, folder).split()]

    def missing(self) -> str:
        """Why it cannot be measured here, or nothing."""
        if self.published and not DATA.is_dir():
            return "the published inputs are absent (SLACKTIDE_DATA)"
        return ", ".join(f"{one} is absent" for one in self.programs if shutil.which(one) is None)


COSTS, SAVED, SEVERAL, TRACES = "docs/benchmarks.md", "docs/optimisations.md", "docs/requests.md", "docs/traces.md"
WINDOWS, OPTIONS = "docs/windows.md", "docs/options.md"
GENERATED = "docs/generators.md"
FEW = "--seeds 1 --lines priority recommended"
TABLES = (
    Table("one-hour", COSTS, "one_hour.py --repeats 5", "--repeats 1 --end 60", published=True),
    Table("startup", COSTS, "startup.py --repeats 10", "--repeats 1"),
    Table("cold-start", COSTS, "cold_start.py --repeats 2 --plain", "--repeats 1 --library-only --larger 1000"),
    Table("light", COSTS, "light.py --repeats 5", "--repeats 1 --requests 2000 --hosts 20"),
    Table("least", COSTS, "least.py --repeats 5", "--repeats 1 --requests 2000 --hosts 20"),
    Table("peer", COSTS, "peer.py --repeats 1", "--requests 500 --hosts 20", programs=("java", "mvn")),
    Table("growth", COSTS, f"growth.py --repeats 3 --folder {FOLDER}", f"--repeats 1 --scale .001 --folder {FOLDER}"),
    Table("memory", COSTS, "memory.py --set policy.name=priority", "--requests 2000 --hosts 20"),
    Table("threads", COSTS, "experiment_threads.py --repeats 3", "--repeats 1 --requests 500 --hosts 20 --seeds 1"),
    Table("switches-priority", SAVED, "switches.py --repeats 3 --policy priority",
          "--repeats 1 --policy priority --end 30", published=True),
    Table("switches-qos-driven", SAVED, "switches.py --repeats 3 --policy better needed",
          "--repeats 1 --policy needed --end 30", published=True),
    Table("cliffs", SAVED, "cliffs.py --repeats 3", "--repeats 1 --scale .01"),
    Table("requests-large", SEVERAL, "large.py --repeats 3", "--repeats 1 --instances 80 --hosts 20"),
    Table("windows-year", WINDOWS, "windows.py", "--days 65"),
    Table("windows-cost", WINDOWS, "windows.py --cost", "--cost --repeats 1", published=True),
    Table("trace", TRACES, "trace_memory.py --rows 25e6", "--rows 2e4"),
    Table("grouped", SEVERAL, "pages.py grouped", "grouped", exact=True),
    Table("jobs", GENERATED, "pages.py jobs", "jobs", published=True, exact=True),
    Table("cell", GENERATED, "cell_statistics.py", "", published=True, exact=True),
    Table("openb", TRACES, "pages.py openb", "openb", published=True, exact=True),
    Table("validation-3", SEVERAL, "validation3.py --measured",
          "--seeds 1", published=True, exact=True),
    Table("options-validation1", OPTIONS, "options.py --input validation1", f"--input validation1 {FEW}",
          published=True, exact=True),
    Table("options-higher", OPTIONS, "options.py --input higher", f"--input higher {FEW}", published=True, exact=True),
    Table("intervals", "docs/metrics.md", "intervals.py", "--experiments 3", exact=True),
    Table("alpha", "docs/metric.md", "alpha.py", "--seeds 1", exact=True),
    Table("month", COSTS, "month.py", "--fraction 0.0001"),
)  # fmt: skip


def said(*words: str) -> str:
    """What git prints, or nothing outside a clone."""
    try:
        done = subprocess.run(["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def version() -> str:
    """The version, the commit, and whether what is measured differs from it."""
    commit = said("rev-parse", "--short", "HEAD")
    changed = said("status", "--porcelain", "--", "src", "bench")
    return slacktide.__version__ + (f", commit {commit}{' with changes' if changed else ''}" if commit else "")


def machine() -> str:
    """Processors, memory, Python."""
    model = platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((one.partition(":")[2].strip() for one in lines if one.startswith("model name")), model)
    except OSError:
        pass
    memory = ""
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = f", {os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.0f} GiB"
    return f"{os.cpu_count()} processors ({model}){memory}, Python {platform.python_version()}"


def busy() -> float | None:
    """Processor seconds that everybody has used since the start of the machine; None where it does not say."""
    try:
        words = Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft, *_ = (int(one) for one in words)
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def run(command: list[str]) -> tuple[str, str, str]:
    """What a program printed, how long it took, and what other programs used of the processors meanwhile; raises where
    it fails or prints no table and no figure.
    """
    begun, all_before, own_before = time.perf_counter(), busy(), children()
    words = [sys.executable, *command[1:]]
    done = subprocess.run(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True)
    seconds, all_after, own = time.perf_counter() - begun, busy(), children() - own_before
    if "|---|" not in done.stdout and "![" not in done.stdout:
        raise ValueError("it printed no table")
    others = ""
    if all_before is not None and all_after is not None:
        others = f", others used {max(all_after - all_before - own, 0.0) / seconds:.2f} processors"
    return done.stdout.strip(), f"{seconds:,.0f} s", others


def put(name: str, text: str, page: Path) -> None:
    """Replace what stands between the marks; stops where the page has none."""
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        sys.exit(f"{page}: expected {begin.strip()} and {end}")
    page.write_text(f"{before}{begin}{text}\n{end}{after}", encoding="utf-8")


def measured(table: Table, small: bool, folder: str, page: Path, state: str) -> None:
    """Measure a table and put it into ``page``."""
    command = table.command(small, folder)
    print(f"{table.name}: {shlex.join(command)} ...", file=sys.stderr, flush=True)
    day = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    text, took, others = run(command)
    put(table.name, text if table.exact else f"*{state}; {day}{others}.*\n\n{text}", page)
    print(f"{table.name}: {took}{others}", file=sys.stderr, flush=True)


def arguments() -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", choices=[[], *(one.name for one in TABLES)], metavar="NAME")
    parser.add_argument("--small", action="store_true", help="tiny sizes, on copies of the pages")
    parser.add_argument("--list", action="store_true", help="print names, pages and commands")
    return parser.parse_args()


def main() -> None:
    """Measure what is asked for; exit code 1 where something could not be."""
    asked = arguments()
    if asked.list:
        for one in TABLES:
            print(f"{one.name:20} {one.page:22} {shlex.join(one.command(asked.small, 'docs/figures'))}")
        return
    obstacle = library.obstacle()
    if obstacle and not asked.small:
        sys.exit(f"Kernels are to come from their library, as users have them: {obstacle}. make library builds it.")
    state, failed = f"{version()}; {machine()}", []
    with tempfile.TemporaryDirectory() as temporary:
        for one in TABLES:
            if asked.name and one.name not in asked.name:
                continue
            missing, page = one.missing(), REPOSITORY / one.page
            if missing and asked.small:
                print(f"{one.name}: left out, {missing}", file=sys.stderr)
                continue
            if asked.small:
                page = Path(shutil.copy(page, temporary))
            try:
                if missing:
                    raise ValueError(missing)
                measured(one, asked.small, temporary if asked.small else "docs/figures", page, state)
            except (subprocess.CalledProcessError, ValueError) as error:
                print(f"{one.name}: NOT MEASURED, its table stays as it was: {error}", file=sys.stderr, flush=True)
                failed.append(one.name)
    if failed:
        sys.exit(f"not measured: {' '.join(failed)}; again with make benchmarks ONLY='{' '.join(failed)}'")


if __name__ == "__main__":
    main()
