"""Experiments' folders for tests, of real runs: the first validation run, kept short."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from slacktide import settings
from slacktide.config import Config, SimulationSettings
from slacktide.experiment.run_folder import Asked, run_into
from slacktide.inputs.generators.registry import generated
from slacktide.model import Hosts, ServiceClass, Window, Workload

INTERVAL = 60.0
POLICIES: Mapping[str, tuple[str, ...]] = {
    "priority": ("policy.name=priority",),
    "qos-driven recommended": (),
    "qos-driven published": ("policy.preempt_when=better", "policy.patience=0", "policy.victims=next-pass"),
}


@dataclass(frozen=True)
class Wanted:
    """What a folder shall hold. ``hosts``: how many of the 20 each set has; ``fail`` says which runs have failed."""

    workloads: Sequence[str] = ("run 1",)
    hosts: Mapping[str, int] = None  # type: ignore[assignment]
    policies: Sequence[str] = ("priority", "qos-driven recommended")
    seeds: Sequence[int] = (1, 2)
    end: float = 400.0
    fail: Callable[[str, str, str, int], str | None] = lambda *_: None
    names: Mapping[str, str] = None  # type: ignore[assignment]
    title: str | None = None
    windows: Mapping[str, Window] = None  # type: ignore[assignment]


@lru_cache(maxsize=8)
def inputs(seed: int, count: int) -> tuple[Workload, Hosts]:
    """The first validation run and ``count`` of its hosts."""
    workload, hosts = generated("validation-1", {}, seed)
    some = Hosts(hosts.ids[:count], hosts.names[:count], hosts.capacity[:count], hosts.attributes[:count])
    return workload, some


def config_of(policy: str, seed: int, end: float) -> Config:
    """Settings of a run."""
    config = settings.load(None, None, POLICIES[policy])
    return replace(config, simulation=SimulationSettings(end=end, seed=seed))


def renamed(workload: Workload, config: Config, names: Mapping[str, str]) -> tuple[Workload, Config]:
    """The same with other names of classes."""

    def of(one: ServiceClass) -> ServiceClass:
        return replace(one, name=names.get(one.name, one.name))

    return (
        replace(workload, classes=tuple(map(of, workload.classes))),
        replace(config, classes=tuple(map(of, config.classes))),
    )


def over_windows(workload: Workload, config: Config, windows: Mapping[str, Window]) -> tuple[Workload, Config]:
    """The same with classes that promise over windows."""
    classes = tuple(replace(one, window=windows.get(one.name)) for one in config.classes)
    return replace(workload, classes=classes), replace(config, classes=classes)


def make(folder: Path, wanted: Wanted = Wanted(), labels: Mapping[str, str] | None = None) -> Path:
    """Runs what is wanted and writes an experiment's folder; ``labels`` are other names of workloads and policies."""
    labels = labels or {}
    hosts = wanted.hosts or {"N": 20, "0.9 N": 18}
    listed = []
    for number, workload in enumerate(wanted.workloads):
        for name, count in hosts.items():
            for seed in wanted.seeds:
                for policy in wanted.policies:
                    place = [labels.get(one, one) for one in (workload, name, policy)]
                    key = hashlib.sha256(repr((place, seed)).encode()).hexdigest()
                    listed.append(
                        {"key": key, "workload": place[0], "hosts": place[1], "policy": place[2], "seed": seed}
                    )
                    error = wanted.fail(workload, name, policy, seed)
                    if error is not None:
                        (folder / "failures").mkdir(parents=True, exist_ok=True)
                        if error:
                            text = json.dumps({"key": key, "error": error})
                            (folder / "failures" / f"{key}.json").write_text(text)
                        continue
                    requests, machines = inputs(number, count)
                    config = config_of(policy, seed, wanted.end)
                    if wanted.windows:
                        requests, config = over_windows(requests, config, wanted.windows)
                    if wanted.names:
                        requests, config = renamed(requests, config, wanted.names)
                    out, asked = folder / "runs" / key, Asked(passes=True, intervals=INTERVAL)
                    run_into(out, requests, machines, config, files=[], command=["slacktide"], asked=asked)
    about = {
        "format": "slacktide-experiment",
        "schema_version": 1,
        "command": ["slacktide", "experiment", "run", "grid.yaml", "--out", "results"],
        "versions": {"slacktide": "1", "python": "3"},
        "grid": {"title": wanted.title},
        "runs": listed,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.json").write_text(json.dumps(about, indent=1))
    (folder / "grid.yaml").write_text("# the grid as it was given\nseeds: 2\n")
    return folder
