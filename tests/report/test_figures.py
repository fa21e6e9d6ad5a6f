"""What figures are drawn from, on tables written by hand, and drawings of grids of unusual shapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from slacktide import drawing
from slacktide.model import ServiceClass
from slacktide.reporting import as_published, over_time, promises, reduce, scores, totals
from slacktide.reporting.assemble import paired_with_reference
from slacktide.reporting.figure import Figure, Rows, Scene, drawn
from slacktide.reporting.gather import Member
from slacktide.results.experiment import Run

CLASSES = (ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 3))
SLOS = {one.name: one.slo for one in CLASSES}


def scene(workloads: int = 1, hosts: int = 1, policies: int = 2, classes: int = 2) -> Scene:
    listed = {f"class {number}": 1.0 - 0.1 * number for number in range(classes)} if classes != 2 else SLOS
    return Scene(
        tuple(f"workload {number}" for number in range(workloads)),
        tuple(f"hosts {number}" for number in range(hosts)),
        tuple(f"policy {number}" for number in range(policies)),
        tuple(listed),
        listed,
        "policy 0",
    )


def member(policy: str, end: float = 300.0) -> Member:
    run = Run("key", "workload 0", "hosts 0", policy, 1, Path("nowhere"), None)
    return Member(run, 0, {"totals": {"operations": 5, "passes": 2}}, CLASSES, "restart", "priority", end)


def picture(figure: Figure, sheet: drawing.Sheet = drawing.PAGE) -> Any:
    """It, drawn for a sheet."""
    assert figure.draw is not None
    return figure.draw(sheet)


def texts(figure: Figure) -> list[str]:
    """All text of a drawing, which is well-formed."""
    root = ElementTree.fromstring(drawing.svg(picture(figure), figure.key, figure.title, figure.description))
    return [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")]


def test_curves_tell_how_many_got_at_least_an_availability() -> None:
    kept = reduce.Availabilities(scene())
    table = {"class": ["bronze"] * 4, "availability_restart": [0.0, 0.3, 0.5, 1.0]}
    kept.add(member("policy 0"), pa.table(table))
    curve = {row["availability"]: row["share"] for row in kept.curves()}
    assert (curve[0.0], curve[0.01], curve[0.3], curve[0.31], curve[0.5], curve[0.51], curve[1.0]) == (
        *(1.0, 0.75, 0.75, 0.5),
        *(0.5, 0.25, 0.25),
    )
    assert 0.4 not in curve  # between equal neighbours
    bins, (summary,) = kept.deficits()
    assert (summary["missed"], summary["share"], summary["mean"]) == (2, 0.5, pytest.approx(0.35))
    # Bins of 0.0125 with their upper edges: 0.2 and 0.5 are the ends of theirs.
    assert [(round(row["deficit"], 9), row["requests"]) for row in bins] == [(0.1875, 1), (0.4875, 1)]


def test_demand_counts_from_admission_to_the_end_of_the_duration() -> None:
    table = {
        "class": ["gold", "bronze", "bronze"],
        "admission": [0.0, 30.0, 120.0],
        "duration": [None, 90.0, 60.0],  # the first is endless
        "demand_cpu": [1.0, 0.25, 0.5],
    }
    rows = reduce.demand(pa.table(table), member("policy 0"), ["cpu"])
    level = {(row["class"], row["time"]): row["demand"] for row in rows}
    assert [level["gold", time] for time in (0.0, 60.0, 300.0)] == [1.0, 1.0, 1.0]
    assert [level["bronze", time] for time in (0.0, 60.0, 120.0, 180.0)] == [0.0, 0.25, 0.5, 0.0]


def test_demand_of_a_batch_is_that_of_those_at_work_at_once() -> None:
    table = {
        "class": ["gold", "bronze", "bronze"],
        "admission": [0.0, 0.0, 0.0],
        "duration": [60.0, 60.0, None],
        "instances": [24, 5, 3],
        "parallelism": [8, 2, None],
        "demand_cpu": [24.0, 5.0, 3.0],
    }
    rows = reduce.demand(pa.table(table), member("policy 0"), ["cpu"])
    level = {(row["class"], row["time"]): row["demand"] for row in rows}
    assert [level["gold", 60.0 * minute] for minute in range(4)] == [8, 8, 8, 0]
    assert [level["bronze", 60.0 * minute] for minute in range(4)] == [5, 5, 4, 3]


def test_the_increment_is_that_of_the_papers() -> None:
    def run(policy: str, penalty: float, replicate: int = 0) -> dict[str, Any]:
        place = {"workload": "workload 0", "hosts": "hosts 0", "policy": policy, "replicate": replicate}
        return {**place, "class": "bronze", "penalty": penalty}

    def increment(*rows: dict[str, Any]) -> tuple[Any, Any]:
        (found,) = scores.increments(list(rows), scene())
        return found["value"], found["text"]

    assert increment(run("policy 0", 2.937), run("policy 1", 1.0)) == (pytest.approx(193.7), None)
    assert increment(run("policy 0", 0.5), run("policy 1", 1.0)) == (pytest.approx(-50.0), None)
    assert increment(run("policy 0", 0.5), run("policy 1", 0.0)) == (None, "∞")
    assert increment(run("policy 0", 0.0), run("policy 1", 0.0)) == (0.0, "none owed")
    # A seed that only one of them has finished does not count.
    assert increment(run("policy 0", 3.0), run("policy 0", 9.0, 1), run("policy 1", 2.0))[0] == pytest.approx(50.0)


def test_shares_of_quadrants_sum_to_one() -> None:
    cells: Rows = [
        {"hosts": "N", "class": "gold", "quadrant": quadrant, "requests": count}
        for quadrant, count in (("both", 6), ("both", 1), ("neither", 3))
    ]
    found = {row["quadrant"]: row["share"] for row in reduce.shares(cells)}
    assert found == {"both": 0.7, "only other": 0.0, "only reference": 0.0, "neither": 0.3}


def series(workloads: int, hosts: int, policies: int, skip: Any = lambda *_: False) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "workload": f"workload {workload}",
                "hosts": f"hosts {host}",
                "policy": f"policy {policy}",
                "time": time,
                "queue": time * (policy + 1),
            }
            for workload in range(workloads)
            for host in range(hosts)
            for policy in range(policies)
            for time in (600.0, 1200.0)
            if not skip(workload, host)
        ]
    )


def queue(table: pa.Table, about: Scene) -> Figure:
    return over_time.lines(table, "queue", about, key="queue", title="Queue", axis="waiting", reading="")


def test_of_many_workloads_and_host_sets_some_are_drawn_and_this_is_said() -> None:
    figure = queue(series(9, 7, 2), scene(9, 7))
    assert list(figure.notes) == [
        "Drawn: the first 6 of 9 workloads; the table has all of them.",
        "Drawn: the first 6 of 7 host sets; the table has all of them.",
    ]
    assert figure.table.num_rows == 9 * 7 * 2 * 2
    found = texts(figure)
    assert "workload 5" in found
    assert "workload 6" not in found


def test_host_sets_of_one_workload_each_leave_no_empty_panels() -> None:
    figure = queue(series(2, 4, 2, lambda workload, host: host // 2 != workload), scene(2, 4))
    titles = [text for text in texts(figure) if text.startswith("workload")]
    assert titles == ["workload 0, hosts 0", "workload 0, hosts 1", "workload 1, hosts 2", "workload 1, hosts 3"]


def test_eight_classes_and_ten_policies_are_drawn() -> None:
    about = scene(1, 1, 10, 8)
    table = pa.Table.from_pylist(
        [
            {"hosts": "hosts 0", "class": name, "policy": policy, "availability": at, "share": 1.0 - at / 2}
            for name in about.classes
            for policy in about.policies
            for at in (0.0, 0.5, 1.0)
        ]
    )
    found = texts(promises.availabilities(table, about))
    assert {f"policy {number}" for number in range(10)} <= set(found)
    assert {f"class {number}, hosts 0" for number in range(8)} <= set(found)
    missed = [
        {"hosts": "hosts 0", "class": name, "policy": policy, "missed": 0, "share": 0.0, "mean": 0.0}
        for name in about.classes
        for policy in about.policies
    ]
    nothing = promises.deficits(pa.table({}), pa.Table.from_pylist(missed), about)
    assert nothing.draw is None
    assert nothing.description == "No promise was broken in any finished run."


def test_a_class_without_requests_leaves_the_others_their_room() -> None:
    about = scene(classes=3)
    rows = [
        {"hosts": "hosts 0", "class": name, "policy": policy, "availability": at, "share": 1.0 - at / 2}
        for name in about.classes[:2]
        for policy in about.policies
        for at in (0.0, 0.5, 1.0)
    ]
    figure = promises.availabilities(pa.Table.from_pylist(rows), about)
    laid = picture(figure)
    drawing.svg(laid, "a", "a", "a")
    assert len(laid.axes) == 2  # no empty panel of the third
    top = laid.axes[0].get_position()
    assert (top.x0, top.x1) == (pytest.approx(0.0, abs=0.1), pytest.approx(0.5, abs=0.05))
    sums = [
        {"hosts": "hosts 0", "class": name, "policy": "policy 0", "missed": 1, "share": 0.5, "mean": 0.1}
        for name in about.classes[:2]
    ]
    bins = [
        {"hosts": "hosts 0", "class": "class 0", "policy": "policy 0", "deficit": 0.1, "size": 0.0125, "requests": 1}
    ]
    found = texts(promises.deficits(pa.Table.from_pylist(bins), pa.Table.from_pylist(sums), about))
    assert found.count("not run") == 2


def test_maps_and_measures_of_many_classes_stay_readable() -> None:
    about = scene(hosts=2, classes=8)
    cells = [
        {"hosts": one, "class": name, "x": 0.95, "y": 0.5, "size": 0.05, "quadrant": "neither", "requests": 3}
        for one in about.hosts
        for name in about.classes[:7]
    ]
    maps = promises.pairs(pa.Table.from_pylist(cells), pa.Table.from_pylist(reduce.shares(cells)), "policy 1", about, 1)
    assert texts(maps).count("100 %") == 14
    laid = picture(maps)
    drawing.svg(laid, "m", "m", "m")
    shown = [axes for axes in laid.axes if axes.get_title(loc="left")]
    assert len(shown) == 14
    assert min(axes.get_window_extent().width / laid.dpi for axes in shown) > 1.5  # inches
    assert sum(bool(axes.get_xlabel()) for axes in shown) == 3
    rows = [
        {
            "level": "high", "class": name, "policy": policy, "metric": metric, "mean": 0.5, "low": None, "high": None,
        }
        for name in about.classes
        for policy in about.policies
        for metric in totals.MEASURES
    ]  # fmt: skip
    figure = totals.fairness(pa.Table.from_pylist(rows), about, "10 minutes")
    laid = picture(figure)
    drawing.svg(laid, "f", "f", "f")
    assert min(axes.get_window_extent().width / laid.dpi for axes in laid.axes) > 2.0


def test_bars_stand_in_the_middle_of_their_group_also_without_the_reference() -> None:
    rows = [
        {"hosts": "hosts 0", "policy": f"policy {number}", "value": 1.0, "low": None, "high": None} for number in (1, 2)
    ]
    figure = totals.bars(
        pa.Table.from_pylist(rows), scene(policies=3), key="b", title="B", axis="x", idle="", reading="", description=""
    )
    middles = [bar.get_x() + bar.get_width() / 2 for bar in picture(figure).axes[0].patches]
    assert sum(middles) == pytest.approx(0.0)


def test_of_many_policies_those_are_drawn_that_matter() -> None:
    about = scene(policies=30)
    shown, (note,) = drawn(about, "policy 20")
    assert shown.policies == (*(f"policy {number}" for number in range(7)), "policy 20")
    assert note == "Drawn: 8 of 30 policies; the table has all of them."
    assert len({look.colour for look in shown.policy_looks.values()}) == 8
    assert paired_with_reference(shown, "policy 20") == ("policy 1", "policy 2", "policy 3", "policy 20")
    assert drawn(scene(policies=8), None) == (scene(policies=8), ())
    figure = queue(series(1, 1, 30), shown)
    assert figure.table.num_rows == 60
    assert "policy 20" in texts(figure)
    assert "policy 7" not in texts(figure)


def test_without_contention_classes_the_figure_says_why() -> None:
    figure = totals.fairness(pa.table({}), scene(), "10 minutes", "No run of the priority policy.")
    assert figure.draw is None
    assert figure.description == "No run of the priority policy."


@pytest.mark.parametrize(
    ("longest", "unit"), [(3600.0, (60.0, "min")), (86400.0, (3600.0, "h")), (2.5e6, (86400.0, "days"))]
)
def test_time_is_shown_in_a_fitting_unit(longest: float, unit: tuple[float, str]) -> None:
    assert over_time.clock(longest) == unit


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.25, "0.25"), (950.0, "950"), (9999.0, "9,999"), (23200.0, "23.2 k"), (1.5e6, "1.5 M")],
)
def test_numbers_on_axes_are_short(value: float, text: str) -> None:
    assert over_time.short(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100 %"), (0.0, "0 %"), (0.00001, "< 0.01 %"), (0.99999, "99.999 %"), (0.8331, "83.31 %")],
)
def test_shares_are_never_rounded_to_all_or_nothing(share: float, text: str) -> None:
    assert promises.percent(share) == text


def test_panels_in_which_nothing_happens_are_left_out_and_named() -> None:
    about = scene(1, 3)
    rows = [
        {"workload": "workload 0", "hosts": one, "policy": policy, "time": at, "queue": 5.0 * (one == "hosts 1")}
        for one in about.hosts
        for policy in about.policies
        for at in (60.0, 120.0)
    ]
    figure = queue(pa.Table.from_pylist(rows), about)
    assert [text for text in texts(figure) if text.startswith("workload")] == ["workload 0, hosts 1"]
    assert figure.notes == (
        "Left out: workload 0 on hosts 0, workload 0 on hosts 2. There are no waiting at any time.",
    )
    idle = queue(pa.Table.from_pylist([{**row, "queue": 0.0} for row in rows]), about)
    assert idle.draw is None


def test_figures_have_the_widths_of_columns_of_papers_and_their_text_is_inside() -> None:
    rows = [
        {"hosts": "hosts 0", "class": name, "policy": policy, "availability": at, "share": 1.0 - at / 2}
        for name in SLOS
        for policy in ("policy 0", "policy 1")
        for at in (0.0, 0.5, 1.0)
    ]
    figure = promises.availabilities(pa.Table.from_pylist(rows), scene())
    assert drawing.sheet_for(85) == drawing.SINGLE
    for sheet, width in ((drawing.SINGLE, 85), (drawing.DOUBLE, 180), (drawing.sheet_for(120), 120)):
        laid = picture(figure, sheet)
        assert laid.get_figwidth() * 25.4 == pytest.approx(width)
        assert drawing.pdf(laid).startswith(b"%PDF")
        inside = laid.get_tightbbox()
        assert (inside.x0, inside.x1 * 25.4) >= (0.0, 0.0)
        assert inside.x1 * 25.4 <= width + 0.1


@pytest.mark.parametrize("sheet", [drawing.PAGE, drawing.DOUBLE, drawing.SINGLE], ids=lambda one: one.name)
@pytest.mark.parametrize("hosts", [1, 3])
def test_a_legend_is_whole_however_few_panels_there_are(sheet: drawing.Sheet, hosts: int) -> None:
    about = replace(scene(hosts=hosts, classes=1), policies=("priority as kube-scheduler does", "qos-driven, no plan"),
                    reference="priority as kube-scheduler does")  # fmt: skip
    cells = [
        {"hosts": one, "class": "class 0", "x": 0.5, "y": 0.9, "size": 0.05, "quadrant": "only other", "requests": 37}
        for one in about.hosts
    ]
    shares = pa.Table.from_pylist(reduce.shares(cells))
    figure = promises.pairs(pa.Table.from_pylist(cells), shares, "qos-driven, no plan", about, 1)
    drawn = picture(figure, sheet)
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    inside = legend.get_window_extent()
    assert (inside.x0, inside.y0) >= (0.0, 0.0)
    assert inside.x1 <= drawn.bbox.width
    assert inside.y1 <= drawn.bbox.height


def test_panels_of_a_class_are_one_column_whatever_is_left_out() -> None:
    about = scene(hosts=3)
    rows = [
        {"hosts": one, "class": name, "policy": policy, "availability": at,
         "share": 1.0 if name == "gold" and one == "hosts 1" else 1.0 - at / 2}
        for one in about.hosts for name in about.classes for policy in about.policies for at in (0.0, 0.5, 1.0)
    ]  # fmt: skip
    laid = picture(promises.availabilities(pa.Table.from_pylist(rows), about))
    drawing.svg(laid, "a", "a", "a")
    at: dict[str, set[float]] = {}
    for axes in laid.axes:
        at.setdefault(axes.get_title(loc="left").split(",")[0], set()).add(round(axes.get_position().x0, 6))
    assert [len(one) for one in at.values()] == [1, 1]
    assert at["gold"] != at["bronze"]
    assert len(laid.axes) == 5
    labelled = [axes.get_title(loc="left") for axes in laid.axes if axes.get_xlabel()]
    assert labelled == ["gold, hosts 2", "bronze, hosts 2"]
    assert drawing.arranged([["a", None, "c", "d", "e"], ["f", "g", None, "h", "i"]], 3) == [
        ["a", None, "c"], ["f", "g", None], ["d", "e"], ["h", "i"],
    ]  # fmt: skip


def test_misses_are_drawn_by_their_number() -> None:
    about = scene()
    rows = [
        {"hosts": "hosts 0", "class": "gold", "policy": policy, "workload": "workload 0", "deficit": 0.1, "size": 0.025,
         "requests": count, "missed": count, "mean": 0.1, "low": None, "high": None}
        for policy, count in (("policy 0", 900), ("policy 1", 9))
    ]  # fmt: skip
    figure = as_published.violins(pa.Table.from_pylist(rows), about)
    (axes,) = picture(figure).axes
    many, few = (float(np.ptp(one.get_paths()[0].vertices[:, 0])) for one in axes.collections)
    assert many == pytest.approx(10 * few)
    assert {"900", "9"} <= set(texts(figure))
    sums = [{"hosts": "hosts 0", "class": "gold", "policy": row["policy"], "missed": row["missed"], "share": 0.1,
             "mean": 0.1} for row in rows]  # fmt: skip
    (axes,) = picture(promises.deficits(pa.Table.from_pylist(rows), pa.Table.from_pylist(sums), about)).axes
    many, few = (float(np.ptp(one.get_paths()[0].vertices[:, 1])) for one in axes.collections)
    assert many == pytest.approx(10 * few)


@pytest.mark.parametrize("least", [0.0, 4000.0])
def test_the_axis_of_sums_has_what_is_owed_and_no_more(least: float) -> None:
    rows = [
        {"hosts": "hosts 0", "policy": "policy 1", "reference": 32_000.0, "other": least, "value": 700.0, "text": None},
        {
            "hosts": "hosts 0",
            "policy": "policy 1",
            "reference": 64_000.0,
            "other": 8_000.0,
            "value": 700.0,
            "text": None,
        },
    ]
    figure = totals.increments(pa.Table.from_pylist(rows), scene(), description="")
    (axes,) = picture(figure).axes
    across = axes.transAxes.inverted()
    first, last = (across.transform(axes.transData.transform((one, 0.0)))[0] for one in (least, 64_000.0))
    assert 0.0 < first < 0.1
    assert 0.7 < last < 0.9
    assert any("sum" in text for text in texts(figure))
