"""Reading an experiment's folder: what is there, what is not yet, what failed, what is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from slacktide.errors import InputError
from slacktide.results import experiment


def written(folder: Path, **changes: Any) -> Path:
    """An experiment of three runs: the first done, the second failed, the third to come."""
    about = {
        "format": "slacktide-experiment",
        "schema_version": 1,
        "command": ["slacktide", "experiment", "run"],
        "versions": {"slacktide": "1"},
        "grid": {"end": 60},
        "runs": [
            {"key": key, "workload": "w", "hosts": "N", "policy": "priority", "seed": seed}
            for seed, key in enumerate("abc")
        ],
    } | changes
    (folder / "experiment.json").write_text(json.dumps(about))
    done = folder / "runs" / "a"
    done.mkdir(parents=True)
    pq.write_table(pa.table({"id": [7]}), done / "requests.parquet")
    (done / "manifest.json").write_text('{"seed": 0}')
    (folder / "failures").mkdir()
    (folder / "failures" / "b.json").write_text('{"key": "b", "error": "no room"}')
    return folder


def test_runs_stand_in_the_order_of_the_grid_with_what_came_of_them(tmp_path: Path) -> None:
    found = experiment.read(written(tmp_path))
    assert [(run.key, run.folder, run.error) for run in found.runs] == [
        ("a", tmp_path / "runs" / "a", None),
        ("b", None, "no room"),
        ("c", None, None),
    ]
    assert found.grid == {"end": 60}
    assert found.created is None  # written before it was noted
    assert [run.key for run in found.done] == ["a"]


def test_a_run_gives_its_tables_and_manifest(tmp_path: Path) -> None:
    done, failed, _ = experiment.read(written(tmp_path)).runs
    assert done.requests().to_pydict() == {"id": [7]}
    assert done.manifest() == {"seed": 0}
    with pytest.raises(InputError, match=r"intervals\.parquet"):
        done.intervals()
    with pytest.raises(InputError, match="w / N / priority / seed 1"):
        failed.requests()


def test_what_is_no_experiment_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"experiment\.json.*experiment run"):
        experiment.read(tmp_path)
    for broken in ("[]", "{", '{"format": "slacktide-results"}'):
        (tmp_path / "experiment.json").write_text(broken)
        with pytest.raises(InputError, match=r"experiment\.json"):
            experiment.read(tmp_path)


def test_an_experiment_of_another_version_or_without_its_parts_is_refused(tmp_path: Path) -> None:
    written(tmp_path, schema_version=99)
    with pytest.raises(InputError, match=r"99.*schema_version 1"):
        experiment.read(tmp_path)
    about = json.loads((tmp_path / "experiment.json").read_text()) | {"schema_version": 1, "runs": [{"key": "a"}]}
    (tmp_path / "experiment.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match="workload"):
        experiment.read(tmp_path)
