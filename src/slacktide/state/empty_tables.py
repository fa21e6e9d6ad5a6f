"""The tables of a live cluster before anything was told."""

from __future__ import annotations

import numpy as np

from slacktide.config import Config
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.window_records import OUTAGE
from slacktide.model import Hosts, ServiceClass, Workload
from slacktide.state import cluster
from slacktide.state.windows import FIRST_OUTAGES


def empty_tables(config: Config, own: cluster.OwnCode | None, resources: tuple[str, ...]) -> Tables:
    """Tables of a live cluster without anything but a host to spare."""
    nothing = np.zeros(0)
    workload = Workload(
        nothing.astype(np.int64), nothing, nothing, np.zeros((0, len(resources))), nothing.astype(np.int16),
        nothing.astype(np.int64), nothing.astype(np.bool_), nothing.astype(np.int32), resources=resources,
        classes=(ServiceClass("none", 1.0, 1),),
    )  # fmt: skip
    hosts = Hosts(np.arange(1), ("",), np.zeros((1, len(resources))), ({},), resources)
    tb = cluster.build(workload, hosts, config, hot=np.zeros(1), cold=np.zeros(1), own=own)
    rules = tb.rules
    rules["recreation"] = 0.0
    rules["live"], rules["same_pass"], rules["end"], rules["lost"] = 1, 0, np.inf, schema.KEPT
    rules["record"] = schema.RECORD_DECISIONS | schema.RECORD_EVENTS
    tb.put("unit", np.ones(len(resources)))
    tb.put("outages", np.zeros(FIRST_OUTAGES, OUTAGE))
    tb.control["moves_at"] = np.inf
    tb["hosts"]["down"] = 1
    tb.put("wakes", cluster.wakes(len(tb["hosts"]), int(rules["policy"])))  # for classes to come
    return tb
