"""The live scheduler through a long churn with everything that can happen, with ``--record`` on.

    PYTHONPATH=src:tests python bench/soak.py                           48 minutes
    PYTHONPATH=src:tests python bench/soak.py --minutes 4 --spared 0.5

Two replicas reach a real API server through a proxy. All the while workloads come and go, as in bench/churn.py, at a
sixth of its pace. In random order, each as often as the others: the leader, the API server and etcd are killed
(SIGKILL); watches end with 410, break, or say nothing; requests are answered with 429, 500, 503, late, by halves, or
not at all; the network is away; a node is lost, for a while or for a moment; the wall clock of the replicas is moved by
30 s and back (with ``--faketime``, the path of libfaketime.so.1).

Prints what happened, what an auditor of all objects found (overcommitted nodes, double bindings, victims for nobody),
whether the replicas' records replay, how far ledgers are off an independent reading of the audit log, and the resident
memory of the process that lived longest. Ends with 1 where a record does not replay, a limit was exceeded, a scheduler
ended with a traceback, or the auditor found something. An event about a victim may die with a leader, and a line of the
audit log with the API server: then it says so of that victim.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import sys
import tempfile
import time
from pathlib import Path

from cluster.churning import judge
from cluster.soaking import LongChurn, Soak, complaints, found, replayed, soaked
from slacktide.lab import Binaries

EXAMPLES = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=48.0)
    parser.add_argument("--spared", type=float, default=12.0, help="minutes at the end in which no leader is killed")
    parser.add_argument("--between", type=float, default=12.0, help="seconds between two incidents")
    parser.add_argument("--lease", type=int, default=10, help="kube.lease_duration, seconds")
    parser.add_argument("--faketime", type=Path, help="libfaketime.so.1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a new folder for logs, records and the audit log")
    chosen = parser.parse_args()
    spared = chosen.spared * 60.0
    soak = Soak(chosen.workloads, chosen.minutes * 60.0, chosen.between, spared, chosen.lease, chosen.faketime)
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        with soaked(Binaries.find(), (chosen.keep or Path(folder)) / "soak", soak, chosen.seed) as churn:
            try:
                churn.play()
            finally:
                if chosen.keep:
                    (chosen.keep / "samples.pickle").write_bytes(pickle.dumps((churn.samples, churn.kills)))
            took = time.time() - began
            wrong = found(churn)
            verdict = judge(churn.log, churn.samples, 1.0, churn.pulse.late)
        replays = replayed(churn)
        said = {
            "seconds": round(took),
            "machine late": round(churn.pulse.late(began, began + took), 2),
            "incidents": dict(churn.happened),
            "findings": {kind: [len(every), *every[:EXAMPLES]] for kind, every in wrong.items()},
            "complaints": (said_wrong := complaints(churn)),
            "replays": replays,
            "memory": memory(churn),
            "samples": verdict.samples,
            "samples apart": len(verdict.samples_apart),
            "exceeded": verdict.exceeded,
            "disruptions": dict(verdict.disruptions),
            "account": {name: round(value) for name, value in verdict.seconds.items()},
            "most off": {name: f"{by:+.2f} s, {where}" for name, (by, where) in verdict.worst.items()},
        }
        print(json.dumps(said, indent=1))
    return 1 if verdict.exceeded or wrong or said_wrong or any(code for code, _ in replays.values()) else 0


def memory(churn: LongChurn) -> dict[str, float]:
    """Resident MB of the process that lived longest: the median of each fifth of its life."""
    life = churn.longest()
    if not life:
        return {}
    whole = life[-1][0]
    fifths = [[held for at, held in life if i * whole / 5 <= at <= (i + 1) * whole / 5] for i in range(5)]
    return {"seconds": round(whole)} | {
        f"fifth {i + 1}": round(statistics.median(one), 1) for i, one in enumerate(fifths) if one
    }


if __name__ == "__main__":
    sys.exit(main())
