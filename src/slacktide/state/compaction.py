"""Forgetting what nobody in a live cluster asks for any more.

Kinds, and with them demands, classes, terms and counters, only grow in number while a
cluster runs: every rollout brings new ones. When those known are twice those that were
used at the last count, the unused ones are dropped and the rest numbered anew: constant
cost for each kind that came, and never more than twice what is in use. No decision
depends on these numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.plan.pools import NONE
from slacktide.kernels.tables import schema
from slacktide.state.growth import Growing

FEW = 64
"""Up to so many kinds none are dropped."""


def compact_if_due(growing: Growing) -> None:
    """Drop unused kinds where many came since that was last done; before a pass."""
    if growing.kinds > max(FEW, 2 * growing.tidied):
        compact(growing)


def compact(growing: Growing) -> None:
    """Drop what is unused, number the rest anew, and settle; O(instances + hosts)."""
    if not growing.kinds:
        return
    tb = growing.tb
    used = _used_kinds(growing)
    specs = [growing.spec_of(kind) for kind in used.tolist()]
    old_kinds = tb["kinds"][used].copy()
    class_of = _drop_classes(growing, old_kinds["cls"])
    growing.forget_kinds()
    for spec, cls in zip(specs, old_kinds["cls"].tolist(), strict=True):
        growing.add_kind(spec, int(class_of[cls]))
    _point_instances(growing, used)
    _point_pools(growing, used)
    _point_slots(growing, old_kinds, class_of)
    tb.control["failed"] = schema.NOBODY
    growing.tidied = len(used)
    growing.settle()


def _used_kinds(growing: Growing) -> NDArray[np.int64]:
    """Kinds of live instances, ascending."""
    instances = growing.tb["instances"][: growing.rows]
    living = np.isin(instances["state"], (schema.WAITING, schema.PLACED, schema.LEAVING, schema.VACANT, schema.EXCUSED))
    found = np.concatenate([instances["kind"][living], growing.tb["pools"]["kind"]])  # a rollout may bring their like
    return np.unique(found[found >= 0]).astype(np.int64)


def _drop_classes(growing: Growing, of_kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keep classes of these kinds and of requests in use; where each class is now, -1 for those dropped."""
    table = growing.tb["requests"]
    in_use = np.setdiff1d(np.arange(growing.requests), growing.free_requests)
    kept = np.union1d(of_kinds, table["cls"][in_use]).astype(np.int64)
    place = np.full(len(growing.classes), -1, np.int64)
    place[kept] = np.arange(len(kept))
    growing.keep_classes(kept.tolist())
    for accounts in ("accounts", "request_accounts"):
        of = growing.tb[accounts]["cls"]
        of[of > 0] = place[of[of > 0] - 1] + 1
    table["cls"][in_use] = place[table["cls"][in_use]]
    return place


def _point_instances(growing: Growing, used: NDArray[np.int64]) -> None:
    """Kinds of instances, on hosts and waiting, by their new numbers."""
    tb = growing.tb
    old = tb["instances"]["kind"][: growing.rows]
    places = np.minimum(np.searchsorted(used, old), max(0, len(used) - 1))
    tb["instances"]["kind"][: growing.rows] = np.where(old < 0, -1, places)
    for name in ("queue", "incoming"):
        entries = tb[name][: int(tb.control[name])]
        entries["kind"] = np.searchsorted(used, entries["kind"])


def _point_pools(growing: Growing, used: NDArray[np.int64]) -> None:
    """Kinds by which pools are known, by their new numbers; a pool whose kind is dropped is one no more."""
    kinds = growing.tb["pools"]["kind"]
    kept = np.isin(kinds, used)
    kinds[kept], kinds[~kept] = np.searchsorted(used, kinds[kept]), NONE


def _point_slots(growing: Growing, old_kinds: Any, class_of: NDArray[np.int64]) -> None:
    """Demands and classes of instances on hosts by their new numbers."""
    tb = growing.tb
    if not len(old_kinds):
        return
    shape_of = np.zeros(int(old_kinds["shape"].max()) + 1, np.int64)
    shape_of[old_kinds["shape"]] = tb["kinds"]["shape"][: len(old_kinds)]
    taken = np.arange(tb["slots"].shape[1]) < tb["hosts"]["count"][:, None]
    for name, place in (("shape", shape_of), ("cls", class_of)):
        column = tb["slots"][name]
        column[taken] = place[column[taken]]
