"""The built-in policies beside the same ones from pieces: the same decisions, and how much longer they take.

    PYTHONPATH=src python bench/pieces.py [--repeats 5] [--hosts 620] [--requests 23000] [--end 3600]

A generated cell for an hour: processor seconds of a run in this process (least of all repetitions, the two by turns,
neither reading nor compiling counted), host evaluations, and a hash of each decision log. Ends with code 1 where two
logs differ.
"""

from __future__ import annotations

import hashlib
import runpy
import sys
import time
from pathlib import Path

import numpy as np
from measuring import announce, millions, parsed, settings, table

from slacktide.inputs.generators.registry import generated
from slacktide.policy import Pieces
from slacktide.sim import RunResult, run

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
POLICIES = {
    "priority": ("recommended", {"policy.score": "mean"}, "05_priority_from_pieces.py:priority"),
    "qos-driven": ("published", {}, "06_qos_driven_from_pieces.py:qos_driven"),
}
"""Preset, further settings, and the file of the same policy from pieces."""


def decided(result: RunResult) -> str:
    """A hash of the decision log."""
    found = hashlib.sha256()
    for _, column in sorted((result.decisions or {}).items()):
        found.update(np.ascontiguousarray(column).tobytes())
    return found.hexdigest()[:12]


def pieces_of(text: str) -> Pieces:
    """The policy of this name in an example; its code is kept from run to run."""
    file, _, name = text.partition(":")
    found: Pieces = runpy.run_path(str(EXAMPLES / file))[name]
    return found


def main() -> None:
    """Print the table."""
    given = parsed(__doc__, repeats=5, hosts=620, requests=23_000, end=3600.0)
    workload, hosts = generated("cell", {"hosts": given.hosts, "requests": given.requests})
    rows, same = [], True
    for name, (preset, changes, file) in POLICIES.items():
        both = {name: None, f"{name} from pieces": pieces_of(file)}
        least, results = dict.fromkeys(both, float("inf")), {}
        for repeat in range(given.repeats + 1):  # the first one loads and compiles
            for title, policy in both.items():
                config = settings(preset, {**changes, "policy.name": name, "simulation.end": given.end})
                begun = time.process_time()
                results[title] = run(workload, hosts, config, own=policy, decisions=True)
                if repeat:
                    least[title] = min(least[title], time.process_time() - begun)
        same &= len({decided(one) for one in results.values()}) == 1
        for title, one in results.items():
            ratio = f"{least[title] / least[name]:.2f}"
            cells = [f"{least[title]:.2f}", ratio, millions(one.operations), f"{one.preemptions:,}", decided(one)]
            rows.append([title, *cells])
    announce()
    print(table(("policy", "processor s", "ratio", "operations M", "preemptions", "decisions"), rows))
    if not same:
        sys.exit("decisions differ")


if __name__ == "__main__":
    main()
