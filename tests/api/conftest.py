"""A small workload that all tests of the Python API share."""

from __future__ import annotations

from pathlib import Path

import pytest

import slacktide as st


@pytest.fixture(scope="session")
def cell() -> st.Generated:
    """Some 700 requests on 20 hosts: too few for all, so that there are preemptions."""
    return st.generate("cell", hosts=20, requests=800)


@pytest.fixture(scope="session")
def folder(cell: st.Generated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as files."""
    return cell.save(tmp_path_factory.mktemp("api") / "cell")
