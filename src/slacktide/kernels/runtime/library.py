"""The library of compiled kernels: whether there is one that can be used here, and functions that call it.

:mod:`slacktide.kernels.ahead_of_time` makes it, when the wheel is built. In its folder lie ``kernels.json``, which
says what it was made from and for which machines, and a shared library for each level of processor. They are called
by ctypes, so that other threads run meanwhile.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from functools import cache, cached_property, partial, update_wrapper
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from slacktide.kernels.runtime.signatures import Signature, Value, signature_of
from slacktide.kernels.runtime.sources import PACKAGE, fingerprint

FOLDER = PACKAGE / "library"
ABOUT = "kernels.json"
DESCRIBED = {"format", "fingerprint", "system", "machine", "levels", "tag"}
"""What it must say."""
FORMAT = 2
"""Counts up when ``kernels.json``, or the way in which functions are called, changes."""

V2 = "x86-64-v2"
V3 = "x86-64-v3"
ARM = "aarch64"
V2_FLAGS = frozenset(["cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"])
V3_FLAGS = V2_FLAGS | frozenset(["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"])
LEVELS = {"x86_64": {V3: V3_FLAGS, V2: V2_FLAGS}, "aarch64": {ARM: frozenset[str]()}}
"""By machine: levels of processor, the best first, and the flags in /proc/cpuinfo that each needs."""


class Library(NamedTuple):
    """A library that is loaded, and the level it is for."""

    level: str
    code: ctypes.CDLL


def symbol(function: Callable[..., object]) -> str:
    """The name of an entry or of a function that is called by address, in a library."""
    return f"slacktide_{function.__module__.removeprefix('slacktide.kernels.').replace('.', '_')}_{function.__name__}"


def file_of(level: str, sources: str) -> str:
    """The file of the library for a level, made from sources of this fingerprint: no other can take its place."""
    return f"kernels-{sources}-{level}.so"


def about(folder: Path = FOLDER) -> dict[str, Any] | None:
    """What ``kernels.json`` says, or None where there is no library that it describes."""
    try:
        said = json.loads((folder / ABOUT).read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", said) if isinstance(said, dict) and said.keys() >= DESCRIBED else None


def fitting_levels(machine: str, flags: frozenset[str]) -> list[str]:
    """Levels that a processor with these flags can run, the best first."""
    return [level for level, needed in LEVELS.get(machine, {}).items() if needed <= flags]


def processor_flags() -> frozenset[str]:
    """What this processor can do, as the kernel tells; none where it does not tell."""
    try:
        with open("/proc/cpuinfo") as file:
            return frozenset(next((line for line in file if line.startswith("flags")), "").partition(":")[2].split())
    except OSError:
        return frozenset()


@cache
def _found() -> Library | str:
    """The library of this process, or why there is none."""
    said = about()
    if said is None:
        return "this installation has no compiled kernels"
    if said["format"] != FORMAT or said["fingerprint"] != fingerprint():
        return "the compiled kernels were made from other sources"
    here = os.uname()
    if (here.sysname, here.machine) != (said["system"], said["machine"]):
        return f"the compiled kernels are for {said['system']} {said['machine']}"
    flags = processor_flags()
    fitting = fitting_levels(here.machine, flags)
    wanted = os.environ.get("SLACKTIDE_CPU")
    usable = [one for one in fitting if one in said["levels"] and wanted in (None, "", one)]
    if not usable:
        found = wanted or ("an older processor" if flags else "no processor's flags in /proc/cpuinfo")
        return f"the compiled kernels are for {' and '.join(said['levels'])}; found {found}"
    problem = ""
    for level in usable:
        try:
            return Library(level, ctypes.CDLL(str(FOLDER / said["levels"][level])))
        except OSError as error:
            problem = f"the compiled kernels cannot be loaded: {error}"
    return problem


def obstacle() -> str:
    """Why no library can be used here; empty where one can."""
    found = _found()
    return found if isinstance(found, str) else ""


def loaded() -> Library:
    """The library of this process; only where there is no obstacle."""
    found = _found()
    assert isinstance(found, Library)  # noqa: S101  # whoever calls has asked
    return found


def _number(dtype: np.dtype[Any]) -> Any:
    return {"i": ctypes.c_int64, "f": ctypes.c_double, "b": ctypes.c_uint8}[dtype.kind]


class Entry:
    """An entry in the library: looked up, with its signature, when it is first called."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.py_func = function
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)

    @cached_property
    def _call(self) -> Callable[..., Any]:
        code = getattr(loaded().code, symbol(self.py_func))
        return caller(code, signature_of(self.py_func), self.py_func.__name__)


