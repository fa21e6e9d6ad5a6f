"""Too few nodes on a real control plane: who is lost, and which class is overloaded, is told wherever one looks.

How everything of this goes on in time ``simulated/test_overload.py`` and ``simulated/test_windows.py`` ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from cluster.kubectl import Json, cells
from cluster.labtools import HANG_SECONDS, deployment, until
from cluster.running import BETWEEN_EQUALS, Place, Stage, service_class, staged
from slacktide.cli import app
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries, ControlPlane

SAVABLE = 3.0
CLASS = "slacktide.io/class"
HALF = {CLASS: "half"}
TOLD = re.compile(r"^(\S+) is overloaded: (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A scheduler under which whoever has run once is lost soon after it is late, and equals take nothing."""
    window = {"rolling": "1m", "budget": "whole"}
    classes = [service_class("half", 0.9, 2), service_class("minute", 0.5, 3, window=window)]
    yield from staged(
        binaries, tmp_path_factory.mktemp("overload"), classes,
        qos__alpha=0, policy__savable=SAVABLE, policy__floor=1e-6, scheduler__watchdog=1,
        policy__overload="triage", policy__patience=BETWEEN_EQUALS, policy__overload_patience=BETWEEN_EQUALS,
    )  # fmt: skip


@pytest.fixture
def place(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Place]:
    """A namespace with one node of one core; what a test leaves there is removed, as classes are everybody's."""
    found = Place(stage, request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-"))
    found.nodes(1, cpu="1")
    yield found
    found.api.delete(f"/api/v1/namespaces/{found.namespace}")
    until(lambda: not found.pods(), "nobody is left")


def web(place: Place, name: str = "web", labels: Json = HALF) -> str:
    """A Deployment whose only pod is ready; that pod's name."""
    place.create("deployments", deployment(name, 1, cpu="1", labels=labels))
    return str(place.ready(name)[0]["metadata"]["name"])


def crowd_out(place: Place, name: str) -> str:
    """Its node takes nobody any more, and the pod is deleted: the one that replaces it waits. That one's name."""
    api, node = place.api, f"/api/v1/nodes/{place.node_of(name)}"
    api.patch(node, {"spec": {"unschedulable": True}}, STRATEGIC)
    place.heard()
    place.delete("pods", name, 0)
    prefix = name.split("-")[0]

    def successor() -> str:
        here = [one["metadata"] for one in place.pods(prefix)]
        return next((str(one["name"]) for one in here if one["name"] != name and "deletionTimestamp" not in one), "")

    return str(until(successor, "its replacement"))


def make_room(place: Place) -> None:
    place.nodes(1, prefix="new", cpu="1")


def is_late(place: Place, name: str, lost: int) -> Json:
    return place.status(name, lambda one: (one["lost"], one["starving"]) == (lost, 0), f"{lost} lost")


def top(plane: ControlPlane, *words: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """What it says of classes, and its rows."""
    result = CliRunner().invoke(app, ["top", "--once", "--wide", "--kubeconfig", str(plane.kubeconfig), *words])
    assert result.exit_code == 0, (result.output, result.exception)
    said = dict(TOLD.findall(result.output))
    head, *rows = result.output.splitlines()[1 + len(said) :]
    wide = re.compile(r" {2,}")
    return said, [dict(zip(wide.split(head.strip()), wide.split(row), strict=True)) for row in rows]


def rows_of(table: str) -> list[dict[str, str]]:
    columns = cells(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def metrics(place: Place, family: str) -> dict[str, float]:
    """A family's values by what is in braces."""
    with urlopen(f"http://127.0.0.1:{place.scheduler.port}/metrics", timeout=HANG_SECONDS) as answer:
        said = answer.read().decode()
    found = re.findall(rf"^{family}{{(.*)}} (\S+)$", said, re.MULTILINE)
    return {labels: float(value) for labels, value in found}


def overloaded(place: Place) -> set[str]:
    """Classes that are so by the metric."""
    found = metrics(place, "slacktide_class_overloaded")
    return {labels.split('"')[1] for labels, value in found.items() if value}


def test_who_is_lost_is_told_everywhere_until_it_has_a_place(place: Place) -> None:
    """Nothing happens to the workload when its promise is lost: its ledger is written all the same."""
    successor = crowd_out(place, web(place))
    assert is_late(place, "deployment-web", 1)["slackSeconds"] < -SAVABLE
    until(lambda: "half" in overloaded(place), "the metric says the same")
    late = metrics(place, "slacktide_late_pods")
    assert [late[f'class="half",state="{state}"'] for state in ("lost", "starving")] == [1, 0]
    said, rows = top(place.stage.plane, "-n", place.namespace)
    assert said == {"half": "1 of 1 waiting instances is lost"}
    assert [(one["WORKLOAD"], one["LOST"], one["STARVING"], one["WAITING"]) for one in rows] == [
        ("deployment-web", "1", "-", "1")
    ]
    (shown,) = rows_of(place.kubectl.ok("-n", place.namespace, "get", "avail"))
    assert (shown["LOST"], shown["STARVING"]) == ("1", "0")
    assert place.reason(successor).endswith(". lost: its class is overloaded.")
    address = f"http://127.0.0.1:{place.scheduler.port}"
    explained = CliRunner().invoke(app, ["explain", successor, "-n", place.namespace, "--address", address])
    assert "0 running, 1 waiting (1 lost)" in explained.output
    make_room(place)
    place.bound(successor)
    is_late(place, "deployment-web", 0)
    until(lambda: not overloaded(place), "no class is overloaded where nobody waits")
    assert top(place.stage.plane, "-n", place.namespace)[0] == {}


def test_nothing_went_wrong(stage: Stage) -> None:
    stage.auditor.stop()
    assert not stage.auditor.findings()
    assert not stage.scheduler.complaints()
