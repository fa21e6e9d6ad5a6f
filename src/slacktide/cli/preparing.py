"""What the commands under ``slacktide trace`` share."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from slacktide.cli.options import FILE, plain
from slacktide.cli.progress import Bar

if TYPE_CHECKING:
    from slacktide.model import Hosts, Workload

SEED = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), metavar="N", help="Equal seeds give equal files."
)
CONFIG = click.option("--config", "config_file", type=FILE, help="A settings file, for its classes.")
OUT_FILE = click.option("--out", type=FILE, required=True, help="The file to write, .parquet or .csv.")


class Parts(Bar):
    """Progress of something done step by step, with the time that each step has taken."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, clock, ticking=True)
        self._what = ""

    def tell(self, what: str, part: float = 0.0) -> None:
        """Shows what is being done and which part (0 to 1) of it is; 0: nobody knows."""
        if self.wanted:
            self.show(what, min(part, 1.0) or None, anew=what != self._what)
            self._what = what


def needs(*modules: str) -> None:
    """Raises :class:`ConfigError` where one of the libraries that come with ``experiments`` is missing."""
    from slacktide.errors import ConfigError

    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"{module} is not installed: this command needs pip install 'slacktide[experiments]'")


def numbers(option: str, text: str) -> list[float]:
    """Numbers with commas between them, each once."""
    found = []
    for piece in text.split(","):
        try:
            found.append(float(piece))
        except ValueError:
            raise click.UsageError(f"{option}: found {piece.strip()!r}, expected numbers such as 1,0.9,0.8") from None
    return list(dict.fromkeys(found))


def check_file(out: Path) -> Path:
    """``out``, where a workload may be written; found out before hours of work. Raises :class:`OutputError`."""
    from slacktide.errors import OutputError

    if out.suffix.lower() not in (".csv", ".parquet"):
        raise OutputError(f"{out}: expected a name ending in .csv or .parquet")
    if out.is_dir():
        raise OutputError(f"{out}: a directory; expected a file")
    above = next(one for one in out.absolute().parents if one.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise OutputError(f"{out}: no permission to create it in {above}")
    return out


def read(workload: Path, hosts: Path, config_file: Path | None, progress: Parts) -> tuple[Workload, Hosts]:
    """Both files, with the classes of a settings file, and with the same resources."""
    from slacktide.inputs import align, read_hosts

    machines = read_hosts(hosts)  # first, as the smaller one, lest a mistake in it be found late
    requests = read_requests(workload, config_file, progress)
    return align(requests, machines, workload_file=str(workload), hosts_file=str(hosts))


def read_requests(workload: Path, config_file: Path | None, progress: Parts) -> Workload:
    """A workload, with the classes of a settings file."""
    from slacktide import settings
    from slacktide.inputs import read_workload

    progress.tell(f"reading {workload.name}")
    return read_workload(workload, classes=settings.load(config_file).classes)


def about(
    path: Path, command: str, settings: Mapping[str, Any], inputs: Mapping[str, str], outcome: Mapping[str, Any]
) -> None:
    """Writes what was done, and to what, as JSON; no clock and no place, so that equal commands leave equal files."""
    from slacktide import __version__

    text = json.dumps(
        {
            "format": "slacktide-input",
            "slacktide": __version__,
            "command": ["slacktide", *sys.argv[1:]],
            "trace": command,
            "settings": plain(settings),
            "inputs": dict(inputs),
            "outcome": plain(outcome),
        },
        indent=2,
        allow_nan=False,
    )
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.write_text(text + "\n", encoding="utf-8")
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write(
    made: Workload,
    out: Path,
    command: str,
    settings: Mapping[str, Any],
    files: list[Path],
    outcome: Mapping[str, Any],
    progress: Parts,
) -> None:
    """Writes a workload, and beside it what was done as ``NAME.manifest.json``."""
    from slacktide.errors import OutputError
    from slacktide.inputs import write_workload
    from slacktide.results import file_hashes

    progress.tell(f"writing {out.name}")
    hashes = file_hashes(files)  # before the file is written, which may be one of them
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_workload(made, out)
        about(out.with_name(f"{out.name}.manifest.json"), command, settings, hashes, outcome)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}") from error


def requests_of(workload: Workload) -> int:
    """How many requests a workload has."""
    return len(workload) if workload.requests is None else len(workload.requests)
