"""What it costs to start: commands that compute little or nothing, each in a process of its own.

    python bench/startup.py [--repeats 10]

The cache of compiled kernels is filled before. What others do on the machine makes a start slower, never faster: so
the shortest is shown beside the median.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

from measuring import announce, parsed, process, slacktide, table

COUNTED = "import sys; from slacktide.cli import main; main(sys.argv[1:]); print(len(sys.modules), file=sys.stderr)"
"""For the number of modules; times are those of ``python -m slacktide``."""


HEAD = ("process", "wall ms, shortest", "wall ms", "processor ms, shortest", "processor ms", "modules")


def row(name: str, words: list[str], modules: str, repeats: int) -> list[str]:
    """A line of the table, in milliseconds."""
    runs = [process(*words) for _ in range(repeats)]
    wall, processor = ([getattr(one, name) for one in runs] for name in ("seconds", "processor"))
    times = (min(wall), statistics.median(wall), min(processor), statistics.median(processor))
    return [name, *(f"{1000 * one:.0f}" for one in times), modules]


def main() -> None:
    """Print the table."""
    repeats = parsed(__doc__, repeats=10).repeats
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        words = "generate light --set hosts=20 --set requests=1000 --out light"
        slacktide(*words.split())
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
        announce(f", the shortest and the median of {repeats}:")
        rows = [row("Python alone", ["-c", "pass"], "", repeats)]
        rows.append(row("`import numpy`", ["-c", "import numpy"], "", repeats))
        for name, given in commands.items():
            modules = process("-c", COUNTED, *given).said.split()[-1]  # which fills caches, too
            rows.append(row(name, ["-m", "slacktide", *given], modules, repeats))
        print(table(HEAD, rows))


if __name__ == "__main__":
    main()
