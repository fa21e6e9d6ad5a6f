"""The library for ARM, run by an emulator: of each run it makes what the library of this machine makes, to the byte."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from slacktide.kernels.ahead_of_time.building import Linker, link
from slacktide.kernels.ahead_of_time.lowering import translated
from slacktide.kernels.drive import event_loop
from slacktide.kernels.runtime.library import symbol
from slacktide.kernels.tables.arrays import ARRAYS, STATE, Tables
from slacktide.kernels.tables.buffer_capacity import OVER
from slacktide.kernels.tables.views import OFFSETS
from slacktide.policy.loader import load
from slacktide.sim.engine import prepare
from slacktide.state.growing_arrays import grow
from support.clusters import POLICIES_WITH_RULES, Cluster, cluster
from support.libraries import bitcode, needs_library
from support.made_once import made_once
from support.runs import settings_of

ARM = "aarch64"
CC, EMULATOR, ROOT = f"{ARM}-linux-gnu-gcc", f"qemu-{ARM}", f"/usr/{ARM}-linux-gnu"
NEEDED = f"needs {CC} with its C library, and {EMULATOR}"
PROGRAM = Path(__file__).with_name("on_a_state.c")
PASSES = 40


def missing() -> bool:
    """Whether there is no emulator; an error where there must be one (``SLACKTIDE_REQUIRE_SERVERS=1``)."""
    absent = not (shutil.which(CC) and shutil.which(EMULATOR) and Path(ROOT).is_dir())
    if absent and os.environ.get("SLACKTIDE_REQUIRE_SERVERS") == "1" and os.uname().machine == "x86_64":
        raise RuntimeError(f"{NEEDED}, but SLACKTIDE_REQUIRE_SERVERS=1")
    return absent


pytestmark = [pytest.mark.slow, needs_library, pytest.mark.skipif(missing(), reason=NEEDED)]


@pytest.fixture(scope="module")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command that runs kernels of the library for ARM on a state."""

    def fill(folder: Path) -> None:
        objects = folder / "kernels.o"
        objects.write_bytes(translated(bitcode(), ARM, ARM))
        link(Linker((CC,), f"linux_{ARM}"), objects, folder / "kernels.so")
        program = str(folder / "on_a_state")
        subprocess.run([CC, "-O1", "-Wall", "-Werror", "-o", program, str(PROGRAM), "-ldl"], check=True)

    folder = made_once(tmp_path_factory, ARM, fill)
    return [EMULATOR, "-L", ROOT, str(folder / "on_a_state"), str(folder / "kernels.so")]


def state_of(tb: Tables) -> tuple[bytes, bytes]:
    """What the program needs to know of a state's form, and the state."""
    arrays = [tb[name] for name in ARRAYS]
    places = [value for name in ARRAYS for value in (OFFSETS[f"{name}_at"][1], tb[name].nbytes)]
    form = struct.pack(f"={2 + len(places)}q", STATE.itemsize, len(arrays), *places)
    return form, ctypes.string_at(tb.state, STATE.itemsize) + b"".join(one.tobytes() for one in arrays)


def differing(tb: Tables, here: bytes, there: bytes) -> list[str]:
    """Names of what differs."""
    end = STATE.itemsize
    records = [np.frombuffer(one[:end], STATE) for one in (here, there)]
    found = [name for name in ("rules", "control") if records[0][name].tobytes() != records[1][name].tobytes()]
    for name in ARRAYS:
        begin, end = end, end + tb[name].nbytes
        if here[begin:end] != there[begin:end]:
            found.append(name)
    return found


def run_on_both(one: Cluster, folder: Path, command: list[str]) -> int:
    """How many instances both start, step by step and alike."""
    config = settings_of(one, folder)
    tb = prepare(one.workload, one.hosts, config, load(config), 0)
    words = [*command, symbol(getattr(event_loop.run, "py_func", event_loop.run)), str(PASSES)]
    while True:
        form, before = state_of(tb)
        done = subprocess.run(words, input=form + before, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        code = int(event_loop.run(tb.state, PASSES))
        (there,) = struct.unpack_from("=q", done.stdout)
        assert there == code
        assert differing(tb, state_of(tb)[1], done.stdout[8:]) == []
        if code == OVER:
            return int(tb["instances"]["starts"].sum())
        grow(tb, code)


@pytest.mark.parametrize("policy", POLICIES_WITH_RULES)
@pytest.mark.parametrize("several", [False, True], ids=["rows", "requests"])
def test_both_decide_alike_to_the_byte(several: bool, policy: str, tmp_path: Path, emulated: list[str]) -> None:
    decided = 0
    for seed in range(9400, 9410):
        one = cluster(seed, 5, 40, several=several, neighbours=seed % 2 == 0).with_(policy={"name": policy})
        for which in (one,) if policy == "priority" else (one, one.triaged().with_(policy={"name": policy})):
            decided += run_on_both(which, tmp_path, emulated)
    assert decided > 50, "few are started"
