"""A past from a real Prometheus comes out as it was."""

from __future__ import annotations

import csv
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.past_series import MadeCluster, openmetrics, small, told

from slacktide.errors import InputError
from slacktide.past import prometheus
from slacktide.past.outcome import Past, read_workloads, write

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


def serve(folder: Path, cluster: MadeCluster, **how: Any) -> Iterator[Server]:
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
        "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--query.lookback-delta=35s",
        "--web.route-prefix=/prom",
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
    past = write(server.story(), tmp_path)
    print(past.notes)
    expected, found = pods(truth[0]), pods(tmp_path)
    assert [row["request"] for row in found] == [row["request"] for row in expected]
    assert [row["node"] for row in found] == [row["node"] for row in expected]
    for mine, its in zip(found, expected, strict=True):
        for column in ("created", "bound", "ready"):
            assert seconds(mine[column]) == pytest.approx(seconds(its[column]), abs=1.0), (column, mine, its)


def test_what_workloads_were_delivered_is_what_they_were(server: Server, truth: tuple[Path, Past], tmp_path: Path) -> None:
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
            print(mine.full_name, accounting, round(mine.delivered[accounting],4), round(share,4), mine.seconds, its.seconds)
        assert mine.labels == its.labels
    assert past.made.hosts == truth[1].made.hosts
    assert (past.begin, past.seconds) == (BEGIN, truth[1].seconds)
