"""A real Prometheus that scrapes schedulers on a lab and evaluates the rules that slacktide ships.

``factor`` shortens the times in the rules (``for:`` and ranges), so that a test need not wait for quarters of an hour.
"""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.request import urlopen

import yaml

from slacktide.lab import ControlPlane
from slacktide.openslo.burn_rates import rules_of_any_class
from slacktide.openslo.documents import yaml_text

Json = dict[str, Any]
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
JOB, NAMESPACE = "slacktide", "slacktide-system"
STARTS_SECONDS = 60.0
_RANGE, _FOR = re.compile(r"\[(\d+)([smhd])\]"), re.compile(r"(?m)^(\s+for: )(\d+)([smhd])$")


def rules(factor: float = 1.0) -> str:
    """The shipped rules, with times shortened by ``factor``."""

    def seconds(number: str, unit: str) -> str:
        return f"{max(1, round(int(number) * UNITS[unit] / factor))}s"

    text = yaml_text([rules_of_any_class()])
    text = _RANGE.sub(lambda found: f"[{seconds(found[1], found[2])}]", text)
    return _FOR.sub(lambda found: f"{found[1]}{seconds(found[2], found[3])}", text)


def lasting(factor: float = 1.0) -> dict[str, float]:
    """For how many seconds an alert must last before it fires, by its name; of several the shortest."""
    found: dict[str, float] = {}
    for group in yaml.safe_load(rules(factor))["groups"]:
        for one in group["rules"]:
            if "alert" in one:
                number = float(one.get("for", "0s")[:-1])
                found[one["alert"]] = min(number, found.get(one["alert"], number))
    return found


@dataclass(frozen=True)
class Target:
    """A scheduler at ``address``; with a ``token`` over TLS, whose certificate is not verified."""

    pod: str
    address: str
    token: str = ""

    def job(self) -> Json:
        labels = {"pod": self.pod, "namespace": NAMESPACE, "job": JOB}
        found: Json = {"job_name": self.pod, "honor_labels": True,
                       "static_configs": [{"targets": [self.address], "labels": labels}]}  # fmt: skip
        if self.token:
            found |= {"scheme": "https", "authorization": {"credentials": self.token},
                      "tls_config": {"insecure_skip_verify": True}}  # fmt: skip
        return found


@dataclass
class Firing:
    """An alert that fired: from when to when (0: it does), seconds since 1970."""

    name: str
    severity: str
    labels: tuple[tuple[str, str], ...]
    since: float
    until: float = 0.0


@dataclass
class Prometheus:
    """Scrapes and evaluates every ``interval`` seconds; ``fired`` has all alerts that fired so far."""

    plane: ControlPlane
    targets: Sequence[Target]
    factor: float = 1.0
    interval: float = 15.0
    fired: list[Firing] = field(default_factory=list)

    def __post_init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        folder = self.plane.directory / "prometheus"
        folder.mkdir()
        self._ends = threading.Event()
        (folder / "rules.yaml").write_text(rules(self.factor))
        every = f"{self.interval:g}s"
        config = {"global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
                  "rule_files": ["rules.yaml"], "scrape_configs": [one.job() for one in self.targets]}  # fmt: skip
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        program = shutil.which("prometheus")
        assert program is not None, "prometheus is not there: apt-get install prometheus"
        self.plane.add("prometheus", [
            program, f"--config.file={folder / 'prometheus.yaml'}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ])  # fmt: skip
        end = time.monotonic() + STARTS_SECONDS
        while not self._is_ready():
            assert time.monotonic() < end, self.plane.components["prometheus"].log_tail()
            time.sleep(0.2)
        self._watching = threading.Thread(target=self._watch, daemon=True)
        self._watching.start()

    def _is_ready(self) -> bool:
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def ask(self, path: str) -> Any:
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]

    def scraped(self) -> set[str]:
        """Targets that were scraped last time."""
        return {one["labels"]["pod"] for one in self.ask("targets")["activeTargets"] if one["health"] == "up"}

    def firing(self) -> set[str]:
        """Names of the alerts that fire now."""
        return {one.name for one in self.fired if not one.until}

    def since(self, name: str, at: float) -> float | None:
        """When an alert fired first after that; None where it has not."""
        return min((one.since for one in self.fired if one.name == name and one.since >= at), default=None)

    def close(self) -> None:
        self._ends.set()
        self._watching.join()

    def _watch(self) -> None:
        while not self._ends.wait(min(1.0, self.interval)):
            try:
                every = self.ask("alerts")["alerts"]
            except OSError:
                continue
            now = time.time()
            there = {tuple(sorted(one["labels"].items())) for one in every if one["state"] == "firing"}
            known = {one.labels for one in self.fired if not one.until}
            for one in self.fired:
                if not one.until and one.labels not in there:
                    one.until = now
            for labels in there - known:
                said = dict(labels)
                self.fired.append(Firing(said["alertname"], said.get("severity", ""), labels, now))
