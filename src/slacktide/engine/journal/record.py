"""A record of all that was told to an engine and of what it decided, in files that can be replayed.

A directory holds one *session* for each start of a scheduler: its settings and index in
``session-0001.json``, and its operations in parts ``0001-000001.jsonl``, one after the
other; all but the last are compressed (``.jsonl.gz``). docs/record.md describes the format.
"""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from slacktide import __version__, settings
from slacktide.config import Config
from slacktide.engine.core.operations import Begin, Decided, Operation, Run
from slacktide.engine.journal import codec
from slacktide.errors import InputError, OutputError, Problem

LOG = logging.getLogger(__name__)

FORMAT = "slacktide-record"
ROTATE_AT = 64_000_000
"""Bytes of a part, before it is compressed, at which the next one begins."""
BUFFER = 64_000
"""Bytes that are written at once, should no pass come first."""
SECTIONS = (
    "version",
    "policy",
    "qos",
    "delay",
    "scheduler",
    "startup",
    "failures",
    "simulation",
    "optimize",
    "classes",
)
"""Settings that an engine and a simulation depend on; the others are not recorded."""

_PART = re.compile(r"(\d{4,})-(\d{6,})\.jsonl(\.gz)?")
_SESSION = re.compile(r"session-(\d{4,})\.json")


class Recorder:
    """Writes what an engine is told: ``Engine(config, journal=Recorder(directory, config))``.

    What was told up to a pass is with the operating system when the pass's decisions are
    returned, so it survives ``kill -9``; it is not forced to the disk. When it cannot be
    written any more, ``failed`` says so once, and recording ends: nobody's pods wait for that.
    Raises :class:`OutputError` where a session cannot be begun.
    """

    def __init__(self, directory: Path | str, config: Config, rotate_at: int = ROTATE_AT) -> None:
        self.directory = Path(directory)
        self.rotate_at = rotate_at
        self.failed: OutputError | None = None
        self._config = config
        self._buffer = bytearray()
        self._parts: list[dict[str, Any]] = []
        self._compressing: list[threading.Thread] = []
        self._file = -1
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._begin_session()
        except OSError as error:
            raise OutputError(f"{self.directory}: cannot be written: {error}") from error

    def _begin_session(self) -> None:
        self._parts = []
        self.session = _claim_session(self.directory, self._manifest())
        self._begin_part()

    def __call__(self, operation: Operation) -> None:
        """Record an operation; a journal of an engine."""
        if self.failed is not None:
            return
        if type(operation) is Begin and self._parts[-1]["operations"] + len(self._parts) > 1:
            self._begin_again()
        try:
            self._buffer += codec.encode(operation)
        except (NotImplementedError, TypeError, ValueError) as error:  # ours to mend, and nobody's pods wait for that
            self._write()
            self._fail(error)
            return
        part = self._parts[-1]
        if type(operation) is Decided:
            part["passes"] += 1
            part["decisions"] += len(operation.outcome.decisions)
            self._write()
            return
        part["operations"] += 1
        if type(operation) is Run:
            part["first_time"] = part["first_time"] or operation.now
            part["last_time"] = operation.now
        if len(self._buffer) > BUFFER:
            self._write()

    def _begin_again(self) -> None:
        """Another engine: the session of the one before is over."""
        self._write()
        try:
            self._write_manifest()
            os.close(self._file)
            self._begin_session()
        except OSError as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.failed = OutputError(f"{self.directory}: recording ends, it cannot be written: {error}")
        LOG.error("%s", self.failed)

    def _write(self) -> None:
        part = self._parts[-1]
        try:
            rest = memoryview(bytes(self._buffer))
            while rest:
                rest = rest[os.write(self._file, rest) :]
            part["bytes"] += len(self._buffer)
            self._buffer.clear()
            if part["bytes"] >= self.rotate_at:
                self._rotate()
        except OSError as error:
            self._fail(error)

    def _rotate(self) -> None:
        os.close(self._file)
        self._compressing = [one for one in self._compressing if one.is_alive()]
        full = self.directory / self._parts[-1]["file"]
        self._begin_part()
        # Compressing takes longer than a pass may; it is done by a thread that lets others run.
        thread = threading.Thread(target=_compress, args=(full,), name="compress-record", daemon=True)
        thread.start()
        self._compressing.append(thread)

    def _begin_part(self) -> None:
        number = len(self._parts) + 1
        name = f"{self.session:04d}-{number:06d}.jsonl"
        head = {"format": FORMAT, "version": codec.VERSION, "session": self.session, "part": number}
        line = json.dumps(head).encode() + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(self.directory / name, flags, 0o640)
        os.write(self._file, line)
        self._parts.append(
            {"file": name, "operations": 0, "passes": 0, "decisions": 0, "first_time": None, "last_time": None}
            | {"bytes": len(line)}
        )
        self._write_manifest()

    def _write_manifest(self) -> None:
        _replace(self.directory / f"session-{self.session:04d}.json", self._manifest())

    def _manifest(self) -> dict[str, Any]:
        configuration = settings.to_mapping(self._config)
        return {
            "format": FORMAT,
            "version": codec.VERSION,
            "slacktide": __version__,
            settings.MANIFEST_KEY: {section: configuration[section] for section in SECTIONS},
            "parts": self._parts,
        }

    def close(self) -> None:
        """Write what is left, and wait until all parts are compressed."""
        if self._file >= 0 and self.failed is None:
            self._write()
            self._write_manifest()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        for thread in self._compressing:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _claim_session(directory: Path, manifest: dict[str, Any]) -> int:
    """Claim the next number; two schedulers that start at once get different ones."""
    number = max((int(found[1]) for one in directory.iterdir() if (found := _SESSION.fullmatch(one.name))), default=0)
    while True:
        number += 1
        try:
            with (directory / f"session-{number:04d}.json").open("x") as file:
                json.dump(manifest, file)
            return number
        except FileExistsError:
            continue


