"""The files of both published scenarios give every published placement, by the slow reference methods."""

from __future__ import annotations

import pytest

from reference.edge.files import Scenario, read_scenario
from support.repository import REPOSITORY

EDGE = REPOSITORY / "examples" / "edge"


@pytest.fixture(scope="module")
def scenarios() -> dict[int, Scenario]:
    return {number: read_scenario(EDGE / f"scenario-{number}") for number in (1, 2)}


SEEDS = range(5)


@pytest.mark.parametrize(
    ("number", "method", "preferred", "alpha", "published"),
    [
        (1, "elastic-fog", "", 0.5, (4, 3, 3)),
        (1, "tsra", "", 0.5, (4, 3, 3)),
        (1, "nas", "n1", 0.5, (6, 4, 0)),
        (1, "nas", "n2", 0.5, (0, 6, 4)),
        (1, "nas", "n3", 0.5, (0, 4, 6)),
        (1, "kcss", "", 0.5, (4, 6, 0)),
        (1, "delay-aware", "", 0.25, (3, 4, 3)),
        (1, "delay-aware", "", 0.5, (3, 4, 3)),
        (1, "delay-aware", "", 0.75, (3, 3, 4)),
        (2, "least-requested", "", 0.5, (2, 2, 2)),
        (2, "elastic-fog", "", 0.5, (2, 2, 2)),
        (2, "tsra", "", 0.5, (4, 1, 1)),
        (2, "nas", "n1", 0.5, (6, 0, 0)),
        (2, "nas", "n2", 0.5, (0, 3, 3)),
        (2, "nas", "n3", 0.5, (0, 3, 3)),
        (2, "kcss", "", 0.5, (0, 3, 3)),
        (2, "delay-aware", "", 0.25, (3, 1, 2)),
        (2, "delay-aware", "", 0.5, (3, 2, 1)),
        (2, "delay-aware", "", 0.75, (3, 2, 1)),
    ],
)
def test_pods_are_placed_as_published_whatever_is_drawn(
    scenarios: dict[int, Scenario],
    number: int,
    method: str,
    preferred: str,
    alpha: float,
    published: tuple[int, ...],
) -> None:
    found = {scenarios[number].counts(method, seed=seed, preferred=preferred, alpha=alpha) for seed in SEEDS}
    assert found == {published}


def test_kube_scheduler_puts_five_pods_on_n3_in_scenario_1(scenarios: dict[int, Scenario]) -> None:
    for seed in SEEDS:
        n1, n2, n3 = scenarios[1].counts("least-requested", seed=seed)
        assert n3 == 5
        assert min(n1, n2) >= 2


def test_users_log_in_equally_at_the_master_and_on_every_node(scenarios: dict[int, Scenario]) -> None:
    for number, allowed in ((1, {2, 3}), (2, {1, 2})):
        logins = [pod.logins[0][0] for pod in scenarios[number].users]
        assert {logins.count(place) for place in ("master", "n1", "n2", "n3")} == allowed
