"""How much memory and time the commands of ``slacktide trace`` take that read and write workloads.

    python bench/trace_memory.py [--rows 1e6 5e6] [--only thin admit]

Makes a workload in order of admission of so many rows (a tenth stand at the first instant, a third of these for ever),
and hosts with about as much as it demands at once. Then it runs each command on them, in a process of its own, and
prints the process's most resident memory and its seconds. It measures whatever slacktide Python finds: with
``PYTHONPATH`` set to the folder ``src`` of another commit, that commit.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measuring import Some, parsed, plain, process

from slacktide.inputs import WorkloadParquetWriter, write_hosts
from slacktide.inputs.rows import equal_hosts
from slacktide.model import Hosts, Workload

PIECE = 131_072  # rows of a row group, as slacktide writes them
SPAN = 86_400.0
"""Seconds in which all are admitted."""
COMMANDS = {
    "scale": "scale workload.parquet --rate 1.5 --out scaled.parquet",
    "thin": "thin workload.parquet --share 0.1 --out thinned.parquet",
    "window": f"window workload.parquet --from {SPAN / 4} --to {SPAN / 2} --out window.parquet",
    "admit": "admit workload.parquet hosts.parquet --limit 0.9 --out admitted.parquet",
    "hosts": "hosts workload.parquet hosts.parquet --replace --out sets",
}


def pieces(rows: int) -> Iterator[Workload]:
    """The workload, a row group at a time."""
    rng = np.random.default_rng(1)
    standing = rows // 10
    for first in range(0, rows, PIECE):
        row = np.arange(first, min(first + PIECE, rows))
        count = len(row)
        duration = rng.exponential(600.0, count) + 1.0
        duration[(row < standing) & (row % 3 == 0)] = np.inf
        admission = np.where(row < standing, 0.0, (row - standing) * (SPAN / (rows - standing)))
        demand = rng.choice([0.01, 0.02, 0.03, 0.05, 0.1], (count, 2))
        service_class = rng.integers(0, 3, count).astype(np.int16)
        yield plain(admission, duration, demand, service_class, ids=row, job=row // 10)


def population(rows: int) -> Hosts:
    """Hosts of 1 with about what the workload demands at its beginning."""
    return equal_hosts(max(rows // 250, 10), {"cpu": 1.0, "memory": 1.0})


def main() -> None:
    """Print the table."""
    given = parsed(__doc__, rows=[1e6, 5e6], only=Some(COMMANDS))
    print("| command | rows | peak memory, MB | seconds |\n|---|---|---|---|", flush=True)
    for rows in map(int, given.rows):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            with WorkloadParquetWriter(Path("workload.parquet")) as writer:
                for piece in pieces(rows):
                    writer.append(piece)
            write_hosts(population(rows), Path("hosts.parquet"))
            for name in given.only:
                done = process("-m", "slacktide", "trace", *COMMANDS[name].split())
                print(f"| `{name}` | {rows:,} | {done.megabytes:.0f} | {done.seconds:.1f} |", flush=True)
            os.chdir("/")


if __name__ == "__main__":
    main()
