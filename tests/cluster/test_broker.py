"""A workload file becomes Deployments and Jobs at its own times, and what has ended goes."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cluster.labtools import HANG_SECONDS, bind, pods, until
from cluster.pulse import Pulse
from slacktide.cli import app
from slacktide.errors import ConfigError
from slacktide.kube.client.http import connect
from slacktide.lab import ControlPlane
from slacktide.model import ServiceClass, Workload
from slacktide.submit.broker import Broker, BrokerReport
from slacktide.submit.manifests import RUN_LABEL, Manner, submissions
from submit.test_broker import HEAD, MANY, workload

CLASSES = (ServiceClass("gold", 1.0, 1, overhead_limit=0.2), ServiceClass("bronze", 0.5, 3))


async def _play(lab: ControlPlane, namespace: str, rows: Workload, speed: float, **words: Any) -> BrokerReport:
    async with await connect(lab.kubeconfig) as connection:
        broker = Broker(connection, namespace, "w", speed=speed)
        await broker.prepare(CLASSES, create=True)
        made = submissions(rows, Manner("w", speed=speed), "w.csv")
        async with asyncio.timeout(HANG_SECONDS):
            return await broker.submit(made, **words)


def _objects(lab: ControlPlane, namespace: str, kind: str = "deployments") -> dict[str, Any]:
    group = "batch" if kind == "jobs" else "apps"
    found = lab.api.get(f"/apis/{group}/v1/namespaces/{namespace}/{kind}?labelSelector={RUN_LABEL}%3Dw")["items"]
    return {one["metadata"]["name"]: one["spec"] for one in found}


def test_objects_come_and_are_scaled_at_their_times(lab: ControlPlane, namespace: str, tmp_path: Path) -> None:
    rows = workload(
        tmp_path,
        MANY,
        "1,0,,0.1,0.1,gold,service,1,,,,20=3",
        "2,10,40,0.1,0.1,bronze,batch,,2,1,aggregated,",
        "3,500,,0.1,0.1,gold,service,1,,,,",
    )
    pulse, began = Pulse(), time.time()
    headers = {"Authorization": f"Bearer {lab.token}"}
    pulse.attend(lab.url + "/api/v1/namespaces/default", headers, ssl.create_default_context(cafile=str(lab.ca_file)))
    report = asyncio.run(_play(lab, namespace, rows, 10.0, until=30.0))
    pulse.stop()
    assert time.time() - began > 2.9  # its times are ten times as fast, not more
    assert (report.deployments, report.jobs, report.scaled, report.refused) == (1, 1, 1, 0)
    assert report.latest < 2.0 + 10.0 * pulse.late(began, time.time())
    assert {name: one["replicas"] for name, one in _objects(lab, namespace).items()} == {"w-1": 3}
    assert {name: one["completions"] for name, one in _objects(lab, namespace, "jobs").items()} == {"w-2": 2}


def test_a_service_goes_when_its_pods_have_run_long_enough(lab: ControlPlane, namespace: str, tmp_path: Path) -> None:
    node = lab.create_nodes(1)[0]
    rows = workload(tmp_path, HEAD, "1,0,30,0.1,0.1,gold,1,0,", "2,0,inf,0.1,0.1,gold,1,0,")

    async def play() -> tuple[BrokerReport, float]:
        task = asyncio.create_task(_play(lab, namespace, rows, 10.0))
        found = await asyncio.to_thread(until, lambda: len(pods(lab.api, namespace)) == 2 and pods(lab.api, namespace))
        await asyncio.sleep(2.0)
        assert not task.done()  # who waits does not run
        bound = time.monotonic()
        for pod in found:
            bind(lab.api, namespace, pod["metadata"]["name"], node)
        return await task, time.monotonic() - bound

    report, seconds = asyncio.run(play())
    assert (report.deployments, report.removed) == (2, 1)
    assert seconds > 2.8
    assert list(_objects(lab, namespace)) == ["w-2"]


def test_classes_that_are_missing_are_named_or_made(lab: ControlPlane, namespace: str) -> None:
    mine = (ServiceClass("bench-only", 0.75, 2, margin=3.0),)

    async def prepare(create: bool) -> None:
        async with await connect(lab.kubeconfig) as connection:
            await Broker(connection, namespace, "w").prepare(mine, create=create)

    with pytest.raises(ConfigError, match="service classes bench-only: not in the cluster"):
        asyncio.run(prepare(False))
    asyncio.run(prepare(True))
    path = "/apis/slacktide.io/v1beta1/serviceclasses/bench-only"
    assert {key: lab.api.get(path)["spec"][key] for key in ("slo", "rank", "marginSeconds")} == {
        "slo": 0.75, "rank": 2, "marginSeconds": 3,
    }  # fmt: skip
    lab.api.delete(path)


def test_what_the_server_refuses_is_told_and_the_rest_goes_on(
    lab: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    rows = workload(tmp_path, HEAD, "1,0,inf,0.1,0.1,gold,1,0,two/many/parts == x", "2,0,inf,0.1,0.1,gold,1,0,")
    report = asyncio.run(_play(lab, namespace, rows, 10.0, until=1.0))
    assert (report.deployments, report.refused) == (1, 1)
    assert f"Deployment {namespace}/w-1: 422" in report.problems[0]


def test_the_command_removes_everything_it_submitted(lab: ControlPlane, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text(f"{HEAD}\n1,0,inf,0.1,0.1,gold,1,0,\n")
    words = ["broker", str(file), "--kubeconfig", str(lab.kubeconfig), "--namespace", namespace, "--create-classes",
             "--end", "1", "--startup", "lognormal:2.5,0.4"]  # fmt: skip
    kept = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "1 Deployments and 0 Jobs submitted, 0 scaled, 0 removed; late by at most" in kept.output
    assert list(_objects(lab, namespace)) == ["w-1"]
    CliRunner().invoke(app, [*words, "--name", "other", "--delete"], catch_exceptions=False)
    assert list(_objects(lab, namespace)) == ["w-1"]
    assert (
        lab.api.get(f"/apis/apps/v1/namespaces/{namespace}/deployments?labelSelector={RUN_LABEL}%3Dother")["items"]
        == []
    )
