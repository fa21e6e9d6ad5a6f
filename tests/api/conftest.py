"""A small workload that all tests of the Python API share."""

from __future__ import annotations

from pathlib import Path

import pytest

import slacktide as st

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Too few hosts are what most tests here are about: that somebody is never served is no news."""
    for one in items:
        if HERE in one.path.parents:
            one.add_marker(pytest.mark.filterwarnings("ignore::slacktide.errors.ResultWarning"))


@pytest.fixture(scope="session")
def cell() -> st.Generated:
    """Some 700 requests on 20 hosts: too few for all, so that there are preemptions."""
    return st.generate("cell", hosts=20, requests=800)


@pytest.fixture(scope="session")
def folder(cell: st.Generated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as files."""
    return cell.save(tmp_path_factory.mktemp("api") / "cell")
