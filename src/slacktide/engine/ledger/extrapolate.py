"""A ledger read some time after it was written: what it says by now, if nothing has happened since.

Ledgers are written when something happens, so that this holds but for the last second or so. Between events every sum
grows at a rate that the ledger gives away, so that the rules of :mod:`slacktide.kernels.qos` tell the rest. Their
constant alpha, which ledgers do not carry, follows from the slack at the instant of the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting, Config
from slacktide.engine.ledger.checkpoint import LEAVING, PLACED, Checkpoint
from slacktide.kernels.qos import slo_status as rules
from slacktide.kernels.tables import schema
from slacktide.model import INDEPENDENT, ServiceClass
from slacktide.qos.availability import ACCOUNTINGS
from slacktide.state.growth import Growing

ORDER: tuple[Accounting, ...] = ("always", "restart", "never")
"""The likeliest first."""
WRITTEN_DIGITS = 1e-6


@dataclass(frozen=True, slots=True)
class Carried:
    """``delivered`` from 0 to 1; ``slack`` in seconds, None where it is infinite or not known."""

    delivered: float
    slack: float | None


def carry_on(saved: Checkpoint, accounting: Accounting, promised: float, slack: float | None, now: float) -> Carried:
    """From a checkpoint and the slack at its instant, what it says at ``now`` (seconds since 1970).

    Exact unless instances are leaving or just being bound.
    """
    passed = max(0.0, now - saved.at)
    delivered, metric = _at(saved, accounting, promised, passed)
    _, base = _at(saved, accounting, promised, 0.0)
    known = slack is not None and base is not None and metric is not None
    return Carried(delivered, metric - (base - slack) if known else None)  # type: ignore[operator]  # asked before


def accountings(saved: Checkpoint, delivered: float) -> tuple[Accounting, ...]:
    """In which accountings a checkpoint yields what the ledger says was delivered: the scheduler uses one of these."""
    return tuple(one for one in ORDER if abs(_at(saved, one, 1.0, 0.0)[0] - delivered) <= WRITTEN_DIGITS)


def _at(saved: Checkpoint, accounting: Accounting, slo: float, passed: float) -> tuple[float, float | None]:
    """Delivered, and the metric but for alpha (None: infinite), ``passed`` seconds after the ledger's instant."""
    tables = _tables()
    tables.tb.rules["accounting"] = ACCOUNTINGS.index(accounting)
    tables.tb["classes"]["slo"][0] = slo
    record = tables.tb["requests"][:1]
    record["approach"] = saved.approach
    if saved.approach == INDEPENDENT:
        delivered, metric = _of_instances(tables, saved, accounting, passed)
    else:
        counts, sums = saved.counts, saved.sums
        record["live"], record["total"] = counts["live"], sums["lifetime"]
        excused = len(saved.blamed) + sum(map(bool, saved.vacant_causes)) if saved.excuses else 0
        first = counts["up"] + counts["starting"] - counts["restarting"]
        for name, up in (("always", counts["up"]), ("never", first + counts["restarting"]), ("restart", first)):
            record[f"up_{name}"] = min(up + excused, counts["live"])  # who is excused may be in a start-up
        one = np.zeros(1, rules.ACCRUED)
        for name in ("running", "startup_first", "startup_restarts"):
            one[name] = sums[name]
        record["received"] = rules.received_in(tables.tb.state, one)
        for each in ACCOUNTINGS:
            record[f"together_{each}"] = saved.together[each]
        delivered, metric = rules.carry_on(tables.tb.state, 0, passed)
    return delivered, None if metric == float("inf") else metric


def _of_instances(tables: Growing, saved: Checkpoint, accounting: Accounting, passed: float) -> tuple[float, float]:
    """The least of any instance; the instant of the ledger is 0."""
    records, count = saved.records, len(saved.records)
    while tables.rows < count:
        tables.new_row()
    instances = tables.tb["instances"][:count]
    for name in ("running", "startup_first", "startup_restarts", "startup", "starts"):
        instances[name] = records[name]
    on_host = np.isin(records["state"], (PLACED, LEAVING))
    excused = _excused(saved) & ~on_host  # what these had up to the instant of the ledger is in it
    instances["since"] = np.where(excused, 0.0, -records["age"])
    instances["state"] = np.where(on_host, schema.PLACED, np.where(excused, schema.EXCUSED, schema.VACANT))
    tables.tb["admission"][:count] = -records["lifetime"]
    columns = np.zeros(count, rules.ACCRUED)
    rules.accrue(tables.tb.state, np.arange(count), passed, columns)
    status, delivered = np.zeros(1, rules.STATUS), np.zeros((1, len(ACCOUNTINGS)))
    status["count"] = count
    rules.stand(tables.tb.state, np.arange(count), columns, passed, status, delivered, np.zeros_like(delivered))
    return float(delivered[0, ACCOUNTINGS.index(accounting)]), float(status["slack"][0])


def _excused(saved: Checkpoint) -> NDArray[np.bool_]:
    """Of each record whether its time counts as running though the cause is not the cluster's."""
    found = np.zeros(len(saved.records), np.bool_)
    if saved.excuses:
        found |= np.isin(saved.records["uid"], np.array(list(saved.blamed), np.uint64)) & (saved.records["uid"] != 0)
        if saved.vacant_causes:  # vacant ones come last
            found[len(found) - len(saved.vacant_causes) :] = np.array(saved.vacant_causes) != 0
    return found


@cache
def _tables() -> Growing:
    """Tables with one request, of one class, for the rules that read these; alpha is 0."""
    config = Config()
    tables = Growing(replace(config, qos=replace(config.qos, alpha=0.0)))
    tables.class_number(ServiceClass("any", 1.0, 1))
    tables.new_request()
    return tables
