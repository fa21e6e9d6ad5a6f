"""A host on which more is used than it has takes pods that ask for nothing of what is short, as NodeResourcesFit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.workbench import BRONZE, GOLD, T0, settings
from reference.amounts import fits
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.relocation import has_room
from slacktide.engine.explain.feasibility import Looker
from slacktide.kernels.feasible import free_index
from slacktide.kernels.runtime.compiling import callable_from_python
from slacktide.model import Placement, Preference, Term
from slacktide.state.spec import Spec

GIB = 2**30
OF_MEMORY, OF_CPU, OF_BOTH, RULED = range(4)
short_of = callable_from_python(free_index.short_of)


def overcommitted(policy: str) -> Engine:
    """A node of 4 CPUs, of which others use 6, and of 8 GiB, of which they use 1."""
    config = settings()
    engine = Engine(replace(config, policy=replace(config.policy, name=policy)))
    engine.host("node", {"cpu": 4000, "memory": 8 * GIB, "pods": 10}, {}, True)
    engine.other("static", "node", {"cpu": 6000, "memory": GIB, "pods": 1}, ())
    engine.spec(OF_MEMORY, Spec((("memory", 5 * GIB), ("pods", 1)), BRONZE))
    engine.spec(OF_CPU, Spec((("cpu", 1), ("pods", 1)), BRONZE))
    engine.spec(OF_BOTH, Spec((("memory", 5 * GIB), ("pods", 1)), GOLD))
    liked = Placement(preferences=(Preference(1, term=Term()),))
    engine.spec(RULED, Spec((("memory", 5 * GIB), ("pods", 1)), BRONZE, Term(), liked))
    return engine


def placed(engine: Engine, uid: str, spec: int, at: float) -> list[str] | None:
    """The victims of a pod, or None where it has to wait."""
    engine.controller(uid, engine.specs[spec].service, 0, False)
    engine.arrive(uid, uid, uid, spec, T0 + at)
    engine.wake(uid)
    for decision in engine.run(T0 + at).decisions:
        if decision.uid == uid:
            engine.bound(uid, T0 + at)
            engine.ready(uid, T0 + at)
            return [one.uid for one in decision.victims]
    return None


@pytest.mark.uncompiled
@pytest.mark.parametrize("policy", ["qos-driven", "priority", "kcss", "delay-aware"])
@pytest.mark.parametrize("spec", [OF_MEMORY, RULED])
def test_who_asks_for_nothing_of_what_is_short_is_placed(policy: str, spec: int) -> None:
    engine = overcommitted(policy)
    assert placed(engine, "little", OF_CPU, 1.0) is None
    assert placed(engine, "waits", spec, 2.0) == []
    assert not has_room(engine, OF_CPU)


@pytest.mark.uncompiled
@pytest.mark.parametrize("policy", ["qos-driven", "priority"])
def test_victims_make_room_for_what_is_asked_and_nothing_else(policy: str) -> None:
    engine = overcommitted(policy)
    assert placed(engine, "low", OF_MEMORY, 1.0) == []
    assert placed(engine, "high", OF_BOTH, 1000.0) == ["low"]


@pytest.mark.uncompiled
def test_what_is_said_of_the_node_names_only_what_is_asked() -> None:
    engine = overcommitted("qos-driven")
    assert placed(engine, "low", OF_MEMORY, 1.0) == []
    assert not has_room(engine, OF_MEMORY)
    engine.spec(9, Spec((("memory", 20 * GIB), ("pods", 1)), BRONZE))
    engine.tables.settle()
    found = Looker(engine).look(engine.tables.kind_of(engine.specs[9]))
    assert dict(found.counts) == {"Insufficient memory": 1}


@pytest.mark.uncompiled
def test_kernel_and_twin_agree() -> None:
    for demand in range(4):
        for free in range(-3, 4):
            short = int(short_of(demand, free))
            assert (short <= 0) == fits((demand,), (free,))
            assert short == demand - free or (demand == 0 and short == np.minimum(-free, 0))
