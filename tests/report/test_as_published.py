"""The figures that are drawn as in the papers, from tables written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from report.test_figures import CLASSES, member, picture, scene, texts
from slacktide.reporting import as_published, scores
from slacktide.reporting.gather import Member
from slacktide.results.experiment import Run

GOT = {"class": ["bronze"] * 4 + ["gold"], "availability_restart": [0.0, 0.3, 0.4, 0.5, 1.0]}


def found() -> list[dict[str, object]]:
    kept = as_published.Violins()
    kept.add(member("policy 0"), pa.table(GOT))
    kept.add(member("policy 1"), pa.table({"class": ["bronze"], "availability_restart": [0.45]}))
    return kept.rows(scene())


def test_violins_count_the_deficits_of_those_that_missed() -> None:
    mine = [row for row in found() if row["policy"] == "policy 0" and row["class"] == "bronze"]
    assert [(round(float(str(row["deficit"])), 4), row["requests"]) for row in mine] == [
        (0.1, 1),
        (0.2, 1),
        (0.4875, 1),
    ]
    assert {row["missed"] for row in mine} == {3}
    (gold,) = [row for row in found() if row["policy"] == "policy 0" and row["class"] == "gold"]
    assert (gold["requests"], gold["missed"], gold["mean"]) == (0, 0, None)


def test_whiskers_are_the_interval_of_the_mean() -> None:
    # Student's t of two degrees of freedom at 97.5 % is 4.302653.
    values = np.array([0.5, 0.2, 0.1])
    half = 4.302653 * values.std(ddof=1) / np.sqrt(3)
    low, high = as_published.interval(values)
    assert low == pytest.approx(values.mean() - half)
    assert high == pytest.approx(values.mean() + half)
    row = next(row for row in found() if row["policy"] == "policy 0" and row["class"] == "bronze")
    assert (row["low"], row["high"]) == (low, high)
    assert as_published.interval(np.array([0.1])) == (None, None)


def test_violins_are_drawn_for_each_workload_and_policy() -> None:
    figure = as_published.violins(scores.table(found()), scene())
    assert {"workload 0", "bronze, hosts 0"} <= set(texts(figure))
    assert "gold, hosts 0" not in texts(figure)  # nobody missed: left out, and said so
    assert any("gold on hosts 0" in note for note in figure.notes)
    axes = picture(figure).axes[0]
    assert len(axes.collections) == 2
    assert "policy 0: 3 requests, on average 0.267 below" in figure.description
    low, high = (axes.collections[0].get_paths()[0].get_extents().intervaly[at] for at in (0, 1))
    assert (low, high) == (pytest.approx(0.1), pytest.approx(0.5))  # not beyond what was missed


def of(folder: Path, policy: str, queue: list[int], operations: list[int]) -> Member:
    folder.mkdir()
    pq.write_table(pa.table({"queue": queue, "operations": operations}), folder / "passes.parquet")
    run = Run("key", "workload 0", "hosts 0", policy, 1, folder, None)
    return Member(run, 0, {}, CLASSES, "restart", "priority", 300.0)


def test_passes_are_points_of_queue_and_operations(tmp_path: Path) -> None:
    one = of(tmp_path / "one", "policy 0", [1, 1, 4], [20, 20, 50])
    other = of(tmp_path / "other", "policy 1", [2], [7])
    rows = as_published.passes_of([one, other, member("policy 0")])
    assert [tuple(row.values()) for row in rows] == [
        ("policy 0", 1, 20, 2),
        ("policy 0", 4, 50, 1),
        ("policy 1", 2, 7, 1),
    ]
    figure = as_published.passes(scores.table(rows), scene())
    first, second = picture(figure).axes
    assert sorted(zip(*first.lines[0].get_data(), strict=True)) == [(1.0, 20.0), (4.0, 50.0)]
    assert list(zip(*second.lines[0].get_data(), strict=True)) == [(2.0, pytest.approx(7.0))]
    assert "policy 0: 3 passes, on average 2.0 wait and 30.0 operations" in figure.description
