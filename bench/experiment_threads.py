"""An experiment by processes that read the workload each, and by threads of one process that share it.

    python bench/experiment_threads.py [--requests 300000] [--hosts 3000] [--seeds 4] [--jobs 2] [--repeats 3]

One light workload on two host sets (all hosts, and nine tenths of them) with the recommended settings. Prints medians
of what the workers cost, and ratios: wall seconds from the first worker's start to the last run's end, processor
seconds, and the most memory at once, of all workers together; what several share counts once (PSS, looked at 20 times a
second). Then it says whether both left the same bytes. Inputs are prepared before. Linux only.
"""

from __future__ import annotations

import hashlib
import statistics
import tempfile
import threading
import time
from pathlib import Path

from measuring import announce, children, parsed, table

from slacktide.cli.comparison.many import Telling
from slacktide.experiment import conduct, grid, store
from slacktide.experiment.local import Processes
from slacktide.experiment.prepare import Inputs
from slacktide.kernels.runtime.compiling import described

GRID = """
workloads:
  light: {{generator: light, with: {{hosts: {hosts}, requests: {requests}}}}}
hosts:
  all: {{generator: light, with: {{hosts: {hosts}}}}}
  fewer: {{of: all, share: 0.9}}
policies:
  recommended: {{preset: recommended}}
seeds: {seeds}
end: {end}
intervals: {end}
"""
END = 86_400.0
"""Seconds that are simulated."""
BETWEEN = 0.05
"""Seconds between two looks at memory."""


class Memory:
    """The most that processes have at once, megabytes; a context manager that looks until it ends."""

    def __init__(self, processes: Processes) -> None:
        self.most = 0.0
        self._processes = processes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(BETWEEN):
            self.most = max(self.most, sum(map(proportional_size, self._processes.at_work)))


def proportional_size(pid: int) -> float:
    """Megabytes of a process; of what it shares with others its part."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0.0
    return sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) / 1024


def contents(folder: Path) -> str:
    """A hash of all files of all runs but the manifests, whose commands name their folders."""
    digest = hashlib.sha256()
    for path in sorted((folder / "runs").glob("*/*.parquet")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def measured(file: Path, out: Path, jobs: int, threads: bool) -> tuple[float, float, float, str]:
    """Wall seconds, processor seconds, megabytes, and what was left."""
    asked = grid.read(file, {})
    runs = conduct.listed(asked)
    with store.opened(out) as kept:
        inputs = Inputs(asked, kept.inputs, lambda _: None)
        for name in asked.workloads:
            inputs.workload(name)
        for name in asked.hosts:
            inputs.hosts(name)
        before, begun = children(), time.perf_counter()
        with Telling(kept, jobs) as telling, Processes(jobs, threads=threads) as processes, Memory(processes) as memory:
            failures = conduct.conduct(asked, runs, kept, processes, telling)
            seconds = time.perf_counter() - begun
        if failures:
            raise SystemExit(f"runs failed: {failures}")
    return seconds, children() - before, memory.most, contents(out)


def main() -> None:
    """Print it all."""
    asked = parsed(__doc__, requests=300_000, hosts=3000, seeds=4, jobs=2, repeats=3)
    announce(f" ({described()}):")
    ways = {"processes": False, "threads": True}
    found: dict[str, list[tuple[float, float, float, str]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "grid.yaml"
        file.write_text(GRID.format(hosts=asked.hosts, requests=asked.requests, seeds=asked.seeds, end=END))
        for number in range(asked.repeats):
            for way, threads in ways.items():
                found[way].append(measured(file, Path(folder) / f"{way}-{number}", asked.jobs, threads))
    middle = {
        way: [statistics.median(column) for column in list(zip(*some, strict=True))[:3]] for way, some in found.items()
    }
    rows = [
        [way, *(f"{value:.1f}" if value < 100 else f"{value:.0f}" for value in values)]
        for way, values in middle.items()
    ]
    ratios = [f"{after / before:.2f}" for before, after in zip(*middle.values(), strict=True)]
    head = [f"{asked.jobs} at a time", "wall s", "processor s", "memory, MB"]
    print(table(head, [*rows, ["threads / processes", *ratios]]))
    same = len({one[3] for some in found.values() for one in some}) == 1
    print(f"\n{2 * asked.seeds} runs each; results {'equal' if same else 'DIFFER'}.")


if __name__ == "__main__":
    main()
