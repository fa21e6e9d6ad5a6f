"""Kernels are compiled in a way of their own; functions of others, and other versions of Numba, are let be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import codegen, compiler

from reference import chance as slow_chance
from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.runtime import chance, linking
from slacktide.kernels.runtime.code_parts import Part
from slacktide.kernels.runtime.mode import Mode, mode

pytestmark = pytest.mark.skipif(mode() is not Mode.JIT, reason="kernels are not compiled here; set SLACKTIDE_JIT=1")
SEED = np.uint64(7)
jit: Any = numba.njit


def libraries(function: Any) -> list[Any]:
    return [compiled.library for compiled in function.overloads.values()]


def test_numba_itself_is_as_it_was() -> None:
    assert linking.pipeline() is not None
    for owner, name in [
        (codegen.CPUCodeLibrary, "finalize"),
        (codegen.CPUCodeLibrary, "_get_module_for_linking"),
        (codegen.JITCPUCodegen, "set_env"),
        (codegen.JITCPUCodegen, "create_library"),
        (compiler.CompilerBase, "__init__"),
    ]:
        assert getattr(owner, name).__module__.startswith("numba."), name


def test_a_function_of_a_user_is_compiled_by_numba_as_it_is() -> None:
    @jit  # type: ignore[untyped-decorator]
    def users(x: float) -> float:
        return 2.0 * x

    assert users(4.0) == 8.0
    (library,) = libraries(users)
    assert type(library) is codegen.JITCodeLibrary
    assert type(library.codegen) is codegen.JITCPUCodegen


def test_a_function_of_a_user_may_call_a_kernel_which_is_a_part_of_it() -> None:
    draw: Any = chance.draw

    @jit  # type: ignore[untyped-decorator]
    def users(seed: np.uint64) -> int:
        return draw(seed, 1, 2, 3)  # type: ignore[no-any-return]

    assert users(SEED) == slow_chance.draw(7, 1, 2, 3)
    assert type(libraries(users)[0]) is codegen.JITCodeLibrary
    assert {type(library) for library in libraries(draw)} == {Part}


def test_an_entry_holds_what_it_calls_once() -> None:
    old, new = np.array([3, 0, 5]), np.zeros(8, np.int64)
    instance_ledger.copy_visits(old, new)
    assert sorted(new[new > 0]) == [3, 5]


OTHER_NUMBA = {
    "another version": "numba.version_info = numba.version_info._replace(short=(0, 99))",
    "another code library": """
from numba.core import codegen
usual = codegen.CPUCodeLibrary.finalize
codegen.CPUCodeLibrary.finalize = lambda self: usual(self)
""",
    "another compiler": """
from numba.core import compiler
usual = compiler.CompilerBase.__init__
def init(self, *words, **named): usual(self, *words, **named)
compiler.CompilerBase.__init__ = init
""",
    "another context": """
from numba.core import base
usual = base.BaseContext.subtarget
base.BaseContext.subtarget = lambda self, **options: usual(self, **options)
""",
}

PROGRAM = """
import numba
{change}
import numpy as np
from slacktide.kernels.drive import instance_ledger
from slacktide.kernels.runtime import chance, linking
from slacktide.kernels.runtime.compiling import callable_from_python
new = np.zeros(8, np.int64)
instance_ledger.copy_visits(np.array([3, 0, 5]), new)
(compiled,) = instance_ledger.copy_visits.overloads.values()
print(linking.pipeline(), type(compiled.library).__module__, sorted(new[new > 0].tolist()))
print(callable_from_python(chance.draw)(np.uint64(7), 1, 2, 3))
"""


@pytest.mark.parametrize("change", OTHER_NUMBA.values(), ids=OTHER_NUMBA)
def test_where_numba_is_another_its_own_way_compiles_kernels(change: str, tmp_path: Path) -> None:
    environment = os.environ | {"SLACKTIDE_CACHE": str(tmp_path)}
    program = PROGRAM.format(change=change)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False, text=True)
    assert done.stderr == ""
    drawn = slow_chance.draw(7, 1, 2, 3)
    assert done.stdout.splitlines() == ["None numba.core.codegen [3, 5]", str(drawn)]
