"""Which labs of a user are there, wherever their directories are: a file with a directory a line."""

from __future__ import annotations

from pathlib import Path

from slacktide.lab import state
from slacktide.lab.kubeconfig import write_private
from slacktide.lab.locking import locked


def remember(file: Path, directory: Path) -> None:
    """A lab was started in ``directory``; those that are no more are forgotten.

    Raises:
        LabError: if the file cannot be written.
    """
    with locked(file.with_suffix(".lock")):
        others = [one for one in known(file) if one != directory]
        write_private(file, "".join(f"{one}\n" for one in [*others, directory]))


def known(file: Path) -> list[Path]:
    """Directories of labs that were started and not ended, the latest last."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    return [Path(line) for line in lines if line and (Path(line) / state.FILE).exists()]
