"""The manifests on a real API server: what is refused and how, what is shown, and who may do what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import yaml

from cluster.installation import EXAMPLES, MANIFESTS, PAGE, alone, installed
from cluster.kubectl import Answer, Json, Kubectl, cells
from cluster.labtools import until
from cluster.verdicts import each
from cluster.workloads import APPROACH, CLASS, KINDS, SLO, workload
from slacktide.lab import Binaries, ControlPlane

FINE: Json = {"slo": 0.9, "rank": 1}
BATCH = ("Job", "CronJob")
MONTH: Json = {"calendar": "1M"}
BEGIN = "2026-01-01T00:00:00"
KUEUE: Json = {"scope": "PreemptedWorkload", "limit": 2, "limitWindowSeconds": 3600}
NIGHT: Json = {"days": ["Mon", "Tue"], "from": "22:00", "to": "06:00", "timeZone": "Europe/Berlin"}


def service_class(name: str = "probe", **spec: Any) -> Json:
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "ServiceClass", "metadata": {"name": name}, "spec": spec}


def availability(name: str, **status: Any) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "slacktide.io/v1beta1", "kind": "Availability", "metadata": metadata, "status": status}


def refused(answer: Answer, *words: str) -> None:
    """Refused, and the message says all of this (its line breaks do not count)."""
    assert answer.code != 0, answer.out
    text = " ".join(answer.error.split())
    assert [word for word in words if word not in text] == [], text


@pytest.fixture(scope="module")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of this module's own."""
    yield from alone(binaries, tmp_path_factory.mktemp("plane"))


