"""Runbooks walked as somebody on call walks them: a fault is made, its alert fires, the commands of its section say
what is wrong, what the section says mends it, and the alert resolves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.alerting import FAULTS, PODS, Site, site
from cluster.labtools import until
from cluster.running import CLASSES, service_class
from slacktide.lab import Binaries
from support.repository import REPOSITORY

PAGE = REPOSITORY / "docs" / "runbooks.md"
FACTOR, INTERVAL = 30.0, 1.0
"""Times in rules are shortened, so that they fire and resolve within seconds."""
FIRES_SECONDS = 120.0
PLUGIN = "from slacktide.cli.plugin import main; raise SystemExit(main())"
REQUIRED = os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1"
pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None and not REQUIRED, reason="prometheus is not there: apt-get install prometheus"
)


CLASSLESS, ADMISSION, BURNS = "SlacktidePodsWithoutClass", "SlacktideAdmissionMissing", "SlacktideBudgetBurns"


@pytest.fixture(scope="module")
def where(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site with all the faults at once: each has an alert of its own, and those wait for some time."""
    with site(binaries, tmp_path_factory.mktemp("runbooks"), FACTOR, INTERVAL) as found:
        for alert in (CLASSLESS, ADMISSION, BURNS):
            fault(alert)(found)
        yield found


def commands(alert: str, part: str) -> list[str]:
    """Commands of a part of an alert's section."""
    (section,) = re.findall(rf"(?ms)^## {alert}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"))
    told = section[section.index(f"**{part}.**") :]
    (block,) = re.findall(r"(?s)```sh\n(.*?)```", told)[:1]
    return [line for line in block.splitlines() if line.strip()]


@pytest.fixture
def shell(where: Site, tmp_path: Path) -> Callable[..., str]:
    """Runs a page's commands where kubectl and slacktide are on the PATH; what they print, all of it."""
    names = {
        "kubectl": f'exec "{where.kubectl.program}" "$@"',
        "slacktide": f'exec "{sys.executable}" -m slacktide "$@"',
        "kubectl-slack": f'exec "{sys.executable}" -c "{PLUGIN}" "$@"',
    }
    for name, line in names.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "KUBECONFIG": str(where.plane.kubeconfig)}

    def run(lines: list[str], **words: str) -> str:
        said = ""
        for written in lines:
            line = written
            for word, value in words.items():
                line = line.replace(word, value)
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, env=environment,
                                  cwd=REPOSITORY, check=False, timeout=120)  # fmt: skip
            assert done.returncode == 0, f"{line}: {done.stderr}"
            said += done.stdout
        return said

    return run


def fault(alert: str) -> Callable[[Site], None]:
    return next(one.make for one in FAULTS if one.alert == alert)


def fires(where: Site, alert: str) -> dict[str, str]:
    """The labels with which an alert fires: all that who is woken knows."""
    until(lambda: alert in where.prometheus.firing(), f"{alert} fires", FIRES_SECONDS)
    return dict(next(one.labels for one in where.prometheus.fired if one.name == alert and not one.until))


def resolves(where: Site, alert: str) -> None:
    until(lambda: alert not in where.prometheus.firing(), f"{alert} resolves", 3.0 * FIRES_SECONDS)


def test_pods_that_name_a_class_that_is_not_there(where: Site, shell: Callable[..., str]) -> None:
    alert = CLASSLESS
    fires(where, alert)
    said = shell(commands(alert, "How to see it"))
    assert re.search(r"pod-lost.*Unknown|lost", said)
    assert "service class 'platinum': does not exist" in said
    assert "gold" in said
    where.api.post(CLASSES, service_class("platinum", 0.9, 2))  # "make the class"
    resolves(where, alert)
    where.api.delete("/api/v1/namespaces/default/pods/lost", 0)


def test_an_admission_policy_that_is_missing(where: Site, shell: Callable[..., str]) -> None:
    alert = ADMISSION
    fires(where, alert)
    look = commands(alert, "How to see it")
    there = shell(look)
    (mends,) = re.findall(r"`(kubectl apply -f src/[^`]*30-admission.yaml)`", PAGE.read_text(encoding="utf-8"))
    shell([mends])
    was_missing = set(shell(look).split()) - set(there.split())
    assert "validatingadmissionpolicybinding.admissionregistration.k8s.io/slacktide-class" in was_missing
    resolves(where, alert)


def test_a_workload_that_loses_its_budget(where: Site, shell: Callable[..., str]) -> None:
    alert = BURNS
    labels = fires(where, alert)
    assert (labels["kind"], labels["name"]) == ("Deployment", "front")
    name, namespace = labels["name"], labels["namespace"]

    def waiting() -> str:
        found = where.api.get(f"{PODS}?labelSelector=app={name}")["items"]
        return next((one["metadata"]["name"] for one in found if not one["spec"].get("nodeName")), "")

    pod = until(waiting, "a pod of it waits")
    first, *others = commands(alert, "How to see it")
    said = shell([first], NAMESPACE=namespace, NAME=name)
    assert f"Deployment {namespace}/{name}" in said
    assert "by the cluster" in said
    assert "nodes are available" in said
    said = shell(others, NAMESPACE=namespace, NAME=pod)
    assert f"Pod {namespace}/{pod}" in said
    next(one.mend for one in FAULTS if one.alert == alert)(where)  # "add nodes"
    resolves(where, alert)
