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
from slacktide.kernels.runtime.library import FOLDER, LEVELS


def main() -> int:
    """Build, unless it is there already."""
    parser = argparse.ArgumentParser(prog="python -m slacktide.kernels.ahead_of_time", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="of the library; the package's own if not given")
    parser.add_argument("--platform", choices=LEVELS, default=platform.machine(), help="machine that it is for")
    asked = parser.parse_args()
    for name in [one for one in os.environ if one.startswith("NUMBA_")]:
        del os.environ[name]  # a library is the same whatever the environment asks of Numba
    if importlib.util.find_spec("numba") is None:
        sys.stderr.write("Error: Numba, which compiles the kernels, is absent; pip install 'slacktide[plugins]'\n")
        return 1
    try:
        if not built(asked.out, asked.platform):
            build(asked.out, asked.platform)
    except SlacktideError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
