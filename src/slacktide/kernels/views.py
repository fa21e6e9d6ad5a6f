"""From the state record to its arrays: ``slots(tb)`` is the array of that name.

A view is made from an address and a shape, costs nothing once compiled, and counts
no references. :class:`slacktide.state.tables.Tables` keeps the arrays alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from slacktide.state.tables import ARRAYS, State


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(address), generate


def _plain(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    """The same view for runs with compilation off."""
    known: dict[tuple[int, ...], NDArray[Any]] = {}

    def view(tb: State) -> NDArray[Any]:
        place = (int(tb[f"{name}_at"]), *(int(tb[f"{name}_{axis}"]) for axis in range(axes)))
        if place not in known:
            size = int(np.prod(place[1:])) * dtype.itemsize
            memory = (ctypes.c_char * size).from_address(place[0]) if size else b""
            known.clear()
            known[place] = np.frombuffer(memory, dtype).reshape(place[1:])
        return known[place]

    return view


def _compiled(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    at, first, second, third = f"{name}_at", f"{name}_0", f"{name}_1", f"{name}_2"
    if axes == 1:

        def view(tb: State) -> NDArray[Any]:
            return numba.carray(_pointer(tb[at]), (tb[first],), dtype)

    elif axes == 2:

        def view(tb: State) -> NDArray[Any]:
            return numba.carray(_pointer(tb[at]), (tb[first], tb[second]), dtype)

    else:

        def view(tb: State) -> NDArray[Any]:
            return numba.carray(_pointer(tb[at]), (tb[first], tb[second], tb[third]), dtype)

    return numba.njit(view)  # type: ignore[no-any-return]


def _view(name: str) -> Callable[[State], NDArray[Any]]:
    make = _plain if numba.config.DISABLE_JIT else _compiled  # type: ignore[attr-defined]
    return make(name, *ARRAYS[name])


classes = _view("classes")
requests = _view("requests")
admission = _view("admission")
duration = _view("duration")
hosts = _view("hosts")
ceilings = _view("ceilings")
slots = _view("slots")
free = _view("free")
capacity = _view("capacity")
scale = _view("scale")
demand = _view("demand")
kinds = _view("kinds")
allowed = _view("allowed")
groups = _view("groups")
tree = _view("tree")
leaf_host = _view("leaf_host")
changes = _view("changes")
queue = _view("queue")
incoming = _view("incoming")
order = _view("order")
shared = _view("shared")
shared_cost = _view("shared_cost")
shared_limit = _view("shared_limit")
shared_score = _view("shared_score")
shared_hosts = _view("shared_hosts")
shared_listed = _view("shared_listed")
shared_of_pair = _view("shared_of_pair")
heap = _view("heap")
visits = _view("visits")
hot = _view("hot")
cold = _view("cold")
happenings = _view("happenings")
decisions = _view("decisions")
victims = _view("victims")
events = _view("events")
passes = _view("passes")
taken = _view("taken")
missing = _view("missing")
unit = _view("unit")
amounts = _view("amounts")
slack = _view("slack")
ranks = _view("ranks")
