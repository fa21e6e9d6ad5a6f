"""``python -m slacktide.kernels.ahead_of_time``: makes the library in a folder; ``kernels.json`` is written last."""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

from slacktide.errors import SlacktideError
from slacktide.kernels.runtime import mode
from slacktide.kernels.runtime.library import ABOUT, FOLDER, FORMAT, LEVELS, about, file_of
from slacktide.kernels.runtime.sources import fingerprint


def built(folder: Path, machine: str) -> bool:
    """Whether the folder has a library for this machine, made from these sources."""
    said = about(folder)
    wanted = {"format": FORMAT, "fingerprint": fingerprint(), "machine": machine}
    return said is not None and wanted.items() <= said.items()


def build(folder: Path, machine: str) -> None:
    """Make the library of all levels of a machine. Raises :class:`SlacktideError`."""
    from slacktide.kernels.ahead_of_time.linking import link, linker_for

    linker = linker_for(machine)  # before the work that would be for nothing without one
    mode.choose(mode.Mode.BUILD)

    from slacktide.kernels.ahead_of_time.lowering import lowered
    from slacktide.kernels.ahead_of_time.translating import closed, translated
    from slacktide.kernels.runtime.jit import COMPILER

    module, names = lowered()
    closed(module, names)
    bitcode = module.as_bitcode()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ABOUT).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        for level in LEVELS[machine]:
            made = Path(scratch, "kernels.o")
            made.write_bytes(translated(bitcode, machine, level))
            library = Path(scratch, file_of(level))
            link(linker, made, library)
            library.replace(folder / library.name)  # not written to in place: a process may have it loaded
    said = {
        "format": FORMAT,
        "fingerprint": fingerprint(),
        "system": "Linux",
        "machine": machine,
        "levels": list(LEVELS[machine]),
        "tag": linker.tag,
        "compiler": COMPILER,
    }
    (folder / ABOUT).write_text(json.dumps(said, indent=1) + "\n")


def main() -> int:
    """Build, unless it is there already."""
    parser = argparse.ArgumentParser(prog="python -m slacktide.kernels.ahead_of_time", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="of the library; the package's own if not given")
    parser.add_argument("--platform", choices=LEVELS, default=platform.machine(), help="machine that it is for")
    asked = parser.parse_args()
    if built(asked.out, asked.platform):
        return 0
    try:
        build(asked.out, asked.platform)
    except SlacktideError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
