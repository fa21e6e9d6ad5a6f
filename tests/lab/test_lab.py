"""The lab's clients and files, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slacktide.errors import ConfigError
from slacktide.lab import Api, Binaries, ControlPlane, LabError


@pytest.mark.parametrize("content", ["", "\n"])
def test_an_empty_certificate_does_not_stand_for_the_systems_authorities(tmp_path: Path, content: str) -> None:
    """As an API server's is between its making and its writing."""
    empty = tmp_path / "empty.crt"
    empty.write_text(content)
    with pytest.raises(ConfigError, match=r"empty\.crt: found nothing; expected a certificate in PEM"):
        Api("https://127.0.0.1:1", "token", empty)


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text(json.dumps({"version": 7}))
    with pytest.raises(LabError, match=r"lab\.json: version: found 7, expected 1"):
        ControlPlane.attach(tmp_path)
    (tmp_path / "lab.json").write_text('{"version": 1}')
    with pytest.raises(LabError, match=r"lab\.json: is damaged"):
        ControlPlane.attach(tmp_path)


def test_a_directory_of_something_else_is_refused(tmp_path: Path) -> None:
    precious = tmp_path / "data"
    precious.mkdir()
    (precious / "thesis.tex").touch()
    with pytest.raises(LabError, match="which is no lab's"):
        ControlPlane.create(tmp_path, Binaries({}))
    assert (precious / "thesis.tex").exists()
