"""What kubectl, must-gather and backups write of a cluster, as the input of a simulation."""

from __future__ import annotations

import csv
import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from slacktide.errors import InputError
from slacktide.inputs import read_hosts, read_workload
from slacktide.pasts import anonymous, object_files, outcome
from support.made_past import BEGIN, SECRET, Json, deployment, listed, node, pod


def cluster() -> list[Json]:
    """Three nodes; of four pods one waits; a DaemonSet's pod, and one that has completed."""
    agents = [pod(f"agent-{one}", "agent", one, cpu="250m", ready=-390.0, kind="DaemonSet") for one in "abc"]
    return [
        *(node(one) for one in "abc"), *deployment("web", 4), *agents,
        *(pod(f"web-{one}", "web", one, cpu="3", ready=-390.0, priority=1000, priority_class="high") for one in "abc"),
        pod("web-d", "web", cpu="3", priority=1000, priority_class="high"),
        pod("done", "", "a", cpu="3", phase="Succeeded"),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {"x": SECRET}},
    ]  # fmt: skip


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def made(tmp_path: Path, *paths: Path, **options: Any) -> outcome.Past:
    return outcome.write(object_files.story(paths), tmp_path / "out", **options)


def as_json(tmp_path: Path) -> Path:
    path = tmp_path / "now.json"
    path.write_text(json.dumps(listed(*cluster())))
    return path


def as_gzip(tmp_path: Path) -> Path:
    path = tmp_path / "now.json.gz"
    path.write_bytes(gzip.compress(json.dumps(listed(*cluster())).encode()))
    return path


def as_yaml(tmp_path: Path) -> Path:
    path = tmp_path / "now.yaml"
    path.write_text(yaml.safe_dump_all(cluster()))
    return path


def as_folder(tmp_path: Path) -> Path:
    """As must-gather: a list of a kind in each file, whose items do not say of which kind they are."""
    kinds: dict[tuple[str, str], list[Json]] = {}
    for one in cluster():
        kinds.setdefault((one.pop("apiVersion"), one.pop("kind")), []).append(one)
    for (version, kind), items in kinds.items():
        path = tmp_path / "gathered" / "namespaces" / f"{kind.lower()}s.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump({"apiVersion": version, "kind": f"{kind}List", "items": items}))
    (tmp_path / "gathered" / "version").write_text("not an object")
    return tmp_path / "gathered"


def as_archive(tmp_path: Path) -> Path:
    path = tmp_path / "backup.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        archive.add(as_folder(tmp_path), "backup")
    return path


@pytest.mark.parametrize("form", [as_json, as_gzip, as_yaml, as_folder, as_archive])
def test_every_form_says_the_same(tmp_path: Path, form: Any) -> None:
    found = made(tmp_path, form(tmp_path))
    assert [(one.full_name, one.priority_class, one.instances) for one in found.workloads] == [
        ("shop/Deployment/web", "high", 4)
    ]
    assert found.made.hosts == 3
    assert found.snapshot
    out = tmp_path / "out"
    workload = read_workload(out / "workload.parquet", classes=(outcome.PROMISED,))
    assert workload.demand[:, 0].tolist() == [3.0] * 4
    assert read_hosts(out / "hosts.parquet").names == ("a", "b", "c")
    # The DaemonSet's pods take room, and nobody places them.
    taken = [one for one in rows(out / "events.csv") if one["event"] == "others"]
    assert [(one["host"], one["time"], one["amounts"].split()[0]) for one in taken] == [
        (name, "0.0", "cpu=0.25") for name in "abc"
    ]
    assert [one["bound"] == "" for one in rows(out / "pods.csv")] == [False, False, False, True]


def test_pods_were_bound_and_ready_when_their_conditions_say_so(tmp_path: Path) -> None:
    """The present is at -390 s, created were all at -400 s; of one nobody says when it was bound."""
    silent = pod("silent", "web", "a", ready=-395.0, cpu="100m")
    silent["status"]["conditions"] = [one for one in silent["status"]["conditions"] if one["type"] != "PodScheduled"]
    path = tmp_path / "now.json"
    path.write_text(json.dumps(listed(*cluster(), silent)))
    made(tmp_path, path)
    found = [(one["node"], one["created"], one["bound"], one["ready"]) for one in rows(tmp_path / "out" / "pods.csv")]
    assert sorted(found) == [
        ("", "-10.000", "", ""), ("a", "-10.000", "", "-5.000"),
        *((name, "-10.000", "-9.000", "0.000") for name in "abc"),
    ]  # fmt: skip


