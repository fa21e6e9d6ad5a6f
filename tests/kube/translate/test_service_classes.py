"""Which class a pod is of, and what it was promised."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_struct

from slacktide.errors import ConfigError
from slacktide.kube.resources.objects import NAMESPACE, POD, SERVICE_CLASS, Pod
from slacktide.kube.translate.service_classes import (
    APPROACH,
    CLASS_LABEL,
    DEFAULT_CLASS,
    SLO,
    Classes,
    Promised,
    mapping,
    own_template,
    promise_of,
    resource_of,
)
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import DisruptionLimits, Hours, Window
from slacktide.model import ServiceClass as Promise
from slacktide.model.hours import DAYS
from slacktide.model.service_class import default_tiers
from slacktide.model.window import EPOCH, parse_epoch, turns
from slacktide.model.workload import AGGREGATED, APPROACHES, INDEPENDENT
from support import made_objects
from support.repository import REPOSITORY

CONCURRENT = APPROACHES.index("concurrent")


def classes(priorities: str = "", **specs: dict[str, Any]) -> Classes:
    found = Classes(priorities)
    for name, spec in specs.items():
        full = {"slo": 0.9, "rank": 2, "namespaces": ["*"]} | spec
        found.see(made_objects.decoded(SERVICE_CLASS, {"metadata": {"name": name}, "spec": full}))
    return found


def pod(label: str = "", priority: str = "", **annotations: str) -> Pod:
    names = {"slo": SLO, "approach": APPROACH}
    metadata = {
        "name": "p",
        "namespace": "shop",
        "labels": {CLASS_LABEL: label} if label else {},
        "annotations": {names[key]: value for key, value in annotations.items()},
    }
    return made_objects.decoded(POD, {"metadata": metadata, "spec": {"priorityClassName": priority}})


def test_label_priority_class_namespace_and_cluster_name_the_class_in_this_order() -> None:
    every = classes("vital=gold", gold={}, silver={}, bronze={"default": True}, amber={})
    assert every.name_for(own_template(pod("silver", "vital")), "shop") == "silver"
    assert every.name_for(own_template(pod("", "vital")), "shop") == "gold"
    assert every.name_for(own_template(pod("", "other")), "shop") == "bronze"
    labels = {DEFAULT_CLASS: "amber"}
    every.namespaces["shop"] = made_objects.decoded(NAMESPACE, {"metadata": {"name": "shop", "labels": labels}})
    assert every.name_for(own_template(pod()), "shop") == "amber"
    with pytest.raises(Unschedulable, match="neither its namespace nor the cluster has a default class"):
        classes(gold={}).name_for(own_template(pod()), "shop")


def test_of_several_defaults_the_first_by_name_counts() -> None:
    assert classes(b={"default": True}, a={"default": True}).name_for(own_template(pod()), "shop") == "a"


def test_what_is_owed_is_what_the_class_says() -> None:
    every = classes(told={"tiers": [{"boundary": 0.5, "bonus": 0.2}]}, nothing={"tiers": []}, silent={})
    assert [(one.boundary, one.bonus) for one in every.of(pod("told"), False).service.tiers] == [(0.5, 0.2)]
    assert every.of(pod("nothing"), False).service.tiers == ()
    assert every.of(pod("silent"), False).service.tiers == default_tiers(0.9)


def test_an_own_slo_is_at_most_that_of_the_class_and_alike_ones_are_one_promise() -> None:
    every = classes(silver={})
    promised = every.of(pod("silver", slo="0.5"), False)
    assert (promised.service.name, promised.service.slo) == ("silver@0.5", 0.5)
    assert every.of(pod("silver", slo=".50"), False) == promised
    assert every.remembered("silver@0.5", False) == promised
    assert every.of(pod("silver", slo="0.9"), False).service.slo == 0.9
    for text in ("0.91", "0", "0.0009", "-1", "nan", "much", "5e-1", "0_5"):
        with pytest.raises(Unschedulable, match=f"found '{text}', expected a number from 0.001 to 0.9, the promise"):
            every.of(pod("silver", slo=text), False)


def test_the_approach_is_the_pods_or_the_classs_and_a_jobs_is_aggregated() -> None:
    every = classes(silver={"approach": "concurrent"})

    def approach(one: Pod, batch: bool) -> int:
        found: Promised = every.of(one, batch)
        return found.approach

    assert approach(pod("silver"), False) == CONCURRENT
    assert approach(pod("silver", approach="aggregated"), False) == AGGREGATED
    assert approach(pod("silver"), True) == AGGREGATED
    with pytest.raises(Unschedulable, match="a Job's pods can only be aggregated"):
        approach(pod("silver", approach="concurrent"), True)
    with pytest.raises(Unschedulable, match="found 'sideways'"):
        approach(pod("silver", approach="sideways"), False)


def test_who_may_not_use_a_class_and_classes_that_are_gone_or_broken() -> None:
    every = classes(private={"namespaces": ["bank"]}, broken={"slo": 2.0}, shared={"namespaces": ["bank", "shop"]})
    assert every.of(pod("shared"), False).class_name == "shared"
    with pytest.raises(Unschedulable, match="may not be used in namespace shop"):
        every.of(pod("private"), False)
    with pytest.raises(Unschedulable, match=r"'broken' is malformed: .*slo"):
        every.of(pod("broken"), False)
    every.drop("shared")
    with pytest.raises(Unschedulable, match="'shared': does not exist"):
        every.of(pod("shared"), False)


def test_a_class_without_namespaces_may_be_used_by_none() -> None:
    with pytest.raises(Unschedulable, match=r"shop: it lists no namespaces, so none may use it; '\*' stands for all"):
        classes(c={"namespaces": []}).of(pod("c"), False)


def test_the_mapping_from_priority_classes_is_read_or_refused() -> None:
    assert mapping("a=gold, b = silver,,") == {"a": "gold", "b": "silver"}
    for text in ("a", "a=", "=gold"):
        with pytest.raises(ConfigError, match=f"priority_classes: found '{text}'"):
            mapping(text)


LIMITED: dict[str, Any] = {
    "disruptions": {"max": 2, "per": "1h"},
    "cooldown": "10m",
    "hours": [
        {"from": "22:00", "to": "06:00", "days": ["Sat"], "timeZone": "Europe/Berlin"},
        {"from": "01:00", "to": "02:00"},
    ],
    "minRunning": "5m",
}


def annotated(**annotations: str) -> Pod:
    """A pod of class ``gold``; ``min_running`` is the annotation slacktide.io/min-running."""
    names = {f"slacktide.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    metadata = {"name": "p", "namespace": "shop", "labels": {CLASS_LABEL: "gold"}, "annotations": names}
    return made_objects.decoded(POD, {"metadata": metadata, "spec": {}})


def test_a_class_says_what_its_workloads_may_suffer() -> None:
    found = classes(gold=LIMITED, plain={}).of(annotated(), False)
    hours = (Hours(("Sat",), 1320, 360, "Europe/Berlin"), Hours(DAYS, 60, 120))
    assert found.limits == found.service.limits == DisruptionLimits(2, 3600.0, 600.0, hours, 300.0)
    assert classes(gold={}).of(annotated(), False).limits is None
    assert classes(gold={"minRunning": "0s"}).of(annotated(), False).limits == DisruptionLimits(min_running=0.0)


def test_a_workload_may_be_stricter_than_its_class() -> None:
    every = classes(gold=LIMITED | {"ownLimits": {"longest": "2h", "hoursAWeek": 4}})
    said = every.of(
        annotated(disruptions="1 per 2h", cooldown="30m", min_running="10m", hours="Sun 00:00-24:00"), False
    )
    hours = (Hours(("Sat",), 1320, 360, "Europe/Berlin"), Hours(DAYS, 60, 120))
    own = (Hours(("Sun",), 0, 1440),)
    assert said.limits == DisruptionLimits(1, 7200.0, 1800.0, hours, 600.0, own)
    assert said.service == every.of(annotated(), False).service  # of one class
    assert every.of(annotated(), False).limits == said.service.limits
    assert classes(gold={}).of(annotated(cooldown="1m"), False).limits == DisruptionLimits(cooldown=60.0)


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({"disruptions": "3 per 1h"}, r"annotation slacktide.io/disruptions: .*found '3 per 3600s', expected no more"),
        ({"disruptions": "twice"}, r"annotation slacktide.io/disruptions: found 'twice', expected such as '1 per 2h'"),
        ({"cooldown": "9m"}, r"annotation slacktide.io/cooldown: cooldown: found 540.0, expected 600 or more"),
        ({"cooldown": "soon"}, r"annotation slacktide.io/cooldown: found 'soon', expected a duration such as 10m"),
        ({"min_running": "1s"}, r"annotation slacktide.io/min-running: min_running: found 1.0"),
        ({"hours": "at night"}, r"annotation slacktide.io/hours: hours: found 'at night', expected such as"),
    ],
)
def test_a_workload_that_would_be_less_strict_is_refused(annotations: dict[str, str], reason: str) -> None:
    with pytest.raises(Unschedulable, match=reason):
        classes(gold=LIMITED).of(annotated(**annotations), False)


def test_a_workload_says_how_long_it_takes_to_start_in_place_of_its_class() -> None:
    every = classes(gold={"alpha": "1m30s"}, plain={})
    alphas = [every.of(annotated(**said), False).service.alpha for said in ({}, {"alpha": "3m"}, {"alpha": " 0 "})]
    assert alphas == [90.0, 180.0, 0.0]
    said = [every.of(annotated(**said), False) for said in ({}, {"alpha": "180"}, {"alpha": "3m"})]
    assert [one.own_alpha for one in said] == [False, True, True]
    assert said[1] == said[2]  # of one class
    assert {(one.service.name, one.service.rank, one.class_name) for one in said} == {("gold", 2, "gold")}
    both = every.of(annotated(alpha="3m", slo="0.5"), False).service
    assert (both.name, both.slo, both.alpha) == ("gold@0.5", 0.5, 180.0)
    assert classes(gold={}).of(annotated(), False).service.alpha is None


def test_more_than_a_start_may_take_is_not_held_back_for_one() -> None:
    """Whoever could hold back what he likes would come before his equals."""
    every = Classes(longest_start=300.0)
    spec = {"slo": 0.9, "rank": 2, "alpha": "10m", "namespaces": ["*"]}
    every.see(made_objects.decoded(SERVICE_CLASS, {"metadata": {"name": "gold"}, "spec": spec}))
    alphas = [every.of(annotated(alpha=text), False).service.alpha for text in ("299s", "5m", "1h")]
    assert alphas == [299.0, 300.0, 300.0]
    assert every.of(annotated(), False).service.alpha == 600.0  # whoever writes classes may
    for text in ("3601", "1h1s", "soon", ""):
        with pytest.raises(Unschedulable, match=f"annotation slacktide.io/alpha: alpha: found '{text}', expected"):
            every.of(annotated(alpha=text), False)


def test_a_class_that_says_no_start_up_time_that_can_be_is_malformed() -> None:
    assert classes(gold={"alpha": "2h"}).broken["gold"] == "alpha: found '2h', expected at most 1h"
    assert "alpha: found 'soon', expected seconds" in classes(gold={"alpha": "soon"}).broken["gold"]


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({"disruptions": "0 per 1h"}, "disruptions: found 0, expected at least 1 within some time"),
        ({"disruptions": "1 per 61m"}, "disruptions.per: found 1h1m, expected 1h at most"),
        ({"disruptions": "9 per 14000w"}, "disruptions.per: found 98000d, expected 1h at most"),
        ({"cooldown": "3601"}, "cooldown: found 1h1s, expected 1h at most"),
        ({"min_running": "2h"}, "min_running: found 2h, expected 1h at most"),
        ({"min_running": "99999w"}, "min_running: found 60479395200.0, expected seconds from 0 to 8.58993e[+]09"),
        ({"cooldown": "999999w"}, "cooldown: found 604799395200.0, expected seconds from 0"),
        ({"disruptions": "1 per 99999w"}, "disruptions.per: found 60479395200.0"),
        ({"disruptions": "65 per 1h"}, "disruptions.max: found '65', expected a whole number from 0 to 64"),
        ({"hours": "Sun 03:00-03:01"}, "hours: found 0.0 of each week, expected 40.0 at least"),
        ({"hours": "Mon-Thu 22:00-06:00; Fri 22:00-05:59"}, "hours: found 40.0 of each week"),
        ({"hours": ";".join(["Mon-Sun 00:00-24:00"] * 33)}, "hours: found 33 entries, expected at most 32"),
    ],
)
def test_nobody_makes_himself_untouchable(annotations: dict[str, str], reason: str) -> None:
    """Unless he runs already: then the limits of his class hold, so that he is somebody's victim as all of it are."""
    every = classes(gold={})
    with pytest.raises(Unschedulable, match=f"annotation slacktide.io/.*: {reason}"):
        every.of(annotated(**annotations), False)
    running = every.of(on_node(annotated(**annotations)), False)
    assert running.limits == every.of(annotated(), False).limits
    assert running.service == every.of(annotated(), False).service


