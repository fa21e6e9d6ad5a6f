"""The published placements of both scenarios, from the simulator itself and from the slow references."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from reference.edge.files import read_scenario
from slacktide import settings
from slacktide.cli import app
from slacktide.edge.replay import Line, place, replay
from slacktide.edge.testbed import read_testbed
from support.repository import REPOSITORY

EDGE = REPOSITORY / "examples" / "edge"
PUBLISHED = {
    "scenario-1": {
        "elastic-fog": (4, 3, 3),
        "tsra": (4, 3, 3),
        "nas (n1)": (6, 4, 0),  # n2 is nearest to n1, n3 to n2 and n2 to n3
        "nas (n2)": (0, 6, 4),
        "nas (n3)": (0, 4, 6),
        "kcss": (4, 6, 0),
        "delay-aware 0.25": (3, 4, 3),
        "delay-aware 0.5": (3, 4, 3),
        "delay-aware 0.75": (3, 3, 4),  # "alpha <= .5 ... n2", and table 6 has the least completion with .75
    },
    "scenario-2": {
        "least-requested": (2, 2, 2),
        "elastic-fog": (2, 2, 2),
        "tsra": (4, 1, 1),
        "nas (n1)": (6, 0, 0),
        "nas (n2)": (0, 3, 3),
        "nas (n3)": (0, 3, 3),
        "kcss": (0, 3, 3),
        "delay-aware 0.25": (3, 1, 2),
        "delay-aware 0.5": (3, 2, 1),
        "delay-aware 0.75": (3, 2, 1),
    },
}
"""Pods on n1, n2 and n3, as Lai, Wang and Wei report them."""


@pytest.fixture(scope="module")
def lines() -> dict[tuple[str, str], Line]:
    return {(line.scenario, line.method): line for line in replay(EDGE, seeds=20)}


@pytest.mark.parametrize(("scenario", "method"), [(s, m) for s, found in PUBLISHED.items() for m in found])
def test_every_method_places_as_published(lines: dict[tuple[str, str], Line], scenario: str, method: str) -> None:
    assert set(lines[scenario, method].pods) == {PUBLISHED[scenario][method]}, "whatever is drawn"


def test_kube_scheduler_puts_half_of_the_pods_on_n3(lines: dict[tuple[str, str], Line]) -> None:
    assert {pods[2] for pods in lines["scenario-1", "least-requested"].pods} == {5}


@pytest.mark.parametrize("load", ["low", "high"])
@pytest.mark.parametrize("scenario", PUBLISHED)
def test_delay_aware_placement_has_the_least_network_delay_and_tsra_the_second_least(
    lines: dict[tuple[str, str], Line], scenario: str, load: str
) -> None:
    mine = {method: line.loads[load].network for (where, method), line in lines.items() if where == scenario}
    aware = [mine[f"delay-aware {alpha}"] for alpha in (0.25, 0.5, 0.75)]
    others = [mine[method] for method in ("least-requested", "elastic-fog", "nas", "kcss")]
    assert max(aware) < mine["tsra"] < min(others)


def test_alpha_moves_the_extra_pod_of_scenario_1_from_n2_to_n3(lines: dict[tuple[str, str], Line]) -> None:
    found = [set(lines["scenario-1", f"delay-aware {alpha}"].pods) for alpha in (0.25, 0.5, 0.75)]
    assert found == [{(3, 4, 3)}, {(3, 4, 3)}, {(3, 3, 4)}]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("method", ["least-requested", "elastic-fog", "tsra", "nas", "kcss", "delay-aware"])
def test_the_simulator_and_the_slow_references_count_alike(number: int, method: str) -> None:
    folder = EDGE / f"scenario-{number}"
    testbed, config, slow = read_testbed(folder), settings.load(folder / "settings.yaml"), read_scenario(folder)
    preferred = "n2" if method == "nas" else ""
    mine = set()
    theirs = set()
    for seed in range(10):
        placed = list(place(testbed, method, config, preferred=preferred, seed=seed).values())
        mine.add(tuple(placed.count(name) for name in testbed.hosts.names))
        theirs.add(slow.counts(method, seed=seed, preferred=preferred))
    assert mine == theirs


def test_the_command_shows_both_scenarios() -> None:
    result = CliRunner().invoke(app, ["edge", "replay", str(EDGE), "--seeds", "2"], env={"COLUMNS": "240"})
    assert result.exit_code == 0, result.output
    text = result.output.splitlines()
    assert text[0].split()[:4] == ["scenario-1", "pods", "on", "n1/n2/n3"]
    (kcss,) = [line.split() for line in text if line.startswith("kcss") and "4/6/0" in line]
    assert len(kcss) == 8
