"""The program that measures promises over windows (bench/promises.py): its inputs, and what it says of a run."""

from __future__ import annotations

import csv
import importlib
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from slacktide.metrics.windows import Outages, worst_windows
from slacktide.settings import load
from slacktide.sim import EVENT_KINDS, run
from support.repository import REPOSITORY

DAY, HOUR = 86_400.0, 3600.0


@pytest.fixture(scope="module")
def bench() -> Iterator[dict[str, Any]]:
    """Modules of the folder bench, by name."""
    before = list(sys.path)
    sys.path.insert(0, str(REPOSITORY / "bench"))
    names = ("promises", "promises_figure", "promises_parts.inputs", "promises_parts.outcome")
    yield {name.split(".")[-1]: importlib.import_module(name) for name in names}
    sys.path[:] = before


def counts(one: Any) -> dict[str, int]:
    found = np.bincount(one.workload.service_class, minlength=len(one.workload.classes))
    return {each.name: int(count) for each, count in zip(one.workload.classes, found, strict=True)}


def test_mixes_ask_for_what_they_say(bench: dict[str, Any]) -> None:
    mix = bench["inputs"].mix()
    assert counts(mix) == {"gold": 56, "silver": 74, "bronze": 131}
    peak = bench["inputs"].peak(120)
    assert counts(peak)["bronze"] == 97
    ends = np.isfinite(peak.workload.duration)
    noon = peak.workload.admission[ends] % DAY
    assert noon.min() >= 9 * HOUR
    assert noon.max() <= 9.5 * HOUR
    day = ends & (peak.workload.admission < DAY)
    assert 120 <= peak.workload.demand[day, 0].sum() < 124


@pytest.mark.parametrize("load_", [0.9, 1.0, 1.3])
def test_a_load_is_near_its_share_and_part_of_a_larger_one(bench: dict[str, Any], load_: float) -> None:
    less, more = bench["inputs"].loaded(load_), bench["inputs"].loaded(load_ + 0.05)
    capacity = less.hosts.capacity[:, 0].sum()
    assert load_ * capacity - 4 < less.workload.demand[:, 0].sum() <= load_ * capacity
    rows = [
        set(zip(one.workload.admission, one.workload.demand[:, 0], one.workload.service_class, strict=True))
        for one in (less, more)
    ]
    assert rows[0] < rows[1]


def test_growth_adds_a_hundredth_of_the_capacity_a_day(bench: dict[str, Any]) -> None:
    one = bench["inputs"].growth()
    capacity, workload = one.hosts.capacity[:, 0].sum(), one.workload
    for day in (1, 20, 40, 59):
        asked = workload.demand[workload.admission < day * DAY, 0].sum() / capacity
        assert asked == pytest.approx(min(0.9 + (day - 1) / 100, 1.3), abs=4.01 / capacity)


@pytest.mark.parametrize("seed", range(20))
def test_drawn_outages_do_not_overlap_and_jobs_promise_over_their_lives(bench: dict[str, Any], seed: int) -> None:
    one = bench["inputs"].drawn(seed)
    for host in {host for host, _, _ in one.away}:
        spans = sorted((since, until) for which, since, until in one.away if which == host)
        assert all(since < until for since, until in spans)
        assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))
    endless = np.isinf(one.workload.duration)
    names = np.array([each.name for each in one.workload.classes])[one.workload.service_class]
    assert ((names == "peak") == ~endless).all()


