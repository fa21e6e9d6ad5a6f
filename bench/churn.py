"""Ledgers and limits under churn and kills, beside an independent reading of the API server's audit log.

    PYTHONPATH=src:tests python bench/churn.py                      200 workloads, 20 kills: some six minutes
    PYTHONPATH=src:tests python bench/churn.py --workloads 20 --leader-kills 3 --server-kills 1

Prints of each workload when its ledger was off first, by how much ledgers were off at most, in seconds, and every limit
that was exceeded; ends with 1 where something was off by more than ``--most``, or a limit was exceeded. ``--keep``
names a new folder for the audit log and all else.
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import tempfile
import time
from pathlib import Path

from cluster.churning import Size, churned, judge
from slacktide.lab import Binaries


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=200)
    parser.add_argument("--leader-kills", type=int, default=14)
    parser.add_argument("--server-kills", type=int, default=6)
    parser.add_argument("--between", type=float, default=6.0, help="seconds from a new leader to the next kill")
    parser.add_argument("--lease", type=int, default=6, help="kube.lease_duration, seconds")
    parser.add_argument("--most", type=float, default=1.0, help="seconds by which a ledger may be off")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    size = Size(chosen.workloads, chosen.leader_kills, chosen.server_kills, chosen.between, chosen.lease)
    with tempfile.TemporaryDirectory() as folder:
        directory = chosen.keep or Path(folder)
        began = time.time()
        with churned(Binaries.find(), directory / "churn", size, chosen.seed) as churn:
            try:
                churn.play()
            finally:
                if chosen.keep:
                    (directory / "samples.pickle").write_bytes(pickle.dumps((churn.samples, churn.kills)))
            verdict = judge(churn.log, churn.samples, chosen.most, churn.pulse.late)
    first: dict[str, tuple[str, int]] = {}
    for line in verdict.apart:  # such as 'good off by +1.23 s: w163 (calm) at ...'; one that is off stays so
        workload = line.split(": ")[1].split()[0]
        begun, count = first.get(workload, (line, 0))
        first[workload] = begun, count + 1
    for line in [*verdict.exceeded, *(f"{line}, and {count - 1} times more" for line, count in first.values())]:
        print(line)
    said = {
        "machine late": round(churn.pulse.late(began, time.time()), 2),
        "seconds": round(time.time() - began), "samples": verdict.samples, "samples apart": len(verdict.samples_apart),
        "exceeded": len(verdict.exceeded), "samples Missed": verdict.missed,
        "disruptions": dict(verdict.disruptions),
        "account": {name: round(value) for name, value in verdict.seconds.items()},
        "most off": {name: f"{by:+.2f} s, {where}" for name, (by, where) in verdict.worst.items()},
    }  # fmt: skip
    print(json.dumps(said, indent=1))
    return 1 if verdict.exceeded or verdict.apart else 0


if __name__ == "__main__":
    sys.exit(main())
