"""The leaves of the free index are put in order now and then, and every host stays where the index looks for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from slacktide.kernels.feasible import free_index
from slacktide.kernels.feasible.free_index import AMOUNTS, BOTH, NOWHERE, A, B
from slacktide.kernels.runtime.compiling import callable_from_python
from slacktide.policy.loader import load
from slacktide.sim.engine import prepare
from support.clusters import cluster
from support.runs import settings_of

order_by, arrange = callable_from_python(free_index.order_by), callable_from_python(free_index.arrange)
update = callable_from_python(free_index.update)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 333])
def test_keys_are_put_in_order(count: int) -> None:
    keys = np.random.default_rng(count).integers(-5 - count, 5 + count, count)
    order = np.empty(count, np.int64)
    order_by(keys, order)
    assert sorted(order.tolist()) == list(range(count))
    assert keys[order].tolist() == sorted(keys.tolist())


def test_arranging_moves_leaves_and_loses_none(tmp_path: Path) -> None:
    moved = 0
    for seed in range(40):
        one = cluster(seed, 40)
        config = settings_of(one, tmp_path)
        tb = prepare(one.workload, one.hosts, config, load(config), 0)
        hosts, random = tb["hosts"], np.random.default_rng(seed)
        for h in range(len(hosts)):
            tb["free"][h] = random.integers(0, tb["capacity"][h] + 1)
            hosts["down"][h] = random.random() < 0.1
            update(tb.state, h)
        before = hosts["leaf"].copy()
        tb.control["changes"] = tb.control["arranged"] + len(hosts)
        tb.control["bounds"] = (free_index.SEARCHED + 1) * len(hosts)
        arrange(tb.state)
        moved += int((hosts["leaf"] != before).sum())
        root, first, width = (tb["groups"][name][hosts["group"]] for name in ("root", "first", "width"))
        assert (tb["leaf_host"][first + hosts["leaf"] - width] == np.arange(len(hosts))).all()
        arranged, leaves = tb["tree"].copy(), tb["tree"][root + hosts["leaf"]]
        up = hosts["down"] == 0
        assert (leaves[up][:, AMOUNTS:] == tb["free"][up]).all()
        assert (leaves[~up][:, BOTH] == NOWHERE).all()
        for group in tb["groups"]:
            mine = arranged[group["root"] + group["width"] : group["root"] + 2 * group["width"]]
            lean = [row[A] - row[B] >> free_index.LEAN for row in mine if row[BOTH] != NOWHERE]
            if tb.control["arranged"] == tb.control["changes"] and len(mine) > 2:
                assert lean == sorted(lean), seed
        for h in range(len(hosts)):
            update(tb.state, h)  # what one host at a time makes of the same leaves
        assert (tb["tree"] == arranged).all()
    assert moved > 50


@pytest.mark.parametrize(("changes", "searched"), [(0, 1), (1, 0)], ids=["few changes", "few bound checks"])
def test_the_order_stays_as_it_is_after(changes: int, searched: int, tmp_path: Path) -> None:
    one = cluster(3, 40)
    config = settings_of(one, tmp_path)
    tb = prepare(one.workload, one.hosts, config, load(config), 0)
    count, before = len(tb["hosts"]), (int(tb.control["arranged"]), int(tb.control["arranged_bounds"]))
    tb.control["changes"] = tb.control["arranged"] + count // 4 + changes
    tb.control["bounds"] = tb.control["arranged_bounds"] + free_index.SEARCHED * count + searched
    arrange(tb.state)
    assert (tb.control["arranged"], tb.control["arranged_bounds"]) == before
    tb.control["changes"] += 1 - changes
    tb.control["bounds"] += 1 - searched
    arrange(tb.state)
    assert tb.control["arranged"] == tb.control["changes"]
    assert tb.control["arranged_bounds"] == tb.control["bounds"]
