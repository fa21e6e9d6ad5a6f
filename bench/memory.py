"""Where the memory of a run goes: the largest resident memory in each step of ``slacktide simulate --out``.

    python bench/memory.py [--requests 1000000] [--hosts 1000] [--set SECTION.KEY=VALUE ...]
    python bench/memory.py --files WORKLOAD HOSTS [--set ...]

Without files it generates ``light``. The command runs in a process of its own, with its kernels from the library where
there is one. Before each step the kernel is told to forget the peak so far (Linux: /proc/self/clear_refs). The last
line is the peak of the whole process, as ``--json`` says it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import announce, options, slacktide, table, warm

STEPS = {
    "reading of the workload": ("slacktide.inputs", "read_workload"),
    "arrays for the run": ("slacktide.sim.pausable", "prepare"),
    "the run": ("slacktide.sim.pausable", "drive"),
    "its columns": ("slacktide.sim.pausable", "result_of"),
    "hashes of files": ("slacktide.results", "file_hashes"),
    "writing of requests.parquet": ("slacktide.experiment.run_folder", "_write_tables"),
    "availability per class": ("slacktide.metrics", "per_class"),
    "availability over all": ("slacktide.metrics", "over_all"),
}
"""Functions that are a step, where those who call them look them up."""
END = "the end"


def resident() -> tuple[float, float]:
    """Memory of this process now and its largest so far since the last :func:`forget`, MB."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    now, peak = (int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, peak


def forget() -> None:
    """Begin a new peak."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Watch:
    """Notes each step: its largest memory, and what is left behind it."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self.most = 0.0

    def between(self, name: str) -> None:
        """End what stands between two steps, too."""
        now, peak = resident()
        self.most = max(self.most, peak)
        self.rows.append([name, peak, now])
        forget()

    def watched(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """``call`` as a step of this name."""

        def step(*given: Any, **named: Any) -> Any:
            self.between(f"before {name}")
            try:
                return call(*given, **named)
            finally:
                self.between(name)

        return step


def inside(words: list[str]) -> None:
    """Run the command in this process and print what was noted, as JSON."""
    from slacktide.cli import main as command

    watch = Watch()
    for name, (module, function) in STEPS.items():
        there = importlib.import_module(module)
        setattr(there, function, watch.watched(name, getattr(there, function)))
    with contextlib.redirect_stdout(io.StringIO()):
        code = command(words)
    if code:
        sys.exit(code)
    watch.between(END)
    print(json.dumps({"rows": watch.rows, "most": watch.most}))


def measured(workload: Path, hosts: Path, words: list[str]) -> list[list[str]]:
    """Lines of the table."""
    with tempfile.TemporaryDirectory() as folder:
        named = ["simulate", str(workload), str(hosts), "--out", str(Path(folder) / "out"), *words]
        done = subprocess.run([sys.executable, __file__, "--inside", *named], stdout=subprocess.PIPE, check=True)
        _, text = slacktide(*named, "--json")
    found = json.loads(done.stdout)
    lines = [[name, f"{peak:.0f}", f"{left:.0f}"] for name, peak, left in found["rows"] if name in (*STEPS, END)]
    return [*lines, ["the command", f"{json.loads(text)['peak_rss_mb']:.0f}", ""]]


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2:])
        return
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--files", type=Path, nargs=2, metavar=("WORKLOAD", "HOSTS"))
    parser.add_argument("--set", dest="words", action="append", default=[], metavar="SECTION.KEY=VALUE")
    arguments = parser.parse_args()
    words = [word for one in arguments.words for word in ("--set", one)]
    announce(":")
    with tempfile.TemporaryDirectory() as folder:
        files = arguments.files
        if files is None:
            made = Path(folder) / "light"
            sizes = {"hosts": arguments.hosts, "requests": arguments.requests}
            sets = [word for name, value in sizes.items() for word in ("--set", f"{name}={value}")]
            slacktide("generate", "light", "--out", made, *sets)
            files = (made / "workload.parquet", made / "hosts.parquet")
        warm(*files)
        print(table(("step", "MB at most", "MB after it"), measured(*files, words)))


if __name__ == "__main__":
    main()
