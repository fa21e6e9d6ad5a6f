"""A real control plane for the tests of this folder."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.labtools import new_namespace, remove_namespace, without_objects
from cluster.running import Cast, Stage, cast_of
from slacktide.lab import Binaries, ControlPlane, LabError
from slacktide.lab.binaries import NEEDED

PROGRAMS = (*NEEDED, "kube-scheduler", "kubectl", "helm")
LONGEST = "test_runbooks.py"
"""It waits for minutes: begun last, it would be alone in the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest module first; all others stay in their order."""
    items.sort(key=lambda item: item.path.name != LONGEST)


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    """Every program of a lab. Where Go is missing, too, tests are skipped, unless SLACKTIDE_REQUIRE_LAB=1."""
    try:
        return Binaries.find(PROGRAMS)
    except LabError as error:
        if os.environ.get("SLACKTIDE_REQUIRE_LAB") == "1":
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module", autouse=True)
def _all_is_closed() -> Iterator[None]:
    """A socket or task that a module leaves open is its own failure, not that of a test in which it is collected."""
    yield
    gc.collect()


@contextmanager
def _running(plane: ControlPlane) -> Iterator[ControlPlane]:
    plane.start(guarded=True)
    try:
        plane.install()
        yield plane
    finally:
        plane.kill()


@pytest.fixture(scope="session")
def shared_lab(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with _running(ControlPlane.create(tmp_path_factory.mktemp("lab") / "shared", binaries)) as plane:
        yield plane


@pytest.fixture
def lab(shared_lab: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane that tests share, without nodes and pods, with slacktide's manifests applied.

    A test leaves it running; one that ends programs takes ``own_lab``.
    """
    without_objects(shared_lab.api)
    yield shared_lab
    without_objects(shared_lab.api)


@pytest.fixture
def own_lab(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane of the test's own, manifests applied; its programs may be ended and started again."""
    with _running(ControlPlane.create(tmp_path_factory.mktemp("lab") / "own", binaries)) as plane:
        yield plane


@pytest.fixture
def namespace(lab: ControlPlane) -> Iterator[str]:
    """A new namespace in ``lab``, removed afterwards."""
    name = new_namespace(lab.api)
    yield name
    remove_namespace(lab.api, name)


@pytest.fixture(scope="module")
def cast(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Cast]:
    """The scenes of a module on its own ``stage``, played all at once."""
    found = cast_of(stage, request)
    yield found
    found.over()