def on_node(pod: Pod) -> Pod:
    return replace_struct(pod, spec=replace_struct(pod.spec, node_name="a"))


def test_of_who_runs_only_what_cannot_be_counts_for_nothing() -> None:
    every = classes(gold=LIMITED | {"cooldown": ""})
    found = every.of(on_node(annotated(cooldown="30m", min_running="99999w", slo="much", approach="best")), False)
    limits = every.of(annotated(), False).limits
    assert limits is not None
    assert found.limits == replace(limits, cooldown=1800.0)
    assert (found.service.slo, found.approach) == (0.9, INDEPENDENT)
    assert every.of(on_node(annotated(approach="concurrent")), True).approach == AGGREGATED


def test_a_class_says_for_how_long_its_workloads_may_keep_disruptions_away() -> None:
    long = {"disruptions": "1 per 2d", "cooldown": "2d", "min_running": "2d", "hours": "Sun 03:00-04:00"}
    for spec in ({"untouchable": True}, {"longest": "2d", "hoursAWeek": 1}):
        assert classes(gold={"ownLimits": spec}).of(annotated(**long), False).limits is not None
    assert classes(gold={"ownLimits": {"untouchable": True}}).of(annotated(disruptions="0 per 1h"), False).limits
    for name, text in long.items():
        with pytest.raises(Unschedulable, match=f"slacktide.io/{name.replace('_', '-')}: "):
            classes(gold={"ownLimits": {"longest": "1d", "hoursAWeek": 2}}).of(annotated(**{name: text}), False)


