"""A ledger read some time after it was written: what it says by now, if nothing has happened since.

Ledgers are written when something happens, so that this holds but for the last second or so. Between events every sum
grows at a rate that the ledger gives away, so that the rules of :mod:`slacktide.kernels.qos` tell the rest. Their
constant alpha, which ledgers do not carry, follows from the slack at the instant of the ledger. A class's margin, which
they do not carry either, whoever asks knows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting, Config
from slacktide.engine.ledger.accounts import Accounts, install, install_request
from slacktide.engine.ledger.checkpoint import LEAVING, PLACED, Checkpoint
from slacktide.engine.ledger.slo_status import STATES, SUMS, State
from slacktide.kernels.qos import slo_status as rules
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.window_records import ACCOUNT, MOST_OUTAGES, NOT_YET
from slacktide.model import INDEPENDENT, ServiceClass
from slacktide.qos.availability import ACCOUNTINGS
from slacktide.state.growth import Growing

ORDER: tuple[Accounting, ...] = ("always", "restart", "never")
"""The likeliest first."""
WRITTEN_DIGITS = 1e-6


@dataclass(frozen=True, slots=True)
class Carried:
    """``delivered`` from 0 to 1; ``slack`` in seconds, None where it is infinite or not known.

    ``left`` is the slack without what is held back for a start-up, None where it is infinite; ``state`` one of
    :data:`.slo_status.STATES`.
    """

    delivered: float
    slack: float | None
    left: float | None
    state: State


def carry_on(
    saved: Checkpoint, accounting: Accounting, promised: float, slack: float | None, now: float, margin: float = 0.0
) -> Carried:
    """From a checkpoint and the slack at its instant, what it says at ``now`` (seconds since 1970).

    ``margin`` is that of the class, in seconds; with 0 no promise is at risk. Exact unless instances are leaving or
    just being bound.
    """
    passed = max(0.0, now - saved.at)
    delivered, left, state = _at(saved, accounting, promised, passed, margin)
    _, base, _ = _at(saved, accounting, promised, 0.0, margin)
    known = slack is not None and base is not None and left is not None
    carried = left - (base - slack) if known else None  # type: ignore[operator]  # asked before
    return Carried(delivered, carried, left, STATES[state])


def accountings(saved: Checkpoint, delivered: float) -> tuple[Accounting, ...]:
    """In which accountings a checkpoint yields what the ledger says was delivered: the scheduler uses one of these."""
    return tuple(one for one in ORDER if abs(_at(saved, one, 1.0, 0.0, 0.0)[0] - delivered) <= WRITTEN_DIGITS)


def _at(
    saved: Checkpoint, accounting: Accounting, slo: float, passed: float, margin: float
) -> tuple[float, float | None, int]:
    """Delivered, the metric but for alpha (None: infinite), and the state, so long after the ledger's instant."""
    tables = _tables()
    tables.tb.rules["accounting"] = ACCOUNTINGS.index(accounting)
    if saved.window is None and tables.classes[0].window is None:  # of thousands of ledgers most are
        tables.tb["classes"]["slo"][0], tables.tb["classes"]["own_margin"][0] = slo, margin
    else:
        tables.tb["instances"]["state"][: tables.rows] = schema.REMOVED
        tables.tb["stretches"]["open"][0] = NOT_YET
        tables.begin_at(ServiceClass("any", slo, 1, margin, window=saved.window), saved.at)
    record = tables.tb["requests"][:1]
    record["approach"] = saved.approach
    if saved.approach == INDEPENDENT:
        delivered, metric, state = _of_instances(tables, saved, accounting, passed)
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
        record["since"] = saved.at
        if saved.window is not None:
            tables.tb.control["outages"] = tables.tb.control["free_outage"] = 0
            tables.ensure_room_for_outages(MOST_OUTAGES)
            install_request(tables.tb, 0, saved.accounts, saved.stretch, saved.at)
            tables.catch_up(saved.at + passed)
        delivered, metric, state = rules.carry_on(tables.tb.state, 0, saved.at + passed)
    return delivered, None if metric == float("inf") else metric, state


def _of_instances(
    tables: Growing, saved: Checkpoint, accounting: Accounting, passed: float
) -> tuple[float, float, int]:
    """The least of any instance. None is on a host here, so that all on hosts are as those that were told to leave."""
    records, count = saved.records, len(saved.records)
    while tables.rows < count:
        tables.new_row()
    instances = tables.tb["instances"][:count]
    for name in ("running", "startup_first", "startup_restarts", "startup", "starts"):
        instances[name] = records[name]
    on_host = np.isin(records["state"], (PLACED, LEAVING))
    excused = _excused(saved) & ~on_host  # what these had up to the instant of the ledger is in it
    instances["since"] = saved.at - np.where(excused, 0.0, records["age"])
    instances["state"] = np.where(on_host, schema.LEAVING, np.where(excused, schema.EXCUSED, schema.VACANT))
    tables.tb["admission"][:count] = saved.at - records["lifetime"]
    tables.tb["owner"][:count] = 0
    if saved.accounts is not None:
        _enter_accounts(tables, saved.accounts, saved.at)
    now = saved.at + passed
    tables.catch_up(now)
    columns = np.zeros(count, rules.ACCRUED)
    rules.accrue(tables.tb.state, np.arange(count), now, columns)
    status, delivered = np.zeros(1, rules.STATUS), np.zeros((1, len(ACCOUNTINGS)))
    status["count"] = count
    for name in SUMS:
        status[name] = saved.sums[name]
    rules.stand(tables.tb.state, np.arange(count), columns, now, status, delivered, np.zeros_like(delivered))
    return float(delivered[0, ACCOUNTINGS.index(accounting)]), float(status["slack"][0]), int(status["state"][0])


def _enter_accounts(tables: Growing, accounts: Accounts, at: float) -> None:
    tables.tb.control["outages"] = tables.tb.control["free_outage"] = 0
    tables.ensure_room_for_outages(len(accounts.outages))
    for row in range(len(accounts.records)):
        tables.tb["accounts"][row : row + 1] = np.zeros(1, ACCOUNT)
        install(tables.tb, row, 0, accounts.records[row], accounts.outages_of(row), at)


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
