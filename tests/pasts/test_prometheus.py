"""A past from a real Prometheus comes out as it was."""

from __future__ import annotations

import asyncio
import csv
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pyarrow.parquet as pq
import pytest
from aiohttp import web

from slacktide.errors import InputError
from slacktide.kube.client.kinds import encode
from slacktide.kube.client.metadata import unix_seconds
from slacktide.pasts.outcome import Past, read_workloads, write
from slacktide.pasts.prometheus import source as prometheus
from support.past_series import MadeCluster, openmetrics, small, told
from support.web_server import serving

PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
REQUIRED = os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1"
pytestmark = pytest.mark.skipif(
    (PROMETHEUS is None or PROMTOOL is None) and not REQUIRED,
    reason="prometheus and promtool are not there: apt-get install prometheus",
)
INTERVAL, PHASE = 30.0, 17.0
BEGIN = 1_760_000_400.0
WAITED = 60.0


@dataclass
class Server:
    """A Prometheus that has a made-up history."""

    url: str
    cluster: MadeCluster
    log: Path

    def story(self, **more: Any) -> Any:
        more.setdefault("hours", 0.5)
        return prometheus.story(self.url, self.cluster.begin, self.cluster.end, **more)


def serve(folder: Path, cluster: MadeCluster, lookback: str = "35s", **how: Any) -> Generator[Server, None, None]:
    text, data = folder / "history.om", folder / "data"
    with text.open("w") as file:
        file.writelines(openmetrics(cluster, INTERVAL, PHASE, **how))
    subprocess.run(
        [str(PROMTOOL), "tsdb", "create-blocks-from", "openmetrics", str(text), str(data)],
        check=True, capture_output=True,
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "prometheus.yml").write_text(f"global: {{query_log_file: {folder / 'queries.log'}}}\n")
    # Blocks that were made of text have no marks of where series end: the shortest lookback stands for them.
    command = [
        str(PROMETHEUS), f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--web.route-prefix=/prom",
        f"--query.lookback-delta={lookback}",
    ]  # fmt: skip
    with (folder / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}/prom"
        until = time.monotonic() + WAITED
        while True:
            try:
                with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                    break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < until, "prometheus does not become ready"
        yield Server(url, cluster, folder / "queries.log")
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    yield from serve(tmp_path_factory.mktemp("prometheus"), small(BEGIN))


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Past]:
    out = tmp_path_factory.mktemp("truth")
    return out, write(told(small(BEGIN)), out)


def pods(folder: Path) -> list[dict[str, str]]:
    """The pods of an outcome by the names of their workloads, in order of creation."""
    names = {str(one.request): one.full_name for one in read_workloads(folder)}
    with (folder / "pods.csv").open() as file:
        found = [row | {"request": names[row["request"]]} for row in csv.DictReader(file)]
    return sorted(found, key=lambda row: (row["request"], float(row["created"]), row["bound"]))


def seconds(text: str) -> float:
    return float(text) if text else -1.0


def test_what_became_of_pods_is_what_happened(server: Server, truth: tuple[Path, Past], tmp_path: Path) -> None:
    write(server.story(), tmp_path)
    expected, found = pods(truth[0]), pods(tmp_path)
    assert [row["request"] for row in found] == [row["request"] for row in expected]
    assert [row["node"] for row in found] == [row["node"] for row in expected]
    for mine, its in zip(found, expected, strict=True):
        for column in ("created", "bound", "ready"):
            assert seconds(mine[column]) == pytest.approx(seconds(its[column]), abs=1.0), (column, mine, its)


def test_how_often_is_scraped_is_seen_in_a_past_of_minutes(server: Server) -> None:
    begin = server.cluster.begin
    told = prometheus.story(server.url, begin, begin + 600.0)
    assert any(f"scraped every {INTERVAL:g} s" in note for note in told.findings.notes)


def test_what_workloads_were_delivered_is_what_they_were(
    server: Server, truth: tuple[Path, Past], tmp_path: Path
) -> None:
    past = write(server.story(), tmp_path)
    expected, found = read_workloads(truth[0]), read_workloads(tmp_path)
    assert {one.full_name for one in found} == {one.full_name for one in expected}
    of = {one.full_name: one for one in found}
    for its in expected:
        mine = of[its.full_name]
        assert (mine.instances, mine.preempted, mine.priority, mine.priority_class) == (
            its.instances, its.preempted, its.priority, its.priority_class,
        ), mine  # fmt: skip
        assert mine.seconds == pytest.approx(its.seconds, abs=INTERVAL * its.instances + 1), mine
        unseen = max(0.01, INTERVAL / 2 * its.instances / its.seconds)  # when it ended, by samples
        for accounting, share in its.delivered.items():
            assert mine.delivered[accounting] == pytest.approx(share, abs=unseen), (accounting, mine, its)
        assert mine.labels == its.labels
    assert past.made.hosts == truth[1].made.hosts
    assert (past.begin, past.seconds) == (BEGIN, truth[1].seconds)


