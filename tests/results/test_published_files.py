"""The four result files of the authors' simulator: theirs are read and written again, ours are read back."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from slacktide.cli import main
from slacktide.config import Config, preset
from slacktide.errors import ConfigError, InputError
from slacktide.inputs import read_hosts, read_workload, write_hosts, write_workload
from slacktide.inputs.generators.registry import generated
from slacktide.inputs.rows import equal_hosts
from slacktide.model import Hosts, Workload
from slacktide.results import published_files as files
from slacktide.results.published_files import ENDED, Told, erlang
from slacktide.results.published_log import check, write_told
from support.published import need

ONE_SECOND_SHORT = {"201", "231"}
"""Requests of which the authors' log books a second as pending in which nobody waited (tests/reference)."""


first = itemgetter(0)


def lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and not line.startswith("#")]


def by_number(workload: Workload, hosts: Hosts) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    demand = dict(zip(workload.ids.tolist(), workload.demand.tolist(), strict=True))
    return demand, dict(zip(hosts.ids.tolist(), hosts.capacity.tolist(), strict=True))


def written_again(name: str, policy: str, out: Path) -> Path:
    """The folder of their log, of which nothing but what happened was taken over."""
    folder = need("validation1")
    workload, hosts = read_workload(folder / "workload.erl"), read_hosts(folder / "hosts-20.erl")
    told: Told = files.read(folder / name, *by_number(workload, hosts))
    config = preset("published")
    config = replace(config, policy=replace(config.policy, name=policy))
    happened = [one for one in told.happenings if one.what != ENDED]  # of them all ran to the end
    write_told(out, workload, hosts, config, happened, sorted(told.passes), told.end)
    return folder / name


@pytest.mark.parametrize("number", ["0", "7"])
def test_whole_numbers_as_erlang_writes_them(number: str) -> None:
    assert erlang(float(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        *((0.375, "0.375"), (3.75, "3.75"), (100.0, "100.0"), (1000.0, "1.0e3"), (1100.0, "1.1e3")),
        *((1010.0, "1010.0"), (1001.0, "1001.0"), (0.1, "0.1"), (0.01, "0.01"), (0.001, "0.001")),
        *((1e-7, "1.0e-7"), (0.05, "0.05"), (-219.37107, "-219.37107"), (12345678.0, "12345678.0"), (1e22, "1.0e22")),
    ],
)
def test_numbers_with_a_point_as_erlang_writes_them(number: float, text: str) -> None:
    assert erlang(number, whole=False) == text
    assert float(text) == number


def test_the_published_priority_log_is_written_again_to_the_byte(tmp_path: Path) -> None:
    theirs = written_again("published-simulator-priority", "priority", tmp_path)
    for name in files.FILES:
        assert lines(tmp_path / name) == lines(theirs / name), name


def test_the_published_qos_driven_log_is_written_again(tmp_path: Path) -> None:
    theirs = written_again("published-simulator-qos", "qos-driven", tmp_path)
    assert lines(tmp_path / files.PREEMPTION) == lines(theirs / files.PREEMPTION)
    ours, published = ([line.split() for line in lines(folder / files.ALLOCATION)] for folder in (tmp_path, theirs))
    assert [row[:5] + row[6:] for row in ours] == [row[:5] + row[6:] for row in published]
    differ = [
        (one.split()[1], float(one.split()[5]) - float(other.split()[5]))
        for one, other in zip(lines(tmp_path / files.TERMINATION), lines(theirs / files.TERMINATION), strict=True)
        if one != other
    ]
    assert differ == [("201", 1.0)]  # 231 waits at the end


