"""Summaries against values computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from slacktide.metrics import over_all, per_approach, per_class
from slacktide.model import AGGREGATED, CONCURRENT, Requests, ServiceClass, Workload

CLASSES = (ServiceClass("gold", 1.0, 1), ServiceClass("bronze", 0.5, 2), ServiceClass("nobody", 0.3, 3))
SERVICE_CLASS = np.array([0, 1, 1, 1, 1], dtype=np.int16)
# Each row sums to 100 s, so that availabilities read off as percent.
COLUMNS = {
    "running": np.array([95.0, 90.0, 50.0, 40.0, 20.0]),
    "pending": np.array([0.0, 10.0, 50.0, 40.0, 60.0]),
    "startup_first": np.array([5.0, 0.0, 0.0, 10.0, 0.0]),
    "startup_restarts": np.array([0.0, 0.0, 0.0, 10.0, 10.0]),
    "discarded": np.array([0.0, 0.0, 0.0, 0.0, 10.0]),
    "wasted_startup": np.array([0.0, 0.0, 0.0, 1.5, 2.0]),
    "preemptions": np.array([0, 0, 1, 2, 4], dtype=np.int32),
}


def test_a_class_by_hand() -> None:
    gold, bronze, _ = per_class(COLUMNS, SERVICE_CLASS, CLASSES, "restart")
    assert (gold.name, gold.slo, gold.requests) == ("gold", 1.0, 1)
    assert gold.availability["always"].mean == 0.95
    assert gold.fulfilment == {"restart": 1.0, "always": 0.0, "never": 1.0}
    assert gold.deficit_mean == 0.0

    assert bronze.requests == 4
    # restart: .9 .5 .5 .2   always: .9 .5 .4 .2   never: .9 .5 .6 .3
    assert bronze.availability["restart"].mean == pytest.approx(0.525)
    assert bronze.availability["restart"].min == pytest.approx(0.2)
    assert bronze.availability["always"].mean == pytest.approx(0.5)
    assert bronze.availability["never"].mean == pytest.approx(0.575)
    assert bronze.fulfilment == {"restart": 0.75, "always": 0.5, "never": 0.75}
    assert bronze.preemptions == 7
    assert bronze.wasted_startup == 3.5


def test_the_deficit_is_that_of_violators_in_the_accounting_of_decisions() -> None:
    assert per_class(COLUMNS, SERVICE_CLASS, CLASSES, "restart")[1].deficit_mean == pytest.approx(0.3)
    assert per_class(COLUMNS, SERVICE_CLASS, CLASSES, "always")[1].deficit_mean == pytest.approx((0.1 + 0.3) / 2)
    assert per_class(COLUMNS, SERVICE_CLASS, CLASSES, "never")[1].deficit_mean == pytest.approx(0.2)


def test_the_fifth_percentile_interpolates() -> None:
    # sorted .2 .5 .5 .9: position .05 * 3 = .15 between the first two
    bronze = per_class(COLUMNS, SERVICE_CLASS, CLASSES, "restart")[1]
    assert bronze.availability["restart"].p05 == pytest.approx(0.2 + 0.15 * 0.3)


def test_a_class_without_requests_has_no_availability() -> None:
    nobody = per_class(COLUMNS, SERVICE_CLASS, CLASSES, "restart")[2]
    assert nobody.requests == nobody.preemptions == 0
    assert math.isnan(nobody.availability["restart"].mean)
    assert math.isnan(nobody.fulfilment["always"])
    assert nobody.deficit_mean == 0.0


def test_all_requests_together() -> None:
    everyone = over_all(COLUMNS)
    assert everyone["restart"].mean == pytest.approx((1.0 + 0.9 + 0.5 + 0.5 + 0.2) / 5)
    assert everyone["always"].min == pytest.approx(0.2)
    assert set(everyone) == {"restart", "always", "never"}


def known() -> dict[str, NDArray[Any]]:
    """Columns with availabilities of their own, as requests of several instances have them."""
    values = {
        "restart": [1.0, 0.9, 0.5, 0.4, 0.2],
        "always": [0.9, 0.8, 0.4, 0.4, 0.1],
        "never": [1.0, 1.0, 0.6, 0.5, 0.3],
    }
    return {**COLUMNS, **{f"availability_{name}": np.array(of) for name, of in values.items()}}


def test_availabilities_of_their_own_count_and_stay_as_they_are() -> None:
    columns = known()
    columns["availability_restart"] = columns["availability_restart"][::-1].copy()
    before = columns["availability_restart"].copy()
    assert over_all(columns)["restart"].mean == pytest.approx(0.6)
    gold, bronze, _ = per_class(columns, SERVICE_CLASS, CLASSES, "restart")
    assert gold.availability["restart"].mean == 0.2
    assert bronze.fulfilment["restart"] == 0.75
    assert bronze.deficit_mean == pytest.approx(0.1)
    assert columns["availability_restart"].tolist() == before.tolist()


def workload() -> Workload:
    """Five requests, of two, one, one, one and three instances."""
    request = np.array([0, 0, 1, 2, 3, 4, 4, 4], dtype=np.int32)
    count = len(request)
    return Workload(
        ids=np.arange(count),
        admission=np.zeros(count),
        duration=np.ones(count),
        demand=np.ones((count, 2)),
        service_class=SERVICE_CLASS[request],
        job=np.arange(count),
        anti_affinity=np.zeros(count, dtype=np.bool_),
        term=np.zeros(count, dtype=np.int32),
        classes=CLASSES,
        request=request,
        requests=Requests(
            ids=np.arange(5),
            batch=np.array([False, False, True, False, True]),
            approach=np.array([CONCURRENT, AGGREGATED, AGGREGATED, AGGREGATED, AGGREGATED], dtype=np.int8),
            parallelism=np.zeros(5, dtype=np.int64),
            scale_time=np.zeros(0),
            scale_request=np.zeros(0, dtype=np.int32),
            scale_replicas=np.zeros(0, dtype=np.int64),
        ),
    )


def test_a_line_for_each_class_kind_and_approach_that_occurs() -> None:
    places = {"row": np.arange(5), "first": np.array([0, 2, 3, 4, 5]), "count": np.array([2, 1, 1, 1, 3])}
    found = per_approach({**known(), **places}, workload(), "restart")
    assert [(one.service_class, one.kind, one.approach, one.requests, one.instances) for one in found] == [
        ("gold", "service", "concurrent", 1, 2),
        ("bronze", "service", "aggregated", 2, 2),
        ("bronze", "batch", "aggregated", 2, 4),
    ]
    gold, service, batch = found
    assert gold.slo == 1.0
    assert gold.fulfilment == {"restart": 1.0, "always": 0.0, "never": 1.0}
    assert service.availability["restart"].mean == pytest.approx(0.65)
    assert service.fulfilment == {"restart": 0.5, "always": 0.5, "never": 1.0}
    assert batch.availability["always"].min == 0.1
    assert batch.fulfilment == {"restart": 0.5, "always": 0.0, "never": 0.5}
    windows = {"worst_window": np.array([0.9, np.nan, np.nan, np.nan, np.nan])}  # of a promise of 1
    gold = per_approach({**known(), **places, **windows}, workload(), "restart")[0]
    assert gold.fulfilment == {"restart": 0.0, "always": 0.0, "never": 1.0}


def test_where_rows_are_requests_there_are_no_approaches_to_compare() -> None:
    assert per_approach(COLUMNS, replace(workload(), request=None, requests=None), "restart") == []
