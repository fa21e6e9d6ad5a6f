"""The manifest holds what a repetition needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slacktide import settings
from slacktide.errors import InputError
from slacktide.results import file_hashes, manifest


def test_it_holds_versions_seed_settings_and_input_hashes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"abc")
    config = settings.load(None, "published", ["simulation.seed=5"])
    hashes = file_hashes([tmp_path / "a.csv"])
    about = manifest(settings.to_mapping(config), hashes, ["slacktide", "simulate"], {"passes": 3})
    # SHA-256 of "abc", from the standard (FIPS 180-2, appendix B.1)
    assert hashes == {
        str(tmp_path / "a.csv"): "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    }
    assert about["seed"] == 5
    assert set(about["libraries"]) >= {"numpy", "kernels"}
    (tmp_path / "manifest.json").write_text(json.dumps(about, allow_nan=False))
    assert settings.load(tmp_path / "manifest.json") == config


def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone\.csv"):
        file_hashes([tmp_path / "gone.csv"])
