"""What it costs to start: commands that compute little or nothing, each in a process of its own.

    python bench/startup.py [--repeats 10]

The cache of compiled kernels is filled before. What others do on the machine makes a start slower, never faster: so
the shortest is shown beside the median.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COUNTED = "import sys; from slacktide.cli import main; main(sys.argv[1:]); print(len(sys.modules), file=sys.stderr)"
"""For the number of modules; times are those of ``python -m slacktide``."""


def started(program: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of a process."""
    begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(program, stdout=subprocess.DEVNULL, check=True)
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime


def row(name: str, program: list[str], modules: str, repeats: int) -> str:
    """A line of the table, in milliseconds."""
    wall, processor = zip(*(started(program) for _ in range(repeats)), strict=True)
    times = (min(wall), statistics.median(wall), min(processor), statistics.median(processor))
    return "| " + " | ".join([name, *(f"{1000 * one:.0f}" for one in times), modules]) + " |"


def modules_of(words: list[str]) -> str:
    """How many modules a command has imported at its end."""
    done = subprocess.run([sys.executable, "-c", COUNTED, *words], capture_output=True, text=True, check=True)
    return done.stderr.split()[-1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        words = "generate light --set hosts=20 --set requests=1000 --out light"
        started([sys.executable, "-m", "slacktide", *words.split()])
        files = [str(Path("light", name)) for name in ("workload.parquet", "hosts.parquet")]
        commands = {
            "`slacktide --help`": ["--help"],
            "`slacktide --version`": ["--version"],
            "`slacktide simulate --help`": ["simulate", "--help"],
            "`slacktide top --help`": ["top", "--help"],
            "`slacktide settings`": ["settings"],
            "`slacktide generate`, the list": ["generate"],
            "`slacktide inspect`, 1,000 requests": ["inspect", *files],
            "`slacktide simulate`, 1,000 requests": ["simulate", *files, "--policy", "priority"],
        }
        print(f"`python bench/startup.py --repeats {repeats}`, the shortest and the median of {repeats}:\n")
        print("| process | wall ms, shortest | wall ms | processor ms, shortest | processor ms | modules |")
        print("|" + "---|" * 6)
        print(row("Python alone", [sys.executable, "-c", "pass"], "", repeats))
        print(row("`import numpy`", [sys.executable, "-c", "import numpy"], "", repeats))
        for name, given in commands.items():
            modules = modules_of(given)  # which fills caches, too
            print(row(name, [sys.executable, "-m", "slacktide", *given], modules, repeats), flush=True)


if __name__ == "__main__":
    main()
