"""From kernels to machine code for another machine; what is missing is named."""

from __future__ import annotations

import json
import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from slacktide.errors import KernelError
from slacktide.kernels.ahead_of_time import __main__ as program
from slacktide.kernels.ahead_of_time import building
from slacktide.kernels.ahead_of_time.lowering import optimised, translated
from slacktide.kernels.runtime import library
from slacktide.kernels.runtime.compiling import ADDRESSED, ENTRIES
from support.libraries import bitcode, import_every_kernel, needs_library, run
from support.repository import REPOSITORY

AARCH64 = 183
"""The number of this machine in an ELF file."""
SYMBOLS = 2
"""The type of the section of symbols."""
DEFINED_GLOBAL = 0x12
"""A function that can be seen from outside."""
FUSED = ("fmadd", "fmla")
"""Parts of the names of instructions that multiply and add at once."""


def functions(made: bytes) -> set[str]:
    """Names of functions that an ELF file offers (System V ABI: header, section headers, symbols)."""
    (begin,) = struct.unpack_from("<Q", made, 40)
    size, count, _ = struct.unpack_from("<HHH", made, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", made, begin + place * size) for place in range(count)]
    (table,) = (one for one in headers if one[1] == SYMBOLS)
    names = headers[table[6]][4]
    found = set()
    for name, info, _, section, *_ in struct.iter_unpack("<IBBHQQ", made[table[4] : table[4] + table[5]]):
        if info == DEFINED_GLOBAL and section:
            found.add(made[names + name : made.index(b"\0", names + name)].decode())
    return found


def every_symbol() -> set[str]:
    return {library.symbol(getattr(one, "py_func", one)) for one in (*ENTRIES, *ADDRESSED)}


@needs_library  # where there is one the module has been made before
@pytest.mark.slow
def test_an_object_for_another_machine_offers_every_entry_and_nothing_else() -> None:
    import_every_kernel()
    made = translated(bitcode(), "aarch64", "aarch64")
    assert struct.unpack_from("<H", made, 18) == (AARCH64,)
    assert functions(made) == every_symbol()


ADD = """
define double @sum(double %a, double %b, double %c) {
  %product = fmul double %a, %b
  %sum = fadd double %product, %c
  ret double %sum
}
"""


@pytest.mark.parametrize(
    ("machine", "level"), [(one, level) for one in library.LEVELS for level in library.LEVELS[one]]
)
def test_what_is_rounded_twice_is_rounded_twice_on_every_level(machine: str, level: str) -> None:
    """Processors can multiply and add at once, which gives other last digits."""
    module, translator = optimised(bytes(llvm.parse_assembly(ADD).as_bitcode()), machine, level)
    said = translator.emit_assembly(module)
    assert "mul" in said
    assert not any(word in said for word in FUSED)


def test_a_missing_linker_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(KernelError, match=r"no linker for riscv64: found neither .* SLACKTIDE_PURE=1"):
        building.linker_for("riscv64")


@needs_library
def test_what_is_there_is_not_built_again(tmp_path: Path) -> None:
    folder = tmp_path / "library"
    shutil.copytree(library.FOLDER, folder)
    before = {one.name: one.stat().st_mtime_ns for one in folder.iterdir()}
    code = "import runpy, sys; runpy.run_module('slacktide.kernels.ahead_of_time', run_name='__main__')"
    done = run(code, "--out", folder)
    assert done.returncode == 0, done.stderr
    assert {one.name: one.stat().st_mtime_ns for one in folder.iterdir()} == before
    said: dict[str, Any] = json.loads((folder / library.ABOUT).read_text())
    assert set(building.files(said)) == set(before)


@pytest.mark.parametrize("words", [[], ["--here"]], ids=["every level", "here"])
def test_a_processor_for_which_there_is_no_level_is_told_before_any_work(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(sys, "argv", ["ahead_of_time", "--out", str(tmp_path), *words])
    assert program.main() == 1
    assert capsys.readouterr().err.startswith("Error: this processor (riscv64) has no library")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_describe_a_library_is_none(tmp_path: Path) -> None:
    for text in ("", '{"format": 1', "[]", '{"format": 1}'):
        (tmp_path / library.ABOUT).write_text(text)
        assert library.about(tmp_path) is None, text


@needs_library
@pytest.mark.parametrize("change", ["a file is missing", "another linker's tag", "a level is missing"])
def test_what_is_not_whole_is_built_again(change: str, tmp_path: Path) -> None:
    folder = tmp_path / "library"
    shutil.copytree(library.FOLDER, folder)
    said = json.loads((folder / library.ABOUT).read_text())
    machine, levels = said["machine"], said["levels"]
    assert building.built(folder, machine, levels)
    assert building.built(folder, machine, list(levels)[:1]), "one level is among all"
    if change == "a file is missing":
        next(folder.glob("*.so")).unlink()
    elif change == "a level is missing":
        (folder / library.ABOUT).write_text(json.dumps(said | {"levels": {"another": next(iter(levels.values()))}}))
    else:
        (folder / library.ABOUT).write_text(json.dumps(said | {"tag": "another"}))
    assert not building.built(folder, machine, levels)


def wanted_by_the_build(**environment: str) -> set[str]:
    """Names of the packages that a builder gets for a wheel, beside hatchling."""
    ask = "import hatchling.build as build; print(*build.get_requires_for_build_wheel(), sep='\\n')"
    command, variables = [sys.executable, "-c", ask], {**os.environ, **environment}
    said = subprocess.run(command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, check=True)
    return {line.partition(">")[0] for line in said.stdout.split()}


def test_a_wheel_without_a_library_needs_no_compiler() -> None:
    assert wanted_by_the_build(SLACKTIDE_PURE="1") == set()
    assert wanted_by_the_build(SLACKTIDE_PURE="0", SLACKTIDE_PLATFORM="aarch64") == {"numba", "ziglang"}
    assert wanted_by_the_build(SLACKTIDE_PURE="", SLACKTIDE_PLATFORM="riscv64") == set()