def test_queues_of_the_published_log_are_written_again_up_to_equal_slacks(tmp_path: Path) -> None:
    theirs = written_again("published-simulator-qos", "qos-driven", tmp_path)
    queues: list[dict[str, list[tuple[str, str]]]] = []
    indices: list[dict[str, list[int]]] = []
    for folder in (tmp_path, theirs):
        queue, index = defaultdict(list), defaultdict(list)
        for time, request, running in map(str.split, lines(folder / files.QUEUE)):
            queue[time].append((request, running))
        for row in map(str.split, lines(folder / files.ALLOCATION)):
            index[row[0]].append(int(row[5]))
        queues.append(queue)
        indices.append(index)
    assert list(queues[0]) == list(queues[1])
    for time, rows in queues[1].items():
        ours = dict(queues[0][time])
        assert set(ours) == {request for request, _ in rows}
        assert {one: ran for one, ran in rows if ours[one] != ran}.keys() <= ONE_SECOND_SHORT
    same = [time for time in indices[1] if list(map(first, queues[0][time])) == list(map(first, queues[1][time]))]
    assert len(same) > 200
    for time in same:
        assert indices[0][time] == indices[1][time]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Requests of which some complete, on too few hosts."""
    folder = tmp_path_factory.mktemp("inputs")
    workload, _ = generated("validation-1", seed=2)
    duration = np.where(np.arange(len(workload)) % 3 == 0, 200.0, np.inf)
    write_workload(replace(workload, duration=duration), folder / "workload.csv")
    write_hosts(equal_hosts(15, {"cpu": 3.75, "memory": 3.75}), folder / "hosts.csv")
    return folder / "workload.csv", folder / "hosts.csv"


@pytest.mark.parametrize("policy", ["qos-driven", "priority"])
def test_ours_read_back_are_the_results_of_the_run(inputs: tuple[Path, Path], policy: str, tmp_path: Path) -> None:
    words = ["simulate", *map(str, inputs), "--policy", policy, "--preset", "published"]
    words += ["--set", "startup.hot=uniform:1,3", "--set", "startup.cold=uniform:3,6"]
    words += ["--end", "900", "--seed", "3"]
    assert main([*words, "--out", str(tmp_path / "run"), "--passes", "--events"]) == 0
    assert main([*words, "--out", str(tmp_path / "log"), "--format", "published"]) == 0
    assert {one.name for one in (tmp_path / "log").iterdir()} == files.FILES | {"manifest.json"}
    back = ["trace", "results", str(tmp_path / "log"), *map(str, inputs), "--out", str(tmp_path / "back")]
    assert main([*back, "--policy", policy]) == 0
    run, read = (pq.read_table(tmp_path / one / "requests.parquet") for one in ("run", "back"))
    exact = ["id", "class", "admission", "completion", "preemptions", "starts", "hosts_used"]
    if policy == "qos-driven":  # of the other the authors' files have no start-ups
        exact += ["running", "pending", "startup", "startup_restarts", "wasted_startup", "availability_restart"]
    for name in exact:
        assert read[name].to_pylist() == run[name].to_pylist(), name
    passes, told = (pq.read_table(tmp_path / one / "passes.parquet") for one in ("run", "back"))
    for name in ("time", "queue", "placed", "preempted"):
        assert told[name].to_pylist() == passes[name].to_pylist()
    events, told = (pq.read_table(tmp_path / one / "events.parquet") for one in ("run", "back"))
    for name in ("time", "event", "request", "host", "by"):
        assert told[name].to_pylist() == events[name].to_pylist(), name
    if policy == "qos-driven":
        slack, mine = (one["qos"].to_numpy(zero_copy_only=False) for one in (events, told))
        np.testing.assert_allclose(mine, slack, rtol=0.0, atol=2e-6)  # of completions there is none, here and there
    assert sum(run["preemptions"].to_pylist()) > 0
    assert any(run["completion"].to_pylist())


def test_a_folder_of_theirs_is_not_taken_for_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / files.ALLOCATION).write_text("")
    assert main(["validate", str(tmp_path), str(tmp_path)]) == 3
    assert "slacktide trace results" in capsys.readouterr().err


LOG = {
    files.ALLOCATION: "1  1 1 1.0 1.0 7 2\n5  2 1 1.0 1.0 7 2\n",
    files.PREEMPTION: "5  1 1\n",
    files.TERMINATION: "9  2 1 1.0 1.0 4.0 1\n",
    files.QUEUE: "1  1 0\n5  2 0\n11  1 4.0\n",
}


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        (
            files.PREEMPTION,
            "5  1 1",
            "5  2 1",
            f"{files.PREEMPTION}:1: found 'request 2, host 1', expected a request that",
        ),
        (
            files.PREEMPTION,
            "5  1 1",
            "6  1 1",
            f"{files.ALLOCATION}:2: found 'request 2 on host 1', expected room there",
        ),
        (files.PREEMPTION, "5  1 1", "5  1 1\n6  2 1", ":2: found 'request 2', expected an allocation that needs"),
        (files.PREEMPTION, "5  1 1", "5  1", ":1: found '2 columns', expected 3 columns"),
        (files.ALLOCATION, "5  2 1", "5  3 1", ":2: found 'request 3', expected a request of the workload file"),
        (files.ALLOCATION, "5  2 1", "0  2 1", ":2: found '0', expected rows in order of time"),
        (files.ALLOCATION, "7 2\n5", "x 2\n5", ":1: found '1  1 1 1.0 1.0 x 2', expected numbers"),
        (files.TERMINATION, "9  2 1", "9  1 1", ":1: found 'request 1, host 1', expected a request that runs"),
        (files.QUEUE, "11  1", "8  7", ":3: found 'request 7', expected a request of the workload file"),
    ],
)
def test_what_cannot_have_happened_is_told(tmp_path: Path, file: str, before: str, after: str, said: str) -> None:
    for name, text in LOG.items():
        (tmp_path / name).write_text(text.replace(before, after) if name == file else text)
    with pytest.raises(InputError) as caught:
        files.read(tmp_path, {1: [1.0, 1.0], 2: [1.0, 1.0]}, {1: [1.0, 1.0]})
    assert said in str(caught.value)


def test_what_the_files_cannot_say_is_refused() -> None:
    workload, _ = generated("validation-3", {"approach": "concurrent"})
    with pytest.raises(ConfigError, match=r"found requests of several instances, .*; leave out --format, or these"):
        check(workload, Config())
    config = Config()
    config = replace(config, failures=replace(config.failures, uptime="exponential:100"))
    with pytest.raises(ConfigError, match="failures of hosts"):
        check(generated("validation-1")[0], config)


def test_tables_of_ours_go_with_our_format_only(inputs: tuple[Path, Path], tmp_path: Path) -> None:
    words = ["simulate", *map(str, inputs), "--end", "10", "--format", "published"]
    assert main(words) == 2
    assert main([*words, "--out", str(tmp_path / "out"), "--events"]) == 2
