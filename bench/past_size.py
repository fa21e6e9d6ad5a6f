"""How long ``slacktide past`` takes, and how much memory, on made-up pasts of the size of real ones.

    PYTHONPATH=src:tests python bench/past_size.py audit --events 1000000
    PYTHONPATH=src:tests python bench/past_size.py objects --pods 100000 --nodes 5000

An audit log of a week: Deployments whose pods come, start and go, eight events a pod, at level RequestResponse. A dump:
every pod runs. Prints seconds, the largest resident set, and events or objects a second.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slacktide.pasts import audit, object_files, outcome
from support.made_past import Log, deployment, node, pod

PER_POD, AT_ONCE, OF_ONE = 8, 5_000, 10


def events(count: int, nodes: int, seconds: float) -> Iterator[str]:
    """Lines of a log: pods come one after the other, and go when as many others have come."""
    log = Log()
    for number in range(nodes):
        log.creates(0.0, node(f"n{number}", "64", 0.0))
    names = [f"app{number}" for number in range(AT_ONCE // OF_ONE)]
    for name in names:
        for one in deployment(name, OF_ONE, 0.0):
            log.creates(0.5, one)
    pods, there, step = count // PER_POD, list[dict[str, Any]](), seconds / (count // PER_POD)
    for number in range(pods):
        yield from log.lines
        log.lines.clear()
        at = 1.0 + number * step
        if len(there) >= AT_ONCE:
            old = there.pop(0)
            log.told_to_go(at, old)
            log.condition(at + step / 8, old, "Ready", "False", "PodCompleted")
            log.gone(at + step / 7, old)
        one = pod(f"pod{number}", names[number % len(names)], created=at, cpu="250m")
        log.creates(at + step / 6, one)
        log.binds(at + step / 5, one, f"n{number % nodes}")
        for share, what in ((4, "Initialized"), (3, "ContainersReady"), (2, "Ready")):
            log.condition(at + step / share, one, what, "True", phase="Running")
        there.append(one)
    yield from log.lines


def objects(pods: int, nodes: int) -> Iterator[dict[str, Any]]:
    for number in range(nodes):
        yield node(f"n{number}", "64")
    names = [f"app{number}" for number in range(pods // OF_ONE)]
    for name in names:
        yield from deployment(name, OF_ONE)
    for number in range(pods):
        yield pod(f"pod{number}", names[number % len(names)], f"n{number % nodes}", cpu="250m", ready=-390.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", choices=("audit", "objects"))
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="where to keep the made-up file, or find it")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.keep or Path(folder) / ("audit.log" if arguments.source == "audit" else "now.json")
        if not path.exists():
            with path.open("w") as file:
                if arguments.source == "audit":
                    file.writelines(line + "\n" for line in events(arguments.events, arguments.nodes, 604_800.0))
                else:
                    file.write('{"apiVersion":"v1","kind":"List","items":[')
                    for number, one in enumerate(objects(arguments.pods, arguments.nodes)):
                        file.write("," * bool(number) + json.dumps(one))
                    file.write("]}")
        began = time.perf_counter()
        read = audit.story if arguments.source == "audit" else object_files.story
        found = outcome.write(read([path]), Path(folder) / "out")
        took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = found.counts.get("events") or sum(found.counts.values())
    print(f"{count:,} in {took:.1f} s, {count / took:,.0f} a second; {found.made.instances:,} instances; {peak:.0f} MB")


if __name__ == "__main__":
    main()
