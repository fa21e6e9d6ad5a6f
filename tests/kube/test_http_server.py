"""/metrics, /explain and health: names as kube-scheduler has them, numbers that can be counted, cheap to ask for."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import aiohttp
import pytest
import yaml
from aiohttp.test_utils import make_mocked_request
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

from cluster.installation import MANIFESTS
from slacktide.config import Config
from slacktide.dashboard.pages import page_routes
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import OPERATIONS, Gone, Ready, Wake
from slacktide.engine.core.types import Decision, Outcome, Victim
from slacktide.errors import ConfigError
from slacktide.kube.clock import Clock
from slacktide.kube.feed.fed_pod import FedPod
from slacktide.kube.mirror.pod_record import PodRecord
from slacktide.kube.observe.certificates import Certificate
from slacktide.kube.observe.dashboard import PodHistory, text_of
from slacktide.kube.observe.http_server import HEALTH, SchedulerPages, Server, told_to
from slacktide.kube.observe.metrics import Histogram, Meter
from slacktide.kube.scheduler import Scheduler
from slacktide.kube.translate.owners import Target
from slacktide.model import ServiceClass
from slacktide.settings import load_live
from slacktide.state.spec import Spec
from support import made_objects
from support.calls import calls_of

GOLD, BRONZE = ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 3)

T0 = 1_790_000_000.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings(**kube: Any) -> Config:
    config = load_live()
    kube = {"leader_election": False, "http_access": "loopback", **kube}
    return replace(config, kube=replace(config.kube, **kube))


class Stopped(Clock):
    """A clock that stands still."""

    def __call__(self) -> float:
        return T0 + 200


class Late(Clock):
    """The same, much later."""

    def __call__(self) -> float:
        return T0 + 10_000


class Shown:
    """A scheduler that was not started, with an engine; what it would serve."""

    def __init__(self, config: Config | None = None) -> None:
        self.scheduler = Scheduler(cast(Any, None), config or settings(), "me")
        self.window = SchedulerPages(self.scheduler)
        self.routes = self.window.routes()

    def begin(self) -> Engine:
        return self.scheduler.lead(self.window.journal, {}).engine

    def run(self, now: float) -> Outcome:
        """A pass, and what a term does after it: its decisions are told."""
        assert self.scheduler.engine is not None
        outcome = self.scheduler.engine.run(now)
        for one in outcome.decisions:
            self.scheduler.on_decision(one)
        return outcome

    def get(self, path: str, **query: str) -> tuple[int, str]:
        async def ask() -> tuple[int, str]:
            text = "&".join(f"{key}={value}" for key, value in query.items())
            answer: Any = await self.routes[path](make_mocked_request("GET", f"{path}?{text}"))
            return answer.status, answer.body.decode()

        return asyncio.run(ask())

    def families(self) -> dict[str, Metric]:
        return {one.name: one for one in text_string_to_metric_families(self.get("/metrics")[1])}

    def value(self, family: str, sample: str = "", **labels: str) -> float:
        found = [
            one.value
            for one in self.families()[family].samples
            if one.name == (sample or family) and labels.items() <= one.labels.items()
        ]
        assert len(found) == 1, (family, labels, found)
        return found[0]


def add_pod(shown: Shown, engine: Engine, uid: str, key: str, service: ServiceClass, at: float) -> None:
    record = PodRecord(made_objects.pod(uid, uid=uid), ours=True)
    shown.scheduler.mirror.pods[uid], shown.scheduler.mirror.uids["default", uid] = record, uid
    assert shown.scheduler.session is not None
    shown.scheduler.session.feed.pods[uid] = FedPod(record, key=key)
    engine.arrive(uid, uid, key, 0 if service is GOLD else 1, at)


def two_on_one_core(config: Config | None = None) -> Shown:
    """Bronze got the only core at T0, was ready 2 s later, and is preempted for gold at T0 + 100 s."""
    shown = Shown(config)
    engine = shown.begin()
    engine.host("n", {"cpu": 1000, "memory": 2**30, "pods": 10}, {}, True)
    for number, service in enumerate((GOLD, BRONZE)):
        engine.spec(number, Spec((("cpu", 1000), ("memory", 1), ("pods", 1)), service))
        engine.controller(service.name, service, 0, False)
    add_pod(shown, engine, "b", "bronze", BRONZE, T0)
    engine.wake("b")
    shown.run(T0)
    engine.bound("b", T0 + 0.5)
    engine.ready("b", T0 + 2.5)
    add_pod(shown, engine, "g", "gold", GOLD, T0 + 99)
    engine.wake("g")
    assert [one.uid for one in shown.run(T0 + 100).decisions[0].victims] == ["b"]
    return shown


def test_every_metric_has_a_prefix_a_text_and_ends_as_prometheus_wants() -> None:
    for name, one in two_on_one_core().families().items():
        assert name.startswith(("scheduler_", "slacktide_", "python_", "process_")), name
        assert one.documentation
        for sample in one.samples:
            assert (one.type == "counter") == sample.name.endswith("_total")


def test_a_scheduler_that_has_heard_of_no_pod_is_scraped() -> None:
    shown = Shown()
    engine = shown.begin()
    engine.host("n", {"cpu": 1000, "pods": 10}, {}, True)
    status, _ = shown.get("/metrics")
    assert status == 200


def test_an_overloaded_class_is_shown_until_nobody_of_it_who_waits_is_lost() -> None:
    config = settings()
    shown = two_on_one_core(replace(config, policy=replace(config.policy, overload="triage")))
    engine = shown.scheduler.engine
    assert engine is not None
    engine.gone("b", T0 + 101)
    engine.bound("g", T0 + 101)
    overloaded = partial(shown.value, "slacktide_class_overloaded")
    add_pod(shown, engine, "w", "bronze", BRONZE, T0 + 110)
    engine.wake("w")
    shown.run(T0 + 111)
    assert overloaded(**{"class": "bronze"}) == 0
    shown.run(T0 + 10_000)
    assert overloaded(**{"class": "bronze"}) == 1
    assert overloaded(**{"class": "gold"}) == 0
    shown.scheduler.clock = Late()
    late = partial(shown.value, "slacktide_late_pods", **{"class": "bronze"})
    assert (late(state="lost"), late(state="starving")) == (0, 1)  # it has run .05 of its time, and was promised .5
    assert shown.scheduler.session is not None
    shown.scheduler.session.feed.pods["w"].target = Target("v1", "Pod", "default", "w", "w")
    _, text = shown.get("/explain", namespace="default", name="w")
    found = json.loads(text)
    assert found["reason"].endswith(". starving: its class is overloaded.")
    assert "0 running, 1 waiting (1 starving), preempted" in text_of(found)
    engine.gone("w", T0 + 10_001)
    assert overloaded(**{"class": "bronze"}) == 0, "where nobody waits there is no pass that would find it out"
    assert (late(state="lost"), late(state="starving")) == (0, 0)


def test_attempts_and_latencies_of_a_preemption_are_counted() -> None:
    shown = two_on_one_core()
    attempts = "scheduler_schedule_attempts"
    assert shown.value(attempts, f"{attempts}_total", result="scheduled", profile="slacktide") == 1
    sli = "scheduler_pod_scheduling_sli_duration_seconds"
    assert shown.value(sli, f"{sli}_sum", attempts="1") == 0.5
    assert shown.value("scheduler_preemption_attempts", "scheduler_preemption_attempts_total") == 1
    assert shown.value("scheduler_preemption_victims", "scheduler_preemption_victims_sum") == 1
    assert shown.value("slacktide_preemptions", "slacktide_preemptions_total", **{"class": "bronze"}) == 1
    assert shown.value("slacktide_startup_seconds", "slacktide_startup_seconds_sum") == 2.0
    assert shown.value("slacktide_bindings_in_flight") == 1
    assert shown.value("slacktide_pass_duration_seconds", "slacktide_pass_duration_seconds_count") == 2
    engine = shown.scheduler.engine
    assert engine is not None
    engine.gone("b", T0 + 101)
    engine.bound("g", T0 + 101)
    assert shown.value("slacktide_bindings_in_flight") == 0
    assert shown.value(sli, f"{sli}_sum", attempts="1") == 2.5


def test_a_pod_that_waits_and_that_somebody_else_binds_is_counted() -> None:
    shown = two_on_one_core()
    engine, counted = shown.scheduler.engine, "slacktide_pods_bound_by_others"
    assert engine is not None
    add_pod(shown, engine, "w", "bronze", BRONZE, T0 + 110)
    assert shown.value(counted, f"{counted}_total") == 0
    engine.bound_elsewhere("w", "n", T0 + 111)
    assert shown.value(counted, f"{counted}_total") == 1


def test_metrics_say_when_the_certificate_ends_where_there_is_one() -> None:
    shown = two_on_one_core()
    assert shown.families()["slacktide_certificate_expiry_timestamp_seconds"].samples == []
    shown.window.certificate = Certificate(None, None, "127.0.0.1")
    ends = shown.value("slacktide_certificate_expiry_timestamp_seconds")
    assert ends == shown.window.certificate.ends > time.time() + 86_400


def test_availability_by_class() -> None:
    shown = two_on_one_core()
    shown.scheduler.clock = Stopped()
    engine = shown.scheduler.engine
    assert engine is not None
    engine.gone("b", T0 + 100)
    engine.bound("g", T0 + 100)
    engine.ready("g", T0 + 100)
    bronze, gold = {"class": "bronze"}, {"class": "gold"}
    # Bronze ran from 2.5 to 100 of 200 s: less than .5. Gold waited one second of 101.
    assert shown.value("slacktide_availability_delivered", **bronze) == 97.5 / 200
    assert shown.value("slacktide_availability_promised", **bronze) == 0.5
    assert shown.value("slacktide_availability_delivered_min", **gold) == pytest.approx(100 / 101)
    assert shown.value("slacktide_controllers", state="Missed", **bronze) == 1
    assert shown.value("slacktide_violations", **gold) == 1
    # Below .99 of .5 (that is .495) but not .95: three tenths of the price; gold is below .9999: a tenth.
    assert shown.value("slacktide_penalties", **bronze) == 0.3
    assert shown.value("slacktide_penalties", **gold) == 0.1
    alpha = shown.scheduler.config.qos.alpha
    assert shown.value("slacktide_slack_seconds", share="0", **bronze) == pytest.approx(195 - 200 - alpha, abs=1e-5)
    assert (
        shown.value("slacktide_pods", state="waiting", **bronze),
        shown.value("slacktide_pods", state="running", **gold),
    ) == (1, 1)


def test_a_controller_that_goes_leaves_how_its_promise_ended() -> None:
    shown = two_on_one_core()
    engine = shown.scheduler.engine
    assert engine is not None
    engine.gone("b", T0 + 100)
    engine.controller_gone("bronze", T0 + 105)
    # 97.5 of 105 s. Nothing is owed.
    name = "slacktide_finished_controllers"
    assert shown.value(name, f"{name}_total", state="Kept", **{"class": "bronze"}) == 1
    assert shown.value("slacktide_finished_penalties", "slacktide_finished_penalties_total", **{"class": "bronze"}) == 0


def test_a_meter_counts_passes_of_a_pod_that_fails_sleeps_and_comes_back() -> None:
    meter, now = Meter(lambda: None, lambda: clock[0]), Outcome
    clock = [0.0]

    def tell(name: str, *arguments: Any) -> None:
        meter(OPERATIONS[name](*arguments))

    def passed(outcome: Outcome) -> None:
        meter.passed(outcome)
        for decision in outcome.decisions:
            meter.decided(decision)

    tell("arrive", "p", "p", "k", 0, 100.0, "")
    for _ in range(3):
        tell("wake", "p")
    for _ in range(2):
        tell("run", 100.0)
        clock[0] += 0.25
        passed(now(1, (), 1, 0))
    tell("sleep", "p")
    tell("run", 101.0)
    passed(now(2, (), 0, 0))
    tell("wake", "p")
    tell("run", 102.0)
    passed(now(3, (Decision("p", "n", 1.0, (Victim("v", 2.0), Victim("w", 2.0))),), 0, 0))
    tell("refused", "p", 102.5)
    tell("wake", "p")
    tell("run", 103.0)
    passed(now(4, (Decision("p", "n", 1.0),), 0, 0))
    clock[0] += 0.5
    tell("bound", "p", 104.0)
    assert meter.attempts == {"unschedulable": 2, "error": 1, "scheduled": 1}
    assert meter.attempts_needed.total == 4
    assert meter.sli_seconds["4"].total == 4.0
    assert meter.attempt_seconds["scheduled"].total == 0.5
    assert meter.attempt_seconds["unschedulable"].total == 0.5
    assert (meter.preemption_attempts, meter.victims.total) == (1, 2)
    assert meter.incoming == {
        ("UnschedulablePodAdd", "active"): 1,
        ("ScheduleAttemptFailure", "unschedulable"): 1,
        ("ForceActivate", "active"): 1,
        ("ScheduleAttemptFailure", "backoff"): 1,
        ("BackoffComplete", "active"): 1,
    }
    tell("gone", "p", 105.0, False)
    assert not meter._waits
    assert not meter.in_flight


def test_buckets_are_cumulated_and_bounds_belong_to_them() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 7.0):
        histogram.observe(value)
    histogram.observe(2.0, 3)
    assert histogram.buckets() == [("1", 2.0), ("2", 6.0), ("+Inf", 7.0)]
    assert histogram.total == 16.0


def test_a_scrape_with_10_000_pods_takes_few_calls_for_each() -> None:
    shown = Shown()
    engine = shown.begin()
    for i in range(1000):
        engine.host(f"n{i}", {"cpu": 8000, "memory": 2**34, "pods": 110}, {}, True)
    for number, service in enumerate((GOLD, BRONZE)):
        engine.spec(number, Spec((("cpu", 1000), ("memory", 1), ("pods", 1)), service))
    for i in range(1000):
        service = (GOLD, BRONZE)[i % 2]
        engine.controller(f"c{i}", service, i % 3, False)
        for k in range(10):
            add_pod(shown, engine, f"p{i}-{k}", f"c{i}", service, T0)
            engine.wake(f"p{i}-{k}")
    shown.run(T0)

    def scrape() -> None:
        status, _ = shown.get("/metrics")
        assert status == 200

    scrape()
    assert calls_of(scrape) < 8 * 10_000


def test_explain_says_for_whom_and_with_which_slack() -> None:
    shown = two_on_one_core()
    status, text = shown.get("/explain", namespace="default", name="b")
    assert status == 200
    found = json.loads(text)
    # Bronze ran 97.5 of 100 s, of which .5 was owed: 195 - 100 - alpha; gold has lived for a second.
    alpha = shown.scheduler.config.qos.alpha
    event = found["history"][-1]
    assert (event["what"], event["whom"], event["host"]) == ("preempted", "default/g", "n")
    assert event["slack"] == pytest.approx(95 - alpha, abs=1e-5)
    assert event["their_slack"] == pytest.approx(-1 - alpha, abs=1e-5)
    assert found["state"] == "leaving"
    (mine,) = json.loads(shown.get("/explain", namespace="default", name="g")[1])["history"]
    assert (mine["what"], mine["victims"]) == ("placed", [{"name": "default/b", "slack": event["slack"]}])


def test_explain_of_nobody_of_nothing_and_of_a_standby() -> None:
    shown = Shown()
    assert shown.get("/explain", name="p")[0] == 503
    shown.begin()
    assert shown.get("/explain")[0] == 400
    status, text = shown.get("/explain", namespace="n", name="p")
    assert (status, json.loads(text)) == (404, {"error": "pod n/p not found"})


def test_the_end_of_a_pod_that_nobody_knows_any_more_is_remembered() -> None:
    known: dict[str, tuple[str, str]] = {"u": ("shop", "web")}
    memory = PodHistory(known.get)
    memory(Ready("u", T0))
    del known["u"]
    memory(Gone("u", T0 + 1, False))
    memory(Gone("stranger", T0 + 1, False))
    assert [one["what"] for one in memory.of(("shop", "web"))] == ["ready", "gone"]


def test_the_page_says_that_a_pod_waits_for_others_of_its_group() -> None:
    shown = Shown()
    engine = shown.begin()
    engine.host("n", {"cpu": 1000, "memory": 2**30, "pods": 10}, {}, True)
    engine.spec(0, Spec((("cpu", 1000), ("memory", 1), ("pods", 1)), GOLD))
    engine.controller("gold", GOLD, 0, False)
    add_pod(shown, engine, "g", "gold", GOLD, T0)
    engine.join_group("g", "shop/group")
    engine.pod_group("shop/group", 1)
    engine.wake("g")
    shown.run(T0)
    reason = shown.window.watched.reason("g")
    assert reason == "has a node, n, and will be bound together with other pods of pod group shop/group"


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slacktide.kube.observe.dashboard.REMEMBERED_PODS", 100)
    memory = PodHistory(lambda uid: ("default", uid))
    for i in range(300):
        for k in range(20):
            memory(Ready(f"p{i}", T0 + k))
    assert len(memory) == 100
    assert [one["at"] for one in memory.of(("default", "p299"))] == [T0 + k for k in range(12, 20)]
    assert memory.of(("default", "p0")) == []


def served(config: Config, check: Callable[[str], Awaitable[None]]) -> None:
    async def main() -> None:
        shown = Shown(config)
        async with Server(shown.scheduler, shown.routes, cast(Any, None)):
            await check(f"http://{config.kube.listen}")

    asyncio.run(main())


def test_without_tokens_another_sites_name_that_leads_here_gets_health_only() -> None:
    """DNS rebinding: a page in a browser on this machine could read what its own site's name answers."""

    async def check(base: str) -> None:
        async with aiohttp.ClientSession() as session:

            async def status(path: str, host: str) -> int:
                async with session.get(f"{base}/{path}", headers={"Host": host}) as answer:
                    return answer.status

            for path in ("metrics", "configz", "explain?name=p", "view"):
                assert await status(path, "elsewhere.example:10359") == 421
                assert await status(path, "127.0.0.1.elsewhere.example") == 421
            for near in ("localhost:10359", "127.0.0.1", "[::1]:10359", "LOCALHOST"):
                assert await status("configz", near) == 200
            assert await status("livez", "elsewhere.example") == 200

    served(settings(listen=f"127.0.0.1:{free_port()}"), check)