@pytest.fixture(scope="module")
def kubectl(plane: ControlPlane, binaries: Binaries) -> Kubectl:
    """An administrator on a cluster with our manifests and the example classes, all policies in force."""
    program = installed(plane, binaries)
    for namespace, labels in {"shop": {}, "lab": {}, "poor": {"slacktide.io/default-class": "gold"}}.items():
        metadata = {"name": namespace, "labels": labels}
        program.ok("apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    # A policy takes some seconds until it holds, one whose parameters' definition is new up to half a minute.
    for probe in (
        workload("Pod", service_class="gold", namespace="lab"),
        workload("Pod", {APPROACH: "none"}),
        service_class(slo=0.9, rank=1, default=True),
    ):
        until(partial(program.refuses, probe), f"a policy refuses {probe}")
    return program


# What a user writes.


@each(
    ("spec", "field", "says"),
    [
        ({"rank": 1}, "spec.slo", "Required"),
        ({"slo": 0.9}, "spec.rank", "Required"),
        (FINE | {"slo": 0}, "spec.slo", "from 0.001 to 1: 0.95 promises 95 %"),
        (FINE | {"slo": 0.0009}, "spec.slo", "from 0.001 to 1: 0.95 promises 95 %"),
        (FINE | {"slo": -0.5}, "spec.slo", "from 0.001 to 1"),
        (FINE | {"slo": 95}, "spec.slo", "from 0.001 to 1: 0.95 promises 95 %"),
        (FINE | {"slo": "95%"}, "spec.slo", "must be of type number"),
        (FINE | {"rank": 0}, "spec.rank", "greater than or equal to 1"),
        (FINE | {"rank": 1.5}, "spec.rank", "must be of type integer"),
        (FINE | {"rank": 2**31}, "spec.rank", "less than or equal to"),
        (FINE | {"marginSeconds": -1}, "spec.marginSeconds", "greater than or equal to 0"),
        (FINE | {"marginSeconds": "10s"}, "spec.marginSeconds", "must be of type number"),
        (FINE | {"overheadLimit": -0.1}, "spec.overheadLimit", "greater than or equal to 0"),
        (FINE | {"overheadLimit": 1.1}, "spec.overheadLimit", "less than or equal to 1"),
        (FINE | {"tiers": [{"boundary": 0.9}]}, "spec.tiers[0].bonus", "Required"),
        (FINE | {"tiers": [{"bonus": 0.9}]}, "spec.tiers[0].boundary", "Required"),
        (FINE | {"tiers": [{"boundary": 0, "bonus": 1}]}, "spec.tiers[0].boundary", "above 0 and at most 1"),
        (FINE | {"tiers": [{"boundary": 1.1, "bonus": 1}]}, "spec.tiers[0].boundary", "above 0 and at most 1"),
        (FINE | {"tiers": [{"boundary": 0.9, "bonus": 0}]}, "spec.tiers[0].bonus", "above 0 and at most 1"),
        (FINE | {"tiers": [{"boundary": 0.9, "bonus": 2}]}, "spec.tiers[0].bonus", "above 0 and at most 1"),
        (
            FINE | {"tiers": [{"boundary": 0.9, "bonus": 0.1}, {"boundary": 0.95, "bonus": 0.2}]},
            "spec.tiers",
            "boundaries must fall",
        ),
        (
            FINE | {"tiers": [{"boundary": 0.9, "bonus": 0.1}, {"boundary": 0.9, "bonus": 0.2}]},
            "spec.tiers",
            "boundaries must fall",
        ),
        (
            FINE | {"tiers": [{"boundary": 0.9, "bonus": 0.2}, {"boundary": 0.8, "bonus": 0.1}]},
            "spec.tiers",
            "bonuses must rise",
        ),
        (
            FINE | {"tiers": [{"boundary": 0.9, "bonus": 0.2}, {"boundary": 0.8, "bonus": 0.2}]},
            "spec.tiers",
            "bonuses must rise",
        ),
        (FINE | {"approach": "mean"}, "spec.approach", '"independent", "concurrent", "aggregated"'),
        (FINE | {"default": "yes"}, "spec.default", "must be of type boolean"),
        (FINE | {"default": True}, "spec.default", "'bronze' is the default already"),
        (FINE | {"namespaces": ["shop", "shop"]}, "spec.namespaces[1]", "Duplicate"),
        (FINE | {"namespaces": ["team-*"]}, "spec.namespaces[0]", "patterns are not known"),
        (FINE | {"namespaces": "shop"}, "spec.namespaces", "must be of type array"),
        (FINE | {"margin": 10}, "spec.margin", "unknown field"),
        (FINE | {"alpha": "61m"}, "spec.alpha", "at most 1h"),
        (FINE | {"alpha": "1d"}, "spec.alpha", "at most 1h"),
        (FINE | {"alpha": "soon"}, "spec.alpha", "must be a duration"),
        (FINE | {"window": {}}, "spec.window", "needs exactly one of rolling"),
        (FINE | {"window": "30d"}, "spec.window", "must be of type object"),
        (FINE | {"window": {"rolling": "30d", "calendar": "1M"}}, "spec.window", "needs exactly one of rolling"),
        (FINE | {"window": {"rolling": "30d", "timeZone": "UTC"}}, "spec.window", "timeZone goes with calendar"),
        (FINE | {"window": {"rolling": "30d", "start": BEGIN}}, "spec.window", "start goes with calendar"),
        (FINE | {"window": {"rolling": "1M"}}, "spec.window.rolling", "such as 30d, 10m or 1h30m"),
        (FINE | {"window": {"rolling": "30m1h"}}, "spec.window.rolling", "such as 30d, 10m or 1h30m"),
        (FINE | {"window": {"rolling": "0d"}}, "spec.window.rolling", "a duration above 0"),
        (FINE | {"window": {"rolling": ""}}, "spec.window.rolling", "a duration above 0"),
        (FINE | {"window": {"calendar": "2M"}}, "spec.window.calendar", '"1d", "1w", "1M", "1Q", "1Y"'),
        (FINE | {"window": MONTH | {"timeZone": "Mars Base"}}, "spec.window.timeZone", "such as Europe/Berlin or UTC"),
        (FINE | {"window": MONTH | {"start": "2026-02-30T00:00:00"}}, "spec.window.start", "a local time after 1970"),
        (FINE | {"window": MONTH | {"start": "2026-01-01"}}, "spec.window.start", "a local time after 1970"),
        (FINE | {"window": MONTH | {"budget": "half"}}, "spec.window.budget", '"accrued", "whole"'),
        (FINE | {"counts": "workload"}, "spec.counts", '"cluster", "everything"'),
        (FINE | {"disruptions": {"max": 2}}, "spec.disruptions.per", "Required"),
        (FINE | {"disruptions": {"max": -1, "per": "1h"}}, "spec.disruptions.max", "greater than or equal to 0"),
        (FINE | {"disruptions": {"max": 1, "per": "hour"}}, "spec.disruptions.per", "a duration above 0"),
        (FINE | {"preemptionLimit": KUEUE | {"scope": "Global"}}, "spec.preemptionLimit.scope", '"PreemptedWorkload"'),
        (FINE | {"preemptionLimit": KUEUE | {"limit": 65}}, "spec.preemptionLimit.limit", "less than or equal to 64"),
        (
            FINE | {"preemptionLimit": KUEUE | {"limitWindowSeconds": 0}},
            "preemptionLimit.limitWindowSeconds",
            "equal to 1",
        ),
        (FINE | {"preemptionLimit": KUEUE | {"ruleNames": ["one"]}}, "spec.preemptionLimit.ruleNames", "unknown field"),
        (
            FINE | {"preemptionLimit": KUEUE, "disruptions": {"max": 2, "per": "1h"}},
            "spec.preemptionLimit",
            "must not stand beside disruptions",
        ),
        (FINE | {"cooldown": "ten minutes"}, "spec.cooldown", "must be a duration, numbers with the units"),
        (FINE | {"minRunning": "5"}, "spec.minRunning", "must be a duration, numbers with the units"),
        (FINE | {"hours": []}, "spec.hours", "should have at least 1 items"),
        (FINE | {"hours": [{"from": "22:00"}]}, "spec.hours[0].to", "Required"),
        (FINE | {"hours": [NIGHT | {"to": "25:00"}]}, "spec.hours[0].to", 'from "00:00" to "24:00"'),
        (FINE | {"hours": [NIGHT | {"from": "24:00"}]}, "spec.hours[0].from", 'from "00:00" to "23:59"'),
        (FINE | {"hours": [NIGHT | {"from": "06:00"}]}, "spec.hours[0]", "from and to must differ"),
        (FINE | {"hours": [NIGHT | {"days": ["Monday"]}]}, "spec.hours[0].days[0]", '"Mon", "Tue"'),
        (FINE | {"hours": [NIGHT | {"timeZone": ""}]}, "spec.hours[0].timeZone", "such as Europe/Berlin or UTC"),
        (FINE | {"hours": [NIGHT | {"timeZone": "Mars/Olympus"}]}, "spec.hours[0].timeZone", "such as Europe/Berlin"),
    ],
)
def test_a_wrong_class_is_refused_with_its_field(kubectl: Kubectl, spec: Json, field: str, says: str) -> None:
    refused(kubectl.try_apply(service_class(**spec)), field, says)


def test_a_class_may_be_changed_and_its_name_must_fit_a_label(kubectl: Kubectl) -> None:
    assert kubectl.try_apply(service_class("c" * 63, **FINE)).code == 0
    refused(kubectl.try_apply(service_class("c" * 64, **FINE)), "metadata.name must have at most 63 characters")
    bronze = {"overheadLimit": 0.5, "default": True, "tiers": [], "rank": 3}
    assert kubectl.try_apply(service_class("bronze", slo=0.6, **bronze)).code == 0


@each(
    "spec",
    [
        {"slo": 1, "rank": 1},
        {"slo": 0.001, "rank": 2**31 - 1, "marginSeconds": 0, "overheadLimit": 0, "tiers": []},
        FINE | {"tiers": [{"boundary": 1, "bonus": 0.1}, {"boundary": 0.8, "bonus": 1}], "overheadLimit": 1},
        FINE | {"approach": "aggregated", "namespaces": ["shop", "team-a"], "marginSeconds": 0.5},
        FINE | {"window": {"rolling": "30d"}, "counts": "everything"},
        FINE | {"window": {"rolling": "1w2d3h4m5.5s", "budget": "whole"}, "cooldown": "0s", "minRunning": "1.5m"},
        FINE | {"window": MONTH | {"timeZone": "America/Argentina/Buenos_Aires", "start": BEGIN, "budget": "accrued"}},
        FINE | {"preemptionLimit": KUEUE},
        FINE | {"alpha": "1m30s"},
        FINE | {"alpha": "1h"},
        FINE | {"disruptions": {"max": 0, "per": "1h30m"}, "hours": [NIGHT, {"from": "00:00", "to": "24:00"}]},
    ],
)
def test_a_right_class_is_accepted(kubectl: Kubectl, spec: Json) -> None:
    answer = kubectl("apply", "--dry-run=server", "-f", "-", stdin=service_class(**spec))  # which shows warnings
    assert answer.code == 0, answer.error
    assert answer.error == ""


def test_kubectl_explains_every_field_and_lists_what_classes_say(kubectl: Kubectl) -> None:
    text = " ".join(kubectl.ok("explain", "serviceclass.spec").split())
    for words in (
        "slo <number> -required-",
        "rank <integer> -required-",
        "0.95 promises 95 %",
        "safety margin, seconds",
    ):
        assert words in text
    assert "below which the bonus is owed" in " ".join(kubectl.ok("explain", "svcclass.spec.tiers.boundary").split())
    text = " ".join(kubectl.ok("explain", "avail.status").split())
    assert "slackSeconds <number> Seconds until the promise would break" in text
    assert "enum: Kept, AtRisk, Missed, Unknown" in text
    table = cells(kubectl.ok("get", "svcclass", "gold", "silver", "bronze"))
    assert list(table) == ["NAME", "SLO", "RANK", "DEFAULT", "AGE"]
    assert table["SLO"] == ["0.999", "0.95", "0.5"]
    assert table["RANK"] == ["1", "2", "3"]
    assert table["DEFAULT"] == ["false", "false", "true"]
    # What a class leaves out is filled in.
    spec = kubectl.json("get", "svcclass", "silver")["spec"]
    assert spec["marginSeconds"] == 10
    assert spec["approach"] == "independent"
    assert spec["default"] is False
    assert spec["counts"] == "cluster"
    assert not {"tiers", "overheadLimit"} & set(spec)


def test_the_api_server_warns_of_nothing_in_examples_manifests_and_policies(kubectl: Kubectl) -> None:
    for file in sorted(EXAMPLES.glob("*.yaml")):
        answer = kubectl("apply", "--dry-run=server", "-f", str(file))
        assert (answer.code, answer.error) == (0, ""), file
    answer = kubectl("apply", "-f", str(MANIFESTS))
    assert (answer.code, answer.error) == (0, "")
    # kubectl always reports a budget as configured; nothing of it changes.
    changed = [
        line for line in answer.out.splitlines() if "unchanged" not in line and "poddisruptionbudget" not in line
    ]
    assert changed == []

    def statuses() -> list[Json]:
        found = kubectl.json("get", "validatingadmissionpolicies")["items"]
        return [o.get("status", {}) for o in found if o["metadata"]["name"].startswith("slacktide-")]

    until(lambda: all("typeChecking" in status for status in statuses()), "the policies are type checked")
    assert [status["typeChecking"] for status in statuses()] == [{}] * 4


def test_pod_security_lets_both_replicas_in(kubectl: Kubectl) -> None:
    def replicas() -> list[Json]:
        return list(kubectl.json("-n", "slacktide-system", "get", "pods")["items"])

    until(lambda: len(replicas()) == 2, "two pods of the Deployment")
    assert {pod["spec"]["schedulerName"] for pod in replicas()} == {"default-scheduler"}
    naked = workload("Pod", namespace="slacktide-system", scheduler="default-scheduler")
    refused(kubectl.try_apply(naked), "violates PodSecurity")


# The ledger.


def test_a_ledger_is_made_by_one_write_and_listed(kubectl: Kubectl) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a-front", "uid": "1"}
    full = availability(
        "a-front",
        target=target,
        promised=0.95,
        delivered=0.97125,
        slackSeconds=-81.5,
        breaksAt="2026-11-21T13:04:00Z",
        state="AtRisk",
        running=3,
        waiting=1,
        lost=1,
        starving=0,
        preemptions=7,
        at="2026-11-21T13:00:00.123456Z",
        deliveredAlways=0.97,
        deliveredRestart=0.98,
        deliveredNever=1,
        message="",
        accumulators={"instances": {"a": [1.5, 0, 2]}, "form": 1},
        **{"class": "silver"},
    )
    try:
        made = kubectl.json("create", "-f", "-", stdin=full)
        assert made["status"] == full["status"]
        kubectl.ok("create", "-f", "-", stdin=availability("b-still", promised=0.5, slackSeconds=None, state="Kept"))
        table = cells(kubectl.ok("get", "avail", "a-front", "b-still"))
        headings = [
            "NAME",
            "CLASS",
            "PROMISED",
            "DELIVERED",
            "BREAKS AT",
            "STATE",
            "LOST",
            "STARVING",
            "GIVEN UP",
            "RUNNING",
            "WAITING",
            "PREEMPTED",
            "AGE",
        ]
        assert list(table) == headings
        first = ["a-front", "silver", "0.95", "0.97125", "2026-11-21T13:04:00Z", "AtRisk", "1", "0", "", "3", "1", "7"]
        assert [table[name][0] for name in headings[:-1]] == first
        assert [table[name][1] for name in ("PROMISED", "BREAKS AT", "STATE")] == ["0.5", "", "Kept"]
    finally:
        kubectl("delete", "avail", "a-front", "b-still", "--ignore-not-found")


@each(
    ("status", "field"),
    [
        ({"state": "Fine"}, "status.state"),
        ({"promised": 1.5}, "status.promised"),
        ({"delivered": -0.1}, "status.delivered"),
        ({"slackSeconds": "10"}, "status.slackSeconds"),
        ({"running": -1}, "status.running"),
        ({"lost": "some"}, "status.lost"),
        ({"starving": -1}, "status.starving"),
        ({"at": "yesterday"}, "status.at"),
        ({"target": {"kind": "Deployment"}}, "status.target.uid"),
        ({"accumulators": [1]}, "status.accumulators"),
        ({"slack": 10}, "status.slack"),
    ],
)
def test_a_broken_ledger_is_refused(kubectl: Kubectl, status: Json, field: str) -> None:
    refused(kubectl.try_apply(availability("broken", **status)), field)


# What is refused at the door.


@each("kind", KINDS)
def test_a_class_that_the_namespace_may_not_use_is_refused(kubectl: Kubectl, kind: str) -> None:
    for namespace in ("default", "shop"):
        answer = kubectl.try_apply(workload(kind, service_class="gold", namespace=namespace))
        assert (answer.code, answer.error) == (0, "")
    answer = kubectl.try_apply(workload(kind, service_class="gold", namespace="lab"))
    refused(answer, "service class 'gold'", CLASS, "may not be used in namespace 'lab'", "lists default, shop")
    assert kubectl.try_apply(workload(kind, service_class="silver", namespace="lab")).code == 0


@each("kind", KINDS)
def test_an_own_promise_is_a_number_not_above_that_of_the_class(kubectl: Kubectl, kind: str) -> None:
    for right in ("0.95", ".95", "0.5", "0.001"):
        assert kubectl.try_apply(workload(kind, {SLO: right}, service_class="silver")).code == 0, right
    above = kubectl.try_apply(workload(kind, {SLO: "0.951"}, service_class="silver"))
    refused(above, SLO, "found 0.951", "at most 0.95", "'silver'")
    for wrong in ("0", "1.1", "-0.5", "95%", "nan", "1e-3", "0.0009", ""):
        answer = kubectl.try_apply(workload(kind, {SLO: wrong}, service_class="silver"))
        refused(answer, SLO, f"found '{wrong}'" if wrong != "1.1" else "found")


@pytest.fixture(scope="module")
def limited(kubectl: Kubectl) -> Iterator[str]:
    """A class with limits, which the policies know."""
    spec = FINE | {"namespaces": ["*"], "disruptions": {"max": 2, "per": "1h"}, "cooldown": "1h30m", "minRunning": "5m"}
    spec |= {"ownLimits": {"untouchable": True}}
    kubectl.ok("apply", "-f", "-", stdin=service_class("limited", **spec))
    probe = workload("Pod", {"slacktide.io/cooldown": "1s"}, service_class="limited")
    until(partial(kubectl.refuses, probe), "the policy knows the class")
    yield "limited"
    kubectl("delete", "svcclass/limited", "--ignore-not-found")


@each("kind", ["Pod", "Deployment", "CronJob"])
def test_a_limit_of_a_workload_is_not_looser_than_that_of_its_class(kubectl: Kubectl, limited: str, kind: str) -> None:
    for name, right, wrong, says in (
        (
            "disruptions",
            ("2 per 1h", "1 per 30m", "0 per 1s", " 2 per  1.5h "),
            ("3 per 1h", "2 per 30m"),
            "2 per 3600s",
        ),
        ("cooldown", ("90m", "5400", "2h", "1w", "0"), ("1h", "5399.5s", "60"), "at least 1h30m"),
        ("min-running", ("5m", "300", "1d"), ("4m59s", "0"), "at least 5m"),
    ):
        for text in right:
            found = kubectl.try_apply(workload(kind, {f"slacktide.io/{name}": text}, service_class=limited))
            assert (found.code, found.error) == (0, ""), text
        for text in wrong:
            found = kubectl.try_apply(workload(kind, {f"slacktide.io/{name}": text}, service_class=limited))
            refused(found, f"annotation slacktide.io/{name}: found '{text}'", says, f"class '{limited}'")
    unlimited = workload(kind, {"slacktide.io/disruptions": "9 per 1s"}, service_class="silver")
    assert kubectl.try_apply(unlimited).code == 0


@each(
    ("name", "right", "wrong"),
    [
        ("disruptions", ["1 per 40m", "64 per 3600"], ["twice", "65 per 1h", "1 per hour", "1 in 1h", "1 per 0s", ""]),
        ("cooldown", ["10m", "0", "59m60s", " 5s "], ["soon", "-1", "30m1h", ""]),
        ("min-running", ["1.5m"], ["1 m"]),
        ("alpha", ["3m", "0", "3600", " 1h "], ["soon", "-1", "61m", "3601", "1d", ""]),
        (
            "hours",
            ["Sat,Sun 00:00-24:00 Europe/Berlin", "Mon-Wed,Fri,Sat 22:00-06:00 ; Sun 01:00-02:00"],
            [
                "at night",
                "Mon 22:00",
                "Someday 01:00-02:00",
                "Mon-Sun 25:00-24:00",
                "Sun-Mon 00:00-24:00",
                "",
                "Mon 25:00-26:99",
                "Mon 01:00-02:00 Mars/Olympus",
            ],
        ),
        ("on-resize", ["move", "stay", ""], ["jump"]),
    ],
)
def test_a_limit_of_a_workload_can_be_read(kubectl: Kubectl, name: str, right: list[str], wrong: list[str]) -> None:
    for text in right:
        assert kubectl.try_apply(workload("Deployment", {f"slacktide.io/{name}": text})).code == 0, text
    for text in wrong:
        found = kubectl.try_apply(workload("Deployment", {f"slacktide.io/{name}": text}))
        refused(found, f"annotation slacktide.io/{name}: found '{text}'", "expected")


@each("kind", KINDS)
@each(
    ("name", "wrong", "says"),
    [
        ("disruptions", "0 per 1h", "expected at least 1"),
        ("disruptions", "1 per 61m", "expected none of more than 1h"),
        ("cooldown", "2h", "expected none of more than 1h"),
        ("min-running", "1d", "expected none of more than 1h"),
        ("hours", "Sun 03:00-03:01", "expected at least 40 hours of each week"),
    ],
)
def test_nobody_makes_himself_untouchable(kubectl: Kubectl, kind: str, name: str, wrong: str, says: str) -> None:
    refused(kubectl.try_apply(workload(kind, {f"slacktide.io/{name}": wrong}, service_class="silver")), CLASS, says)


@each("kind", KINDS)
def test_an_approach_is_one_of_three_and_of_a_job_aggregated(kubectl: Kubectl, kind: str) -> None:
    for approach in ("independent", "concurrent", "aggregated"):
        answer = kubectl.try_apply(workload(kind, {APPROACH: approach}))
        if kind in BATCH and approach != "aggregated":
            refused(answer, APPROACH, f"found '{approach}'", "expected aggregated or nothing")
        else:
            assert answer.code == 0, answer.error
    for wrong in ("mean", "Aggregated", ""):
        answer = kubectl.try_apply(workload(kind, {APPROACH: wrong}))
        refused(answer, APPROACH, f"found '{wrong}'", "expected independent, concurrent or aggregated")


def test_what_a_pod_does_not_say_itself_follows_from_its_owner_and_its_namespace(kubectl: Kubectl) -> None:
    refused(kubectl.try_apply(workload("Pod", {SLO: "0.7"})), "at most 0.5", "'bronze' (the default of the cluster)")
    answer = kubectl.try_apply(workload("Deployment", namespace="poor"))
    refused(answer, "service class 'gold' (the default of the namespace", "may not be used in namespace 'poor'")
    assert kubectl.try_apply(workload("Deployment", service_class="silver", namespace="poor")).code == 0
    pod = workload("Pod", {APPROACH: "concurrent"})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1"}
    pod["metadata"]["ownerReferences"] = [owner]
    refused(kubectl.try_apply(pod), "expected aggregated or nothing")
    pod["metadata"]["ownerReferences"] = [owner | {"apiVersion": "example.com/v1"}]
    assert kubectl.try_apply(pod).code == 0


def test_what_only_the_scheduler_can_judge_is_let_in(kubectl: Kubectl) -> None:
    assert kubectl.try_apply(workload("Deployment", service_class="unheard-of")).code == 0
    by_priority = workload("Deployment", {SLO: "0.9"}, priorityClassName="system-cluster-critical")
    assert kubectl.try_apply(by_priority).code == 0


@each("kind", KINDS)
def test_pods_of_other_schedulers_are_let_alone(kubectl: Kubectl, kind: str) -> None:
    wrong = {SLO: "much", APPROACH: "none"}
    foreign = workload(kind, wrong, service_class="gold", namespace="lab", scheduler="default-scheduler")
    assert kubectl.try_apply(foreign).code == 0


def test_what_was_let_in_stays_changeable_after_its_class_was_restricted(kubectl: Kubectl) -> None:
    narrow = service_class("narrow", namespaces=["*"], **FINE)
    pod, deployment = (workload(kind, service_class="narrow", name=f"old-{kind.lower()}") for kind in KINDS[:2])
    try:
        kubectl.ok("apply", "-f", "-", stdin=[narrow])
        kubectl.ok("apply", "-f", "-", stdin=[pod, deployment])
        kubectl.ok("apply", "-f", "-", stdin=service_class("narrow", namespaces=["lab"], **FINE))
        new = workload("Pod", service_class="narrow")
        until(partial(kubectl.refuses, new), "the restriction holds")
        kubectl.ok("label", "pod", "old-pod", "note=1")
        kubectl.ok("scale", "deployment", "old-deployment", "--replicas=0")
        changed = workload("Deployment", {SLO: "0.1"}, service_class="narrow", name="old-deployment")
        refused(kubectl.try_apply(changed), "may not be used in namespace 'default'")
    finally:
        kubectl("delete", "pod/old-pod", "deployment/old-deployment", "svcclass/narrow", "--ignore-not-found")


# The page about it.


def blocks(language: str) -> list[str]:
    """The page's blocks in a language ("" where none is named)."""
    parts = re.split(r"^```(.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [text for word, text in zip(parts[1::4], parts[2::4], strict=True) if word == language]


def test_the_page_shows_what_the_api_server_says_and_what_it_accepts(kubectl: Kubectl) -> None:
    wrong = [
        service_class("gold", slo=95, rank=1),
        workload("Deployment", {SLO: "0.9991"}, service_class="gold", name="front"),
    ]
    asked = (kubectl("apply", "--dry-run=server", "-f", "-", stdin=item) for item in wrong)
    said = " ".join(one.error for one in asked)
    shown = [
        line for block in blocks("text") for line in block.splitlines() if re.search("is (invalid|forbidden): ", line)
    ]
    assert len(shown) == len(wrong)
    assert [line for line in shown if line not in said] == []
    items = [item for item in map(yaml.safe_load, blocks("yaml")) if "kind" in item]
    assert {item["kind"] for item in items} >= {"ServiceClass"}
    for item in items:
        answer = kubectl.try_apply(item)
        assert (answer.code, answer.error) == (0, "")
