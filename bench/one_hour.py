"""The published one-hour sample under four settings: whole processes, from their start to their last line.

    python bench/one_hour.py [--repeats 5] [--end 3600]

Prints a table per file: wall seconds of ``slacktide simulate`` (start of Python, reading and summary included;
median, kernels compiled before), processor seconds (which a busy machine changes less), operations in the sense
of Farias's thesis and looks at bounds, in millions, largest memory of all repetitions, and preemptions. Needs the
published inputs.
"""

from __future__ import annotations

from pathlib import Path

from measuring import (
    ALPHA,
    HOUR,
    announce,
    each,
    millions,
    one_hour_files,
    overheads,
    parsed,
    table,
    timed,
    warm,
)

SETTINGS = {
    "published, `better`": ["--preset", "published"],
    "published, `needed`": ["--preset", "published", "--set", "policy.preempt_when=needed"],
    "published-tuned": ["--preset", "published-tuned"],
    "recommended": [],
    "priority": ["--policy", "priority"],
}
HEAD = ("settings", "wall s", "processor s", "operations M", "bound checks M", "MB", "preemptions")


def row(name: str, words: list[str], files: tuple[Path, Path], repeats: int, end: float) -> list[str]:
    """One line of the table."""
    starts = overheads()
    common = ["--hot", starts["startup.hot"], "--cold", starts["startup.cold"], "--set", f"qos.alpha={ALPHA}"]
    seconds, found = timed(repeats, "simulate", *files, *common, "--end", f"{end:g}", *words)
    counts = [millions(found["operations"]), millions(found["bound_checks"]), f"{found['peak_rss_mb']:.0f}"]
    return [name, f"{seconds:.2f}", f"{found['cpu_seconds']:.2f}", *counts, f"{found['preemptions']:,}"]


def main() -> None:
    """Print both tables."""
    asked = parsed(__doc__, repeats=5, end=HOUR)
    repeats = asked.repeats
    warm(*one_hour_files("higher"))
    announce(f", medians of {repeats}:")
    for which in ("higher", "lower"):
        files = one_hour_files(which)
        print(f"{which} contention\n")

        def line(name: str, words: list[str], files: tuple[Path, Path] = files) -> list[str]:
            return row(name, words, files, repeats, asked.end)

        print(table(HEAD, each(SETTINGS, line)), "\n", flush=True)


if __name__ == "__main__":
    main()
