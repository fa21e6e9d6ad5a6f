"""``slacktide explain`` and ``slacktide top`` beside a running scheduler, and without one that answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cluster.kubectl import cells
from cluster.labtools import deployment, pod, pods, until
from cluster.running import Running, prepared, service_class
from slacktide.cli import app
from slacktide.cli.cluster.top_rows import HEAD
from slacktide.config import Config
from slacktide.errors import InputError
from slacktide.kube.client.metadata import unix_seconds
from slacktide.lab import Binaries, ControlPlane
from slacktide.model.durations import parse_duration
from support.browsing import chromium, looks, serious

BRONZE, GOLD = {"slacktide.io/class": "bronze"}, {"slacktide.io/class": "gold"}

OURS = {"schedulerName": "slacktide"}


@pytest.fixture(scope="module")
def running(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Two nodes of two cores: four bronze pods fill them, three wait, and one gold pod has preempted one.

    Three of seven are less than bronze was promised, so that its slack has a limit, however long it had four.
    """
    plane = prepared(binaries, tmp_path_factory.mktemp("seeing"))
    try:
        for one in (service_class("gold", 0.999, 1), service_class("bronze", 0.5, 3, counts="everything")):
            plane.api.post("/apis/slacktide.io/v1beta1/serviceclasses", one)
        plane.create_nodes(2, cpu="2")
        scheduler = Running(plane, kube__leader_election=False).wait_until_leading()
        body = deployment("low", 7, cpu="1", labels=BRONZE, **OURS)
        body["spec"]["template"]["metadata"]["annotations"] = {"slacktide.io/approach": "aggregated"}
        plane.api.post("/apis/apps/v1/namespaces/default/deployments", body)
        until(lambda: len(_running(plane)) == 4, "four bronze pods run")
        plane.api.post("/api/v1/namespaces/default/pods", pod("high", cpu="1", labels=GOLD, **OURS))
        until(lambda: "high" in _running(plane), "the gold pod runs")
        until(lambda: _events(plane, "Preempted"), "the victim's event")
        yield scheduler
        scheduler.stop()
        assert not scheduler.complaints()
        assert plane.token not in scheduler.log
    finally:
        plane.kill()


def _running(plane: ControlPlane) -> list[str]:
    return [one["metadata"]["name"] for one in pods(plane.api, "default", "Running")]


def _events(plane: ControlPlane, reason: str) -> list[str]:
    every = plane.api.get("/api/v1/namespaces/default/events")["items"]
    return [one["involvedObject"]["name"] for one in every if one["reason"] == reason]


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def _at(running: Running) -> tuple[str, str]:
    return "--address", f"http://127.0.0.1:{running.port}"


def explained(running: Running, name: str, *words: str) -> str:
    result = run("explain", name, *_at(running), *words)
    assert result.exit_code == 0, (result.output, result.exception)
    assert running.plane.token not in result.output
    return result.output


def test_why_here_why_preempted_and_why_waiting(running: Running) -> None:
    (victim,) = _events(running.plane, "Preempted")
    text = explained(running, "high")
    # A gold pod that has just come has used up its start-up allowance (alpha) before it began.
    had = r"no node was feasible with (-\d+\.\d)s of slack after start-up"
    here = re.search(rf"is ready on node-\d: {had}, so it preempted (\S+)", text)
    assert here is not None, text
    assert here[2] == f"default/{victim}"
    assert float(here[1]) < -22
    assert "Pod high, class gold: promised 0.9990" in text
    # The victim's containers ended before the other came; it is listed a little longer.
    text = until(lambda: (found := explained(running, victim)).startswith(f"Pod default/{victim} (gone)") and found)
    had = r"it had (unlimited slack|-?\d[\dmhs.]* of slack after start-up), the preemptor -\d[\dmhs.]* of"
    assert re.search(rf"preempted on node-\d by default/high: {had}", text)
    waiting = pods(running.plane.api, "default", "Pending")[0]["metadata"]["name"]
    text = explained(running, waiting)
    assert "waits: 0/2 nodes are available: 2 Insufficient cpu. preemption: " in text
    assert "Deployment low, class bronze: promised 0.5000" in text
    found = json.loads(explained(running, waiting, "--json"))
    assert (found["state"], found["ledger"]["running"], found["ledger"]["waiting"]) == ("waiting", 3, 4)