def test_what_a_class_keeps_away_itself_its_workloads_may_as_well() -> None:
    every = classes(
        gold={"cooldown": "3h", "minRunning": "3h", "disruptions": {"max": 0, "per": "1h"},
              "hours": [{"from": "01:00", "to": "02:00"}]}
    )  # fmt: skip
    for own in (
        {"cooldown": "3h"},
        {"min_running": "3h"},
        {"disruptions": "0 per 1h"},
        {"hours": "Mon-Sun 01:00-02:00"},
    ):
        assert every.of(annotated(**own), False).limits is not None
    for own in ({"cooldown": "4h"}, {"min_running": "4h"}, {"hours": "Sat,Sun 00:00-24:00"}):
        with pytest.raises(Unschedulable):
            every.of(annotated(**own), False)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"longest": "long"}, "ownLimits: longest: found 'long', expected seconds, or numbers"),
        ({"longest": "99999w"}, "ownLimits: longest: found '99999w', expected"),
        ({"hoursAWeek": 169}, "ownLimits: hoursAWeek: found 169, expected 0 to 168"),
    ],
)
def test_an_allowance_that_cannot_be_makes_a_class_malformed(spec: dict[str, Any], problem: str) -> None:
    assert classes(gold={"ownLimits": spec}).broken["gold"].startswith(problem)