def _replace(path: Path, content: dict[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.part")
    aside.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(aside, path)


def _compress(path: Path) -> None:
    """Replace a file by a compressed one; where that fails it stays as it is."""
    aside = path.with_name(f".{path.name}.gz.part")
    try:
        with path.open("rb") as plain, gzip.open(aside, "wb", compresslevel=5) as packed:
            shutil.copyfileobj(plain, packed, 1 << 18)
        os.replace(aside, path.with_name(path.name + ".gz"))
        path.unlink()
    except OSError:
        aside.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operation, and where it stands (``file:line``)."""

    place: str
    operation: Operation


@dataclass(slots=True)
class Session:
    """A recorded session: from the start of a scheduler to its end."""

    number: int
    config: Config
    slacktide: str
    parts: list[Path] = field(default_factory=list)
    torn: str = ""
    """Where the last line was cut off, once :meth:`operations` came there."""

    def operations(self) -> Iterator[Recorded]:
        """All operations in order, but for a last one that is cut off.

        Raises :class:`InputError` naming file and line of what cannot be read.
        """
        for number, path in enumerate(self.parts, 1):
            yield from self._of_part(path, number, number == len(self.parts))

    def _of_part(self, path: Path, number: int, last: bool) -> Iterator[Recorded]:
        name = path.name
        try:
            with gzip.open(path, "rb") if name.endswith(".gz") else path.open("rb") as file:
                for place, line in enumerate(file, 1):
                    if last and not line.endswith(b"\n"):
                        self.torn = f"{path}:{place}"
                        return
                    if place == 1:
                        _check_head(path, line, self.number, number)
                        continue
                    try:
                        yield Recorded(f"{path}:{place}", codec.decode(line))
                    except ValueError as error:
                        raise _broken(path, place, str(error), "a line of a record") from error
        except (OSError, EOFError) as error:
            raise _broken(path, 0, str(error), "a readable part of a record") from error


def _broken(path: Path, line: int, value: str, expected: str) -> InputError:
    return InputError([Problem(str(path), line, "", value, expected)])


def _check_head(path: Path, line: bytes, session: int, part: int) -> None:
    try:
        head = json.loads(line)
    except ValueError as error:
        raise _broken(path, 1, line[:80].decode(errors="replace"), "the first line of a record") from error
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise _broken(path, 1, str(head)[:80], f'"format": "{FORMAT}"')
    if head.get("version") != codec.VERSION:
        raise _broken(path, 1, f"version {head.get('version')}", f"version {codec.VERSION}, which this slacktide reads")
    if (head.get("session"), head.get("part")) != (session, part):
        found = f"session {head.get('session')}, part {head.get('part')}"
        raise _broken(path, 1, found, f"session {session}, part {part}")


def sessions(directory: Path | str) -> list[Session]:
    """The sessions of a record, the first one first.

    Raises :class:`InputError` where there is none, a part is missing, or the version is unknown.
    """
    directory = Path(directory)
    try:
        names = sorted(one.name for one in directory.iterdir())
    except OSError as error:
        raise _broken(directory, 0, error.strerror or str(error), "a directory with a record") from error
    found = [_session(directory, int(match[1])) for name in names if (match := _SESSION.fullmatch(name))]
    if not found:
        raise _broken(directory, 0, f"{len(names)} files", "a record: session-0001.json, 0001-000001.jsonl and so on")
    for one in found:
        parts: dict[int, Path] = {}
        for name in names:  # that of a compressed part comes behind that of the part itself, and is whole
            match = _PART.fullmatch(name)
            if match and int(match[1]) == one.number:
                parts[int(match[2])] = directory / name
        for number in range(1, max(parts, default=0) + 1):
            if number not in parts:
                expected = f"{one.number:04d}-{number:06d}.jsonl, without which later parts say nothing"
                raise _broken(directory, 0, "no such file", expected)
        one.parts = [parts[number] for number in sorted(parts)]
    return found


def _session(directory: Path, number: int) -> Session:
    path = directory / f"session-{number:04d}.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _broken(path, 0, str(error), "the index of a session") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _broken(path, 0, str(manifest)[:80], f'"format": "{FORMAT}"')
    if manifest.get("version") != codec.VERSION:
        version = f"version {manifest.get('version')} (of slacktide {manifest.get('slacktide')})"
        raise _broken(path, 0, version, f"version {codec.VERSION}, which slacktide {__version__} reads")
    return Session(number, settings.load(path), str(manifest.get("slacktide")))
