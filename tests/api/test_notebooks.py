"""The notebooks run from their first cell to their last, and leave the figure that they promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from support.repository import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
MM = 72 / 25.4
"""Points, of which a PDF counts 72 an inch."""


def outputs(book: Any, kind: str) -> list[Any]:
    return [one["data"][kind] for cell in book.cells for one in cell.get("outputs", ()) if kind in one.get("data", {})]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    book = nbformat.read(path, 4)  # type: ignore[no-untyped-call]
    nbformat.validate(book)
    assert not any(cell.get("outputs") for cell in book.cells), "outputs are not kept: clear them"
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert len(outputs(book, "text/html")) >= 2  # frames
    assert outputs(book, "image/png")
    if path.stem.startswith("which-policy"):
        pdf = (tmp_path / "which-policy.pdf").read_bytes()
        box = pdf.partition(b"/MediaBox [")[2].partition(b"]")[0].split()
        assert float(box[2]) == pytest.approx(85 * MM, abs=0.5)


@pytest.mark.slow
def test_the_tour_is_typed(tmp_path: Path) -> None:
    book = nbformat.read(NOTEBOOKS[0], 4)  # type: ignore[no-untyped-call]
    program = tmp_path / "tour.py"
    program.write_text("\n\n".join(cell.source for cell in book.cells if cell.cell_type == "code") + "\n")
    words = [sys.executable, "-m", "mypy", "--strict", str(program)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_are_there() -> None:
    names = ["a-tour-of-the-api", "which-policy-keeps-which-promise", "your-own-policy"]
    assert [one.stem for one in NOTEBOOKS] == names
