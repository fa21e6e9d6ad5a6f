"""Compiles, or loads, every kernel that a live cluster needs, before anything waits for it."""

from __future__ import annotations

import logging
import time

from slacktide.config import Config
from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.kernels.runtime import library
from slacktide.kernels.runtime.compiling import compiled_before
from slacktide.kernels.runtime.mode import Mode, mode
from slacktide.model import Placement, Rule, ServiceClass
from slacktide.state.spec import Spec

LOG = logging.getLogger(__name__)


def warm(config: Config) -> float:
    """Run a small cluster through all operations; the seconds it took: up to a minute where kernels are compiled."""
    if mode() is Mode.JIT:
        LOG.warning(
            "kernels are compiled by this process, which takes some 200 MB of memory that a library saves: %s",
            library.obstacle() or "SLACKTIDE_JIT asks for it",
        )
    if not compiled_before():
        LOG.info("compiling the kernels, once after an installation or upgrade (up to a minute)")
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
    for uid, key, spec, at in (("a", "low", 0, 1000.0), ("b", "low", 0, 1000.0), ("c", "high", 1, 3000.0)):
        engine.arrive(uid, uid, key, spec, at)
        engine.wake(uid)
        engine.run(at)  # "c" preempts "a"
        if engine.pods[uid].state == types.PLACED:  # "c" is not where nobody is preempted
            engine.bound(uid, at)
            engine.ready(uid, at)
    engine.unready("c", 3001.0)
    engine.gone("c", 3002.0)
    engine.spec(2, Spec((("cpu", 9000), ("pods", 1)), low))
    engine.arrive("d", "d", "low", 2, 3003.0)  # waits in any case
    engine.wake("d")
    engine.run(3003.0)
    for uid in engine.waiting():
        Explainer(engine).reason(uid, 3003.0)
        engine.sleep(uid)
    for one in list(engine.pods.values()):
        if one.state == types.PLACED and not one.bound:
            engine.refused(one.uid, 3004.0)
        elif one.state == types.LEAVING:
            engine.spared(one.uid, 3004.0)
    _change(engine)
    _restore(config)
    return time.perf_counter() - began


def _change(engine: Engine) -> None:
    """What pods, classes and controllers do less often."""
    engine.host("two", {"cpu": 4000, "memory": 2**30, "pods": 10}, {}, True)
    engine.other("stranger", "two", {"cpu": 100}, ())
    engine.bound_elsewhere("b", "two", 3005.0)
    engine.respec("b", 1)
    engine.controller("low", ServiceClass("low", 0.25, 2), 2, False)
    engine.other_gone("stranger")
    slo_status(engine, "low", 3006.0)
    engine.gone("b", 3007.0)
    engine.retire("low", 3008.0)


def _restore(config: Config) -> None:
    """What a new leader does: all of it must not take longer than the lease holds."""
    demand = (("cpu", 100), ("pods", 1))
    for approach, batch in ((0, False), (1, False), (2, False), (2, True)):
        old, new = Engine(config), Engine(config)
        for engine in (old, new):
            engine.host("one", {"cpu": 1000, "pods": 10}, {}, True)
            engine.spec(0, Spec(demand, ServiceClass("class", 0.5, 1)))
            engine.controller("key", ServiceClass("class", 0.5, 1), approach, batch)
        for uid in ("a", "b", "c"):
            old.arrive(uid, uid, "key", 0, 1000.0)
            old.wake(uid)
        old.run(1000.0)
        for uid in ("a", "b"):
            old.bound(uid, 1001.0)
            old.ready(uid, 1002.0)
        saved = export(old, "key", 1003.0)
        slo_status(old, "key", 1003.0)
        seen = {"spec": 0, "created": 1000.0, "host": "one", "since": 1001.0, "leaving": False}
        pods = [
            {**seen, "uid": "a", "name": "a", "ready": False, "ready_since": 1004.0},
            {**seen, "uid": "d", "name": "d", "ready": True, "ready_since": 1005.0, "created": 1004.0},
            {**seen, "uid": "e", "name": "e", "ready": True, "ready_since": 1005.0, "ended": 1006.0},
        ]
        new.desired("key", 1, 1003.0)
        restore(new, "key", saved, pods, 1010.0)
