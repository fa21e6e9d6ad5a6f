"""What an API server's audit log tells: who was created, bound, preempted and deleted, and what it was delivered."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from slacktide.errors import InputError
from slacktide.pasts import audit, outcome
from slacktide.pasts.story import Findings
from support.made_past import SECRET, Log, deployment, node, pod

END = 1000.0


def preempted(level: str = "RequestResponse") -> Log:
    """A Deployment of one pod runs from 12 s on; a more important pod takes its place at 400 s, and its next pod gets
    one at 600 s, where the important one has completed."""
    log, controllers = Log(level), deployment("web", 1, created=10.0)
    log.creates(0.0, node("a", created=0.0), name="a")
    for one in controllers:
        log.creates(10.0, one)
    first = pod("web-1-aaaaa", "web", created=10.0, cpu="3", priority=10, priority_class="low")
    log.creates(10.0, first)
    log.binds(10.25, first, "a")
    log.condition(12.0, first, "Ready", "True", phase="Running")
    high = pod("high", created=400.0, cpu="3", priority=1000, priority_class="high")
    log.creates(400.0, high)
    log.condition(400.5, first, "DisruptionTarget", "True", "PreemptionByScheduler")
    log.told_to_go(400.5, first, user="system:kube-scheduler")
    second = pod("web-1-bbbbb", "web", created=400.75, cpu="3", priority=10, priority_class="low")
    log.creates(400.75, second)
    log.gone(403.0, first)
    log.binds(403.25, high, "a")
    log.condition(405.0, high, "Ready", "True", phase="Running")
    log.condition(600.0, high, "Ready", "False", "PodCompleted", phase="Succeeded")
    log.binds(600.25, second, "a")
    log.condition(602.0, second, "Ready", "True", phase="Running")
    log.condition(END, node("a"), "Ready", "True")
    return log


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def made(tmp_path: Path, *paths: Path) -> outcome.Past:
    return outcome.write(audit.story(paths), tmp_path / "out")


def test_a_preemption_is_what_it_was(tmp_path: Path) -> None:
    found = made(tmp_path, preempted().write(tmp_path / "audit.log"))
    web, high = found.workloads
    assert (web.full_name, web.priority_class, web.priority, web.preempted) == ("shop/Deployment/web", "low", 10, 1)
    assert (high.full_name, high.preempted) == ("shop/Pod/high", 0)
    assert web.instances == 1, "who comes for a victim goes on with its instance"
    # It came at 10 s, ran from 12 to 400.5 s or to the end of its pod, and from 602 s on.
    assert web.delivered["always"] == pytest.approx((400.5 - 12.0 + END - 602.0) / (END - 10.0), abs=0.004)
    assert found.seconds == END
    assert found.made.hosts == 1
    pods = rows(tmp_path / "out" / "pods.csv")
    assert [(one["created"], one["bound"], one["ready"]) for one in pods] == [
        ("10.000", "10.250", "12.000"), ("400.000", "403.250", "405.000"), ("400.750", "600.250", "602.000"),
    ]  # fmt: skip
    assert SECRET not in "".join(path.read_text(errors="replace") for path in (tmp_path / "out").iterdir())


@pytest.mark.parametrize("level", ["Request", "RequestResponse"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_requests_alone_come_to_the_same(tmp_path: Path, level: str, suffix: str) -> None:
    """But for what the API server fills in: in a log of requests it is in the objects that were asked for here."""
    path = preempted(level).write(tmp_path / "audit.log")
    content = path.read_bytes()
    if suffix == ".gz":
        (tmp_path / "audit.log.gz").write_bytes(gzip.compress(content))
    elif suffix == ".zst":
        with pa.output_stream(str(tmp_path / "audit.log.zst"), compression="zstd") as file:
            file.write(content)
    found = made(tmp_path, tmp_path / f"audit.log{suffix}")
    assert [(one.full_name, one.preempted) for one in found.workloads] == [
        ("shop/Deployment/web", 1), ("shop/Pod/high", 0),
    ]  # fmt: skip
    assert found.workloads[0].delivered["always"] == pytest.approx(0.793, abs=0.005)


def test_pods_without_a_name_get_the_one_they_are_bound_by(tmp_path: Path) -> None:
    """A ReplicaSet gives the beginning of a name only, and a log of requests has no answers."""
    log = Log("Request")
    log.creates(0.0, node("a", created=0.0))
    for one in deployment("web", 2, created=1.0):
        log.creates(1.0, one)
    for number in range(2):
        one = pod("web-1-?", "web", created=2.0)
        one["metadata"] |= {"generateName": "web-1-"}
        del one["metadata"]["name"]
        asked = json.loads(json.dumps(one))
        for name in ("uid", "resourceVersion", "creationTimestamp"):
            del asked["metadata"][name]
        log.event(2.0 + number, "create", one, asked=asked, name="", code=201)
    for at, name in ((3.5, "web-1-x"), (4.5, "web-1-y")):
        one = pod(name, "web", created=2.0)
        log.binds(at, one, "a")
        log.condition(at + 1.0, one, "Ready", "True", phase="Running")
    log.gone(90.0, pod("web-1-x", "web", created=2.0))
    log.condition(100.0, node("a"), "Ready", "True")
    found = made(tmp_path, log.write(tmp_path / "audit.log"))
    assert [(one.full_name, one.instances) for one in found.workloads] == [("shop/Deployment/web", 2)]
    assert [one["bound"] for one in rows(tmp_path / "out" / "pods.csv")] == ["3.500", "4.500"]


def test_what_was_there_before_the_log_begins_is_there_from_its_beginning(tmp_path: Path) -> None:
    log = Log()
    log.condition(0.0, node("a"), "Ready", "True")
    for one in deployment("web", 1):
        log.event(5.0, "patch", one, asked={}, answer=one)
    old = pod("web-1-old", "web", "a", ready=-300.0)
    log.condition(50.0, old, "Ready", "False", "ContainersNotReady")
    log.condition(60.0, old, "Ready", "True")
    log.condition(100.0, node("a"), "Ready", "True")
    found = made(tmp_path, log.write(tmp_path / "audit.log"))
    (web,) = found.workloads
    assert web.seconds == pytest.approx(100.0)
    assert web.delivered["always"] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize(("user", "preempted"), [("admin", 0), ("system:serviceaccount:slacktide-system:slacktide", 1)])
def test_an_eviction_is_a_preemption_where_slacktide_asks_for_it(tmp_path: Path, user: str, preempted: int) -> None:
    log = Log()
    log.creates(0.0, node("a", created=0.0))
    for one in deployment("web", 1, created=1.0):
        log.creates(1.0, one)
    one = pod("web-1-a", "web", created=1.0)
    log.creates(1.0, one)
    log.binds(1.5, one, "a")
    log.condition(3.0, one, "Ready", "True", phase="Running")
    log.event(50.0, "create", one, asked={}, answer={"kind": "Status"}, sub="eviction", code=201, user=user)
    log.condition(50.5, one, "DisruptionTarget", "True", "EvictionByEvictionAPI")
    one["metadata"] |= {"deletionTimestamp": "2026-09-21T14:14:15Z", "deletionGracePeriodSeconds": 5}
    log.gone(52.0, one)
    other = pod("web-1-b", "web", created=50.0)
    log.creates(50.5, other)
    log.binds(50.75, other, "a")
    log.condition(52.0, other, "Ready", "True", phase="Running")
    log.condition(100.0, node("a"), "Ready", "True")
    (web,) = made(tmp_path, log.write(tmp_path / "audit.log")).workloads
    assert web.preempted == preempted
    assert web.delivered["always"] > 0.95


def test_several_servers_and_old_logs_are_one_story(tmp_path: Path) -> None:
    """Each API server has a log of its own; lines of two that were written at once may be in either order."""
    whole = preempted().lines
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "first.log").write_text("\n".join(whole[::2]) + "\n")
    (folder / "second.log").write_text("\n".join(whole[1::2]) + "\n")
    found = made(tmp_path, folder)
    alone = outcome.write(audit.story([preempted().write(tmp_path / "one.log")]), tmp_path / "alone")
    assert [one.delivered for one in found.workloads] == [one.delivered for one in alone.workloads]


def test_rotated_files_are_open_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest has the first name, as log rotation leaves them; one has nothing that is used."""
    lines, folder, now, most = preempted().lines, tmp_path / "logs", 0, 0
    folder.mkdir()
    for number, line in enumerate(reversed(lines)):
        (folder / f"audit-{number:03}.log").write_text(line + "\n")
    (folder / "audit-empty.log").write_text("no event\n")
    opened = audit._opened

    @contextmanager
    def counted(path: Path) -> Iterator[Any]:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        try:
            with opened(path) as file:
                yield file
        finally:
            now -= 1

    monkeypatch.setattr(audit, "_opened", counted)
    found = list(audit.Lines(sorted(folder.iterdir()), findings := Findings()))
    assert found == sorted(found, key=lambda one: one.stage_timestamp or 0.0)
    assert len(found) == len(lines)
    assert findings.counts["lines that are no audit events"] == 1
    assert most <= 3, "three lines are of one instant"


