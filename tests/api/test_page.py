"""docs/python.md: its examples run and print what they show, its reference is that of the code, and imports are few."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import slacktide as st
from slacktide import errors
from support import api_reference as made

TEXT = made.PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
HEAVY = ("numpy", "pyarrow", "polars", "pandas", "matplotlib", "tqdm", "numba", "slacktide.api", "slacktide.reporting")


@pytest.mark.slow
def test_the_examples_run_in_their_order_and_print_what_they_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "the_page"}
    assert len(BLOCKS) >= 8
    for number, block in enumerate(BLOCKS):
        if ">>>" not in block:
            exec(compile(block, f"block {number} of {made.PAGE.name}", "exec"), names)
            continue
        test = doctest.DocTestParser().get_doctest(block, names, f"block {number}", made.PAGE.name, None)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        told: list[str] = []
        runner.run(test, out=told.append, clear_globs=False)
        names.update(test.globs)
        assert not told, "".join(told)


def test_the_reference_is_that_of_the_code() -> None:
    assert made.written(TEXT) == TEXT, "write it anew: python tests/support/api_reference.py"


def test_public_names_are_those_of_the_page() -> None:
    kinds = {name for name in st.__all__ if inspect.isclass(getattr(st, name)) and name.endswith(("Error", "Warning"))}
    assert set(st.__all__) == {*made.FUNCTIONS, *made.CLASSES, *kinds, "__version__"}
    for name in kinds:
        assert getattr(st, name) is getattr(errors, name)
        assert f"`st.{name}`" in TEXT
    stub = (Path(st.__file__).with_suffix(".pyi")).read_text(encoding="utf-8")
    assert sorted(re.findall(r"as (\w+)$", stub, re.MULTILINE)) == sorted(set(st.__all__) - {"__version__"})
    assert set(st.__all__) <= set(dir(st))
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        st.simulat  # type: ignore[attr-defined]  # noqa: B018


def test_importing_it_imports_nothing_that_takes_time() -> None:
    program = f"import sys, slacktide\nassert not [one for one in {HEAVY!r} if one in sys.modules]\n"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)


def test_help_of_the_command_line_imports_click_and_nothing_of_the_core() -> None:
    """That is what it takes its time for."""
    program = (
        "import runpy, sys\n"
        "before = set(sys.modules)\n"
        "sys.argv = ['slacktide', '--help']\n"
        "try:\n    runpy.run_module('slacktide', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print(*set(sys.modules) - before, sep='\\n', file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=100)
    assert "Usage: slacktide" in done.stdout
    loaded = done.stderr.split()
    others = {one.partition(".")[0] for one in loaded} - sys.stdlib_module_names
    assert others == {"click", "slacktide"}
    ours = {one.split(".")[1] for one in loaded if one.startswith("slacktide.")}
    assert ours == {"cli", "errors"}
