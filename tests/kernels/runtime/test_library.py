"""Kernels from a library: found where it fits, called with what it was made for, beside other threads."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from slacktide.kernels.runtime import library
from slacktide.kernels.runtime.signatures import Signature, Value
from support.libraries import COMMAND, WITHOUT_NUMBA, copied, needs_library, run
from support.own_policies import FIRST_FIT

WHOLE, FLOAT, FLAG = np.dtype("i8"), np.dtype("f8"), np.dtype("?")
SAID = "from slacktide.kernels.runtime.compiling import described; print(described())"
SCORE = "def mine(capacity, free, demand):\n    return free[0]\n"


def test_the_best_level_that_a_processor_can_run_comes_first() -> None:
    new, old = library.V3_FLAGS | {"avx512f"}, library.V2_FLAGS | {"avx"}
    assert library.fitting_levels("x86_64", new) == ["x86-64-v3", "x86-64-v2"]
    assert library.fitting_levels("x86_64", old) == ["x86-64-v2"]
    assert library.fitting_levels("x86_64", old - {"popcnt"}) == []
    assert library.fitting_levels("aarch64", frozenset()) == ["aarch64"]
    assert library.fitting_levels("riscv64", new) == []


def called(signature: Signature, *arguments: Any) -> list[Any]:
    """The words that machine code of this signature gets; it returns 1.5 and true."""
    got: list[Any] = []

    class Code:
        def __call__(self, *words: Any) -> int:
            got[:] = words
            if signature.returns:
                ctypes.c_double.from_address(words[-1]).value = 1.5
                ctypes.c_int64.from_address(words[-1] + 8).value = 1
            return 0

    found = library.caller(Code(), signature, "name")(*arguments)
    return [found, got]


def test_numbers_are_passed_by_value_and_arrays_with_their_extents() -> None:
    table = np.zeros((3, 2))
    signature = Signature((Value(WHOLE), Value(FLAG), Value(FLOAT), Value(FLOAT, 2)), (FLOAT, FLAG))
    found, words = called(signature, np.int32(7), 2, 2, table)
    assert found == (1.5, True)
    assert words[:-1] == [7, 1, 2.0, table.ctypes.data, 3, 2]
    assert [type(word) for word in words[:3]] == [int, bool, float]


@pytest.mark.parametrize(
    "given",
    [np.zeros(4, np.int32), np.zeros((2, 2), np.int64), np.zeros(8, np.int64)[::2]],
    ids=["type", "axes", "order"],
)
def test_an_array_that_machine_code_would_misread_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"name\(\), argument 0: found .* expected int64 of 1 axes, in C order"):
        called(Signature((Value(WHOLE, 1),), ()), given)


def test_a_status_is_an_error() -> None:
    class Code:
        def __call__(self) -> int:
            return 1

    with pytest.raises(MemoryError, match="kernel name"):
        library.caller(Code(), Signature((), ()), "name")()


@pytest.mark.slow
@needs_library
def test_each_level_can_be_asked_for() -> None:
    fitting = library.fitting_levels("x86_64", library.processor_flags())
    for level in fitting:
        said = run(WITHOUT_NUMBA + SAID, SLACKTIDE_CPU=level)
        assert said.stdout.split() == ["library", level, *said.stdout.split()[2:]], said.stderr
    assert run(WITHOUT_NUMBA + SAID).stdout == run(WITHOUT_NUMBA + SAID, SLACKTIDE_CPU=fitting[0]).stdout
    absent = run(WITHOUT_NUMBA + SAID, SLACKTIDE_CPU="x86-64-v9")
    assert "found x86-64-v9" in absent.stderr
    assert "found x86-64-v9" in run(SAID, SLACKTIDE_CPU="x86-64-v9").stderr, "nothing else instead"


LOADS_NEITHER = """
import sys
from slacktide.cli import main
main(sys.argv[1:])
assert not {"numba", "llvmlite"} & set(sys.modules)
"""


def simulate(folder: Path) -> tuple[str | Path, ...]:
    """Words of a command that simulates a minute of a small workload."""
    assert run(COMMAND, "generate", "validation-1", "--out", folder / "input").returncode == 0
    files = (folder / "input" / f"{name}.parquet" for name in ("workload", "hosts"))
    return ("simulate", *files, "--end", "60", "--json")


@needs_library
def test_where_numba_is_it_is_not_imported(tmp_path: Path) -> None:
    found = run(LOADS_NEITHER, *simulate(tmp_path))
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["compile_seconds"] == 0.0
    assert "compiling" not in found.stderr


@pytest.mark.slow
@needs_library
def test_without_numba_a_policy_of_ones_own_works_and_a_score_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(FIRST_FIT + "\n\n" + SCORE)
    words = simulate(tmp_path)
    policy = run(COMMAND, *words, "--policy", f"{tmp_path}/own.py:FirstFit")
    assert policy.returncode == 0, policy.stderr
    own = (*words, "--set", f"policy.score={tmp_path}/own.py:mine")
    score = run(COMMAND, *own)
    assert score.returncode == 4
    assert score.stderr.endswith("which is absent; pip install 'slacktide[plugins]'\n")
    with_numba = run(COMMAND.removeprefix(WITHOUT_NUMBA), *own)
    assert with_numba.returncode == 0, with_numba.stderr
    assert json.loads(with_numba.stdout)["compile_seconds"] > 0.0


@pytest.mark.slow
@needs_library
def test_an_edited_kernel_is_not_run_from_the_library(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    assert run(WITHOUT_NUMBA + SAID, path=folder).stdout.startswith("library ")
    kernel = folder / "slacktide" / "kernels" / "drive" / "scale.py"
    kernel.write_text(kernel.read_text() + "\n# edited\n")
    assert run(SAID, path=folder).stdout.startswith("compiled by numba")
    without = run(COMMAND, "policies", path=folder)
    assert without.returncode == 2
    text = "made from other sources), and Numba is absent; pip install 'slacktide[plugins]'\n"
    assert without.stderr.endswith(text)


@pytest.mark.slow
@needs_library
def test_compiling_can_be_asked_for() -> None:
    assert run(SAID, SLACKTIDE_JIT="1").stdout.startswith("compiled by numba")
    assert run(SAID, SLACKTIDE_JIT="0").stdout.startswith("library")
    assert run(SAID, NUMBA_DISABLE_JIT="1").stdout.startswith("plain Python")
    assert "unset SLACKTIDE_JIT, or pip install" in run(WITHOUT_NUMBA + SAID, SLACKTIDE_JIT="1").stderr


def test_without_library_and_numba_it_says_how_to_get_it(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    for one in (folder / "slacktide" / "kernels" / "library").glob("*"):
        one.unlink()
    found = run(COMMAND, "policies", path=folder)
    assert found.returncode == 2
    assert found.stderr == (
        "Error: the kernels must be compiled here (this installation has no compiled kernels), and Numba is absent; "
        "pip install 'slacktide[plugins]'\n"
    )


PARALLEL = """
import threading
import numpy as np
from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.runtime.mode import Mode, mode
assert mode() is Mode.LIBRARY
old, new = np.arange(1, 1 << 23), np.zeros(1 << 24, np.int64)
thread = threading.Thread(target=instance_ledger.copy_visits, args=(old, new))
thread.start()
seen = set()
while thread.is_alive():
    seen.add(np.count_nonzero(new[:: 1 << 12]))
seen.add(np.count_nonzero(new[:: 1 << 12]))
print(len(seen))
"""


@needs_library
def test_other_threads_run_while_a_kernel_works() -> None:
    """One that had to wait would see the kernel's work begun or done, but nothing in between."""
    found = run(PARALLEL)
    assert int(found.stdout) > 3, found.stderr
