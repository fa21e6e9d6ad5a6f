"""What the commands under ``slacktide trace`` share."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from slacktide.cli.options import FILE, plain
from slacktide.cli.progress import Bar

if TYPE_CHECKING:
    from slacktide.model import Workload

SEED = click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0), metavar="N", help="Equal seeds give equal files."
)
CONFIG = click.option("--config", "config_file", type=FILE, help="A settings file, for its classes.")
OUT_FILE = click.option("--out", type=FILE, required=True, help="The file to write, .parquet or .csv.")


class Parts(Bar):
    """Progress of something done step by step, with the time that each step has taken."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream, clock, ticking=True)


def needs(*modules: str) -> None:
    """Raises :class:`ConfigError` where one of the libraries that come with ``experiments`` is missing."""
    from slacktide.errors import ConfigError

    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise ConfigError(f"{module} is not installed: this command needs pip install 'slacktide[experiments]'")


def numbers(option: str, text: str) -> list[float]:
    """Shares with commas between them, each once."""
    from slacktide.model.durations import parse_share

    found = []
    for piece in text.split(","):
        try:
            found.append(parse_share(piece))
        except ValueError:
            raise click.UsageError(
                f"{option}: found {piece.strip()!r}, expected shares such as 1,0.9,0.8 or 100%,90%"
            ) from None
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


def about(
    path: Path, command: str, settings: Mapping[str, Any], inputs: Mapping[str, str], outcome: Mapping[str, Any]
) -> None:
    """Writes what was done, and to what, as JSON; no clock and no place, so that equal commands leave equal files."""
    from slacktide import __version__
    from slacktide.whole_file import write_whole

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
    write_whole(path, text + "\n")


@dataclass(frozen=True, slots=True)
class Given:
    """A workload that a command is given: how many requests it has, and its pieces in order of admission."""

    requests: int
    pieces: Iterator[Workload]


def given(
    workload: Path, config_file: Path | None, progress: Parts, step: str, reading: str, columns: str | None = None
) -> Given:
    """A workload, with the classes of a settings file, to be read piece by piece, which ``progress`` calls ``reading``.

    Where it must be read whole it is one piece, of which ``step`` is done next; the user is told why. A table with
    ``columns`` of its own is read whole.
    """
    from slacktide import settings
    from slacktide.inputs import pieces, read_workload
    from slacktide.inputs.mapped.reading import Table

    classes = settings.load(config_file).classes
    if columns is not None:
        table = Table(workload, columns)
        for line in table.describe():
            progress.announce(line)
        progress.tell(f"reading {workload.name}")
        mapped = table.read(classes)
        for line in mapped.notes:
            progress.announce(line)
        progress.tell(step)
        return Given(requests_of(mapped.workload), iter([mapped.workload]))
    try:
        found = pieces.in_pieces(
            workload, classes, lambda part: progress.tell(f"looking through {workload.name}", part)
        )
        return Given(found.rows, found.read(lambda part: progress.tell(reading, part)))
    except pieces.NotInPiecesError as why:
        if str(why):
            progress.announce(f"{workload}: is held in memory whole: {why}")
    progress.tell(f"reading {workload.name}")
    whole = read_workload(workload, classes=classes)
    progress.tell(step)
    return Given(requests_of(whole), iter([whole]))


def tell_manifest(path: Path) -> None:
    """What was done and what came of it, for ``--json``: the file that says so beside what was written."""
    click.echo(path.read_text(encoding="utf-8"), nl=False)


def write(
    made: Iterable[Workload],
    out: Path,
    command: str,
    settings: Mapping[str, Any],
    files: list[Path],
    outcome: Callable[[], Mapping[str, Any]],
    progress: Parts,
) -> Path:
    """Writes a workload that comes in pieces, and beside it as ``NAME.manifest.json``, whose path it returns, what was
    done with which files, and what came of it: ``outcome`` is asked once the workload has been written."""
    from slacktide.errors import OutputError
    from slacktide.inputs import write_pieces, write_workload
    from slacktide.results import file_hashes

    manifest, rest = out.with_name(f"{out.name}.manifest.json"), iter(made)
    first, second = next(rest), next(rest, None)  # before anything is written: what cannot be made is known by now
    progress.tell(f"writing {out.name}")
    hashes = file_hashes(files)  # before the file is written, which may be one of them
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if second is None:
            write_workload(first, out)  # also of requests of several instances
        else:
            write_pieces(chain([first, second], rest), out)
        about(manifest, command, settings, hashes, outcome())
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error.strerror or error}") from error
    return manifest


class Counted:
    """Pieces on their way, and how many requests they had."""

    def __init__(self, pieces: Iterable[Workload]) -> None:
        self._pieces, self.requests = pieces, 0

    def __iter__(self) -> Iterator[Workload]:
        for piece in self._pieces:
            self.requests += requests_of(piece)
            yield piece


def requests_of(workload: Workload) -> int:
    """How many requests a workload has."""
    return len(workload) if workload.requests is None else len(workload.requests)