def test_broken_lines_are_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    lines = preempted().lines
    lines[4:4] = ["", "no JSON", '{"kind": "Event", "stage": 5}', "[" * 100_000, lines[3][:200]]
    lines.append(lines[-1][:100])
    path = tmp_path / "audit.log"
    path.write_text("\n".join(lines))
    found = made(tmp_path, path)
    assert found.counts["lines that are no audit events"] == 5
    assert len(found.workloads) == 2


def test_refused_requests_change_nothing(tmp_path: Path) -> None:
    log = preempted()
    one = pod("never", created=100.0)
    log.event(100.0, "create", one, asked=one, answer={"kind": "Status"}, code=403)
    log.event(101.0, "get", one, answer=one)
    log.lines.sort(key=lambda line: json.loads(line)["stageTimestamp"])
    assert len(made(tmp_path, log.write(tmp_path / "audit.log")).workloads) == 2


def test_a_gzip_that_is_cut_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    content = gzip.compress(("\n".join(preempted().lines) + "\n").encode())
    path = tmp_path / "audit.log.gz"
    path.write_bytes(content[:-40])
    found = made(tmp_path, path)
    assert any("ends early" in one for one in found.notes)
    assert found.workloads


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], "no event that wrote something"),
        (preempted("Metadata").lines, "level Metadata.*Request or RequestResponse"),
    ],
)
def test_a_log_that_says_too_little_is_refused(tmp_path: Path, lines: list[str], expected: str) -> None:
    path = tmp_path / "audit.log"
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(InputError, match=expected):
        made(tmp_path, path)
    assert not (tmp_path / "out").exists()