@pytest.mark.parametrize(
    "promise",
    [
        Promise("a", 0.9, 2),
        Promise("slow", 0.9, 2, alpha=180.0),
        Promise("quick", 0.9, 2, alpha=0.0),
        Promise("b", 0.999, 1, 5.0, 0.2, (), Window(rolling=86_400.0, budget="whole")),
        Promise("c", 0.5, 3, window=Window(calendar="1M", time_zone="Europe/Berlin", start="2026-01-15T06:00:00")),
        Promise(
            "d", 0.5, 3, limits=DisruptionLimits(2, 0.25, 600.0, (Hours(("Sat",), 1320, 360, "Asia/Tokyo"),), 90.0)
        ),
        Promise("e", 0.5, 3, limits=DisruptionLimits(0, 3600.0)),
        Promise("f", 0.5, 3, limits=DisruptionLimits(min_running=0.0)),
    ],
    ids=lambda one: one.name,
)
def test_a_class_of_the_settings_is_the_same_as_a_resource(promise: Promise) -> None:
    """As a dry run has it in a cluster that knows no ServiceClass: window and limits, too."""
    assert promise_of(resource_of(promise)) == promise


def test_a_window_that_names_no_budget_has_a_whole_one() -> None:
    """Said or not, it is written out."""
    month = {"rolling": "30d"}
    for said, budget in ((month, "whole"), ({"calendar": "1M"}, "whole"), (month | {"budget": "accrued"}, "accrued")):
        promise = classes(gold={"window": said}).of(pod("gold"), False).service
        assert promise.window is not None
        assert promise.window.budget == budget
        written = resource_of(promise).spec.window
        assert written is not None
        assert written.budget == budget


