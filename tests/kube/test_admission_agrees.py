"""Admission refuses what the scheduler refuses, and nothing else: both have their bounds from one place."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from slacktide.kube.act.eviction import stays
from slacktide.kube.resources.objects import POD, SERVICE_CLASS
from slacktide.kube.translate.service_classes import CLASS_LABEL, Classes
from slacktide.kube.translate.unschedulable import Unschedulable
from slacktide.model import limit_texts
from slacktide.model.hours import DAYS
from support import made_objects
from support.admission import refusals

Json = dict[str, Any]

NUMBERS = some.from_regex(r"[0-9]{1,13}(\.[0-9]{1,10})?", fullmatch=True) | some.integers(0, 200).map(str)
DURATIONS = some.lists(some.tuples(NUMBERS, some.sampled_from("wdhms")), max_size=3).map(
    lambda parts: "".join(number + unit for number, unit in parts)
)
LIMITS = (
    DURATIONS
    | NUMBERS
    | some.sampled_from(["", "99999w", "14202w", "14203w", "8589934592", "8589934593", "1h ", "  5m"])
)
CLOCKS = some.tuples(some.integers(0, 25), some.integers(0, 61)).map(lambda at: f"{at[0]:02}:{at[1]:02}")
DAY = some.sampled_from(DAYS) | some.tuples(some.sampled_from(DAYS), some.sampled_from(DAYS)).map("-".join)
ENTRIES = some.tuples(some.lists(DAY, min_size=1, max_size=3).map(",".join), CLOCKS, CLOCKS).map(
    lambda parts: f"{parts[0]} {parts[1]}-{parts[2]}"
)
ANNOTATIONS: dict[str, some.SearchStrategy[str]] = {
    "disruptions": some.tuples(some.integers(0, 70).map(str), LIMITS).map(" per ".join)
    | some.text("0123456789per hmd", max_size=20),
    "cooldown": LIMITS | some.text("0123456789.hmdws ", max_size=16),
    "min-running": LIMITS | some.text("0123456789.hmdws ", max_size=16),
    "hours": some.lists(ENTRIES, max_size=4).map("; ".join) | some.text("MonSun0123456789:- ;", max_size=30),
    "slo": NUMBERS | some.floats(0, 1).map(str) | some.text("0123456789.e-", max_size=6),
}
CLASSES: list[Json] = [
    {},
    {"cooldown": "10m", "minRunning": "5m", "disruptions": {"max": 2, "per": "1h"}},
    {"disruptions": {"max": 0, "per": "1h"}, "ownLimits": {"longest": "2d", "hoursAWeek": 3, "untouchable": False}},
    {"ownLimits": {"longest": "0s", "hoursAWeek": 168, "untouchable": False}, "minRunning": "3h"},
    {"ownLimits": {"longest": "1h", "hoursAWeek": 40, "untouchable": True}},
    {"preemptionLimit": {"scope": "PreemptedWorkload", "limit": 1, "limitWindowSeconds": 90}},
]


def told(name: str, text: str) -> Json:
    metadata = {
        "name": "p", "namespace": "shop", "labels": {CLASS_LABEL: "gold"}, "annotations": {f"slacktide.io/{name}": text}
    }  # fmt: skip
    return {"metadata": metadata, "spec": {"schedulerName": "slacktide"}}


def of_class(spec: Json) -> Json:
    return {
        "metadata": {"name": "gold"},
        "spec": {"slo": 0.95, "rank": 1, "default": False, "namespaces": ["*"]} | spec,
    }


def by_admission(pod: Json, spec: Json) -> list[str]:
    return refusals("annotations", pod) + refusals("class", pod, of_class(spec))


def by_scheduler(pod: Json, spec: Json) -> str:
    classes = Classes()
    classes.see(made_objects.decoded(SERVICE_CLASS, of_class(spec)))
    assert not classes.broken
    try:
        classes.of(made_objects.decoded(POD, pod), False)
    except Unschedulable as problem:
        return problem.reason
    return ""


def check(name: str, text: str, spec: Json) -> None:
    pod = told(name, text)
    admission, scheduler = by_admission(pod, spec), by_scheduler(pod, spec)
    assert bool(admission) == bool(scheduler), (admission, scheduler)


@pytest.mark.parametrize("name", ["disruptions", "cooldown", "min-running", "slo"])
@pytest.mark.parametrize("spec", CLASSES, ids=str)
@settings(max_examples=15)
@given(some.data())
def test_both_refuse_the_same(name: str, spec: Json, data: some.DataObject) -> None:
    check(name, data.draw(ANNOTATIONS[name]), spec)


@settings(max_examples=100)
@given(ANNOTATIONS["hours"], some.sampled_from(CLASSES))
@example("Sun 03:00-03:01", {})
@example("Sat,Sun 00:00-24:00", {})
@example("Mon-Fri 22:00-06:00", {})
@example("Mon-Fri 22:00-05:59", {})
@example("Fri-Mon 00:00-24:00", {})
@example("Mon 12:00-12:00", {})
@example("Mon 24:00-12:00", {})
@example("Mon-Sun 00:00-24:00;" * 32 + "Mon-Sun 00:00-24:00", {})
def test_both_refuse_the_same_hours(text: str, spec: Json) -> None:
    """Where entries overlap, admission counts some hours twice, and lets through what the scheduler refuses."""
    pod = told("hours", text)
    admission, scheduler = by_admission(pod, spec), by_scheduler(pod, spec)
    if not scheduler:
        assert not admission
    elif "of each week" not in scheduler or (";" not in text and "," not in text):
        assert admission, scheduler


@pytest.mark.parametrize("text", ["Mon 25:00-26:99", "Mon 10:00-11:00 Mars/Olympus", "Mon 10:00-11:00 Utopia"])
def test_hours_that_no_clock_and_no_place_has_are_refused_by_both(text: str) -> None:
    (refused,) = refusals("annotations", told("hours", text))
    assert (
        refused
        == f"annotation slacktide.io/hours: found '{text}', expected such as 'Sat,Sun 00:00-24:00 Europe/Berlin'"
    )
    assert by_scheduler(told("hours", text), {"ownLimits": {"hoursAWeek": 0}})


def test_every_time_zone_may_be_named() -> None:
    for zone in available_timezones() - {"localtime", "Factory"}:  # these say nothing of a place
        assert limit_texts.is_written("hours", f"Sat,Sun 00:00-24:00 {zone}"), zone


def test_what_happens_at_a_resize_is_one_of_two_words() -> None:
    for text in ("jump", "Move", "move "):
        (refused,) = refusals("annotations", told("on-resize", text))
        assert refused == f"annotation slacktide.io/on-resize: found '{text}', expected move or stay"
        assert "expected move or stay" in stays(made_objects.decoded(POD, told("on-resize", text)))
    for text in ("move", "stay", ""):
        assert refusals("annotations", told("on-resize", text)) == []
        assert "expected" not in stays(made_objects.decoded(POD, told("on-resize", text)))


@pytest.mark.parametrize("text", ["99999w", "14203w", "8589934593", "999999999999w"])
def test_what_is_longer_than_the_longest_time_is_refused_by_both(text: str) -> None:
    untouchable = {"ownLimits": {"untouchable": True}}
    for name in ("cooldown", "min-running"):
        (refused,) = by_admission(told(name, text), untouchable)
        assert f"slacktide.io/{name}: found '{text}'" in refused
        assert by_scheduler(told(name, text), untouchable)
        assert not by_admission(told(name, "14202w"), untouchable)
        assert not by_scheduler(told(name, "14202w"), untouchable)


def test_nobody_makes_himself_untouchable_at_admission() -> None:
    for name, text, said in (
        ("disruptions", "0 per 1h", "expected at least 1: service class 'gold'"),
        ("disruptions", "1 per 2h", "expected none of more than 1h"),
        ("cooldown", "2h", "expected none of more than 1h"),
        ("min-running", "99999s", "expected none of more than 1h"),
        ("hours", "Sun 03:00-03:01", "expected at least 40 hours of each week"),
    ):
        (refused,) = by_admission(told(name, text), {})
        assert said in refused
        assert not by_admission(told(name, text), {"ownLimits": {"untouchable": True}})