def test_nodes_come_change_and_come_back_as_they_did(server: Server, truth: tuple[Path, Past], tmp_path: Path) -> None:
    write(server.story(), tmp_path)
    assert hosts(tmp_path) == hosts(truth[0])
    expected, found = events(truth[0]), events(tmp_path)
    assert [one[1:] for one in found] == [one[1:] for one in expected]
    for mine, its in zip(found, expected, strict=True):
        assert mine[0] == pytest.approx(its[0], abs=60.0), (mine, its)  # reality looks once a minute


def hosts(folder: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(folder / "hosts.parquet").to_pylist())


def events(folder: Path) -> list[tuple[Any, ...]]:
    """What happened to nodes; not what pods took of cordoned ones, which is told between two looks or not."""
    with (folder / "events.csv").open() as file:
        rows = [(float(one["time"]), one["host"], one["event"], one["amounts"]) for one in csv.DictReader(file)]
    return [one for one in rows if one[1:3] != ("n3", "others")]


def lines(story: Any) -> list[tuple[float, str, str, bool, bytes]]:
    """A story as comparable lines."""
    said = [*story.beginning, *story.changes]
    return sorted((one.at, one.kind.kind, one.found.metadata.uid, one.deleted, encode(one.found)) for one in said)


def test_chunks_of_any_length_tell_the_same(server: Server) -> None:
    whole = lines(server.story(hours=6))
    assert len(whole) > 100
    for hours in (0.5, 0.13):
        assert lines(server.story(hours=hours)) == whole