def test_no_window_is_longer_than_it_says() -> None:
    for window in (Window(calendar=f"{number}{unit}") for number in (1, 2, 5) for unit in "dwMQY"):
        begins = turns(replace(window, time_zone="Europe/Berlin"), parse_epoch(EPOCH), 0.0, 9e8)
        assert 0.9 * window.longest < max(b - a for a, b in itertools.pairwise(begins)) <= window.longest


def test_the_fields_of_a_preemption_limit_of_kueue_are_a_limit() -> None:
    kueue = {"scope": "PreemptedWorkload", "limit": 2, "limitWindowSeconds": 3600}
    limits = classes(gold={"preemptionLimit": kueue}).of(annotated(), False).limits
    assert limits == classes(gold={"disruptions": {"max": 2, "per": "1h"}}).of(annotated(), False).limits
    assert limits == DisruptionLimits(2, 3600.0)
    broken = classes(gold={"preemptionLimit": kueue | {"scope": "Global"}}).broken["gold"]
    assert "preemption_limit.scope: found 'Global', expected 'PreemptedWorkload'" in broken


def test_a_class_with_limits_that_cannot_be_is_malformed() -> None:
    every = classes(gold={"hours": [{"from": "01:00", "to": "02:00", "timeZone": "Europe/Atlantis"}]})
    assert "Europe/Atlantis" in every.broken["gold"]
    assert "disruptions.max" in classes(gold={"disruptions": {"max": 65, "per": "1h"}}).broken["gold"]


@pytest.mark.parametrize("label", ["", "gold"])
def test_where_there_is_no_class_at_all_it_is_said_what_to_apply(label: str) -> None:
    known = classes()
    with pytest.raises(Unschedulable, match="the cluster has no ServiceClass: kubectl apply -f examples"):
        known.of(pod(label), batch=False)
    assert (REPOSITORY / "examples" / "kubernetes" / "01-classes.yaml").exists()
    known.see(made_objects.decoded(SERVICE_CLASS, {"metadata": {"name": "other"}, "spec": {"slo": 0.9, "rank": 2}}))
    with pytest.raises(Unschedulable) as problem:
        known.of(pod(label), batch=False)
    assert "at all" not in problem.value.reason
