"""The light load on slacktide and on CloudSim Plus, a simulator of clouds in Java, one after the other.

    python bench/peer.py [--requests 50000] [--hosts 1000 12500] [--repeats 1]

Needs Java 17 and Maven, which gets CloudSim Plus from Maven Central (bench/peer/pom.xml). Both get the same requests
(``generate light``) and the same hosts, place each request on the host with most free cores that has room for it, keep
it there for its life, and let wait who finds no room. Terms: peer/Peer.java uses CloudSim's events, hosts, virtual
machines and VmAllocationPolicySimple as they come, without cloudlets, history and log, which would only cost more. Who
waits there is tried again, in order, when somebody has left. slacktide decides under the priority policy, which adds
classes and availabilities. Seconds are those of the simulation alone: without reading, and without the start of Java
or Python; processor seconds of Java include its compiler's and its garbage collector's.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measuring import announce, parsed, settings, simulated, table

from slacktide.inputs.generators.registry import generated
from slacktide.model import Hosts, Workload

FOLDER = Path(__file__).parent / "peer"
HEAD = ("simulator", "hosts", "requests", "wall s", "processor s", "requests per processor s", "µs per request")


class Run(NamedTuple):
    """Seconds of a run, and how many requests completed."""

    wall: float
    processor: float
    completed: int


def classpath(folder: Path) -> str:
    """CloudSim Plus and what it needs, from Maven's cache or its registry."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            sys.exit(f"{program} is absent: the peer needs Java 17 and Maven")
    path = folder / "classpath"
    words = [
        "mvn",
        "-q",
        "-B",
        "-f",
        str(FOLDER / "pom.xml"),
        "dependency:build-classpath",
        f"-Dmdep.outputFile={path}",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}Maven could not get CloudSim Plus")
    return path.read_text(encoding="utf-8").strip()


def written(workload: Workload, path: Path) -> None:
    """What Peer.java reads."""
    megabytes = 1000 * workload.demand[:, 1]
    columns = (workload.admission, workload.duration, workload.demand[:, 0], megabytes)
    np.savetxt(path, np.column_stack(columns), fmt="%.9f %.9f %.0f %.0f")


def cloudsim(classes: str, requests: Path, hosts: int) -> Run:
    """A run in a Java of its own."""
    words = ["java", "-cp", classes, str(FOLDER / "Peer.java"), str(requests), str(hosts)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}CloudSim Plus failed with exit code {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Run(found["wall"], found["processor"], found["completed"])


def own(workload: Workload, hosts: Hosts) -> Run:
    """A run in this process."""
    begun = time.perf_counter()
    found = simulated(workload, hosts, settings("recommended", {"policy.name": "priority"}))
    completed = int(np.isfinite(found.result.requests["completed"]).sum())
    return Run(time.perf_counter() - begun, found.seconds, completed)


def line(name: str, hosts: int, requests: int, runs: list[Run]) -> list[str]:
    """Medians; stops the program where not all have completed."""
    for one in runs:
        if one.completed != requests:
            sys.exit(f"{name}, {hosts:,} hosts: {one.completed:,} of {requests:,} requests completed")
    wall, processor = statistics.median(one.wall for one in runs), statistics.median(one.processor for one in runs)
    rates = (f"{requests / processor:,.0f}", f"{processor / requests * 1e6:,.2f}")
    return [name, f"{hosts:,}", f"{requests:,}", f"{wall:.2f}", f"{processor:.2f}", *rates]


def main() -> None:
    """Print the table."""
    asked = parsed(__doc__, requests=50_000, hosts=[1000, 12500], repeats=1)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        classes, path = classpath(Path(name)), Path(name) / "requests"
        for count in asked.hosts:
            workload, hosts = generated("light", {"hosts": count, "requests": asked.requests})
            written(workload, path)
            own(workload, hosts)  # nothing is left to load or compile
            mine = [own(workload, hosts) for _ in range(asked.repeats)]
            theirs = []
            for number in range(asked.repeats):
                print(f"CloudSim Plus, {count:,} hosts, {number + 1} of {asked.repeats} ...", file=sys.stderr)
                theirs.append(cloudsim(classes, path, count))
            rows.append(line("slacktide", count, asked.requests, mine))
            rows.append(line("CloudSim Plus 8.5.5", count, asked.requests, theirs))
    announce(f", medians of {asked.repeats}:")
    print(table(HEAD, rows))


if __name__ == "__main__":
    main()
