"""What the declaration of arrays says is so: who uses each, and what makes each longer."""

from __future__ import annotations

import ast
from collections import defaultdict

import numpy as np
import pytest

from slacktide.config import Config
from slacktide.kernels.tables import views
from slacktide.kernels.tables.arrays import ARRAYS, AXES, Presence
from slacktide.state import growing_arrays
from slacktide.state.empty_tables import empty_tables
from support.repository import REPOSITORY

KERNELS = REPOSITORY / "src" / "slacktide" / "kernels"


def uses() -> dict[str, set[str]]:
    """Packages of kernels by the views that they use."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in KERNELS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "views":
                found[node.attr].add(path.relative_to(KERNELS).parts[0])
    return found


def test_every_view_that_kernels_use_is_declared_and_every_array_is_used() -> None:
    assert set(uses()) == {*ARRAYS, "rules", "control"}
    assert all(callable(getattr(views, name)) for name in ARRAYS)


def test_the_declaration_says_who_uses_an_array() -> None:
    found = uses()
    assert {name: array.used_by for name, array in ARRAYS.items()} == {
        name: " ".join(sorted(found[name])) for name in ARRAYS
    }


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
