"""Host failures and repairs: from a file, or drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.inputs import read_host_events
from slacktide.kernels.tables import log_records, schema
from slacktide.model import Hosts
from slacktide.sim.startup import delays
from slacktide.state import layout

MOST = 1e7  # failures that a run can be meant to have


def host_events(config: Config, hosts: Hosts) -> schema.Records:
    """Failures, drains and repairs of a run as HOST_EVENT records in the order of time.

    Drawn ones alternate, host by host, between an up-time and a down-time from the
    configured distributions, with a generator seeded by the run's seed.
    Raises :class:`ConfigError` where they are to be drawn without an end.
    """
    failures = config.failures
    if failures.file is not None:
        times, rows, kinds = read_host_events(Path(failures.file), hosts)
        events = np.zeros(len(times), log_records.HOST_EVENT)
        events["time"], events["host"], events["kind"] = layout.on_grid(times), rows, kinds
        return events
    if failures.uptime is None:
        return np.zeros(0, log_records.HOST_EVENT)
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
    events = np.array(sorted(drawn), log_records.HOST_EVENT)
    events["time"] = layout.on_grid(events["time"])
    return events
