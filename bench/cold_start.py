"""What the first run on a machine costs: with the library of compiled kernels, and where Numba compiles them.

    python bench/cold_start.py [--repeats 5] [--plain] [--library-only] [--larger 200000]

Runs ``slacktide simulate`` on a small generated workload as a process of its own: with the library of these sources
(``make library``, or an installed wheel), and with SLACKTIDE_JIT=1, once with an empty SLACKTIDE_CACHE and then with
the filled one. With --plain once more where Numba's usual pipeline compiles the kernels, as it does with a version of
Numba that we do not know. Then two runs of a larger workload in this process, one after the other and in two threads
at once.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from measuring import announce, options, process, settings, slacktide, table

from slacktide.inputs.generators.registry import generated
from slacktide.kernels.runtime import library
from slacktide.kernels.runtime.compiling import described
from slacktide.sim import run

PROGRAM = "import runpy; runpy.run_module('slacktide', run_name='__main__')"
PLAIN = "from slacktide.kernels.runtime import linking; linking.pipeline = lambda: None; "
HEAD = ("kernels", "wall s", "processor s", "MB at most", "`compile_seconds`")
LARGER = 200_000

Costs = tuple[float, float, float, float]


def measured(words: list[str], before: str = "", **chosen: str) -> tuple[Costs, str]:
    """Wall and processor seconds, largest memory, seconds that the run ascribes to compiling; and its stderr."""
    done = process("-c", before + PROGRAM, *words, "--json", **chosen)
    found = json.loads(done.printed)
    return (done.seconds, done.processor, found["peak_rss_mb"], found["compile_seconds"]), done.said.strip()


def line(name: str, found: list[Costs]) -> list[str]:
    """Medians, and the largest memory."""
    wall, processor, memory, compiling = zip(*found, strict=True)
    middle = statistics.median
    return [name, f"{middle(wall):.2f}", f"{middle(processor):.2f}", f"{max(memory):.0f}", f"{middle(compiling):.2f}"]


def small_runs(repeats: int, ways: dict[str, str]) -> None:
    """The table of small runs."""
    rows, said = [], "nothing"
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "input"
        slacktide("generate", "validation-1", "--out", files)
        words = ["simulate", str(files / "workload.parquet"), str(files / "hosts.parquet"), "--end", "60"]
        if library.obstacle():
            print(f"without a library: {library.obstacle()}", file=sys.stderr)
        else:
            rows.append(line("library", [measured(words, SLACKTIDE_JIT="0")[0] for _ in range(repeats)]))
        for name, before in ways.items():
            empty, filled = [], []
            for number in range(repeats):
                print(f"{name}, {number + 1} of {repeats} ...", file=sys.stderr)
                cache = str(Path(folder) / f"cache-{len(rows)}-{number}")
                costs, text = measured(words, before, SLACKTIDE_JIT="1", SLACKTIDE_CACHE=cache)
                said = text or said
                empty.append(costs)
                filled.append(process(words, before, SLACKTIDE_JIT="1", SLACKTIDE_CACHE=cache)[0])
            rows += [line(f"{name}, empty cache", empty), line(f"{name}, filled cache", filled)]
    print(table(HEAD, rows))
    print(f"\nOn stderr the run with an empty cache says: {said!r}\n" if ways else "")


def seconds_of(work: Callable[[], None]) -> float:
    """Wall seconds."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def two_threads(repeats: int, larger: int) -> None:
    """Wall seconds of two runs, one after the other and at once."""
    workload, hosts = generated("light", {"requests": larger})
    config = settings("recommended", {})

    def once() -> None:
        run(workload, hosts, config)

    def in_turn() -> None:
        once()
        once()

    def at_once() -> None:
        threads = [threading.Thread(target=once) for _ in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    once()  # nothing is left to load or compile
    found = [(seconds_of(in_turn), seconds_of(at_once)) for _ in range(repeats)]
    turn, together = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"Two runs of {larger:,} requests ({described()}): {turn:.2f} s in turn, {together:.2f} s in two threads.")


def main() -> None:
    """Print both."""
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="also with Numba's usual pipeline")
    parser.add_argument("--library-only", action="store_true", help="compile nothing here, which takes minutes")
    parser.add_argument("--larger", type=int, default=LARGER, help=f"requests of the larger workload ({LARGER:,})")
    arguments = parser.parse_args()
    ways = {"compiled here": "", "compiled here, Numba's usual way": PLAIN}
    kept = 0 if arguments.library_only else 2 if arguments.plain else 1
    announce(f", medians of {arguments.repeats}:")
    small_runs(arguments.repeats, dict(list(ways.items())[:kept]))
    two_threads(arguments.repeats, arguments.larger)


if __name__ == "__main__":
    main()
