"""Summaries against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from slacktide.metrics import over_all, per_class
from slacktide.model import ServiceClass

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
