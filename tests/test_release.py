"""The notes of a release are its section of the changelog; what the workflows of GitHub do beside what `make` does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.repository import REPOSITORY

PROGRAM = REPOSITORY / "packaging" / "notes.py"
LOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-01

### Added
- One thing.

### Fixed
- Another thing.

## [1.1.0] - 2026-01-01
- First.
"""


def notes(version: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, PROGRAM, version, path], capture_output=True, text=True, check=False)


def test_notes_end_where_the_release_before_begins(tmp_path: Path) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(LOG)
    assert notes("1.2.0", path).stdout == "### Added\n- One thing.\n\n### Fixed\n- Another thing.\n"
    assert notes("1.1.0", path).stdout == "- First.\n"


def test_a_release_without_notes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "CHANGELOG.md"
    path.write_text(LOG)
    answer = notes("1.3.0", path)
    assert answer.returncode == 1
    assert "no section [1.3.0], only Unreleased, 1.2.0, 1.1.0; write one before the release" in answer.stderr
    assert answer.stdout == ""


WORKFLOWS = REPOSITORY / ".github" / "workflows"
GH = """#!/bin/sh
for word in "$@"; do
    case $word in */*|sbom*) [ -f "$word" ] || { echo "no $word" >&2; exit 1; }; basename "$word" >> uploaded ;; esac
done
"""


def steps(workflow: str, job: str) -> list[Any]:
    found: list[Any] = yaml.safe_load((WORKFLOWS / workflow).read_text())["jobs"][job]["steps"]
    return found