def test_one_pod_of_a_job_is_told_in_the_singular(tmp_path: Path) -> None:
    about = {"name": "batch-1", "namespace": "shop", "uid": "uid-batch-1"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": {"template": {"spec": {}}}}
    one = pod("once", "batch", "a", ready=-390.0, cpu="1m", kind="Job")
    one["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1"
    path = tmp_path / "now.json"
    path.write_text(json.dumps(listed(*cluster(), job, one)))
    assert any(one.startswith("1 pod of Jobs had not completed") for one in made(tmp_path, path).notes)


def test_the_newest_instant_is_when_it_was(tmp_path: Path) -> None:
    found = made(tmp_path, as_json(tmp_path))
    assert found.begin == BEGIN - 390.0
    assert found.seconds == outcome.HORIZON_SECONDS


@pytest.mark.parametrize("anonymize", [False, True])
def test_no_secret_is_written(tmp_path: Path, anonymize: bool) -> None:
    story = object_files.story([as_json(tmp_path)])
    outcome.write(anonymous.anonymized(story) if anonymize else story, tmp_path / "out")
    for path in (tmp_path / "out").iterdir():
        content = path.read_bytes()
        assert SECRET.encode() not in content, path
        if anonymize:
            assert not any(word in content for word in (b"shop", b"web", b"payments", b"high", b"registry")), path


def test_anonymous_it_comes_to_the_same(tmp_path: Path) -> None:
    """Selectors go on to fit, and nodes are told apart."""
    near = pod("near", "", cpu="100m")
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    near["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    path = tmp_path / "now.json"
    path.write_text(json.dumps(listed(*cluster(), near)))
    outcome.write(object_files.story([path]), tmp_path / "named")
    outcome.write(anonymous.anonymized(object_files.story([path])), tmp_path / "anonymous")
    files = (tmp_path / name / "workload.parquet" for name in ("named", "anonymous"))
    first, second = (read_workload(one, classes=(outcome.PROMISED,)) for one in files)
    assert first.demand.tolist() == second.demand.tolist()
    (rule,) = [rule for one in second.placements for rule in one.rules]
    assert sum(rule.mark in one.marks for one in second.placements) == 1, "those of web carry what near asks for"
    assert len(first.placements) == len(second.placements)


def test_what_cannot_be_read_is_left_out_and_said(tmp_path: Path) -> None:
    folder = as_folder(tmp_path)
    (folder / "cut.json").write_text('{"apiVersion": "v1", "kind": "Pod", "meta')
    (folder / "broken.yaml").write_text("a: [1, 2")
    bad = pod("bad")
    bad["spec"]["containers"] = "none"
    (folder / "odd.json").write_text(json.dumps(bad))
    found = made(tmp_path, folder)
    assert len(found.workloads) == 1
    assert found.counts["files that cannot be read"] == 2
    assert found.counts["objects that cannot be read"] == 1
    said = "\n".join(found.notes)
    assert "cut.json" in said
    assert "broken.yaml" in said
    assert "Pod shop/bad" in said


def test_a_pod_that_asks_for_nonsense_does_not_stop_others(tmp_path: Path) -> None:
    odd = pod("odd", cpu="lots")
    path = tmp_path / "now.json"
    path.write_text(json.dumps(listed(*cluster(), odd)))
    assert [one.name for one in made(tmp_path, path).workloads] == ["web"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "no Node"),
        (b"{", "whole"),
        (b"a: [1", "YAML of the API server"),
        (json.dumps(listed(node("a"))).encode(), "Node, but no Pod"),
        (gzip.compress(b"{}" * 500, mtime=0)[:-12], "whole"),
        (b'{"kind": "\xff"}', "whole"),
        (b"a: 2026-02-30", "YAML of the API server"),
    ],
)  # fmt: skip
def test_a_file_that_is_of_no_use_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "now.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected) as refused:
        made(tmp_path, path)
    assert str(path) in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        object_files.story([tmp_path / "none.json"])
