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
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import astuple

from slacktide.config import Config
from slacktide.inputs.generators.registry import generated
from slacktide.lab import Binaries, ControlPlane

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


def delays(count: int, seed: int, factor: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng([seed, 1]).lognormal(np.log(MEDIAN_SECONDS), SIGMA, count) / factor


def service_class(name: str, slo: float, rank: int) -> dict[str, Any]:
    return {
        "apiVersion": "slacktide.io/v1beta1",
        "kind": "ServiceClass",
        "metadata": {"name": name},
        "spec": {"slo": slo, "rank": rank, "namespaces": ["*"]},
    }


def deployment(number: int, name: str, delay: float) -> dict[str, Any]:
    labels = {"app": f"r{number}"}
    resources = {"requests": {"cpu": "375m", "memory": "384Mi"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"r{number}"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels | {"slacktide.io/class": name},
                    "annotations": {"slacktide.io/startup-seconds": f"{delay:.4f}"},
                },
                "spec": {
                    "schedulerName": "slacktide",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "c", "image": "none", "resources": resources}],
                },
            },
        },
    }


def live(preset: str, factor: float, seed: int, folder: Path) -> dict[str, Any]:
    """Run it; what the record says at the end."""
    workload, _ = generated("validation-1", {}, seed)
    wait = delays(len(workload), seed, factor)
    plane = ControlPlane.create(folder / "lab", Binaries.find())
    plane.start(guarded=True)
    try:
        plane.install()
        plane.create_nodes(20, cpu="3750m", memory="3840Mi", pods=110)
        for one in CLASSES:
            plane.api.post("/apis/slacktide.io/v1beta1/serviceclasses", service_class(*one))
        account = plane.service_account_kubeconfig("slacktide-system", "slacktide")
        command = [sys.executable, "-m", "slacktide", "run", "--kubeconfig", str(account),
                   "--preset", BASE[preset], "--record", str(folder / "record"), "--set", "kube.leader_election=false",
                   "--set", "kube.listen=none"]  # fmt: skip
        for key, value in settings(preset, factor).items():
            command += ["--set", f"{key}={value}"]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, stderr=log)
            try:
                while "leading as" not in (folder / "log").read_text():
                    time.sleep(0.1)
                    if process.poll() is not None:
                        raise SystemExit((folder / "log").read_text())
                began = time.time()
                for at, (number, cls) in enumerate(zip(workload.ids, workload.service_class, strict=True)):
                    time.sleep(max(0.0, began + at / factor - time.time()))
                    body = deployment(int(number), CLASSES[cls][0], float(wait[at]))
                    plane.api.post("/apis/apps/v1/namespaces/default/deployments", body)
                time.sleep(max(0.0, began + END_SECONDS / factor - time.time()))
                end = time.time()
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)
    finally:
        plane.stop()
    return {"began": began, "end": end}


@dataclass
class Seen:
    """What happened, of a record: when each request came first and when passes were (seconds since 1970), and seconds
    from decisions to the end of the victims, from then (or the decision) to readiness, and to the victims' next pods.

    A simulated victim is gone at once: the time that a real one takes is no start-up, because it runs on.
    """

    first: dict[str, float] = field(default_factory=dict)
    passes: list[float] = field(default_factory=list)
    leaves: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)
    free: dict[str, float] = field(default_factory=dict)
    leaving: dict[str, tuple[str, float]] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)

    def see(self, entry: Any, key_of: dict[str, str]) -> None:
        name, said = entry.operation.method, astuple(entry.operation)
        if name == "arrive":
            uid, _, key, _, at, _ = said
            key_of[uid] = key
            self.first.setdefault(key.split("/")[2], at)
            if key in self.gone:
                self.returns.append(at - self.gone.pop(key))
        elif name == "run":
            self.passes.append(said[0])
        elif name == "decided":
            now = self.passes[-1]
            for decision in said[0].decisions:
                self.free[decision.uid] = now
                self.leaving |= {victim.uid: (decision.uid, now) for victim in decision.victims}
        elif name == "gone" and said[0] in self.leaving:
            beneficiary, told = self.leaving.pop(said[0])
            self.leaves.append(said[1] - told)
            self.gone[key_of[said[0]]] = self.free[beneficiary] = said[1]
        elif name == "ready" and said[0] in self.free:
            self.delays.append(said[1] - self.free.pop(said[0]))


def recorded(record: Path, end: float) -> tuple[dict[str, Any], Seen]:
    """What the record says at ``end``, and what happened."""
    from slacktide.engine.core.engine import Engine
    from slacktide.engine.journal.record import sessions
    from slacktide.engine.journal.replay import Report, carry_out, retrace

    session = list(sessions(record))[-1]
    engine = Engine(session.config)
    seen, key_of = Seen(), dict[str, str]()
    for entry, _ in retrace(partial(carry_out, engine), session, Report()):
        seen.see(entry, key_of)
    return summary(engine, end), seen


def summary(engine: Any, end: float) -> dict[str, Any]:
    from slacktide.engine.ledger.slo_status import slo_status

    found: dict[str, list[float]] = {name: [] for name, _, _ in CLASSES}
    preemptions = 0
    for key in engine.controllers:
        one = slo_status(engine, key, end)
        found[one.service].append(one.delivered_always)
        preemptions += one.preemptions
    return {
        "preemptions": preemptions,
        "passes": engine.passes,
        **{name: {"mean": float(np.mean(values)), "min": float(np.min(values)), "count": len(values)}
           for name, values in found.items()},
    }  # fmt: skip


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
        waits = delays(len(whole), seed, factor).tolist() if seen is None else seen.delays
        path.write_text("seconds\n" + "".join(f"{one!r}\n" for one in waits))
        words = [f"{key}={value}" for key, value in settings(preset, factor).items()]
        words += [f"startup.hot={path}", f"startup.cold={path}", f"simulation.end={END_SECONDS / factor}",
                  "policy.victims=next-pass"]  # fmt: skip
        admission = whole.admission / factor
        if seen is not None:
            words.append(f"simulation.recreation={np.mean(seen.returns)}")
            if repeat_passes:
                triggers = Path(folder) / "triggers.csv"
                triggers.write_text("seconds\n" + "".join(f"{max(0.0, at - zero)!r}\n" for at in seen.passes))
                words.append(f"scheduler.triggers={triggers}")
            admission = np.maximum.accumulate([max(0.0, seen.first[f"r{number}"] - zero) for number in whole.ids])
        config = load_live(None, BASE[preset], words)
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
            times = live(given.preset, given.factor, given.seed, folder)
            (folder / "times.json").write_text(json.dumps(times))
        times = json.loads((folder / "times.json").read_text())
        found, seen = recorded(folder / "record", times["end"])
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
