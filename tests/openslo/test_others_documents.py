"""Every document of a folder is imported, read, or refused with a field's name: OpenSLO's own repository, for one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.benches import loaded
from support.repository import REPOSITORY

FOLDER = os.environ.get("SLACKTIDE_OPENSLO_DOCUMENTS", "")


def outcomes_of(folder: Path, scratch: Path) -> dict[str, tuple[str, list[str]]]:
    program = loaded("openslo_documents")
    return {name: program.outcome(path) for name, path in program.documents(folder, scratch)}


def test_our_own_examples_are_imported(tmp_path: Path) -> None:
    found = outcomes_of(REPOSITORY / "examples" / "openslo", tmp_path)
    assert {name: which for name, (which, _) in found.items()} == {"shop.yaml": "imported"}


def test_documents_in_markdown_and_of_other_versions_are_told_apart(tmp_path: Path) -> None:
    folder, scratch = tmp_path / "folder", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    service = "apiVersion: openslo/v1\nkind: Service\nmetadata: {name: a}\n"
    (folder / "page.md").write_text(
        f"# A page\n```yaml\n{service}```\n```yaml\nkey: value\n```\n"
        f"```yaml\n{service.replace('v1', 'v2alpha')}```\n```yaml\n{service}spec: [\n```\n"
    )
    (folder / "windows.yaml").write_text("apiVersion: 'sloth.slok.dev/v1'\nkind: AlertWindows\nspec: {}\n")
    (folder / "sloth.yml").write_text('version: "prometheus/v1"\nservice: a\nslos: []\n')
    (folder / "pyrra.yaml").write_text("apiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\n")
    (folder / "one.json").write_text('{"apiVersion": "openslo/v1", "kind": "SLO", "metadata": {"name": "a"}}')
    found = {name: which for name, (which, _) in outcomes_of(folder, scratch).items()}
    assert found == {
        "one.json": "refused",
        "page.md block 0": "read",
        "page.md block 2": "refused",
        "page.md block 3": "no YAML",
        "pyrra.yaml": "refused",
        "sloth.yml": "refused",
        "windows.yaml": "read",
    }


@pytest.mark.skipif(not FOLDER, reason="SLACKTIDE_OPENSLO_DOCUMENTS names no folder, such as a checkout of OpenSLO")
def test_documents_of_others_are_imported_or_refused_with_a_fields_name(tmp_path: Path) -> None:
    found = outcomes_of(Path(FOLDER), tmp_path)
    assert len(found) > 0
    assert {name: said for name, (which, said) in found.items() if which == "unclear"} == {}
