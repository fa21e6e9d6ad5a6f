"""Small experiments on generated inputs: a fraction of a second a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from slacktide.cli import main
from slacktide.results import experiment
from support.program import PROGRAM

WORKLOAD = """id,admission,duration,cpu,memory,class
1,0,,2,1,gold
2,1,,2,1,silver
3,2,300,2,1,bronze
4,5,,2,1,silver
5,9,,1,1,bronze
6,20,100,1,1,bronze
7,30,,1,1,gold
"""
HOSTS = """id,name,cpu,memory
1,a,4,4
2,b,2,4
3,c,2,4
"""
GRID = """
workloads:
  small: small.csv
hosts:
  all: hosts.csv
  fewer: {of: all, share: 0.75}
policies:
  priority: {policy: priority}
  qos-driven: {policy: qos-driven}
seeds: 2
end: 600
intervals: 100
"""


def written(folder: Path, grid: str = GRID) -> Path:
    """The grid file, with its workload and hosts beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.csv").write_text(WORKLOAD)
    (folder / "hosts.csv").write_text(HOSTS)
    (folder / "grid.yaml").write_text(grid)
    return folder / "grid.yaml"


def run(grid: Path, out: Path, *words: str) -> int:
    """``slacktide experiment run`` within this process; its exit code."""
    return main(["experiment", "run", str(grid), "--out", str(out), "--jobs", "1", *words])


def started(grid: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    """The same as a process of its own, as a person starts it."""
    command = [*PROGRAM, "experiment", "run", str(grid), "--out", str(out), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0)


def tables(out: Path) -> dict[str, dict[str, Any]]:
    """Every table of every run, and its manifest but for the command, by key."""
    found: dict[str, dict[str, Any]] = {}
    for one in experiment.read(out).done:
        assert one.folder is not None
        found[one.key] = {path.name: rows(path) for path in sorted(one.folder.glob("*.parquet"))} | {
            "totals": one.manifest()["totals"],
            "configuration": one.manifest()["configuration"],
        }
    return found


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, which can be compared: NaN, of classes without requests, is not even itself."""
    every = pq.read_table(path).to_pylist()
    return [{name: "nan" if value != value else value for name, value in row.items()} for row in every]


def workers() -> list[int]:
    """Processes of ours that carry out runs, whoever started them (Linux only)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"slacktide.experiment.worker" in words and words[0].decode() == sys.executable:
                found.append(int(entry.name))
    return found


def children_of(parent: int) -> list[int]:
    """Workers whose parent is the process (Linux only)."""
    found = []
    for pid in workers():
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            continue
        if int(status.rpartition(")")[2].split()[1]) == parent:
            found.append(pid)
    return found


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z" and os.path.exists(
            f"/proc/{pid}"
        )
    except OSError:
        return False
