"""The notebooks of docs/ as pages, with what their cells give.

``python website/notebooks.py`` runs them from their first cell to their last, into build/notebooks (about a minute).
In the repository they are without outputs. A site that is built without a run, or after a notebook was edited, shows
them so, too.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

REPOSITORY = Path(__file__).parents[1]
SOURCES = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))
RAN = REPOSITORY / "build" / "notebooks"


def run(source: Path, folder: Path) -> Path:
    """The notebook with its outputs, as a file in ``folder``."""
    book = read(source)
    with tempfile.TemporaryDirectory() as place:
        NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": place}}).execute()
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, folder / source.name)
    return folder / source.name


def page(source: Path, folder: Path = RAN) -> str:
    """A notebook as Markdown, with the outputs of the last run where that was of these very cells."""
    book = read(source)
    kept = folder / source.name
    if kept.exists() and texts(ran := read(kept)) == texts(book):
        book = ran
    first, *rest = (part for cell in book.cells for part in parts(cell))
    title, _, below = first.partition("\n")
    return "\n\n".join([title, f"(As a [file for Jupyter]({source.name}).)", below.strip(), *rest]) + "\n"


def read(path: Path) -> Any:
    """A notebook."""
    return nbformat.read(path, 4)


def texts(book: Any) -> list[str]:
    """What somebody has written into its cells."""
    return [cell.source for cell in book.cells]


def parts(cell: Any) -> Iterator[str]:
    """A cell: its text, or its code and what that gave."""
    if cell.cell_type != "code":
        yield re.sub(r"\]\(([\w-]+)\.ipynb\)", r"](\1.md)", cell.source)
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.get("outputs", ()):
        if output.output_type == "stream" and output.name == "stdout":
            yield f"```text\n{output.text.rstrip()}\n```"
        elif "data" in output:
            yield shown(output.data)


def shown(data: Any) -> str:
    """The best form of an output that a page can have."""
    if "image/png" in data:
        return f'<img alt="What the cell above draws" src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    if "text/html" in data:
        lines = (line.strip() for line in data["text/html"].splitlines())
        return f'<div class="output">{"".join(line for line in lines if line)}</div>'
    return f"```text\n{data['text/plain'].rstrip()}\n```"


if __name__ == "__main__":
    for one in SOURCES:
        print(f"{one.relative_to(REPOSITORY)} ...", file=sys.stderr)
        run(one, RAN)
