"""Validation run 1 on a real control plane, beside our own simulator with the same start-up delays.

    python bench/validation1_live.py --preset recommended --factor 10     six minutes
    python bench/validation1_live.py --preset published --factor 1        one hour

20 nodes of 3.75 cores and 3.75 GiB, 256 Deployments of one pod of .375 (80 gold at 1.0, 80 silver at .9, 96 bronze
at .5), one a second in random order, one hour; ``--factor`` divides every time, those of the settings too. KWOK plays
the kubelets; each Deployment has one start-up delay, drawn from a log-normal distribution like the measured hot ones.
``shared`` is ``recommended`` with ``policy.overload = share`` and ``policy.cost = slack``.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from live_parts.validation import Scene, Seen, delays, deployment, live, recorded

from slacktide.config import Config
from slacktide.inputs.generators.registry import generated

MEDIAN_SECONDS, SIGMA = 2.3, 0.25
CLASSES = (("gold", 1.0, 1), ("silver", 0.9, 2), ("bronze", 0.5, 3))
END_SECONDS = 3600.0
WATCHDOG_SECONDS, ALPHA_SECONDS, MARGIN_SECONDS = 30.0, 22.37107, 10.0
BASE = {"recommended": "recommended", "shared": "recommended", "published": "published"}
MEASURED = {"gold": 0.9993, "silver": 0.9098, "bronze": 0.4731}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="recommended", choices=BASE)
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write the record and the log there")
    parser.add_argument("--again", action="store_true", help="only look at what --keep holds from an earlier run")
    return parser.parse_args()


def settings(preset: str, factor: float) -> dict[str, float | str]:
    found: dict[str, float | str] = {
        "scheduler.watchdog": WATCHDOG_SECONDS / factor,
        "qos.alpha": ALPHA_SECONDS / factor,
        "kube.learn_startup": "false",  # all requests are taken to start alike, as in the simulated run
        "qos.margin": MARGIN_SECONDS / factor,
    }
    if preset != "published":
        ours = Config().policy
        for name in ("patience", "savable", "overload_patience", "recovery"):
            found[f"policy.{name}"] = getattr(ours, name) / factor
    if preset == "shared":
        found["policy.overload"], found["policy.cost"] = "share", "slack"
    return found


def scene(factor: float, seed: int) -> Scene:
    workload, _ = generated("validation-1", {}, seed)
    wait = delays(len(workload), seed, factor, MEDIAN_SECONDS, SIGMA)
    bodies = [
        deployment(int(number), CLASSES[cls][0], float(wait[at]))
        for at, (number, cls) in enumerate(zip(workload.ids, workload.service_class, strict=True))
    ]
    return Scene(20, CLASSES, bodies, END_SECONDS)


def words(preset: str, factor: float) -> list[str]:
    pairs = (word for key, value in settings(preset, factor).items() for word in ("--set", f"{key}={value}"))
    return ["--preset", BASE[preset], *pairs]


def simulated(
    preset: str, factor: float, seed: int, seen: Seen | None = None, zero: float = 0.0, *, repeat_passes: bool = False
) -> dict[str, Any]:
    """The same in the simulator; as ``seen``: with the admissions, delays and pauses before a new pod of a live run,
    and if ``repeat_passes`` with passes at the same instants."""
    from dataclasses import replace

    from slacktide.metrics.summary import per_class
    from slacktide.settings import load_live
    from slacktide.sim import run

    whole, hosts = generated("validation-1", {}, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "delays.csv"
        waits = delays(len(whole), seed, factor, MEDIAN_SECONDS, SIGMA).tolist() if seen is None else seen.delays
        path.write_text("seconds\n" + "".join(f"{one!r}\n" for one in waits))
        pairs = [f"{key}={value}" for key, value in settings(preset, factor).items()]
        pairs += [f"startup.hot={path}", f"startup.cold={path}", f"simulation.end={END_SECONDS / factor}",
                  "policy.victims=next-pass"]  # fmt: skip
        admission = whole.admission / factor
        if seen is not None:
            pairs.append(f"simulation.recreation={np.mean(seen.returns)}")
            if repeat_passes:
                triggers = Path(folder) / "triggers.csv"
                triggers.write_text("seconds\n" + "".join(f"{max(0.0, at - zero)!r}\n" for at in seen.passes))
                pairs.append(f"scheduler.triggers={triggers}")
            admission = np.maximum.accumulate([max(0.0, seen.first[f"r{number}"] - zero) for number in whole.ids])
        config = load_live(None, BASE[preset], pairs)
        result = run(replace(whole, admission=admission), hosts, config)
    found = {one.name: one for one in per_class(result.requests, whole.service_class, whole.classes, "always")}
    return {
        "preemptions": result.preemptions,
        "passes": result.pass_count,
        **{name: {"mean": found[name].availability["always"].mean} for name, _, _ in CLASSES},
    }


def main() -> None:
    given = arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not given.again:
            times = live(scene(given.factor, given.seed), words(given.preset, given.factor), given.factor, folder)
            (folder / "times.json").write_text(json.dumps(times))
        times = json.loads((folder / "times.json").read_text())
        found, seen = recorded(folder / "record", times["end"], [name for name, _, _ in CLASSES])
    report = {
        "live": found,
        "seen": {
            "preemption to the end of the victim, mean s": float(np.mean(seen.leaves)),
            "its place's being free to readiness, mean s": float(np.mean(seen.delays)),
            "end of the victim to its next pod, mean s": float(np.mean(seen.returns)),
        },
        "simulated, with the delays seen": simulated(given.preset, given.factor, given.seed, seen, times["began"]),
        "simulated, with the delays and at the instants seen": simulated(
            given.preset, given.factor, given.seed, seen, times["began"], repeat_passes=True
        ),
        "simulated, with the delays asked for": simulated(given.preset, given.factor, given.seed),
        "measured on a cluster (published settings)": MEASURED | {"preemptions": 2003},
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    os.environ.setdefault("SLACKTIDE_TRACEBACK", "1")
    main()
