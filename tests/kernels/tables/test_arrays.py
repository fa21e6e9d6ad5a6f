"""What the declaration of arrays says is so."""

from __future__ import annotations

import ast
from typing import cast

import numpy as np
import pytest

from slacktide.config import Config
from slacktide.kernels.tables import views
from slacktide.kernels.tables.arrays import ARRAYS, AXES, Presence
from slacktide.policy.loader import load
from slacktide.settings import load_live
from slacktide.state import growing_arrays
from slacktide.state.empty_tables import empty_tables
from slacktide.state.growth import Growing
from support.repository import REPOSITORY

KERNELS = REPOSITORY / "src" / "slacktide" / "kernels"


def test_every_view_that_kernels_use_is_declared_and_every_array_is_used() -> None:
    nodes = [node for path in KERNELS.rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    views_of = (node for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    assert {node.attr for node in views_of if cast(ast.Name, node.value).id == "views"} == {*ARRAYS, "rules", "control"}
    assert all(callable(getattr(views, name)) for name in ARRAYS)


def test_every_axis_that_may_grow_is_one_of_an_array() -> None:
    assert set(AXES) <= {axis for array in ARRAYS.values() for axis in array.axes}


@pytest.mark.parametrize(("axis", "at"), [("instances", 0), ("hosts", 0), ("resources", -1), ("slots", -1)])
def test_arrays_that_grow_keep_what_they_held(axis: str, at: int) -> None:
    tb = empty_tables(Config(), None, ("cpu", "memory", "pods"))
    names = growing_arrays.along(axis, *Presence, at=at)
    assert names
    before = {name: tb[name].copy() for name in ARRAYS}
    growing_arrays.lengthen_along(tb, axis, 40, *Presence, at=at)
    for name, old in before.items():
        assert tb[name].shape[at] == (40 if name in names else old.shape[at])
        assert np.array_equal(tb[name][tuple(slice(extent) for extent in old.shape)], old)


@pytest.mark.parametrize("policy", ["qos-driven", "priority", "hybrid", "examples/05_priority_from_pieces.py:priority"])
@pytest.mark.parametrize("overload", ["share", "triage", "plan"])
def test_arrays_of_hosts_grow_together(policy: str, overload: str) -> None:
    """A kernel that writes what another policy needs would write beyond it."""
    policy = f"{REPOSITORY}/{policy}" if ".py:" in policy else policy
    config = load_live(None, None, [f"policy.name={policy}", f"policy.overload={overload}"])
    growing = Growing(config, load(config).code)
    growing.new_host("one")
    growing.new_host("two")
    lengths = {name: len(growing.tb[name]) for name in growing_arrays.along("hosts", *Presence)}
    assert {name for name, length in lengths.items() if length not in (0, lengths["hosts"])} == set()