def test_files_of_a_release_are_there_and_have_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text(LOG)
    (tmp_path / "packaging").symlink_to(PROGRAM.parent)
    built = ["dist/slacktide-1.2.0.tar.gz", "dist/slacktide-1.2.0-py3-none-any.whl"]
    built += [f"image-{arch}/{name}" for arch in ("amd64", "arm64") for name in ("sbom.json", "slacktide.oci.tar")]
    built.append("chart/slacktide-1.2.0.tgz")
    for name in built:
        (tmp_path / "built" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "built" / name).write_text(name)
    gh = tmp_path / "bin" / "gh"
    gh.parent.mkdir()
    gh.write_text(GH)
    gh.chmod(0o755)
    (step,) = [one for one in steps("release.yml", "publish") if one.get("name") == "Write the release"]
    environment = os.environ | {"TAG": "v1.2.0", "PATH": f"{gh.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    uploaded = (tmp_path / "uploaded").read_text().split()
    expected = [*(Path(one).name for one in (*built[:2], built[-1])), "sbom-amd64.json", "sbom-arm64.json"]
    assert sorted(uploaded) == sorted(expected)


HELM = """#!/bin/sh
echo "$@" >> told
case $1 in
    package) mkdir -p built/chart; touch built/chart/slacktide-1.2.0.tgz ;;
    push) echo "Pushed: x"; echo "Digest: sha256:abc" >&2 ;;
esac
"""


def test_the_chart_that_is_pushed_has_the_image_of_this_release(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "charts" / "slacktide", tmp_path / "charts" / "slacktide")
    helm = tmp_path / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text(HELM)
    helm.chmod(0o755)
    (step,) = [one for one in steps("release.yml", "publish") if one.get("name") == "Push the chart"]
    environment = os.environ | {
        "PATH": f"{helm.parent}{os.pathsep}{os.environ['PATH']}", "GITHUB_OUTPUT": str(tmp_path / "output"),
        "TOKEN": "t", "ACTOR": "a", "CHARTS": "r.example/o/slacktide/charts", "IMAGE": "r.example/o/slacktide",
        "DIGEST": "sha256:0123",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    image = yaml.safe_load((tmp_path / "charts" / "slacktide" / "values.yaml").read_text())["image"]
    assert (image["repository"], image["digest"]) == ("r.example/o/slacktide", "sha256:0123")
    assert "push built/chart/slacktide-1.2.0.tgz oci://r.example/o/slacktide/charts" in (tmp_path / "told").read_text()
    said = (tmp_path / "output").read_text().split()
    assert said == ["digest=sha256:abc", "chart=r.example/o/slacktide/charts/slacktide"]


def test_what_is_pushed_is_signed_and_each_image_has_its_list() -> None:
    every = steps("release.yml", "publish")
    signed = [one["with"]["subject-name"] for one in every if "attest-build-provenance" in one.get("uses", "")]
    assert signed == ["${{ steps.push.outputs.image }}", "${{ steps.chart.outputs.chart }}"]
    lists = {one["with"]["subject-digest"]: one["with"]["sbom-path"]
             for one in every if "attest-sbom" in one.get("uses", "")}  # fmt: skip
    assert lists == {f"${{{{ steps.push.outputs.{arch} }}}}": f"built/image-{arch}/sbom.json"
                     for arch in ("amd64", "arm64")}  # fmt: skip


def test_the_base_of_the_image_is_what_the_commit_says() -> None:
    text = (REPOSITORY / "Containerfile").read_text()
    assert re.search(r"(?m)^ARG BASE=docker\.io/library/debian:trixie-slim@sha256:[0-9a-f]{64}$", text)
    assert re.search(r"(?m)^ARG SNAPSHOT=\d{8}T000000Z$", text)
    (build,) = [one for one in steps("release.yml", "image") if "Build on the base" in one.get("name", "")]
    assert "BASE=pinned" in build["run"]
    assert "skopeo" not in (WORKFLOWS / "release.yml").read_text()
    for name in ("SOURCE", "VERSION", "REVISION"):
        assert f'org.opencontainers.image.{name.lower()}="${name}"' in text


def test_the_charts_version_is_the_programs() -> None:
    from slacktide import __version__
    from support.chart_files import of_this_version

    assert f"appVersion: {__version__}\n" in of_this_version()
    assert of_this_version() == (REPOSITORY / "charts" / "slacktide" / "Chart.yaml").read_text()


def test_ci_runs_with_the_python_that_it_has_chosen() -> None:
    """sudo has a PATH of its own, whatever it is told to preserve."""
    (run,) = [one["run"] for one in steps("ci.yml", "everything") if "sudo" in one.get("run", "")]
    assert 'env "PATH=$PATH" .ci/run' in run


def test_the_wheel_for_arm_is_tried_only_where_both_programs_are() -> None:
    """``command -v A B`` succeeds where there is only one of them."""
    text = (REPOSITORY / "packaging" / "release").read_text()
    assert "command -v qemu-aarch64 >/dev/null && command -v mmdebstrap >/dev/null" in text


def test_the_loader_of_the_arm_tree_is_where_programs_name_it() -> None:
    """They name /lib/ld-linux-aarch64.so.1, and Debian's packages alone have it in /usr/lib only."""
    text = (REPOSITORY / "packaging" / "release").read_text()
    made, used = text.index('ln -s usr/lib "$tried/arm/lib"'), text.index('qemu-aarch64 -L "$tried/arm"')
    assert text.index("mmdebstrap --quiet") < made < used


# -- what the workflows use, and may -----------------------------------------------------------------------------------

MAY_WRITE = {("release.yml", "packages"), ("release.yml", "publish")}
"""Jobs that attest or publish."""


@pytest.mark.parametrize("workflow", sorted(WORKFLOWS.glob("*.yml")), ids=lambda path: path.name)
def test_actions_are_named_by_commit_and_jobs_may_only_read(workflow: Path) -> None:
    uses = [line.strip() for line in workflow.read_text().splitlines() if "uses:" in line]
    assert uses
    assert [one for one in uses if not re.fullmatch(r"(- )?uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
    said = yaml.safe_load(workflow.read_text())
    assert said["permissions"] == {"contents": "read"}
    writing = {name for name, job in said["jobs"].items() if "write" in job.get("permissions", {}).values()}
    assert {(workflow.name, name) for name in writing} <= MAY_WRITE
    for job in said["jobs"].values():
        checkouts = [one for one in job["steps"] if one.get("uses", "").startswith("actions/checkout@")]
        assert all(one["with"]["persist-credentials"] is False for one in checkouts)


def audit(folder: Path, accepted: str, *locks: str) -> subprocess.CompletedProcess[str]:
    """The audit with a pip-audit that says what it was asked."""
    shutil.copy(PROGRAM.parent / "audit.py", folder)
    (folder / "accepted.txt").write_text(accepted)
    (folder / "pip_audit.py").write_text("import sys; print(*sys.argv[1:]); sys.exit(1)")
    command = [sys.executable, str(folder / "audit.py"), *locks]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(folder)}
    )


def test_the_audit_leaves_out_what_is_accepted(tmp_path: Path) -> None:
    done = audit(tmp_path, "# why\n\nGHSA-ab12-cd34-ef56 only on Windows\nCVE-2026-1 not used\n", "a.lock", "b.lock")
    assert done.returncode == 1  # as pip-audit ends
    assert done.stdout.split() == [
        "--strict", "--require-hashes", "--disable-pip", "--requirement", "a.lock", "--requirement", "b.lock",
        "--ignore-vuln", "GHSA-ab12-cd34-ef56", "--ignore-vuln", "CVE-2026-1",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["GHSA-ab12-cd34-ef56", "we do not care"])
def test_nothing_is_accepted_without_its_number_and_a_reason(line: str, tmp_path: Path) -> None:
    done = audit(tmp_path, f"# why\n{line}\n", "a.lock")
    assert done.returncode == 1
    assert f"accepted.txt:2: found '{line}', expected a number" in done.stderr
    assert not done.stdout


def test_what_is_accepted_can_be_read_and_every_lock_is_audited(tmp_path: Path) -> None:
    accepted = (PROGRAM.parent / "accepted.txt").read_text()
    assert audit(tmp_path, accepted, "a.lock").stdout
    assert "$(wildcard requirements*.lock packaging/*.lock)" in (REPOSITORY / "Makefile").read_text()
