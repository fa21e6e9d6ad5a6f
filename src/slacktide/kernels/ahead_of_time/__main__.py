"""``python -m slacktide.kernels.ahead_of_time``: makes the library of compiled kernels in a folder."""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import sys
from pathlib import Path

from slacktide.errors import SlacktideError
from slacktide.kernels.ahead_of_time.building import build, built
from slacktide.kernels.runtime.library import FOLDER, LEVELS, fitting_levels, processor_flags


def main() -> int:
    """Build, unless it is there already."""
    parser = argparse.ArgumentParser(prog="python -m slacktide.kernels.ahead_of_time", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="of the library; the package's own if not given")
    parser.add_argument("--platform", choices=LEVELS, default=platform.machine(), help="machine that it is for")
    parser.add_argument("--here", action="store_true", help="only for the level of this processor")
    asked = parser.parse_args()
    levels = list(LEVELS.get(asked.platform, ()))
    if asked.here:
        levels = fitting_levels(asked.platform, processor_flags())[:1]
    if not levels:
        sys.stderr.write(f"Error: this processor ({asked.platform}) has no library; Numba compiles the kernels\n")
        return 1
    for name in [one for one in os.environ if one.startswith("NUMBA_")]:
        del os.environ[name]  # a library is the same whatever the environment asks of Numba
    if importlib.util.find_spec("numba") is None:
        sys.stderr.write("Error: Numba, which compiles the kernels, is absent; pip install 'slacktide[plugins]'\n")
        return 1
    try:
        if not built(asked.out, asked.platform, levels):
            build(asked.out, asked.platform, levels)
    except SlacktideError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