def test_a_patch_of_a_request_is_merged() -> None:
    from slacktide.pasts.merging import merged

    body: Any = {"metadata": {"labels": {"a": "1"}}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    patch: Any = {
        "metadata": {"labels": {"a": None, "b": "2"}},
        "status": {"$setElementOrder/conditions": [], "conditions": [
            {"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "True"},
        ]},
    }  # fmt: skip
    found = merged(body, patch)
    assert found["metadata"]["labels"] == {"b": "2"}
    assert [one["status"] for one in found["status"]["conditions"]] == ["True", "True"]
    assert merged({"spec": {"list": [1, 2]}}, [
        {"op": "replace", "path": "/spec/list/0", "value": 5}, {"op": "add", "path": "/spec/a~1b", "value": 1},
        {"op": "remove", "path": "/spec/none/deep"}, {"op": "test", "path": ""}, "nonsense",
    ])["spec"] == {"list": [5, 2], "a/b": 1, "none": {}}  # fmt: skip


@pytest.mark.parametrize("level", ["Request", "RequestResponse"])
@pytest.mark.parametrize(
    "asked",
    [
        "text", 5, [], {"metadata": "text"}, {"metadata": {"ownerReferences": ["text"]}}, {"metadata": {"name": 5}},
        {"spec": "text"}, {"metadata": {"uid": {}}, "spec": {"containers": 5}}, {"target": 5}, [{"path": 5}],
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize(("verb", "sub"), [("create", ""), ("update", ""), ("patch", "status"), ("create", "binding")])
def test_an_odd_event_ends_no_other(tmp_path: Path, level: str, asked: Any, verb: str, sub: str) -> None:
    log = preempted(level)
    odd = pod("odd", created=500.0)
    log.event(500.0, verb, odd, asked=asked, sub=sub)
    log.event(501.0, "patch", odd, asked=asked, sub="status")
    log.lines.sort(key=lambda line: json.loads(line)["stageTimestamp"])
    found = made(tmp_path, log.write(tmp_path / "audit.log"))
    assert {("shop/Deployment/web", 1), ("shop/Pod/high", 0)} <= {
        (one.full_name, one.preempted) for one in found.workloads
    }


def test_a_damaged_gzip_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(("\n".join(preempted().lines * 30) + "\n").encode()))
    content[len(content) // 2 : len(content) // 2 + 40] = b"\xff" * 40
    path = tmp_path / "audit.log.gz"
    path.write_bytes(content)
    assert any("ends early" in one for one in made(tmp_path, path).notes)
