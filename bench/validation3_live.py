"""Validation run 3 (Farias's thesis, 7.2.6) on a real control plane, beside our own simulator.

    PYTHONPATH=src python bench/validation3_live.py --factor 1 --keep DIR     all six side by side, one hour
    PYTHONPATH=src python bench/validation3_live.py --keep DIR --again        only look at what DIR holds

5 nodes with room for 20 pods each, 53 Deployments of two pods (20, 16 and 17 promised 1.0, .95 and .90), one a second
in random order, one hour; as independent, concurrent and aggregated requests, under the papers' qos-driven policy and
under priority. ``--factor`` divides every time, those of the settings too. KWOK plays the kubelets; both pods of a
Deployment have one start-up delay, drawn from a log-normal distribution like the measured hot ones. Prints the mean
availability of all services, as measured for the thesis, live and simulated with the delays seen.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
from live_parts.validation import Scene, Seen, delays, deployment, live, recorded
from measuring import table
from validation3 import MEASURED

from slacktide.inputs.generators.registry import generated
from slacktide.settings import load_live
from slacktide.sim import run

MEDIAN_SECONDS, SIGMA = 2.4, 0.25
CLASSES = (("first", 1.0, 1), ("second", 0.95, 2), ("third", 0.9, 3))
WATCHDOG_SECONDS, ALPHA_SECONDS, MARGIN_SECONDS, END_SECONDS = 10.0, 22.37107, 10.0, 3600.0
POLICIES = {"qos-driven": "published", "priority": "recommended"}
"""Each with its preset."""


def settings(policy: str, factor: float) -> list[str]:
    found: dict[str, float | str] = {
        "policy.name": policy,
        "scheduler.watchdog": WATCHDOG_SECONDS / factor,
        "qos.alpha": ALPHA_SECONDS / factor,
        "qos.margin": MARGIN_SECONDS / factor,
        "qos.startup": "always",
        "kube.learn_startup": "false",  # all are taken to start alike, as in the simulated run
    }
    return [f"{key}={value}" for key, value in found.items()]


def measured(approach: str, policy: str, factor: float, seed: int, folder: Path) -> None:
    """Run it live; times and record are in the folder then."""
    folder.mkdir(parents=True, exist_ok=True)
    workload, _ = generated("validation-3", {"approach": approach}, seed)
    numbers = dict.fromkeys(workload.request.tolist()) if workload.request is not None else {}
    first = [int(np.flatnonzero(workload.request == number)[0]) for number in numbers]
    wait = delays(len(first), seed, factor, MEDIAN_SECONDS, SIGMA)
    bodies = [
        deployment(at, CLASSES[workload.service_class[row]][0], float(delay), 2, approach)
        for at, (row, delay) in enumerate(zip(first, wait, strict=True))
    ]
    words = ["--preset", POLICIES[policy], *(word for one in settings(policy, factor) for word in ("--set", one))]
    times = live(Scene(5, CLASSES, bodies, END_SECONDS, node_cpu="7500m", node_memory="7680Mi"), words, factor, folder)
    (folder / "times.json").write_text(json.dumps(times))


def simulated(approach: str, policy: str, factor: float, seed: int, seen: Seen) -> tuple[float, int]:
    """Mean availability and preemptions in the simulator, with the delays and pauses seen live."""
    workload, hosts = generated("validation-3", {"approach": approach}, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "delays.csv"
        path.write_text("seconds\n" + "".join(f"{one!r}\n" for one in seen.delays))
        pairs = [*settings(policy, factor), f"startup.hot={path}", f"startup.cold={path}",
                 f"simulation.end={END_SECONDS / factor}", f"simulation.seed={seed}", "policy.victims=next-pass",
                 *([f"simulation.recreation={np.mean(seen.returns)}"] if seen.returns else [])]  # fmt: skip
        faster = replace(workload, admission=workload.admission / factor)
        result = run(faster, hosts, load_live(None, POLICIES[policy], pairs))
    return float(result.requests["availability_always"].mean()), result.preemptions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write records and logs there")
    parser.add_argument("--again", action="store_true", help="only look at what --keep holds from an earlier run")
    given = parser.parse_args()
    cases = [(approach, policy) for approach in MEASURED for policy in POLICIES]
    with tempfile.TemporaryDirectory() as temporary:
        kept = given.keep or Path(temporary)
        folders = {case: kept / "-".join(case) for case in cases}
        if not given.again:
            with ThreadPoolExecutor(len(cases)) as pool:
                list(pool.map(lambda one: measured(*one, given.factor, given.seed, folders[one]), cases))
        rows = [_row(case, given.factor, given.seed, folders[case]) for case in cases]
    head = ("approach, policy", "thesis", "live", "simulated", "live preemptions", "simulated", "victims leave, s",
            "pods start, s", "pods return, s")  # fmt: skip
    print(table(head, rows))


def _row(case: tuple[str, str], factor: float, seed: int, folder: Path) -> list[str]:
    approach, policy = case
    end = json.loads((folder / "times.json").read_text())["end"]
    names = [name for name, _, _ in CLASSES]
    found, seen = recorded(folder / "record", end, names)
    mean = sum(found[one]["mean"] * found[one]["count"] for one in names) / sum(found[one]["count"] for one in names)
    availability, preemptions = simulated(approach, policy, factor, seed, seen)
    thesis = MEASURED[approach][list(POLICIES).index(policy)]
    pauses = (f"{np.mean(one):.2f}" if one else "-" for one in (seen.leaves, seen.delays, seen.returns))
    return [f"{approach}, {policy}", f"{thesis:.3f}", f"{mean:.4f}", f"{availability:.4f}",
            f"{found['preemptions']:,}", f"{preemptions:,}", *pauses]  # fmt: skip


if __name__ == "__main__":
    os.environ.setdefault("SLACKTIDE_TRACEBACK", "1")
    main()
