"""One experiment of real runs, and its page, for all tests of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from report.made import Wanted, make
from slacktide import drawing
from slacktide.model import Window
from slacktide.reporting import write
from support.made_once import made_once

HOSTILE = "<script>alert(1)</script>"


def reported(
    factory: pytest.TempPathFactory, name: str, wanted: Wanted, labels: Mapping[str, str] | None = None
) -> Path:
    """A folder with an experiment (``results``), its report and the figures of that."""

    def fill(folder: Path) -> None:
        with pytest.MonkeyPatch.context() as patch:
            one_of_a_kind(patch)
            write(make(folder / "results", wanted, labels), folder / "report.html", folder / "figures")

    return made_once(factory, name, fill)


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three policies, two host sets, two seeds; one run failed and one is missing. Bronze is promised over windows."""

    def fail(_workload: str, hosts: str, policy: str, seed: int) -> str | None:
        if (hosts, policy, seed) == ("0.9 N", "qos-driven recommended", 2):
            return "the worker <ran> out of memory"
        return "" if (hosts, policy, seed) == ("0.9 N", "qos-driven published", 2) else None

    policies = ("priority", "qos-driven recommended", "qos-driven published")
    wanted = Wanted(policies=policies, fail=fail, windows={"bronze": Window(rolling=120.0)})
    return reported(tmp_path_factory, "experiment", wanted) / "results"


@pytest.fixture(scope="session")
def page(experiment: Path) -> Path:
    """The report of it; its figures are beside it in ``figures``."""
    return experiment.parent / "report.html"


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report full of names that would like to be something else; its figures are beside it in ``figures``."""
    labels = {
        "run 1": HOSTILE,
        "priority": '"><img src=x onerror=alert(1)> $x_1$ & \\frac',
        "qos-driven recommended": "</style></svg></title>]]>-->\x07{{ 7*7 }}",
        "N": "=HYPERLINK(1) \u4e3b\u673a \U0001f680 " + "long " * 40,
    }
    names = {"gold": HOSTILE, "silver": "a, b: c"}
    wanted = Wanted(hosts={"N": 20}, seeds=(1,), end=300.0, names=names, title=HOSTILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "PAPERS", (drawing.SINGLE,))
        return reported(tmp_path_factory, "hostile", wanted, labels) / "report.html"


def one_of_a_kind(patch: pytest.MonkeyPatch) -> None:
    """Only the first PDF and PNG are drawn, which all others are then: all take longer than everything else."""
    for kind in ("pdf", "png"):
        patch.setattr(drawing, kind, _first_of(getattr(drawing, kind)))


def _first_of(draw: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    made: list[bytes] = []

    def first(figure: Any) -> bytes:
        if not made:
            made.append(draw(figure))
        return made[0]

    return first
