"""``slacktide past`` and ``slacktide verdict`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slacktide.cli import main
from slacktide.openslo.classes import read_classes
from slacktide.pasts import promises
from slacktide.submit.manifests import class_object
from support.made_past import deployment, listed, node, pod


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two nodes, and one pod more than fits."""
    pods = [pod(f"web-{place}", "web", place, cpu="3", ready=-390.0) for place in "ab"]
    path = tmp_path / "now.json"
    path.write_text(
        json.dumps(listed(node("a"), node("b"), *deployment("web", 3), *pods, pod("web-c", "web", cpu="3")))
    )
    return path


def test_from_a_dump_to_the_page(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "now"
    assert main(["past", "objects", str(dump), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "1 workload of 3 instances on 2 nodes, as they are" in said
    assert "not known: what was delivered until now: promises.yaml proposes .999 for all" in said
    assert f"slacktide verdict {out}" in said
    assert main(["verdict", str(out), "--seeds", "1"]) == 0
    said = capsys.readouterr().out
    assert "no past to compare the simulation with" in said
    assert "To keep all 1, slacktide would need 3 nodes." in said
    assert "<!DOCTYPE html>" in (out / "verdict.html").read_text()


def test_at_once_and_as_json(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["past", "objects", str(dump), "--out", str(tmp_path / "now"), "--json", "--verdict"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"] == 2
    whole = found["kept"][-1]
    assert (whole["name"], whole["slo"], whole["workloads"]) == ("all", None, 1)
    assert found["sizes"]["slacktide"]["nodes"] == 3
    assert set(found["preemptions"]) == {"truth", *found["sizes"]} == {"truth", "kubernetes", "slacktide"} <= set(whole)
    assert found["believed"] is None, "nothing was compared"
    assert main(["past", "objects", str(dump), "--out", str(tmp_path / "other"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["Pod"] == 3


def test_promises_that_were_edited_stay(dump: Path, tmp_path: Path) -> None:
    out = tmp_path / "now"
    assert main(["past", "objects", str(dump), "--out", str(out)]) == 0
    mine = "classes: [{name: mine, slo: 0.5, rank: 1}]\nworkloads: [{class: mine}]\n"
    (out / "promises.yaml").write_text(mine)
    assert main(["past", "objects", str(dump), "--out", str(out)]) == 0
    assert (out / "promises.yaml").read_text() == mine
    assert main(["past", "objects", str(dump), "--out", str(out), "--promise", "namespace"]) == 0
    assert "shop" in (out / "promises.yaml").read_text()


def test_promises_become_classes_of_a_cluster(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "now"
    assert main(["past", "objects", str(dump), "--out", str(out)]) == 0
    (out / "promises.yaml").write_text(
        "classes: [{name: gold, slo: 0.99, rank: 1}, {name: low, slo: 0.5, rank: 2}]\nworkloads:\n"
        "- {class: gold, priorityClass: top}\n- {class: low, priorityClass: batch}\n- {class: gold, namespace: shop}\n"
        "- {class: gold, kind: Job, name: 'nightly*'}\n- {class: low}\n"
    )
    capsys.readouterr()
    assert main(["past", "classes", str(out)]) == 0
    said = capsys.readouterr()
    path = tmp_path / "classes.yaml"
    path.write_text(said.out)
    wanted = [class_object(one) for one in promises.read(out / "promises.yaml").classes]
    for one in wanted:
        one["spec"]["approach"] = "aggregated"
    assert read_classes([path]) == wanted
    assert said.err.splitlines() == [
        "kubectl label namespace shop slacktide.io/default-class=gold",
        "label pod templates of kind Job and name nightly* with slacktide.io/class: gold",
        "label pod templates of all others with slacktide.io/class: low",
        "slacktide run --set kube.priority_classes=top=gold,batch=low",
    ]


def test_names_can_be_replaced(dump: Path, tmp_path: Path) -> None:
    assert main(["past", "objects", str(dump), "--out", str(tmp_path / "now"), "--anonymize"]) == 0
    assert "shop" not in "".join(one.read_text(errors="replace") for one in (tmp_path / "now").iterdir())


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["past", "objects", "none.json", "--out", "x"], 3, "none.json"),
        (["past", "objects", "DUMP", "--out", "x", "--promise", "luck"], 2, "expected one of priority"),
        (["past", "tables", "DUMP"], 2, "No such command"),
        (["past", "objects", "week.sktrace", "--out", "x"], 3, "found 'a trace of SimKube', expected nodes and pods"),
        (["verdict", "nowhere"], 3, "slacktide past SOURCE --out nowhere"),
    ],
)
def test_what_is_wrong_is_said(
    dump: Path, words: list[str], code: int, expected: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(dump.parent)
    assert main([str(dump) if word == "DUMP" else word for word in words]) == code
    assert expected in capsys.readouterr().err
    assert not (dump.parent / "x").exists()
