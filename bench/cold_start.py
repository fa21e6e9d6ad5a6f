"""What the first run on a machine costs: compiling with an empty cache, beside the same run afterwards.

    python bench/cold_start.py [--repeats 5] [--plain]

Runs ``slacktide simulate`` on a small generated workload with an empty SLACKTIDE_CACHE and then with the filled
one, and shows what the first one says about compiling (stderr). With --plain once more where Numba's usual pipeline
compiles the kernels, as it does with a version of Numba that we do not know.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import announce, slacktide, table

PROGRAM = "import runpy; runpy.run_module('slacktide', run_name='__main__')"
PLAIN = "from slacktide.kernels.runtime import linking; linking.pipeline = lambda: None; "


def process(words: list[str], cache: str, before: str) -> tuple[float, float, float, str]:
    """Wall and processor seconds, seconds that the run itself ascribes to compiling, and its stderr."""
    environment = os.environ | {"SLACKTIDE_CACHE": cache}
    begun, used = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM, *words, "--json"], env=environment, capture_output=True, check=True
    )
    seconds, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime - used.ru_utime + after.ru_stime - used.ru_stime
    return seconds, processor, json.loads(done.stdout)["compile_seconds"], done.stderr.decode().strip()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="also with Numba's usual pipeline")
    arguments = parser.parse_args()
    repeats, said, rows = arguments.repeats, "nothing", []
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "input"
        slacktide("generate", "validation-1", "--out", files)
        words = ["simulate", str(files / "workload.parquet"), str(files / "hosts.parquet"), "--end", "60"]
        for name, before in {"our own": "", "Numba's usual": PLAIN}.items():
            if before and not arguments.plain:
                continue
            found = []
            for number in range(repeats):
                print(f"cold start {number + 1} of {repeats}, {name} ...", file=sys.stderr)
                cache = str(Path(folder) / f"cache-{len(rows)}-{number}")
                seconds, processor, compiling, text = process(words, cache, before)
                said = text or said
                found.append((seconds, process(words, cache, before)[0], processor, compiling))
            cold, warm, processor, compiling = (statistics.median(column) for column in zip(*found, strict=True))
            rows.append([name, *(f"{one:.2f}" for one in (cold, warm, cold - warm, processor, compiling))])
    announce(f", medians of {repeats}:")
    head = ["pipeline", "empty cache s", "filled cache s", "difference s", "processor s, empty cache"]
    print(table([*head, "`compile_seconds`"], rows))
    print(f"\nOn stderr the first run says: {said!r}")


if __name__ == "__main__":
    main()
