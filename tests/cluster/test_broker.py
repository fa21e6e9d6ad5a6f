"""``slacktide broker`` on a real API server: what it submits, what that refuses, and that all of it can be removed.

When objects come, are scaled and go: ``simulated/test_broker.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from click.testing import CliRunner

from slacktide.cli import app
from slacktide.lab import ControlPlane
from slacktide.submit.manifests import RUN_LABEL
from submit.test_broker import HEAD


def _made(lab: ControlPlane, namespace: str, run: str) -> dict[str, Any]:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments?labelSelector={RUN_LABEL}%3D{run}"
    return {one["metadata"]["name"]: one["spec"] for one in lab.api.get(path)["items"]}


def test_what_is_submitted_is_made_or_refused_and_removed(lab: ControlPlane, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "w.csv"
    file.write_text(f"{HEAD}\n1,0,inf,0.1,0.1,gold,1,0,\n2,0,inf,0.1,0.1,gold,1,0,two/many/parts == x\n")
    words = ["broker", str(file), "--kubeconfig", str(lab.kubeconfig), "--namespace", namespace, "--create-classes",
             "--end", "1", "--startup", "lognormal:2.5,0.4"]  # fmt: skip
    kept = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "1 Deployments and 0 Jobs submitted, 0 scaled, 0 removed, 1 refused by the API server" in kept.output
    assert f"Deployment {namespace}/w-2: 422" in kept.output
    assert list(_made(lab, namespace, "w")) == ["w-1"]
    CliRunner().invoke(app, [*words, "--name", "other", "--delete"], catch_exceptions=False)
    assert list(_made(lab, namespace, "w")) == ["w-1"]
    assert _made(lab, namespace, "other") == {}
