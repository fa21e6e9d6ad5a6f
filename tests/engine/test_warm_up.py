"""What is compiled before a lease is held is all that a leader needs: compiling takes longer than a lease lasts."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from slacktide.engine import warm_up
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.types import Pod
from slacktide.engine.explain.reasons import Explainer
from slacktide.engine.ledger.checkpoint_export import export
from slacktide.engine.ledger.restore import restore
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.engine.warm_up import warm
from slacktide.kernels.builtin import POLICIES
from slacktide.kernels.runtime import library
from slacktide.kernels.runtime.mode import Mode, mode
from slacktide.model import Placement, Rule, ServiceClass
from slacktide.settings import load_live
from slacktide.state.spec import Spec
from support.repository import REPOSITORY, TESTS

PROGRAM = """
import sys
from numba.core.registry import CPUDispatcher
from slacktide.engine.warm_up import warm
from engine.test_warm_up import live_through
from slacktide.settings import load_live

def compiled():
    modules = [one for name, one in sys.modules.items() if name.startswith("slacktide.")]
    found = {one for module in modules for one in vars(module).values() if isinstance(one, CPUDispatcher)}
    return {(one.py_func.__qualname__, str(signature)) for one in found for signature in one.signatures}

warm(load_live(None, None, [f"policy.name={sys.argv[1]}"]))
before = compiled()
live_through(sys.argv[1])
print(*sorted(name for name, _ in compiled() - before), sep="\\n", end="")
"""
CONTROLLERS = (("alone", 0, False), ("together", 1, False), ("sum", 2, False), ("job", 2, True))


def live_through(policy: str) -> None:
    """Hours of a small cluster, with a new leader every now and then."""
    chance = random.Random(1)
    config = load_live(None, None, [f"policy.name={policy}"])
    classes = [ServiceClass("high", 0.9, 1), ServiceClass("low", 0.1, 2)]
    specs = [
        Spec((("cpu", 500), ("pods", 1)), service, placement=placement)
        for service in classes
        for placement in (Placement(), Placement(("m",), (Rule("away", "m"),)))
    ]
    now, engine = 1e9, Engine(config)
    ledgers: dict[str, dict[str, object]] = {}
    for hour in range(20):
        every = list(engine.pods.values())
        seen = {key: [_seen(one, now) for one in every if one.key == key] for key in ledgers}
        engine = Engine(config)
        for h in range(4):
            engine.host(f"host-{h}", {"cpu": 2000, "pods": 9}, {"zone": str(h % 2)}, True)
        for number, spec in enumerate(specs):
            engine.spec(number, spec)
        for key, approach, batch in CONTROLLERS:
            engine.controller(key, classes[approach % 2], approach, batch)
            engine.desired(key, chance.choice((-1, 3)), now)
            restore(engine, key, ledgers.get(key), seen.get(key, []), now)
        for step in range(40):
            now += chance.uniform(0.1, 60.0)
            uid = f"{hour}-{step}"
            engine.arrive(uid, uid, chance.choice(CONTROLLERS)[0], chance.randrange(len(specs)), now)
            engine.wake(uid)
            engine.run(now)
            for one in list(engine.pods.values()):
                _go_on(engine, chance, one.uid, now)
        for key, *_ in CONTROLLERS:
            ledgers[key] = export(engine, key, now)
            slo_status(engine, key, now)


def _seen(one: Pod, now: float) -> dict[str, object]:
    host = one.host if one.bound else ""
    times = {"created": now - 30.0, "since": now - 20.0, "ready_since": now - 10.0}
    ready = bool(host) and one.ready
    return {"uid": one.uid, "name": one.name, "spec": 0, "host": host, "ready": ready, "leaving": False, **times}


def _go_on(engine: Engine, chance: random.Random, uid: str, now: float) -> None:
    """Something that may happen to an incarnation in its state."""
    one = engine.pods[uid]
    draw = chance.random()
    if one.state == 1 and draw < 0.2:
        Explainer(engine).reason(uid, now)
    elif one.state == 1 and draw < 0.5:
        engine.respec(uid, chance.randrange(4))
    elif one.state == 2 and not one.bound:
        engine.refused(uid, now) if draw < 0.2 else engine.bound(uid, now)
    elif one.state == 2 and draw < 0.3:
        engine.unready(uid, now) if one.ready else engine.ready(uid, now)
    elif one.state == 2 and draw < 0.4:
        engine.gone(uid, now, completed=draw < 0.35)
    elif one.state == 3:
        engine.spared(uid, now) if draw < 0.3 else engine.gone(uid, now)
    elif one.state == 0:
        engine.wake(uid)


def _compiled_late(policy: str) -> str:
    command = [sys.executable, "-c", PROGRAM, policy]
    return subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=True, env=_environment()).stdout


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(REPOSITORY / "src"), str(TESTS)))}


@pytest.mark.skipif(mode() is not Mode.JIT, reason="nothing is compiled here; set SLACKTIDE_JIT=1")
def test_nothing_is_compiled_while_a_lease_is_held() -> None:
    late = {policy: _compiled_late(policy) for policy in ("qos-driven", "priority")}
    assert late == {"qos-driven": "", "priority": ""}


@pytest.mark.parametrize("policy", POLICIES)
def test_it_goes_through_under_every_policy(policy: str) -> None:
    """Some preempt nobody: then who would have come next waits."""
    assert warm(load_live(None, None, [f"policy.name={policy}"])) > 0.0


@pytest.mark.parametrize("why", ["", "the library is of other kernels"])
def test_who_compiles_for_itself_says_why(
    why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warm_up, "mode", lambda: Mode.JIT if why else Mode.LIBRARY)
    monkeypatch.setattr(library, "obstacle", lambda: why)
    warm(load_live())
    warned = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert len(warned) == bool(why)
    assert all(one.endswith(f"saves: {why}") for one in warned)
