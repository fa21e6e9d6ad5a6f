"""What happens to hosts: failures and repairs, from a file or drawn, and from a file what they have and others take."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.inputs import read_host_events
from slacktide.kernels.tables import schema
from slacktide.model import Hosts
from slacktide.model.host_events import HostEvents, no_events
from slacktide.sim.startup import delays

MOST = 1e7  # failures that a run can be meant to have


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
        raise ConfigError("failures.uptime: drawn failures need simulation.end")
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
