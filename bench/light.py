"""Light load as other simulators are measured: Poisson arrivals, exponential lives, priority policy.

    python bench/light.py [--requests 1000000] [--hosts 1000 12500] [--repeats 5]

Generates ``light`` (1 to 4 of 8 cores, load 0.8, mean life 3,600 s) and runs ``slacktide simulate`` until all have
completed. Requests a second of the whole process (start and reading included), and of the simulation alone.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from measuring import announce, millions, parsed, read, settings, simulated, slacktide, table, timed, warm

HEAD = (
    "hosts",
    "requests",
    "wall s",
    "requests/s",
    "requests per processor s",
    "simulation alone: requests per processor s",
    "operations M",
    "MB",
)


def row(hosts: int, requests: int, repeats: int) -> list[str]:
    """One line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "light"
        slacktide("generate", "light", "--out", target, "--set", f"hosts={hosts}", "--set", f"requests={requests}")
        files = (target / "workload.parquet", target / "hosts.parquet")
        warm(*files)
        seconds, found = timed(repeats, "simulate", *files, "--policy", "priority")
        inputs = read(*files)
        config = settings("recommended", {"policy.name": "priority"})
        alone = statistics.median(simulated(*inputs, config).seconds for _ in range(repeats))
    count = found["requests"]
    rates = [f"{count / value:,.0f}" for value in (seconds, found["cpu_seconds"], alone)]
    return [
        *(f"{hosts:,}", f"{count:,}", f"{seconds:.2f}", *rates),
        *(millions(found["operations"]), f"{found['peak_rss_mb']:.0f}"),
    ]


def main() -> None:
    """Print the table."""
    arguments = parsed(__doc__, requests=1_000_000, hosts=[1000, 12500], repeats=5)
    announce(f", medians of {arguments.repeats}:")
    print(table(HEAD, [row(hosts, arguments.requests, arguments.repeats) for hosts in arguments.hosts]))


if __name__ == "__main__":
    main()
