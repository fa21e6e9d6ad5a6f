"""Too few nodes on a real control plane: who is lost, and which class is overloaded, is told wherever one looks.

The scheduler is told little: pods become late while time passes, and no event says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from cluster.kubectl import Json, cells
from cluster.labtools import HANG_SECONDS, deployment, pod, until
from cluster.running import BETWEEN_EQUALS, Place, Stage, at, service_class, staged
from slacktide.cli import app
from slacktide.kube.client.http import STRATEGIC_MERGE_PATCH as STRATEGIC
from slacktide.lab import Binaries, ControlPlane

SAVABLE = 3.0
HALF, WIDE = {"slacktide.io/class": "half"}, {"slacktide.io/class": "wide"}
TOLD = re.compile(r"^(\S+) is overloaded: (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def stage(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Two classes of one rank, and a scheduler under which whoever has run once is lost soon after it is late.

    Conditions may say the same for a minute. Equals take nothing from each other.
    """
    classes = [service_class("half", 0.9, 2), service_class("wide", 0.95, 2)]
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


def late_in(status: Json) -> tuple[int, int]:
    return status["lost"], status["starving"]


def is_late(place: Place, name: str, lost: int, starving: int) -> Json:
    return place.status(name, lambda status: late_in(status) == (lost, starving), f"{lost} lost, {starving} starving")


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
    assert is_late(place, "deployment-web", 1, 0)["slackSeconds"] < -SAVABLE
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
    explained = CliRunner().invoke(app, ["explain", "pod", successor, "-n", place.namespace, "--address", address])
    assert "0 running, 1 waiting (1 lost)" in explained.output
    make_room(place)
    place.bound(successor)
    is_late(place, "deployment-web", 0, 0)
    until(lambda: not overloaded(place), "no class is overloaded where nobody waits")
    assert top(place.stage.plane, "-n", place.namespace)[0] == {}


def test_one_that_never_ran_starves_and_one_that_is_deleted_is_not_late(place: Place) -> None:
    running = web(place, labels=WIDE)
    place.create("pods", pod("never", cpu="1", labels=HALF))
    is_late(place, "pod-never", 0, 1)
    until(lambda: overloaded(place) == {"half", "wide"}, "the metric says the same")
    said, _ = top(place.stage.plane, "-n", place.namespace)
    assert said == {
        "half": "1 of 1 waiting instances starves",
        "wide": "it has the rank of half",
    }
    place.waits("never", r"\. starving: its class is overloaded\.$")
    place.delete("pods", "never", 0)
    place.status("pod-never", lambda s: "deletedAt" in s, "its workload was deleted")
    until(lambda: not overloaded(place), "no class is overloaded")
    assert top(place.stage.plane, "-n", place.namespace)[0] == {}
    assert place.node_of(running)


def test_a_deployment_that_wants_nobody_any_more_has_nobody_who_is_lost(place: Place) -> None:
    crowd_out(place, web(place))
    is_late(place, "deployment-web", 1, 0)
    place.api.patch(f"{place.kinds_path('deployments')}/web", {"spec": {"replicas": 0}}, STRATEGIC)
    is_late(place, "deployment-web", 0, 0)


def test_a_new_leader_finds_who_is_lost_and_who_is_not_any_more(place: Place) -> None:
    place.nodes(1, prefix="other", cpu="1")
    for pod_name in (web(place, "stays"), web(place, "leaves")):
        crowd_out(place, pod_name)
    before = [is_late(place, name, 1, 0) for name in ("deployment-stays", "deployment-leaves")]
    place.scheduler.kill()
    place.api.patch(f"{place.kinds_path('deployments')}/leaves", {"spec": {"replicas": 0}}, STRATEGIC)
    until(lambda: not place.pods("leaves"), "its pod is gone while nobody leads")
    assert place.status("deployment-leaves", lambda _: True, "is there") == before[1], "nobody has written it"
    place.scheduler.restart()
    is_late(place, "deployment-leaves", 0, 0)
    after = place.status("deployment-stays", lambda status: status["at"] > before[0]["at"], "a new leader wrote it")
    assert late_in(after) == (1, 0)


def test_a_state_that_time_changes_is_written_when_it_does(place: Place) -> None:
    """A pod that was late runs on: nothing happens to it, and at a known instant its promise is kept again."""
    place.create("pods", pod("slow", cpu="1", labels=HALF, annotations={"slacktide.io/startup-seconds": "1"}))
    missed = place.status("pod-slow", lambda status: status["running"] == 1, "it runs")
    assert (missed["state"], missed.get("breaksAt")) == ("Missed", None)
    gains = 1.0 / missed["promised"] - 1.0
    due = at(missed) - missed["slackSeconds"] / gains
    kept = place.status("pod-slow", lambda status: status["state"] != "Missed", "its promise is kept again")
    assert due - 0.01 <= at(kept) <= due + 2.0
    assert kept["breaksAt"] > kept["at"]
    if kept["state"] == "AtRisk":
        assert "margin of class half" in kept["message"]


def test_nothing_went_wrong(stage: Stage) -> None:
    stage.auditor.stop()
    assert not stage.auditor.findings()
    assert not stage.scheduler.complaints()