def test_without_the_scheduler_the_cluster_tells(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slacktide.cli.cluster.explain.ADDRESS", "127.0.0.1:9")
    kubeconfig = str(running.plane.kubeconfig)
    waiting = pods(running.plane.api, "default", "Pending")[0]["metadata"]["name"]

    def told() -> str:
        result = run("explain", waiting, "--kubeconfig", kubeconfig)
        assert result.exit_code == 0, result.output
        wanted = "Deployment low, class bronze: promised 0.5000", "waits: 0/2 nodes are available: 2 Insufficient cpu"
        return result.output if all(text in result.output for text in wanted) else ""

    output = until(told, "ledger and condition were written and are told", 120)
    assert "The scheduler did not answer" in output
    (victim,) = _events(running.plane, "Preempted")
    gone = run("explain", victim, "--kubeconfig", kubeconfig).output
    assert gone.startswith(f"Pod default/{victim} (gone)")
    assert re.search(r"Preempted: Preempted by pod default/high on node node-\d", gone)
    nobody = run("explain", "nobody", "--kubeconfig", kubeconfig)
    assert isinstance(nobody.exception, InputError)
    assert "pod default/nobody: expected one that exists, or existed lately" in str(nobody.exception)


def top(running: Running, *words: str) -> list[list[str]]:
    """The summary, the head and the rows; bronze may be overloaded, which a line between says."""
    result = run("top", "--once", "--wide", "--kubeconfig", str(running.plane.kubeconfig), *words)
    assert result.exit_code == 0, (result.output, result.exception)
    assert running.plane.token not in result.output
    return [re.split(r" {2,}", line) for line in result.output.splitlines() if " is overloaded: " not in line]


def slack_of(text: str) -> float:
    """Seconds that a cell says; ``-`` is no end of them."""
    if text == "-":
        return float("inf")
    return -parse_duration(text[1:]) if text.startswith("-") else parse_duration(text)


def test_top_sorts_by_slack_and_carries_the_ledgers_on(running: Running) -> None:
    """A pod that finds no node loses a second of slack each second; its ledger is written once."""
    summary, head, *rows = top(running)
    assert summary[0].startswith(f"{len(rows)} workloads: ")
    assert tuple(head) == HEAD
    slacks = [slack_of(row[5]) for row in rows]
    assert slacks == sorted(slacks)
    assert [row[1] for row in top(running, "--sort", "name")[2:]] == sorted(row[1] for row in rows)
    assert top(running, "-n", "kube-system")[2:] == []
    assert run("top", "-A", "-n", "x", "--kubeconfig", str(running.plane.kubeconfig)).exit_code == 2
    api, path = running.plane.api, "/apis/slacktide.io/v1beta1/namespaces/default/availabilities"
    api.post("/api/v1/namespaces/default/pods", pod("huge", cpu="100", labels=BRONZE, **OURS))
    try:
        until(lambda: [one for one in api.get(path)["items"] if one["metadata"]["name"] == "pod-huge"], "its ledger")

        def carried_on() -> tuple[dict[str, Any], list[str], float, float] | None:
            """What was written more than two seconds ago, the row, and between which instants it was made."""
            status = api.get(f"{path}/pod-huge")["status"]
            asked = time.time()
            if asked - unix_seconds(status["at"]) < 2:
                return None
            row = next(one for one in top(running)[2:] if one[1] == "pod-huge")
            told = time.time()
            return (status, row, asked, told) if api.get(f"{path}/pod-huge")["status"] == status else None

        status, row, asked, told = until(carried_on, "its ledger has been left alone for two seconds")
    finally:
        api.delete("/api/v1/namespaces/default/pods/huge")
    until(lambda: "deletedAt" in api.get(f"{path}/pod-huge")["status"], "its ledger says that it was deleted")
    # It never ran: as soon as it is late, it starves.
    starving = str(status["starving"] or "-")
    assert row[2:5] + row[6:12] == ["bronze", "0.5000", "0.0000", "Missed", "-", starving, "0", "1", "0"]
    # The start-up that decisions hold back is no missing slack.
    lost, written = status["slackSeconds"] + Config().qos.alpha - slack_of(row[5]), unix_seconds(status["at"])
    assert asked - written - 0.1 <= lost <= told - written + 0.1


def plugin(running: Running, binaries: Binaries, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """``kubectl slack``, as a user types it: kubectl finds the plugin on the PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "KUBECONFIG": str(running.plane.kubeconfig)}
    environment.pop("COLUMNS", None)  # as in a pipe, whatever the terminal of who runs the tests
    command = [str(binaries["kubectl"]), "slack", *words]
    return subprocess.run(
        command, env=environment, input=stdin, capture_output=True, text=True, timeout=120, check=False
    )


def asked(running: Running, binaries: Binaries, *words: str, stdin: str = "") -> str:
    done = plugin(running, binaries, *words, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def new_pod(**settings: Any) -> str:
    return json.dumps(pod("new", **settings))


def test_kubectl_finds_the_plugin_and_lists_who_waits_and_why(running: Running, binaries: Binaries) -> None:
    def said() -> str:
        text = asked(running, binaries, "why")
        return text if "0/2 nodes are available: " in text else ""

    text = until(said, "the scheduler has said why somebody waits")
    assert text.startswith("4 pods wait in namespace default\n")
    table = cells(text.partition("\n")[2])
    assert list(table) == ["NAMESPACE", "POD", "CLASS", "SINCE", "WHY"]
    assert (set(table["NAMESPACE"]), set(table["CLASS"])) == ({"default"}, {"bronze"})
    name, why = next(
        (a, b) for a, b in zip(table["POD"], table["WHY"], strict=True) if "0/2 nodes are available: " in b
    )
    assert re.match(rf"{name} waits since \S+: 0/2 nodes are available: ", asked(running, binaries, "why", name)), why
    assert "high does not wait: it is ready on " in asked(running, binaries, "why", "high")
    assert (
        asked(running, binaries, "why", "-n", "kube-system").strip()
        == "No pod of slacktide waits in namespace kube-system."
    )
    assert "gold" in asked(running, binaries, "top", "--once")
    assert "so it preempted default/low-" in asked(running, binaries, "explain", "high", *_at(running))


def completed(running: Running, binaries: Binaries, *words: str) -> list[str]:
    """What the tab key offers behind ``kubectl slack`` and these words."""
    kubectl = binaries["kubectl"]
    path = os.pathsep.join([str(Path(sys.executable).parent), str(kubectl.parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "KUBECONFIG": str(running.plane.kubeconfig)}
    command = [str(kubectl), "__complete", "slack", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    *found, directive = done.stdout.splitlines()
    assert directive == ":4", "the shell adds names of files"
    return found


def test_the_tab_key_completes_what_is_in_the_cluster(running: Running, binaries: Binaries) -> None:
    assert completed(running, binaries, "explain", "hi") == ["high"]
    assert completed(running, binaries, "why", "-n", "kube-sys") == ["kube-system"]
    assert completed(running, binaries, "why", "-n", "kube-system", "hi") == []
    assert completed(running, binaries, "quote", "--class", "go") == ["gold"]
    (context,) = completed(running, binaries, "top", "--context", "")
    assert completed(running, binaries, "top", "--context", context, "--namespace", "defa") == ["default"]


def test_a_quote_says_who_would_have_to_go_and_so_it_comes(running: Running, binaries: Binaries) -> None:
    before = {one["metadata"]["uid"] for one in pods(running.plane.api, "default")}
    gold = new_pod(cpu="1", labels=GOLD)
    text = asked(running, binaries, "quote", "-f", "-", stdin=gold)
    assert "1 of 1 pods could be placed now, preempting 1" in text
    assert re.search(r"class gold, promised 0.9990: would be placed on \S+, preempting default/low-\S+ \(", text)
    # A class on the command line counts instead.
    assert "class bronze, promised 0.5000: " in asked(
        running, binaries, "quote", "-f", "-", "--class", "bronze", stdin=gold
    )
    # Replicas are decided on together: there are three of bronze, and then no more. And one fits nowhere.
    several = [deployment("new", 5, cpu="1", labels=GOLD), pod("large", cpu="64", labels=GOLD)]
    text = json.dumps({"kind": "List", "items": several})
    *found, large = json.loads(asked(running, binaries, "quote", "-f", "-", "--json", stdin=text))
    assert [len(one["victims"]) for one in found].count(1) == 3
    assert [one["node"] for one in found].count(None) == 2
    assert len({one["victims"][0]["pod"] for one in found if one["victims"]}) == 3
    assert (large["node"], large["reason"][:25]) == (None, "0/2 nodes are available: ")
    assert {one["metadata"]["uid"] for one in pods(running.plane.api, "default")} == before
    # What the API server would refuse, or what makes no pods, is refused.
    done = plugin(running, binaries, "quote", "-f", "-", stdin=new_pod(annotations={"slacktide.io/slo": "95%"}))
    assert done.returncode != 0
    assert "slacktide.io/slo: found '95%'" in done.stderr
    done = plugin(running, binaries, "quote", "-f", "-", stdin="kind: ConfigMap\n")
    assert (done.returncode, "a Pod, or a workload with a pod template" in done.stderr) == (3, True)
    # And what was quoted comes.
    told = set(_events(running.plane, "Preempted"))
    running.plane.api.post("/api/v1/namespaces/default/pods", pod("new", cpu="1", labels=GOLD, **OURS))
    until(lambda: "new" in _running(running.plane), "the pod runs")
    until(lambda: len(set(_events(running.plane, "Preempted")) - told) == 1, "one more was preempted")


RUNS = (
    "const names = new Map(); for (const one of slacktide.nodes.values()) names.set(one.number, one.name);"
    "return Object.fromEntries([...slacktide.pods.values()].filter((one) => one.state === 2 || one.state === 3)"
    ".map((one) => [one.name, names.get(one.node)]))"
)


def test_the_page_follows_a_preemption(running: Running, tmp_path: Path) -> None:
    api = running.plane.api

    def truth() -> dict[str, str]:
        """Pods that are ready, by the API server."""
        return {
            one["metadata"]["name"]: one["spec"]["nodeName"]
            for one in pods(api, "default", "Running")
            if any(found["type"] == "Ready" and found["status"] == "True" for found in one["status"]["conditions"])
        }

    def among(name: str, found: Callable[[], dict[str, str]]) -> bool:
        return name in found()

    with chromium(tmp_path / "profile") as browser:
        looks(browser, "light", 1280)
        browser.get(f"http://127.0.0.1:{running.port}/dashboard/")
        until(lambda: browser.execute_script("return !document.getElementById('main').hidden"))
        until(lambda: browser.execute_script(RUNS) == truth(), "the page shows what runs")
        for name in ("higher-1", "higher-2"):
            before = truth()
            api.post("/api/v1/namespaces/default/pods", pod(name, cpu="1", labels=GOLD, **OURS))
            until(partial(among, name, truth), "the gold pod runs")
            until(partial(among, name, partial(browser.execute_script, RUNS)), "the page shows the gold pod")
            until(lambda: browser.execute_script(RUNS) == truth(), "the page shows what runs")
            (victim,) = set(before) - set(truth())
            told = browser.execute_script(
                "const one = slacktide.decisions.find((one) => one.pod === arguments[0]);"
                "return one && one.victims.map((victim) => victim.pod)",
                f"default/{name}",
            )
            assert told == [f"default/{victim}"]
        # Who waits, and why, as explain says it.
        waiting = {one["metadata"]["name"] for one in pods(api, "default", "Pending")}
        until(
            lambda: (
                set(browser.execute_script("return [...slacktide.waiting.values()].map((one) => one.name)")) == waiting
            ),
            "the page shows who waits",
        )
        reason = until(
            lambda: browser.execute_script("return [...slacktide.waiting.values()].find((one) => one.reason)?.reason")
        )
        assert reason.startswith("0/2 nodes are available: 2 Insufficient cpu. preemption: ")
        low = browser.execute_script("return [...slacktide.workloads.values()].find((one) => one.name === 'low')")
        ready = sum(name.startswith("low-") for name in truth())
        assert (low["running"], low["waiting"]) == (ready, 7 - ready)
        assert serious(browser) == []
        assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []
