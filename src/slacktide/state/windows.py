"""Promises over windows as kernels read them: budgets, and when calendar windows begin."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.window_records import ACCOUNT, CALENDAR, LIFETIME, OUTAGE, ROLLING, STRETCH
from slacktide.model import ServiceClass, Window
from slacktide.model.resting import Room, ordinary
from slacktide.model.window import WHOLE, parse_epoch, turns
from slacktide.state.layout import on_grid

FIRST_OUTAGES = 1 << 10


def fill_classes(
    table: schema.Records, classes: Sequence[ServiceClass], config: Config, until: float, since: float = 0.0
) -> NDArray[np.float64]:
    """Write windows into the table of classes, as of second ``since``; the instants, seconds, at which calendar windows
    begin, class by class, up to the second one after ``until``.

    Raises :class:`ConfigError` where work is lost that a window had counted.
    """
    begins: list[float] = []
    for number, service in enumerate(classes):
        if service.window is None:
            continue
        if config.simulation.preempted_work == "lost":
            raise ConfigError(
                f"service class {service.name!r}: window: found {service.window.name!r} beside "
                "simulation.preempted_work 'lost', expected 'by-kind' or 'kept': what was received once stays received"
            )
        one = table[number]
        one["whole_budget"] = service.window.budget == WHOLE
        if service.window.rolling is not None:
            one["windowed"], one["length"] = ROLLING, exact(service.window.rolling)
            one["good"] = exact(one["length"] * service.slo)
            one["grant"] = one["length"] - one["good"]
        else:
            begins += _fill_calendar(one, service, service.window, config, since, until, len(begins))
    return np.array(begins)


def _fill_calendar(
    one: Any, service: ServiceClass, window: Window, config: Config, since: float, until: float, at: int
) -> list[float]:
    found = begins_from(window, config.simulation.epoch, since, until)
    one["windowed"], one["turn"], one["last_turn"] = CALENDAR, at, at + len(found)
    one["begins"], one["ends"] = found[0], found[1]
    if service.window is not None and one["whole_budget"]:
        one["grant"] = budget(found[1] - found[0], service.slo)
        one["next_grant"] = budget(found[2] - found[1], service.slo)
    return found


def begins_from(window: Window, epoch: str, since: float, until: float) -> list[float]:
    """Seconds at which calendar windows begin: that of second ``since``, and all up to the second after ``until``."""
    year = 366 * 86_400.0
    every = _begins(window, epoch, since // year * year, (until // year + 1) * year)
    return every[max(0, bisect_right(every, since) - 1) :]


@lru_cache(maxsize=64)
def _begins(window: Window, epoch: str, since: float, until: float) -> list[float]:
    """Classes are written again and again, and some ten thousand days take a tenth of a second."""
    return [exact(second) for second in turns(window, parse_epoch(epoch), since, until)]


def budget(seconds: float, slo: float) -> float:
    """Seconds that may be lost of a window of so many."""
    return seconds - exact(seconds * slo)


def exact(seconds: float) -> float:
    """On the grid of times."""
    return float(on_grid(np.array(seconds)))


def next_turn(table: schema.Records) -> float:
    """When the next calendar window of any class begins, inf for never."""
    known = (one["ends"] for one in table if one["windowed"] == CALENDAR and one["turn"] + 3 < one["last_turn"])
    return float(min(known, default=np.inf))


def arrays(table: schema.Records, instances: int, requests: int, room: Room = ordinary) -> dict[str, NDArray[Any]]:
    """Accounts of instances, in ``room``, and of requests with a ledger, and room for outages, by the names of the
    tables; none where no promise is over a window."""
    if not (table["windowed"] != LIFETIME).any():
        return {}
    return {
        "accounts": room(instances, ACCOUNT),
        "request_accounts": np.zeros(requests, ACCOUNT),
        "stretches": np.zeros(requests, STRETCH),
        "outages": np.zeros(FIRST_OUTAGES, OUTAGE),
    }
