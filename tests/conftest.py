"""What all tests share."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from hypothesis import settings

# A time limit for each example would measure how busy the machine is. All else stays as it is, also that a CI run
# (CI=true) takes the same examples each time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def defects() -> list[logging.LogRecord]:
    """Defects that a test provokes, as they are logged; without this fixture they fail it."""
    return []


@pytest.fixture(autouse=True)
def no_defect_goes_unseen(request: pytest.FixtureRequest) -> Iterator[None]:
    """The barrier around objects keeps a defect from ending the scheduler; it must not keep it from ending a test."""
    found = request.getfixturevalue("defects") if "defects" in request.fixturenames else []
    handler, logger = _Collector(found), logging.getLogger("slacktide.kube.mirror.barrier")
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    if "defects" not in request.fixturenames:
        assert not found, [one.getMessage() for one in found]


class _Collector(logging.Handler):
    def __init__(self, found: list[logging.LogRecord]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(record)
