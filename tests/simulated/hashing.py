"""Sets of texts have another order in each process, unless Python is told which."""

from __future__ import annotations

import os
import sys


def settle() -> None:
    """Begin this program anew where that is not settled yet."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
