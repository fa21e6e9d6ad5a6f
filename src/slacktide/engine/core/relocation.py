"""Where there is room: for a pod that comes, and for one whose resize waits, which may be told to go for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from slacktide.engine.core import types
from slacktide.engine.core.engine import Engine
from slacktide.kernels.drive import apply_plan, resize
from slacktide.kernels.feasible import disruption_limits
from slacktide.kernels.tables import limit_records
from slacktide.model.constraint import NO_CONSTRAINT, Term
from slacktide.state import layout

NOT_ALL_READY = "not all other pods of its workload are ready"
PROTECTED = "a PodDisruptionBudget or the minimum running time protects it, or it is system-critical"
LIMITED = {
    limit_records.TOO_MANY: "its workload was disrupted as often as its limits allow",
    limit_records.COOLING: "its workload was disrupted too recently (cooldown)",
    limit_records.CLOSED: "its workload may be disrupted at other hours only",
}
NO_ROOM = "no other feasible node has room for it"


def obstacle(engine: Engine, uid: str, wanted: Mapping[str, int], now: float, volumes: Term = NO_CONSTRAINT) -> str:
    """Why a pod must stay where it is, empty where nothing stands against moving it at ``now`` (seconds since 1970).

    ``wanted``: what it would take, by resource, in the engine's whole amounts; ``volumes``: from which hosts its
    volumes can be used, which of a pod that runs the engine need not know. Its controller must lack nobody else,
    its budget and ``policy.min_running`` allow a disruption, its slack be at least its class's own margin, and another
    host that it may use have room. Changes nothing. O(hosts + instances of its controller).
    """
    one = engine.pods.get(uid)
    if one is None or one.state != types.PLACED or not one.bound:
        return "it is not bound to a node"
    if not all(_is_ready(engine, row) for row in engine.controllers[one.key].rows if row != one.row):
        return NOT_ALL_READY
    tb, h = engine.tables.tb, engine.hosts[one.host]
    at = max(types.snap(now), engine.latest)
    engine.tables.limits.refresh(at)
    limit = int(disruption_limits.limit_in_force(tb.state, one.row, at))
    if limit in LIMITED:
        return LIMITED[limit]
    if apply_plan.spared(tb.state, h, np.array([one.row]), at) >= 0:
        return PROTECTED
    slack = float(apply_plan.metric_on_host(tb.state, h, one.row, at))
    margin = float(tb["classes"][tb["kinds"][tb["instances"]["kind"][one.row]]["cls"]]["own_margin"])
    if slack < margin:
        return f"its slack of {slack:.1f} s is below the {margin:g} s margin of its class"
    attributes = engine.tables.attributes
    with_room = np.flatnonzero(_hosts_with_room(engine, one.row, wanted)).tolist()
    return "" if any(volumes.holds(attributes[h]) for h in with_room) else NO_ROOM


def another_host(engine: Engine, uid: str, is_closed: Callable[[str], bool]) -> str:
    """Where a pod that is to be bound to its host would go now, were it not for that and were all as free as it looks;
    empty where that is nowhere.

    By its term, its rules, its preferences and the score, as it would be placed without preempting anybody;
    ``is_closed`` is asked of each host that has room for it. Changes nothing but scratch space. O(hosts).
    """
    one = engine.pods[uid]
    mask = _hosts_with_room(engine, one.row, dict(engine.specs[one.spec].demand))
    for h in np.flatnonzero(mask).tolist():
        mask[h] = not is_closed(engine.tables.names[h])
    if not mask.any():
        return ""
    return engine.tables.names[int(resize.best_of(engine.tables.tb.state, one.row, mask))]


def has_room(engine: Engine, spec: int) -> bool:
    """Whether some host that is open to a spec has room for it, whatever its rules about neighbours; O(hosts)."""
    tables = engine.tables
    tables.settle()
    return kind_has_room(engine, tables.kind_of(engine.specs[spec]))


def kind_has_room(engine: Engine, kind: int) -> bool:
    """The same of a kind of pods, by its number in the tables, which must be settled."""
    tb = engine.tables.tb
    one = tb["kinds"][kind]
    return bool(_open_with_room(engine, int(one["term"]), tb["demand"][int(one["shape"])]).any())


def is_whole(engine: Engine, key: str) -> bool:
    """Whether all instances that a controller has are ready; also where it is not known any more."""
    controller = engine.controllers.get(key)
    return controller is None or all(_is_ready(engine, row) for row in controller.rows)


def _is_ready(engine: Engine, row: int) -> bool:
    one = engine.pods.get(engine.uid_of_row.get(row, ""))
    return one is not None and one.state == types.PLACED and one.ready


def _hosts_with_room(engine: Engine, row: int, wanted: Mapping[str, int]) -> NDArray[np.bool_]:
    """Hosts other than its own that could take an instance at once, were it this large, shape (hosts,)."""
    engine.tables.settle()
    tb, names = engine.tables.tb, engine.tables.resources
    kind = tb["kinds"][tb["instances"]["kind"][row]]
    amounts = [min(wanted.get(name, 0), int(layout.BEYOND)) for name in names]
    mask = _open_with_room(engine, int(kind["term"]), np.array(amounts))
    if any(amount and name not in names for name, amount in wanted.items()):
        mask[:] = False
    mask = np.ascontiguousarray(mask)
    resize.welcoming_elsewhere(tb.state, row, mask)
    return np.asarray(mask)


def _open_with_room(engine: Engine, term: int, amounts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Hosts that are up, satisfy a term and have so much free, shape (hosts,)."""
    tb = engine.tables.tb
    is_open = (tb["hosts"]["down"] == 0) & (tb["allowed"][term, tb["hosts"]["group"]] != 0)
    return np.asarray(is_open & (amounts <= np.maximum(tb["free"], 0)).all(axis=1))
