"""Tables of limits on disruption: from classes and a workload to accounts, rings of instants, and allowed intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.errors import ConfigError
from slacktide.kernels.tables import limit_records, schema
from slacktide.model import DisruptionLimits, Workload
from slacktide.model.host_events import HostEvents
from slacktide.model.resting import let_go, room_beside
from slacktide.model.window import parse_epoch
from slacktide.state.layout import on_grid, parts

BEYOND_THE_LAST = 3660 * 86400.0
"""Seconds after the last event that is known, up to which hours are worked out where a run has no end."""


def arrays(workload: Workload, epoch: str, end: float | None, happenings: HostEvents | None) -> dict[str, NDArray[Any]]:
    """Tables by their names; none where no class that somebody has is limited. Raises :class:`ConfigError`.

    ``epoch`` is the instant of second 0, ``end`` that of the run, seconds, or None.
    """
    limits = [one.limits for one in workload.classes]
    counted = np.array([one is not None and one.counts for one in limits])
    if not counted.any() or not len(workload):
        return {}
    numbers = np.cumsum(counted) - 1
    asked = [one for one in limits if one is not None and one.counts]
    begin = begin_of(epoch)
    last = last_event(workload, happenings) + BEYOND_THE_LAST if end is None else end
    table, hours = limit_table(asked, begin, begin + last)
    account, limits_of = accounts_of(workload, np.where(counted, numbers, -1))
    return {
        "disruption_account": account,
        "disrupted_at": _never(account),
        "disruption_limits": table,
        "open_hours": on_grid(hours - begin),
        **account_arrays(limits_of, table, workload.requests is not None),
    }


def begin_of(epoch: str) -> float:
    """Seconds of second 0 since 1970-01-01T00:00:00Z."""
    try:
        return parse_epoch(epoch).timestamp()
    except ValueError as error:
        raise ConfigError(f"simulation.epoch: {error}") from error


def last_event(workload: Workload, happenings: HostEvents | None) -> float:
    """The last instant at which something is known to happen, seconds."""
    last = float(workload.admission[-1])
    if happenings is not None and len(happenings):
        last = max(last, float(happenings.times.max()))
    if workload.requests is not None:
        last = max(last, float(workload.requests.scale_time.max(initial=0.0)))
    return max([last, *(time for steps in workload.resizings for time, _ in steps)])


def limit_table(
    limits: Sequence[DisruptionLimits], begin: float, end: float
) -> tuple[schema.Records, NDArray[np.float64]]:
    """Limits as kernels read them, and all allowed intervals that meet the time from ``begin`` to ``end``, (n, 2).

    Instants are seconds since 1970-01-01T00:00:00Z.
    """
    table = np.zeros(len(limits), limit_records.DISRUPTION_LIMITS)
    every: list[tuple[float, float]] = []
    for record, one in zip(table, limits, strict=True):
        record["most"] = -1 if one.most is None else one.most
        record["per"], record["cooldown"] = on_grid(np.array([one.per, one.cooldown]))
        found = one.intervals(begin, end)
        record["hours_at"], record["hours"] = len(every), -1 if found is None else len(found)
        every += found or []
    return table, np.array(every, np.float64).reshape(-1, 2)


def accounts_of(workload: Workload, limits_of_class: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """For every row its account, or -1, and for every account the number of its limits; O(n).

    ``limits_of_class`` has the number of each class's limits, or -1.
    """
    account = room_beside(workload.admission)(len(workload), np.int32)
    found: list[NDArray[np.int64]] = []
    known = None if workload.requests is None else np.full(len(workload.requests), -1, np.int32)
    count = 0
    for part in parts(len(workload)):
        limits = limits_of_class[workload.service_class[part]]
        mine = np.full(len(limits), -1, np.int32)
        limited = np.flatnonzero(limits >= 0)
        first = limited
        if known is not None and workload.request is not None:
            request = workload.request[part]
            new = limited[known[request[limited]] < 0]
            first = new[np.sort(np.unique(request[new], return_index=True)[1])]
            known[request[first]] = np.arange(count, count + len(first))
            mine[limited] = known[request[limited]]
        else:
            mine[limited] = np.arange(count, count + len(first))
        found.append(limits[first])
        count += len(first)
        account[part] = mine
        let_go(account, workload.service_class, workload.request)
    return account, np.concatenate(found)


def account_arrays(limits: NDArray[np.int64], table: schema.Records, several: bool) -> dict[str, NDArray[Any]]:
    """Accounts of these limits, by number, to which nothing happened yet; of ``several`` instances, or one."""
    made = np.zeros(len(limits), limit_records.ACCOUNT)
    made["limits"], made["several"] = limits, several
    made["ended"] = -np.inf
    room = np.maximum(table["most"][limits], 0)
    made["first"] = np.cumsum(room) - room
    return {"disruption_accounts": made, "disruptions": np.full(int(room.sum()), -np.inf)}


def _never(account: NDArray[np.int32]) -> NDArray[np.float64]:
    """For every row that nothing began which has not ended."""
    never = room_beside(account)(len(account), np.float64)
    for part in parts(len(account)):
        never[part] = -np.inf
        let_go(never)
    return never
