"""What happens to hosts: failures and repairs, from a file or drawn, and from a file what they have and others take."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slacktide.config import Config
from slacktide.errors import ConfigError, fail, remedy
from slacktide.inputs import read_host_events
from slacktide.kernels.tables import schema
from slacktide.model import Hosts, Workload
from slacktide.model.host_events import CAPACITY, HostEvents, no_events
from slacktide.sim.startup import delays
from slacktide.state import host_events as amounts_in_time
from slacktide.state import layout
from slacktide.state.resize_tables import with_later_demands

MOST = 1e7  # failures that a run can be meant to have


def check_amounts(config: Config, workload: Workload, hosts: Hosts, events: HostEvents) -> None:
    """Whole amounts are made for the largest capacity of a run, so that beside a huge one a small demand is nothing.

    Raises :class:`InputError` where that happens by an event.
    """
    without, unit = layout.units(hosts.capacity), layout.units(amounts_in_time.largest(hosts, events))
    for r in np.flatnonzero(unit < without).tolist():
        demand = with_later_demands(workload).demand[:, r]
        lost = (np.rint(demand * unit[r]) == 0.0) & (np.rint(demand * without[r]) > 0.0)
        if not lost.any():
            continue
        least, name = float(demand[lost].min()), hosts.resources[r]
        event = int(np.nanargmax(np.where(events.kinds == CAPACITY, events.amounts[:, r], np.nan)))
        most = layout.LARGEST / next(u for u in 10.0 ** np.arange(10) if np.rint(least * u) > 0.0)
        raise fail(
            config.failures.file or "failures",
            f"at most {10.0 ** np.floor(np.log10(most)):g} of {name}: "
            f"beside more than that a demand of {least:g} counts as none",
            column="amounts",
            value=f"{name}={events.amounts[event, r]:g} of host {hosts.names[events.hosts[event]]} "
            f"at {events.times[event]:g} s",
        )


def host_events(config: Config, hosts: Hosts) -> HostEvents:
    """What happens to the hosts of a run, in the order of time.

    Drawn failures alternate, host by host, between an up-time and a down-time from the
    configured distributions, with a generator seeded by the run's seed.
    Raises :class:`ConfigError` where they are to be drawn without an end.
    """
    failures = config.failures
    if failures.file is not None:
        return read_host_events(Path(failures.file), hosts)
    if failures.uptime is None:
        return no_events(len(hosts.resources))
    end = config.simulation.end
    if end is None:
        raise ConfigError("failures.uptime: drawn failures need an end: add " + remedy("--end 3600", 'end="1h"'))
    up, down = delays(failures.uptime, "failures.uptime"), delays(failures.downtime, "failures.downtime")
    expected = end * len(hosts) / max(float(up.mean() + down.mean()), 1e-9)
    if expected > MOST:
        raise ConfigError(
            f"failures.uptime: found some {expected:.3g} failures until {end:g} s, expected at most {MOST:g}"
        )
    random = np.random.default_rng([config.simulation.seed % 2**64, 0xFA11])
    drawn: list[tuple[float, int, int]] = []
    for h in range(len(hosts)):
        at = 0.0
        while True:
            at += float(random.choice(up))
            if at >= end:
                break
            drawn.append((at, h, schema.FAIL))
            at += float(random.choice(down))
            drawn.append((at, h, schema.REPAIR))
    times, rows, kinds = np.array(sorted(drawn)).reshape(-1, 3).T
    amounts = np.full((len(times), len(hosts.resources)), np.nan)
    return HostEvents(times, rows.astype(np.int64), kinds.astype(np.int8), amounts)