NUMBERS = {"i": "int", "f": "float", "b": "bool"}
"""What makes a number of an argument, by its kind."""


def caller(code: Any, signature: Signature, name: str) -> Callable[..., Any]:
    """A function that calls machine code: numbers as they are, of each array its address and its extents, and last
    the place for what it returns. Arrays of another type or order are refused, as machine code would misread them.

    Its Python is written for this signature, as that of a dataclass is: a loop over arguments would take three times
    as long as the call.
    """
    code.restype, code.argtypes = ctypes.c_int32, _c_types(signature)
    names = [f"a{place}" for place in range(len(signature.arguments))]
    known: dict[str, Any] = {"code": code, "failed": partial(_failed, name)}
    words, lines = [], []
    for one, value in zip(names, signature.arguments, strict=True):
        if value.axes:
            known[f"array_{one}"] = partial(_array, value, f"{name}(), argument {one[1:]}")
            lines.append(f"w{one} = array_{one}({one})")  # beside the array itself, which stays alive until the end
            words.append(f"*w{one}")
        else:
            words.append(f"{NUMBERS[value.dtype.kind]}({one})")
    results = []
    if signature.returns:
        known["Results"] = _results(signature)
        lines.append("results = Results()")
        words.append("address(results)")
        known["address"] = ctypes.addressof
        results = [_result(place, dtype) for place, dtype in enumerate(signature.returns)]
    lines += [f"if status := code({', '.join(words)}):", "    failed(status)", f"return {', '.join(results) or None}"]
    exec("\n    ".join([f"def call({', '.join(names)}):", *lines]), known)
    return cast("Callable[..., Any]", known["call"])


def _c_types(signature: Signature) -> list[Any]:
    types: list[Any] = []
    for dtype, axes in signature.arguments:
        types += [ctypes.c_void_p, *[ctypes.c_int64] * axes] if axes else [_number(dtype)]
    return [*types, ctypes.c_void_p] if signature.returns else types


def _results(signature: Signature) -> Any:
    """The place for what is returned: 8 bytes for each number."""
    numbers = [ctypes.c_double if dtype.kind == "f" else ctypes.c_int64 for dtype in signature.returns]
    fields = [(f"r{place}", one) for place, one in enumerate(numbers)]
    return type("Results", (ctypes.Structure,), {"_fields_": fields})


def _result(place: int, dtype: np.dtype[Any]) -> str:
    return f"bool(results.r{place})" if dtype.kind == "b" else f"results.r{place}"


def _failed(name: str, status: int) -> None:
    # Kernels raise nothing themselves: an array that one makes for a moment found no memory.
    raise MemoryError(f"kernel {name}: status {status}")


def _array(value: Value, where: str, given: Any) -> tuple[int, ...]:
    """The address and the extents of an array."""
    dtype, axes = value
    if given.dtype != dtype or given.ndim != axes or not given.flags.c_contiguous:
        raise TypeError(
            f"{where}: found {given.dtype} of {given.ndim} axes, strides {given.strides}, "
            f"expected {dtype} of {axes} axes, in C order"
        )
    # Not by the array interface: that describes all fields of a record each time.
    return given.ctypes.data, *given.shape


def address_of(function: Callable[..., object]) -> int:
    """Where the machine code of a function is that kernels call by its address."""
    return int(ctypes.cast(getattr(loaded().code, symbol(function)), ctypes.c_void_p).value or 0)
