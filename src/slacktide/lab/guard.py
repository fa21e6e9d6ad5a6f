"""``python -m slacktide.lab.guard DIRECTORY``: ends a lab when whoever started it is gone, even by SIGKILL.

It waits for the end of its standard input, whose other end the starting process holds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from slacktide.lab.control_plane import ControlPlane
from slacktide.lab.errors import LabError


def main() -> int:
    """Waits, then kills what still runs in the directory."""
    sys.stdin.buffer.read()
    try:
        ControlPlane.attach(Path(sys.argv[1])).kill()
    except LabError:
        return 0  # ended in order before
    return 0


if __name__ == "__main__":
    sys.exit(main())
