"""``slacktide simulate`` for requests of several instances: those of the input, and those made from a job's rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from slacktide.cli import main
from slacktide.cli.simulation.simulate import simulate
from slacktide.inputs.columns.instances import WHY_AGGREGATED
from slacktide.model import APPROACHES
from slacktide.model.workload import KINDS

Run = Callable[..., dict[str, Any]]

# Jobs 7 and 8 have three and two rows, job 9 one; two hosts have room for four of the six.
ROWS = """id,admission,duration,cpu,memory,class,job
1,0,600,1,1,silver,7
2,0,900,1,1,silver,7
3,1,900,1,1,silver,7
4,2,900,1,1,bronze,8
5,2,900,1,1,bronze,8
6,3,300,1,1,gold,9
"""
HOSTS = "id,name,cpu,memory\n1,one,2,2\n2,two,2,2\n"
KINDS_AND_APPROACHES = [("service", one) for one in APPROACHES] + [("batch", "aggregated")]
TIMES = ("running", "pending", "startup", "discarded")


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """53 services of two instances, where there is room for 100 instances."""
    out = tmp_path_factory.mktemp("inputs") / "run3"
    assert main(["generate", "validation-3", "--seed", "3", "--set", "approach=concurrent", "--out", str(out)]) == 0
    return out


@pytest.fixture
def tasks(tmp_path: Path) -> list[Path]:
    """A workload with a row per task, and its hosts."""
    (tmp_path / "w.csv").write_text(ROWS)
    (tmp_path / "h.csv").write_text(HOSTS)
    return [tmp_path / "w.csv", tmp_path / "h.csv"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str | Path) -> dict[str, Any]:
        capsys.readouterr()
        code = main(["simulate", *map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        found = json.loads(out)
        assert isinstance(found, dict)
        return found

    return command


def rows(path: Path) -> list[dict[str, Any]]:
    found = pq.read_table(path).to_pylist()
    assert isinstance(found, list)
    return found


def same_decisions(found: dict[str, Any]) -> dict[str, Any]:
    """What a run came to, without what it cost on this machine."""
    return {key: value for key, value in found.items() if not key.endswith(("seconds", "_mb"))}


@pytest.mark.uncompiled
def test_requests_and_instances_are_counted_and_described_apart(run: Run, services: Path) -> None:
    files = (services / "workload.parquet", services / "hosts.parquet")
    found = run(*files, "--config", services / "settings.yaml", "--end", "300")
    assert (found["requests"], found["instances"], found["completed"]) == (53, 106, 0)
    assert {name: one["requests"] for name, one in found["classes"].items()} == {"first": 20, "second": 16, "third": 17}
    names = ("service_class", "kind", "approach", "requests", "instances")
    assert [tuple(one[name] for name in names) for one in found["approaches"]] == [
        ("first", "service", "concurrent", 20, 40),
        ("second", "service", "concurrent", 16, 32),
        ("third", "service", "concurrent", 17, 34),
    ]
    for one in found["approaches"]:
        of_class = found["classes"][one["service_class"]]
        for name in ("slo", "availability", "fulfilment"):
            assert one[name] == of_class[name]


def test_both_tables_agree_with_the_summary(run: Run, services: Path, tmp_path: Path) -> None:
    files = (services / "workload.parquet", services / "hosts.parquet")
    found = run(*files, "--config", services / "settings.yaml", "--end", "600", "--out", tmp_path / "out", "--events")
    requests, instances = rows(tmp_path / "out/requests.parquet"), rows(tmp_path / "out/instances.parquet")
    assert (len(requests), len(instances)) == (53, 106)
    assert found["preemptions"] == sum(one["preemptions"] for one in instances) > 0
    for one in requests:
        mine = [other for other in instances if other["request"] == one["id"]]
        assert [other["instance"] for other in mine] == [0, 1]
        assert (one["instances"], one["kind"], one["approach"]) == (2, "service", "concurrent")
        for name in (*TIMES, "preemptions", "starts"):
            assert one[name] == pytest.approx(sum(other[name] for other in mine))
        assert one["availability_always"] <= min(other["availability_always"] for other in mine) + 1e-12
    for name, of_class in found["classes"].items():
        kept = [one for one in requests if one["class"] == name]
        mean = sum(one["availability_restart"] for one in kept) / len(kept)
        assert mean == pytest.approx(of_class["availability"]["restart"]["mean"], abs=1e-12)
    events = rows(tmp_path / "out/events.parquet")
    admitted = {(one["request"], one["instance"]) for one in events if one["event"] == "admitted"}
    assert admitted == {(one["request"], one["instance"]) for one in instances}


@pytest.mark.parametrize(("kind", "approach"), KINDS_AND_APPROACHES)
def test_rows_of_a_job_become_one_request(
    run: Run, tasks: list[Path], tmp_path: Path, kind: str, approach: str
) -> None:
    words = ("--group-by", "job", "--kind", kind, "--approach", approach, "--out", tmp_path / "out")
    found = run(*tasks, *words)
    assert (found["requests"], found["instances"], found["completed"]) == (3, 6, 3)
    requests = rows(tmp_path / "out/requests.parquet")
    assert [(one["id"], one["class"], one["instances"]) for one in requests] == [
        (7, "silver", 3),
        (8, "bronze", 2),
        (9, "gold", 1),
    ]
    assert {(one["kind"], one["approach"]) for one in requests} == {(kind, approach)}
    instances = rows(tmp_path / "out/instances.parquet")
    assert [(one["request"], one["instance"], one["id"]) for one in instances] == [
        *((7, 0, 1), (7, 1, 2), (7, 2, 3), (8, 0, 4), (8, 1, 5), (9, 0, 6)),
    ]


def test_by_priority_only_the_measure_depends_on_the_approach(run: Run, tasks: list[Path], tmp_path: Path) -> None:
    measured: dict[str, list[dict[str, Any]]] = {}
    histories = []
    for approach in APPROACHES:
        out = tmp_path / approach
        run(*tasks, "--policy", "priority", "--group-by", "job", "--approach", approach, "--out", out)
        measured[approach] = rows(out / "requests.parquet")
        histories.append(rows(out / "instances.parquet"))
    assert histories[0] == histories[1] == histories[2]
    for number, worst in enumerate(measured["independent"]):
        mine = [one for one in histories[0] if one["request"] == worst["id"]]
        assert worst["availability_always"] == min(one["availability_always"] for one in mine)
        lifetimes = sum(one[name] for one in mine for name in TIMES)
        mean = measured["aggregated"][number]["availability_always"]
        assert mean == pytest.approx(sum(one["running"] for one in mine) / lifetimes)
        assert measured["concurrent"][number]["availability_always"] <= mean
    alone, together = (measured[one][1]["availability_always"] for one in ("independent", "aggregated"))
    assert alone < together


def test_jobs_of_one_row_are_measured_as_rows_are(run: Run, tasks: list[Path]) -> None:
    text = tasks[0].read_text()
    tasks[0].write_text("\n".join(line.rpartition(",")[0] for line in text.splitlines()) + "\n")
    alone, grouped = run(*tasks), run(*tasks, "--group-by", "job", "--approach", "concurrent")
    assert (alone["instances"], alone["approaches"]) == (6, [])
    assert len(grouped["approaches"]) == 3
    assert {**same_decisions(alone), "approaches": []} == {**same_decisions(grouped), "approaches": []}


def test_the_table_of_instances_is_there_only_where_it_says_more(run: Run, tasks: list[Path], tmp_path: Path) -> None:
    run(*tasks, "--group-by", "job", "--out", tmp_path / "out")
    run(*tasks, "--out", tmp_path / "out")
    names = {"requests.parquet", "classes.parquet", "manifest.json"}
    assert {one.name for one in (tmp_path / "out").iterdir()} == names


def test_a_manifest_groups_again(run: Run, tasks: list[Path], tmp_path: Path) -> None:
    batch = run(*tasks, "--group-by", "job", "--kind", "batch", "--seed", "5", "--out", tmp_path / "first")
    manifest = tmp_path / "first/manifest.json"
    assert json.loads(manifest.read_text())["grouping"] == {"by": "job", "kind": "batch", "approach": "aggregated"}
    again = run(*tasks, "--config", manifest, "--out", tmp_path / "again")
    assert same_decisions(batch) == same_decisions(again)
    for name in ("requests.parquet", "instances.parquet"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    other = run(*tasks, "--config", manifest, "--kind", "service", "--approach", "concurrent")
    assert {(one["kind"], one["approach"]) for one in other["approaches"]} == {("service", "concurrent")}
    alone = run(*tasks, "--config", manifest, "--group-by", "none", "--out", tmp_path / "alone")
    assert (alone["requests"], alone["seed"], alone["approaches"]) == (6, 5, [])
    assert "grouping" not in json.loads((tmp_path / "alone/manifest.json").read_text())


@pytest.mark.parametrize("said", ["job", {}, {"by": "class"}, {"by": "job", "kind": "batch", "approach": "mean"}])
def test_a_grouping_no_run_can_have_written_is_refused(
    tasks: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], said: object
) -> None:
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps({"format": "slacktide-results", "configuration": {}, "grouping": said}))
    assert main(["simulate", *map(str, tasks), "--config", str(manifest)]) == 2
    assert "manifest.json: grouping." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--approach", "concurrent"], "--group-by job"),
        (["--kind", "batch"], "--group-by job"),
        (["--group-by", "none", "--kind", "batch"], "--group-by job"),
        (["--group-by", "job", "--kind", "batch", "--approach", "concurrent"], WHY_AGGREGATED),
        (["--group-by", "job", "--kind", "batch", "--approach", "independent"], WHY_AGGREGATED),
        (["--group-by", "job", "--approach", "mean"], "'aggregated'"),
        (["--group-by", "class"], "'job'"),
    ],
)
def test_wrong_use_is_told_before_anything_is_read(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "missing.csv", "missing.csv", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert part in " ".join(err.split())


def test_a_workload_with_requests_of_its_own_is_not_grouped(services: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(services / name) for name in ("workload.parquet", "hosts.parquet")]
    words = ["--config", str(services / "settings.yaml"), "--end", "60", "--group-by", "job"]
    assert main(["simulate", *files, *words]) == 2
    assert "requests of several instances" in capsys.readouterr().err


def test_people_are_told_requests_from_instances_and_approaches_apart(
    tasks: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    header, *lines = ROWS.splitlines()
    kinds = ["service,,,concurrent", "batch,,4,"]
    several = [f"{line},{kind}" for line, kind in zip(lines, kinds, strict=False)]
    tasks[0].write_text("\n".join([f"{header},kind,instances,completions,approach", *several]) + "\n")
    assert main(["simulate", *map(str, tasks)]) == 0
    out = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith("silver service concurrent 1 1 ") for line in out)
    assert any(line.startswith("silver batch aggregated 1 4 ") for line in out)
    assert any(line.startswith("2 requests of 5 instances; 2 completed") for line in out)


def test_the_options_know_the_words_of_the_model() -> None:
    choices = {one.name: tuple(getattr(one.type, "choices", ())) for one in simulate.params}
    assert (choices["approach"], choices["kind"]) == (APPROACHES, KINDS)