def test_a_second_call_asks_for_nothing_that_is_there(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "fetched"
    first = lines(server.story(folder=folder))
    chunks = sorted(folder.glob("*.chunk"))
    assert len(chunks) == 5
    chunks[-1].unlink()  # as if the first call had been stopped
    asked = len(server.log.read_text().splitlines())
    again = server.story(folder=folder)
    queries = [line for line in server.log.read_text().splitlines()[asked:] if "query" in line]
    assert queries
    begin = BEGIN + 4 * 1800
    assert all(starts(line) >= begin for line in queries)
    assert lines(again) == first
    asked = len(server.log.read_text().splitlines())
    assert lines(server.story(folder=folder)) == first
    assert len(server.log.read_text().splitlines()) == asked


def starts(line: str) -> float:
    found = re.search(r'"start":"([^"]+)"', line)
    assert found is not None, line
    return unix_seconds(found[1])


def test_the_last_hours_are_others_a_moment_later_and_gone_on_with(server: Server, tmp_path: Path) -> None:
    first = lines(server.story(folder=tmp_path))
    asked = len(server.log.read_text().splitlines())
    later = prometheus.story(server.url, BEGIN + 400, BEGIN + 9400, hours=0.5, folder=tmp_path)
    assert lines(later) == first
    assert len(server.log.read_text().splitlines()) == asked
    assert any("goes on with what was fetched" in note for note in later.findings.notes)


def test_what_was_fetched_for_another_question_is_not_mixed_in(server: Server, tmp_path: Path) -> None:
    server.story(folder=tmp_path / "fetched")
    with pytest.raises(InputError, match=r"fetched: found 'what was fetched from another server.*an empty folder"):
        server.story(folder=tmp_path / "fetched", match='namespace="shop"')


NEEDED_LABELS = frozenset(
    [
        "uid",
        "namespace",
        "pod",
        "node",
        "priority_class",
        "created_by_kind",
        "created_by_name",
        "host_network",
        "owner_kind",
        "owner_name",
        "container",
        "resource",
        "key",
        "operator",
        "value",
        "effect",
        "priority",
        "phase",
        "reason",
        "replicaset",
        "job_name",
        "deployment",
        "statefulset",
        "cluster",
        "poddisruptionbudget",
        "label_app",
        "label_topology_kubernetes_io_zone",
    ]
)


def test_no_label_leaves_the_server_that_is_not_needed(server: Server, tmp_path: Path) -> None:
    server.story(folder=tmp_path)
    queries = re.findall(r'"query":"((?:[^"\\\\]|\\\\.)*)"', server.log.read_text())
    assert len(queries) > 100
    for query in queries:
        plain = re.sub(r'\\\\"(?:[^"\\\\]|\\\\\\\\.)*\\\\"', "", query)
        # Each selector is within an aggregation, which leaves no label, or these.
        assert plain.count("{") <= len(re.findall(r"(?:max|min|count|sum|group)(?: by ?\([^)]*\))? ?\(", plain)), query
        for labels in re.findall(r"by ?\(([^)]*)\)", plain):
            assert set(filter(None, re.split(r"[, ]+", labels))) <= NEEDED_LABELS, query
        assert "annotation" not in query
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for planted in (b"192.0.2.", b"secret-os"):
        assert planted not in kept


# -- servers that have other series ------------------------------------------------------------------------------------


@pytest.fixture
def serves(tmp_path: Path) -> Iterator[Any]:
    running = []

    def begin(**how: Any) -> Server:
        running.append(serve(tmp_path, small(BEGIN), **how))
        return next(running[-1])

    yield begin
    for one in running:
        one.close()


FEW = [
    "kube_pod_owner", "kube_pod_created", "kube_pod_status_scheduled_time", "kube_pod_status_ready",
    "kube_pod_status_ready_time", "kube_pod_resource_request", "kube_deployment_spec_replicas",
    "kube_statefulset_replicas", "kube_node_status_condition", "kube_node_created", "kube_pod_labels",
    "kube_node_labels", "kube_pod_status_reason", "kube_pod_deletion_timestamp", "kube_pod_completion_time",
    "scheduler_preemption_victims_sum", "kube_node_spec_taint", "kube_job_created", "kube_job_status_completion_time",
]  # fmt: skip


def test_with_few_series_what_can_be_known_is_and_what_cannot_is_said(
    serves: Any, truth: tuple[Path, Past], tmp_path: Path
) -> None:
    server = serves(left_out=FEW)
    gone = sorted({uid for _, kind, uid, deleted, _ in lines(server.story()) if deleted and kind == "Job"})
    assert [uid.rpartition(":")[2] for uid in gone] == ["report-0", "report-1", "report-2", "report-3"]
    past = write(server.story(), tmp_path / "out")
    of = {one.full_name: one for one in past.workloads}
    expected = {one.full_name: one for one in truth[1].workloads}
    assert set(of) == set(expected)  # owners are those that kube_pod_info names
    for name, one in of.items():
        assert abs(one.instances - expected[name].instances) <= 1, name
        assert one.priority == 0
        if name != "shop/Pod/pending":
            assert one.delivered["never"] > 0.97, name
    assert {row["node"] for row in pods(tmp_path / "out")} == {row["node"] for row in pods(truth[0])}
    said = " ".join(past.notes)
    for name in ("kube_pod_created", "kube_pod_status_ready:", "kube_deployment_spec_replicas", "kube_node_labels"):
        assert f"no {name}" in said
    assert "a pod that is bound counts as delivered" in said
    assert "priorities (kube-scheduler's /metrics/resources is not scraped)" in said
    assert "whom kube-scheduler preempted" in said


def test_without_requests_it_says_what_to_install(serves: Any) -> None:
    server = serves(left_out=["kube_pod_container_resource_requests", "kube_pod_resource_request"])
    with pytest.raises(InputError, match=r"kube_pod_container_resource_requests: found 'no such series'.*install"):
        server.story()


def test_labels_that_prometheus_renamed_are_found(serves: Any, server: Server) -> None:
    rename = {one: f"exported_{one}" for one in ("namespace", "pod", "container", "node")}
    labels = {"job": "ksm", "namespace": "monitoring", "pod": "ksm-0", "container": "ksm", "node": "n0"}
    renamed = serves(rename=rename, labels=labels)
    assert lines(renamed.story()) == lines(server.story())


def test_pods_that_cannot_be_told_apart_are_refused(serves: Any) -> None:
    with pytest.raises(InputError, match=r"kube_pod_info: found '.*created_by_name.*', expected the label uid"):
        serves(rename={"uid": "pod_uid"}).story()


def test_without_owners_each_pod_is_alone(serves: Any, tmp_path: Path) -> None:
    kept = {"created_by_kind": "kind", "created_by_name": "name"}
    past = write(serves(left_out=["kube_pod_owner"], rename=kept).story(), tmp_path / "out")
    assert {one.kind for one in past.workloads} == {"Pod"}
    assert len(past.workloads) == 22
    assert any("each pod is a workload of its own" in note for note in past.notes)


def test_nobody_ends_because_nobody_scraped(serves: Any, truth: tuple[Path, Past], tmp_path: Path) -> None:
    away = BEGIN + 7000, BEGIN + 7900  # also where a chunk ends
    past = write(serves(unseen=away).story(), tmp_path / "out")
    of = {one.full_name: one for one in past.workloads}
    for one in truth[1].workloads:
        assert of[one.full_name].instances == one.instances
        late = 900.0 if one.name in ("pending", "report") else 60.0
        assert of[one.full_name].seconds == pytest.approx(one.seconds, abs=late * one.instances)
    assert any("was not scraped from" in note for note in past.notes)
    assert [row["created"] for row in pods(tmp_path / "out")] == [row["created"] for row in pods(truth[0])]


def test_what_ended_without_a_mark_ended_after_its_last_sample(
    serves: Any, truth: tuple[Path, Past], tmp_path: Path
) -> None:
    past = write(serves(lookback="5m").story(), tmp_path / "out")
    of = {one.full_name: one for one in past.workloads}
    for one in truth[1].workloads:
        assert of[one.full_name].instances == one.instances
        assert of[one.full_name].seconds == pytest.approx(one.seconds, abs=INTERVAL * one.instances + 1)


def test_of_two_clusters_one_must_be_named(serves: Any) -> None:
    server = serves(labels={"job": "ksm", "cluster": "east"})
    assert lines(server.story(match='cluster="east"'))
    with pytest.raises(InputError, match="samples of kube_pod_info at that time"):
        server.story(match='cluster="west"')


def test_a_namespace_alone_still_has_its_nodes(server: Server) -> None:
    story = server.story(match='namespace=~"sh.*",job=~".*"')
    assert {one.found.metadata.name for one in story.beginning if one.kind.kind == "Node"} == {
        f"n{n}" for n in range(5)
    }
    assert any("pods of other namespaces" in note for note in story.findings.notes)


# -- servers that refuse now and then ----------------------------------------------------------------------------------


class Moody:
    """Stands before a Prometheus: takes no long ranges, is not there at times, cuts answers, and warns."""

    def __init__(self, url: str) -> None:
        self.url, self.asked, self.refusals = url, 0, dict[str, int]()

    async def __call__(self, request: web.Request) -> web.Response:
        form = {key: str(value) for key, value in (await request.post() or request.query).items()}
        self.asked += 1
        if request.headers.get("X-Scope-OrgID") != "us" or request.headers.get("Authorization") != "Bearer open":
            return self._refuse("stranger", web.Response(status=401, text="no"))
        for span in re.findall(r"\[(\d+)s", form.get("query", "")):
            if int(span) > 1600:
                said = {"status": "error", "errorType": "execution", "error": "query would load too many samples"}
                return self._refuse("too much", web.json_response(said, status=422))
        if self.asked % 5 == 0:
            return self._refuse("busy", web.Response(status=(503, 429)[self.asked % 2], headers={"Retry-After": "3"}))
        async with aiohttp.ClientSession() as session:
            url = f"{self.url}{request.path.removeprefix('/tenant')}"
            async with session.request(request.method, url, data=form if request.method == "POST" else None,
                                       params=form if request.method == "GET" else None) as answer:  # fmt: skip
                body, status = await answer.read(), answer.status
        if self.asked % 7 == 0:
            return self._refuse("cut", web.Response(body=body[: len(body) // 2], content_type="application/json"))
        if request.path.endswith("/query"):
            body = body[:-1] + b',"warnings":["store east: connection refused"]}'
        return web.Response(body=body, status=status, content_type="application/json")

    def _refuse(self, why: str, answer: web.Response) -> web.Response:
        self.refusals[why] = self.refusals.get(why, 0) + 1
        return answer


def test_what_a_server_refuses_is_asked_for_again_and_in_smaller_parts(server: Server) -> None:
    slept: list[float] = []

    async def sleep(for_seconds: float) -> None:
        slept.append(for_seconds)
        await asyncio.sleep(0)

    moody, said = Moody(server.url), list[str]()
    with serving(moody) as url:
        story = prometheus.story(
            f"{url}/tenant/", BEGIN, BEGIN + 9000, token="open", tenant="us", hours=1.0, say=said.append, sleep=sleep
        )
        found = lines(story)
    assert found == lines(server.story())
    assert set(moody.refusals) == {"too much", "busy", "cut"}
    assert sum("too much at once" in line for line in said) == 2  # an hour, then half of one, then a quarter
    assert slept
    assert max(slept) <= 30.0
    assert sum("partial" in note and "store east" in note for note in story.findings.notes) == 1
