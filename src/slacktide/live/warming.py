"""Compiles, or loads, every kernel that a live cluster needs, before anything waits for it."""

from __future__ import annotations

import logging
import time

from slacktide.config import Config
from slacktide.kernels import compiled_before
from slacktide.live.engine import Engine
from slacktide.live.explaining import Explainer
from slacktide.model import Placement, Rule, ServiceClass
from slacktide.state.spec import Spec

LOG = logging.getLogger(__name__)


def warm(config: Config) -> float:
    """Run a small cluster through all operations; the seconds it took, half a minute after an installation."""
    if not compiled_before():
        LOG.info("compiling the kernels, once after an installation or upgrade (half a minute)")
    began = time.perf_counter()
    engine = Engine(config)
    low, high = ServiceClass("low", 0.5, 2), ServiceClass("high", 1.0, 1)
    engine.host("one", {"cpu": 1000, "memory": 2**30, "pods": 10}, {}, True)
    demand = (("cpu", 1000), ("memory", 2**20), ("pods", 1))
    engine.spec(0, Spec(demand, low))
    engine.spec(1, Spec(demand, high, placement=Placement(("m",), (Rule("away", "m"),))))
    for key, service, approach in (("low", low, 2), ("high", high, 0)):
        engine.controller(key, service, approach, False)
    engine.budget("none", 0)
    for uid, key, spec in (("a", "low", 0), ("b", "low", 0), ("c", "high", 1)):
        engine.arrive(uid, uid, key, spec, 1000.0)
        engine.wake(uid)
        engine.run(1000.0)
    engine.bound("c", 1001.0)
    engine.ready("c", 1002.0)
    engine.unready("c", 1003.0)
    engine.gone("c", 1004.0)
    engine.run(1005.0)
    for uid in engine.waiting():
        Explainer(engine).reason(uid, 1006.0)
        engine.sleep(uid)
    for one in list(engine.incarnations.values()):
        if one.state == 2 and not one.bound:
            engine.refused(one.uid, 1007.0)
        elif one.state == 3:
            engine.spared(one.uid, 1007.0)
    return time.perf_counter() - began
