"""What the first run on a machine costs: compiling with an empty cache, beside the same run afterwards.

    python bench/cold_start.py [--repeats 5]

Runs ``slacktide simulate`` on a small generated workload with an empty SLACKTIDE_CACHE and then with the filled
one, and shows what the first one says about compiling (stderr).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import announce, slacktide, table


def process(words: list[str], cache: str) -> tuple[float, float, str]:
    """Wall seconds, seconds that the run itself ascribes to compiling, and its stderr."""
    environment = os.environ | {"SLACKTIDE_CACHE": cache}
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "slacktide", *words, "--json"], env=environment, capture_output=True, check=True
    )
    seconds = time.perf_counter() - begun
    return seconds, json.loads(done.stdout)["compile_seconds"], done.stderr.decode().strip()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    cold, warm, told, said = [], [], [], "nothing"
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "input"
        slacktide("generate", "validation-1", "--out", files)
        words = ["simulate", str(files / "workload.parquet"), str(files / "hosts.parquet"), "--end", "60"]
        for number in range(repeats):
            print(f"cold start {number + 1} of {repeats} ...", file=sys.stderr)
            cache = str(Path(folder) / f"cache-{number}")
            seconds, compiling, text = process(words, cache)
            cold.append(seconds)
            told.append(compiling)
            said = text or said
            warm.append(process(words, cache)[0])
    announce(f", medians of {repeats}:")
    middle = [statistics.median(values) for values in (cold, warm, told)]
    values = [f"{one:.2f}" for one in (*middle[:2], middle[0] - middle[1], middle[2])]
    print(table(["empty cache s", "filled cache s", "difference s", "`compile_seconds`"], [values]))
    print(f"\nOn stderr the first run says: {said!r}")


if __name__ == "__main__":
    main()
