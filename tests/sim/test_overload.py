"""Where capacity does not suffice: as many promises as it can carry are kept under triage (docs/overload.md)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.inputs import group_by_job
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.qos.availability import fulfilled
from slacktide.sim import run

Shares = NDArray[np.float64]

HOUR = 3600.0
WATCHDOG_SECONDS = Config().scheduler.watchdog


def equal_requests(count: int, slo: float) -> Workload:
    """Endless requests of one core and one class, all admitted at once."""
    return Workload(
        ids=np.arange(count, dtype=np.int64),
        admission=np.zeros(count),
        duration=np.full(count, 1e6),
        demand=np.ones((count, 2)),
        service_class=np.zeros(count, np.int16),
        job=np.arange(count, dtype=np.int64),
        anti_affinity=np.zeros(count, np.bool_),
        term=np.zeros(count, np.int32),
        resources=("cpu", "memory"),
        classes=(ServiceClass("equal", slo, 1),),
    )


def places(count: int) -> Hosts:
    """Hosts with room for one of these requests each."""
    return Hosts(
        ids=np.arange(count, dtype=np.int64),
        names=tuple(f"host-{i}" for i in range(count)),
        capacity=np.ones((count, 2)),
        resources=("cpu", "memory"),
        attributes=({},) * count,
    )


def availabilities(
    overload: str, requests: int, hosts: int, slo: float, alpha: float = 22.37107, floor: float = 0.0
) -> Shares:
    """Of each request, after an hour; the lost of the settings here get more of what others can spare than usual."""
    config = Config()
    config = replace(config, qos=replace(config.qos, alpha=alpha))
    policy = replace(config.policy, overload=overload, floor=floor, overload_patience=240.0)  # type: ignore[arg-type]
    config = replace(config, policy=policy, simulation=replace(config.simulation, end=HOUR))
    found = run(equal_requests(requests, slo), places(hosts), config).requests
    delivered: Shares = (found["running"] + found["startup_first"]) / HOUR
    return delivered


def place_taken_at(classes: tuple[ServiceClass, ...], of: tuple[int, ...], recovery: float = 3600.0) -> float:
    """When the second of these requests, a second apart, takes the only place from the first, seconds.

    ``of``: the class of each. Nobody is preempted within 50 s, and there is no floor.
    """
    workload = replace(
        equal_requests(len(of), 0.9),
        admission=np.arange(len(of), dtype=float),
        service_class=np.array(of, np.int16),
        classes=classes,
    )
    config = Config()
    config = replace(
        config,
        policy=replace(config.policy, min_running=50.0, recovery=recovery, floor=0.0),
        simulation=replace(config.simulation, end=300.0),
    )
    found = run(workload, places(1), config, decisions=True).decisions
    assert found is not None
    assert found["row"].tolist()[:2] == [0, 1]
    return float(found["time"][1])


def test_of_23_equal_requests_on_20_hosts_the_20_that_fit_are_kept() -> None:
    shared, triaged = (availabilities(overload, 23, 20, 0.9) for overload in ("share", "triage"))
    assert fulfilled(triaged, 0.9).sum() == 20
    assert fulfilled(shared, 0.9).sum() < 20, "each one served drags the next below its promise"


def test_those_that_are_lost_get_what_others_can_spare() -> None:
    triaged = availabilities("triage", 23, 20, 0.9)
    assert triaged.min() > 0.2, "nobody who has enough keeps all of it"


def test_with_a_floor_nobody_starves() -> None:
    assert availabilities("triage", 30, 20, 0.9).min() < 0.2
    # Whoever starves is served in the next pass, at most ten seconds later.
    assert availabilities("triage", 30, 20, 0.9, floor=0.5).min() >= 0.5 * 0.9 - 10.0 / HOUR


def test_a_floor_takes_nothing_from_those_whose_promise_does_not_recover() -> None:
    assert availabilities("triage", 3, 2, 1.0, floor=0.5).tolist() == [1.0, 1.0, 0.0]


def jobs_in_one_place(slo: float) -> list[float]:
    """When each of three jobs of 1,000 s starts first, seconds; they come at 0, 100 and 200 s to a place for one.

    The second one is lost from 118 s on (slack -22.4 s when it comes), so that the class is overloaded at 200 s. The
    first one would lose 200 s of work then.
    """
    workload = replace(equal_requests(3, slo), admission=np.array([0.0, 100.0, 200.0]), duration=np.full(3, 1000.0))
    jobs = group_by_job(workload, approach="aggregated", batch=True)
    config = Config()
    config = replace(
        config, policy=replace(config.policy, floor=0.0), simulation=replace(config.simulation, end=2000.0)
    )
    found = run(jobs, places(1), config, decisions=True).decisions
    assert found is not None
    return [float(found["time"][found["row"] == row].min(initial=np.inf)) for row in range(3)]


def test_a_job_that_has_its_promise_is_not_given_up_for_the_work_it_would_lose() -> None:
    assert jobs_in_one_place(1.0)[2] >= 1000.0
    assert jobs_in_one_place(0.9)[2] == 200.0, "a promise of .9 recovers from that"


@pytest.mark.parametrize(
    ("slo", "recovery", "earliest"),
    [(0.9, 3600.0, 92.4), (1.0, 3600.0, 50.0), (0.9, 359.0, 50.0), (0.9, 361.0, 92.4)],
    ids=["recovers", "never recovers", "recovers too late", "recovers just in time"],
)
def test_a_lost_one_that_recovers_leaves_less_important_promises_alone(
    slo: float, recovery: float, earliest: float
) -> None:
    """One place: a bronze request runs from the start, and may not be preempted for 50 s; a gold one comes at 1 s.

    The gold one is lost from 19 s on (slack -22.4 s when it comes). At 92.4 s the bronze one has 60 s to spare
    (``patience``; its margin is 10 s). A promise of .9 makes up for 40 s (``savable``) by running for 360 s.
    """
    classes = (ServiceClass("gold", slo, 1), ServiceClass("bronze", 0.5, 2))
    time = place_taken_at(classes, (1, 0), recovery=recovery)
    assert earliest <= time <= earliest + WATCHDOG_SECONDS


def test_of_two_classes_of_one_rank_each_goes_by_its_own_promise() -> None:
    """The place of a bronze request, asked for by a lost one promised .9, which recovers, and one promised 1."""
    classes = (ServiceClass("never", 1.0, 1), ServiceClass("in time", 0.9, 1), ServiceClass("bronze", 0.5, 2))
    assert 50.0 <= place_taken_at(classes, (2, 0, 1)) <= 50.0 + WATCHDOG_SECONDS


def test_where_all_can_be_kept_triage_changes_nothing() -> None:
    # With the usual alpha the third is lost for a moment: it waits 32 s until the others have something to spare.
    shared, triaged = (availabilities(overload, 3, 2, 0.5, alpha=0.0) for overload in ("share", "triage"))
    assert fulfilled(triaged, 0.5).all()
    assert triaged.tolist() == shared.tolist()


def test_one_that_takes_the_place_of_several_is_given_up_for_them() -> None:
    """Four cores: a request of all of them runs, three of one core come at 100 s, and one more at 200 s.

    Nobody has anything to spare. At 119 s the three are lost (slack -22.4 s when they come), and the class is
    overloaded. The fourth can still be kept, and takes the place of the large one; the others follow into the rest.
    """
    workload = replace(
        equal_requests(5, 0.9),
        admission=np.array([0.0, 100.0, 100.0, 100.0, 200.0]),
        demand=np.array([[4.0, 4.0]] + 4 * [[1.0, 1.0]]),
    )
    hosts = replace(places(1), capacity=np.full((1, 2), 4.0))
    config = Config()
    policy = replace(config.policy, floor=0.0)
    config = replace(config, policy=policy, simulation=replace(config.simulation, end=HOUR))
    found = run(workload, hosts, config, decisions=True)
    assert found.decisions is not None
    assert found.decisions["row"].tolist()[:2] == [0, 4]
    delivered = (found.requests["running"] + found.requests["startup_first"]) / (HOUR - workload.admission)
    assert fulfilled(delivered, 0.9).tolist() == [False, True, True, True, True]


@pytest.mark.parametrize("order", ["queue_order", "victim_order"])
def test_triage_needs_the_orders_by_importance(order: str) -> None:
    config = Config()
    config = replace(config, policy=replace(config.policy, overload="triage", **{order: "metric"}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"policy.overload: found 'triage' beside policy.{order} 'metric'"):
        run(equal_requests(1, 0.9), places(1), config)
