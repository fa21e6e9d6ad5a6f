"""From the address of the state record to its arrays: ``slots(tb)`` is the array of that name.

A view is made from an address and a shape, costs nothing once compiled, and counts
no references. :class:`slacktide.kernels.tables.Tables` keeps the arrays alive.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import from_dtype
from numpy.typing import NDArray

from slacktide.kernels.tables import ARRAYS, STATE, State

PLACES: dict[str, Any] = dict(STATE.fields or {})
"""Type and offset of each field of the state record."""


def _memory(address: int, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """An array over memory that exists, for runs with compilation off."""
    size = count * dtype.itemsize
    memory: Any = (ctypes.c_char * size).from_address(address) if size else b""
    return np.frombuffer(memory, dtype)


def _record(name: str) -> Callable[[State], Any]:
    """The settings or the counters inside the state record itself."""
    dtype, place = PLACES[name]
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]

        def plain(tb: State) -> Any:
            return _memory(tb + place, dtype, 1)[0]

        return plain

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = builder.add(args[0], ir.IntType(64)(place))
        return builder.inttoptr(address, context.get_value_type(signature.return_type))

    def view(typing: Any, tb: Any) -> Any:
        return from_dtype(dtype)(tb), generate

    view.__name__ = view.__qualname__ = name
    return cast(Any, intrinsic(view))


def _plain(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    """The same view for runs with compilation off."""
    known: dict[tuple[int, ...], NDArray[Any]] = {}

    def view(tb: State) -> NDArray[Any]:
        record = _memory(tb, STATE, 1)[0]
        place = (int(record[f"{name}_at"]), *(int(record[f"{name}_{axis}"]) for axis in range(axes)))
        if place not in known:
            known.clear()
            known[place] = _memory(place[0], dtype, int(np.prod(place[1:]))).reshape(place[1:])
        return known[place]

    return view


def _compiled(name: str, dtype: np.dtype[Any], axes: int) -> Callable[[State], NDArray[Any]]:
    """The view as an intrinsic: a few loads in place of a function to compile and call."""
    places = [PLACES[f"{name}_at"][1]] + [PLACES[f"{name}_{axis}"][1] for axis in range(axes)]

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, byte = ir.IntType(64), ir.IntType(8)
        base = builder.inttoptr(args[0], byte.as_pointer())
        loads = [
            builder.load(builder.bitcast(builder.gep(base, [whole(place)]), whole.as_pointer())) for place in places
        ]
        kind = signature.return_type
        array = context.make_array(kind)(context, builder)
        strides = [whole(dtype.itemsize)]
        for extent in reversed(loads[2:]):
            strides.insert(0, builder.mul(strides[0], extent))
        count = loads[1]
        for extent in loads[2:]:
            count = builder.mul(count, extent)
        data = builder.inttoptr(loads[0], context.get_data_type(kind.dtype).as_pointer())
        fill: Any = populate_array
        fill(array, data, loads[1:], strides, whole(dtype.itemsize), None)
        array.nitems = count
        return array._getvalue()

    def view(typing: Any, tb: Any) -> Any:
        return types.Array(from_dtype(dtype), axes, "C")(tb), generate

    view.__name__ = view.__qualname__ = name
    return cast(Any, intrinsic(view))


def _view(name: str) -> Callable[[State], NDArray[Any]]:
    make = _plain if numba.config.DISABLE_JIT else _compiled  # type: ignore[attr-defined]
    return make(name, *ARRAYS[name])


rules = _record("rules")
control = _record("control")
classes = _view("classes")
instances = _view("instances")
member = _view("member")
owner = _view("owner")
links = _view("links")
requests = _view("requests")
stirred = _view("stirred")
streams = _view("streams")
scalings = _view("scalings")
resizings = _view("resizings")
deferred = _view("deferred")
wish = _view("wish")
excess = _view("excess")
acts = _view("acts")
acted = _view("acted")
admission = _view("admission")
duration = _view("duration")
hosts = _view("hosts")
ceilings = _view("ceilings")
slots = _view("slots")
free = _view("free")
capacity = _view("capacity")
scale = _view("scale")
demand = _view("demand")
limit = _view("limit")
granted = _view("granted")
asks = _view("asks")
logins = _view("logins")
images = _view("images")
image_on = _view("image_on")
places = _view("places")
place = _view("place")
place_hosts = _view("place_hosts")
yard = _view("yard")
yard_leaf = _view("yard_leaf")
image_bits = _view("image_bits")
rtt = _view("rtt")
gamma = _view("gamma")
omega = _view("omega")
kinds = _view("kinds")
counters = _view("counters")
tallies = _view("tallies")
domain = _view("domain")
marks = _view("marks")
conditions = _view("conditions")
likings = _view("likings")
points = _view("points")
budget = _view("budget")
budgets = _view("budgets")
guard = _view("guard")
allowed = _view("allowed")
groups = _view("groups")
tree = _view("tree")
leaf_host = _view("leaf_host")
changes = _view("changes")
releases = _view("releases")
queue = _view("queue")
incoming = _view("incoming")
order = _view("order")
shared = _view("shared")
shared_cost = _view("shared_cost")
shared_limit = _view("shared_limit")
shared_look = _view("shared_look")
shared_score = _view("shared_score")
shared_hosts = _view("shared_hosts")
shared_listed = _view("shared_listed")
shared_of_pair = _view("shared_of_pair")
heap = _view("heap")
visits = _view("visits")
hot = _view("hot")
cold = _view("cold")
happenings = _view("happenings")
triggers = _view("triggers")
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
