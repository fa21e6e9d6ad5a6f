"""Access counts by place, from a real Prometheus that scrapes real counters."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from cluster.labtools import until
from slacktide.config import Config
from slacktide.kube.mirror.network import AccessCountsError, LoginPoller, NetworkMirror, shares

QUERY = "sum by (namespace, workload, node) (accesses_total)"


@dataclass
class Accesses:
    """Counters that are served for scraping, and the Prometheus that does."""

    url: str
    counter: Counter


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def accesses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Accesses]:
    program = shutil.which("prometheus")
    if program is None:
        reason = "needs the program 'prometheus' (Debian package prometheus)"
        if os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1":
            pytest.fail(f"{reason}, but SLACKTIDE_REQUIRE_SERVERS=1")
        pytest.skip(f"{reason}; SLACKTIDE_REQUIRE_SERVERS=1 makes this a failure")
    folder = tmp_path_factory.mktemp("prometheus")
    registry = CollectorRegistry()
    counter = Counter("accesses", "Requests of users.", ("namespace", "workload", "node"), registry=registry)

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = generate_latest(registry)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    settings = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {"job_name": "it", "honor_labels": True,
             "static_configs": [{"targets": [f"127.0.0.1:{server.server_address[1]}"]}]},
        ],
    }  # fmt: skip
    (folder / "prometheus.yml").write_text(json.dumps(settings))
    port = free_port()
    words = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [program, *words, f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log, cwd=folder, env=os.environ | {"GOMAXPROCS": "1"},
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"

    def ready() -> bool:
        assert running.poll() is None, (folder / "log").read_text()
        try:
            with urlopen(f"{url}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        until(ready, "Prometheus is ready", 120)
        counter.labels("shop", "deployment-front", "n1").inc(30)
        counter.labels("shop", "deployment-front", "n2").inc(10)
        counter.labels("shop", "deployment-back", "n3").inc(5)
        counter.labels("shop", "deployment-idle", "n3").inc(0)
        counter.labels("", "nameless", "n3").inc(7)
        counter.labels("lab", "placeless", "").inc(7)
        yield Accesses(url, counter)
    finally:
        running.kill()
        running.wait()
        server.shutdown()
        server.server_close()


def asked(
    url: str, query: str = QUERY, label: str = "node", **settings: object
) -> dict[str, tuple[tuple[str, float], ...]]:
    return asyncio.run(shares(url, query, label, **settings))  # type: ignore[arg-type]


def test_shares_are_in_proportion_to_the_counts(accesses: Accesses) -> None:
    found = until(lambda: asked(accesses.url), "the counters are scraped", 60)
    assert found == {"shop/deployment-front": (("n1", 0.75), ("n2", 0.25)), "shop/deployment-back": (("n3", 1.0),)}


def test_shares_follow_the_users(accesses: Accesses) -> None:
    accesses.counter.labels("lab", "job-moving", "n1").inc(10)
    until(lambda: asked(accesses.url).get("lab/job-moving") == (("n1", 1.0),), "they are at n1", 60)
    accesses.counter.labels("lab", "job-moving", "n2").inc(30)
    until(lambda: asked(accesses.url).get("lab/job-moving") == (("n1", 0.25), ("n2", 0.75)), "most are at n2", 60)


def test_other_labels_may_name_workload_and_place(accesses: Accesses) -> None:
    query = 'label_replace(sum by (workload, node) (accesses_total), "zone", "z-$1", "node", "n(.)")'
    found = until(lambda: asked(accesses.url, query, "zone", workload=("workload",)), "the counters are scraped", 60)
    assert found["deployment-front"] == (("z-1", 0.75), ("z-2", 0.25))


def test_series_of_one_place_are_added_up_and_ratios_that_are_nan_left_out(accesses: Accesses) -> None:
    until(lambda: asked(accesses.url), "the counters are scraped", 60)
    found = asked(
        accesses.url, 'accesses_total{workload="deployment-front"} or accesses_total{workload="deployment-idle"} / 0'
    )
    assert list(found) == ["shop/deployment-front"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("sum by (", "bad_data"),
        ("accesses_total[5m]", "found a matrix, expected an instant vector"),
        ("1", "found a scalar"),
    ],
)
def test_a_query_that_gives_no_counts_is_named(accesses: Accesses, query: str, says: str) -> None:
    with pytest.raises(AccessCountsError) as refused:
        asked(accesses.url, query)
    assert says in str(refused.value)
    assert repr(query) in str(refused.value)


def test_who_is_not_prometheus_is_named(accesses: Accesses) -> None:
    with pytest.raises(AccessCountsError, match=r"found status 404 .*expected Prometheus' answer"):
        asked(f"{accesses.url}/elsewhere")
    with pytest.raises(AccessCountsError, match="/api/v1/query: "):
        asked(f"http://127.0.0.1:{free_port()}")
    with pytest.raises(AccessCountsError, match="/api/v1/query: "):
        asked("nonsense")


def test_an_answer_with_words_for_counts_is_named() -> None:
    sample = {"metric": {"namespace": "a", "workload": "b", "node": "n1"}, "value": [1.0, "many"]}
    body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": [sample]}}).encode()

    class Pages(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(AccessCountsError, match="found the count 'many', expected a number"):
            asked(f"http://127.0.0.1:{server.server_address[1]}")
        server.shutdown()


def test_what_was_counted_stays_while_there_is_no_answer(accesses: Accesses, caplog: pytest.LogCaptureFixture) -> None:
    config = Config()
    network = NetworkMirror(replace(config, policy=replace(config.policy, score="delay-aware")))
    settings = replace(config.kube, access_url=accesses.url, access_query=QUERY)
    until(lambda: asked(accesses.url), "the counters are scraped", 60)
    asyncio.run(LoginPoller(settings, network).ask())
    assert network.logins["shop/deployment-front"] == (("n1", 0.75), ("n2", 0.25))
    known = dict(network.logins)
    counting = LoginPoller(replace(settings, access_url=f"http://127.0.0.1:{free_port()}"), network)
    for _ in range(2):
        asyncio.run(counting.ask())
    assert network.logins == known
    assert len([one for one in caplog.records if "access counts" in one.message]) == 1, "told once"