def test_several_values_are_several_inputs(bench: dict[str, Any]) -> None:
    found = [one.name for one in bench["inputs"].inputs("equal:n=21..23,slo=.9/.99,window=1d")]
    assert found[:3] == ["21 of 0.9 on 20, 1d", "21 of 0.99 on 20, 1d", "22 of 0.9 on 20, 1d"]
    assert len(found) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("equl", "found 'equl', expected one of equal"),
        ("equal:m=3", "found 'm', expected some of n, slo"),
        ("equal:n=few", "found 'few', expected int"),
    ],
)
def test_what_is_no_input_is_refused(bench: dict[str, Any], text: str, said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        list(bench["inputs"].inputs(text))


def test_a_policy_of_ones_own_has_a_base_settings_and_a_limit(bench: dict[str, Any]) -> None:
    found = bench["promises"].policy("few=published,limit=.05,policy.patience=5", ["policy.floor=0"])
    assert (found.name, found.preset, found.limit) == ("few", "published", 0.05)
    assert found.words == ("policy.patience=5", "policy.floor=0")
    assert bench["promises"].policy("priority", ["policy.floor=0"]).words == ("policy.name=priority",)
    with pytest.raises(SystemExit, match="found 'fast', expected one of priority"):
        bench["promises"].policy("fast", [])


def test_a_limit_and_a_budget_hold_for_all_classes(bench: dict[str, Any]) -> None:
    one = bench["inputs"].peak().promising("whole", 0.25)
    assert {each.overhead_limit for each in one.workload.classes} == {0.25}
    assert [each.window and each.window.budget for each in one.workload.classes] == ["whole"] * 3 + [None]


def test_the_figure_shows_what_was_measured_and_nothing_above_the_bound(bench: dict[str, Any]) -> None:
    figures, about = REPOSITORY / "docs" / "figures", bench["promises_figure"]
    with (figures / "promises.csv").open(encoding="utf-8") as file:
        rows = [tuple(row) for row in csv.reader(file)][1:]
    assert about.drawing(rows) == (figures / "promises.svg").read_text(encoding="utf-8")
    most = {row[:3]: [int(kept) for kept in row[4].split()] for row in rows if row[3] == about.BOUND}
    assert len(most) == len(about.WINDOWS) * len(about.BUDGETS) * len(about.LOADS)
    lines = {row[3] for row in rows}
    assert len(rows) == len(most) * len(lines)
    for row in rows:
        assert [int(kept) for kept in row[4].split()] <= most[row[:3]]


@pytest.mark.parametrize("text", ["short:n=24", "zone:hours=6,bronze=200", "minutes", "grouped"])
@pytest.mark.parametrize("policy", ["priority", "recommended"])
def test_the_longest_wait_and_the_promises_kept_are_those_of_the_events(
    bench: dict[str, Any], text: str, policy: str, tmp_path: Any
) -> None:
    (one,) = bench["inputs"].inputs(text)
    chosen = bench["promises"].policy(policy, [])
    found = bench["outcome"].measured(one, chosen)
    words = [*bench["outcome"].words_of(one, one.end, tmp_path), *chosen.words]
    result = run(one.workload, one.hosts, load(None, chosen.preset, words), events=True)
    since: dict[int, float] = {}
    spans: dict[int, list[tuple[float, float]]] = {row: [] for row in range(len(one.workload))}
    events = result.events
    assert events is not None
    for kind, row, time in zip(*(events[name].tolist() for name in ("kind", "row", "time")), strict=True):
        if EVENT_KINDS[kind] in ("admitted", "preempted", "evicted"):
            since[row] = time
        elif EVENT_KINDS[kind] in ("placed", "completed", "removed") and row in since:
            spans[row].append((since.pop(row), time))
    for row, time in since.items():
        spans[row].append((time, one.end))
    longest = np.zeros(len(one.workload.classes))
    for row, waits in spans.items():
        code = one.workload.service_class[row]
        longest[code] = max([longest[code], *(until - begin for begin, until in waits)])
    assert found.longest == pytest.approx((longest / HOUR).tolist())
    assert found.preemptions == result.preemptions
    for code, own in enumerate(one.workload.classes):
        # Without start-ups at least as many have what they were promised.
        if own.window is None or one.workload.requests is not None:
            continue
        rows = np.flatnonzero(one.workload.service_class == code).tolist()
        lives = [
            Outages.of(
                [until for _, until in spans[row]],
                [until - begin for begin, until in spans[row]],
                float(one.workload.admission[row]),
                one.end,
            )
            for row in rows
        ]
        worst = [float(worst_windows(life, [own.window.rolling or 0.0])[0]) for life in lives]
        assert found.kept[code] <= sum(one >= own.slo - 1e-9 for one in worst)