def test_each_page_that_asks_for_a_token_is_in_a_role_of_the_manifests() -> None:
    roles = yaml.safe_load_all((MANIFESTS / "20-rbac.yaml").read_text())
    rules = [rule for one in roles for rule in one.get("rules", ())]
    urls = {url for rule in rules for url in rule.get("nonResourceURLs", ())}
    guarded = {*Shown().routes, "/configz"} - {*HEALTH, *page_routes()}
    assert {"/view", "/explain", "/metrics"} <= guarded <= urls


def test_health_is_told_and_not_ready_before_the_first_lists() -> None:
    async def check(base: str) -> None:
        async with aiohttp.ClientSession() as session:
            for path, status, text in (
                ("livez", 200, "ok"),
                ("readyz", 503, "first lists"),
                ("configz", 200, "qos-driven"),
            ):
                async with session.get(f"{base}/{path}") as answer:
                    assert answer.status == status
                    assert text in await answer.text()
            async with session.get(f"{base}/metrics", headers={"Accept": "application/openmetrics-text"}) as answer:
                assert answer.content_type == "application/openmetrics-text"
                assert (await answer.text()).endswith("# EOF\n")

    served(settings(listen=f"127.0.0.1:{free_port()}"), check)


def test_where_nobody_may_listen_or_somebody_does_the_setting_is_named() -> None:
    async def nothing(_base: str) -> None: ...

    wrong = {listen: f"found '{listen}', expected HOST" for listen in ("localhost", "127.0.0.1:http", ":80")}
    wrong["127.0.0.1:70000"] = "found port 70000 in '127.0.0.1:70000', expected 0 to 65535"
    for listen, said in wrong.items():
        with pytest.raises(ConfigError, match=f"kube.listen: {said}"):
            served(settings(listen=listen), nothing)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot listen on"):
            served(settings(listen=f"127.0.0.1:{taken.getsockname()[1]}"), nothing)


def test_without_an_address_nothing_is_served() -> None:
    async def refused(_base: str) -> None: ...

    served(settings(listen=None), refused)


def test_several_journals_are_told_in_order() -> None:
    heard: list[tuple[int, str]] = []
    journal = told_to(lambda one: heard.append((1, one.method)), lambda one: heard.append((2, one.method)))
    journal(Wake("p"))
    assert heard == [(1, "wake"), (2, "wake")]


def test_without_tokens_it_listens_on_this_machine_only() -> None:
    async def nothing(_base: str) -> None: ...

    for listen in ("0.0.0.0:0", "[::]:0", "10.1.2.3:10359", "localhost:0"):
        with pytest.raises(ConfigError, match=r"kube.listen: found .*, expected an address such as 127.0.0.1:10359"):
            served(settings(listen=listen), nothing)
    for listen in ("127.8.0.1:0", "127.0.0.1:0"):
        served(settings(listen=listen), nothing)
