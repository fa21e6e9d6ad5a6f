"""Times as multiples of 2^-20 s (docs/semantics.md, Times)."""

from __future__ import annotations

from dataclasses import replace
from math import isinf

from slacktide.config import Config

STEPS = 2.0**20
"""Steps of the grid per second."""


def on_grid(seconds: float) -> float:
    """The nearest multiple of 2^-20 s, half to even; infinity stays."""
    return seconds if isinf(seconds) else round(float(seconds) * STEPS) / STEPS


def config_on_grid(config: Config) -> Config:
    """The same settings with every one that is in seconds and decides something on the grid."""
    margin, end = config.qos.margin, config.simulation.end
    policy = config.policy
    return replace(
        config,
        policy=replace(policy, patience=on_grid(policy.patience), min_running=on_grid(policy.min_running)),
        qos=replace(config.qos, alpha=on_grid(config.qos.alpha), margin=None if margin is None else on_grid(margin)),
        scheduler=replace(config.scheduler, watchdog=on_grid(config.scheduler.watchdog)),
        simulation=replace(
            config.simulation,
            end=None if end is None else on_grid(end),
            recreation=on_grid(config.simulation.recreation),
        ),
    )
