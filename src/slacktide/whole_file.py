"""Files that are there whole, or as they were: written beside their place, and then renamed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from slacktide.errors import OutputError

PART = ".part"
"""Ends the name of a file that is not whole yet; it begins with a dot."""


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A name beside ``path``; what is written under it takes the place of ``path`` when the block ends well.

    Raises :class:`OutputError` for what the file system refuses, also within the block.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        yield aside
        os.replace(aside, path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """The whole content of a file. Raises :class:`OutputError`."""
    with whole_file(path) as aside, aside.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
