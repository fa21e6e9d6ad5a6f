"""Which column of a table is which of ours: said (``id=pod_uid, cpu=cpu_request:m``), kept in a file, or guessed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slacktide import settings_file
from slacktide.errors import ConfigError
from slacktide.inputs.columns import header
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.mapped.values import AMOUNT_UNITS, TIME_UNITS

GUESS = "guess"
TIMED = ("admission", "end", "duration")
OURS = ("id", "admission", "end", "duration", "cpu", "memory", "class", *header.WORKLOAD_OPTIONAL)
NEEDED = ("id", "admission", "cpu", "memory", "class")
NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id", "uid", "pod_uid", "uuid", "pod_id", "request_id", "task_id", "instance_id", "job_id"),
    "admission": (
        *("admission", "created_at", "created", "creation_timestamp", "creation_time", "create_time", "submitted_at"),
        *("submit_time", "submission_time", "submit", "arrival_time", "arrival", "start_time", "started_at", "start"),
    ),
    "end": (
        *("end", "deleted_at", "deleted", "deletion_timestamp", "deletion_time", "delete_time", "finished_at"),
        *("finish_time", "completed_at", "completion_time", "ended_at", "end_time", "stopped_at", "stop_time"),
    ),
    "duration": ("duration", "runtime", "run_time", "lifetime", "elapsed", "elapsed_time"),
    "cpu": ("cpu", "cpu_request", "cpu_req", "requested_cpu", "cpus", "vcpu", "vcpus", "cores", "cpu_cores"),
    "memory": ("memory", "mem", "memory_request", "mem_request", "mem_req", "requested_memory", "ram"),
    "class": ("class", "service_class", "tier", "priority_class", "priority_class_name", "slo_class"),
    "job": ("job", "job_name"),
    "user": ("user", "user_name", "user_id"),
    "name": ("name", "pod", "pod_name"),
    "namespace": ("namespace",),
    "owner": ("owner", "owner_name"),
}
"""By our column how others call it, nearest first; a unit may stand behind."""
SUFFIXES = {
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "seconds"), "s"),
    **dict.fromkeys(("us", "micros", "microseconds"), "us"),
    **dict.fromkeys(("ns", "nanos", "nanoseconds"), "ns"),
    **dict.fromkeys(("min", "mins", "minutes"), "min"),
    **dict.fromkeys(("h", "hours"), "h"),
}
"""Words behind the name of a time, and which unit they are."""
AMOUNT_SUFFIXES = {
    **dict.fromkeys(("m", "milli", "millis", "millicores", "millicpu", "mcores"), "m"),
    **dict.fromkeys(("cores", "bytes", "byte", "b"), ""),
    "kb": "k", "mb": "M", "gb": "G", "tb": "T", "kib": "Ki", "mib": "Mi", "gib": "Gi", "tib": "Ti",
}  # fmt: skip
_PAIR = re.compile(r"""\s*([^=,'"]+?)\s*=\s*("[^"]*"(?::\w+)?|'[^']*'|[^,='"]*?)\s*(?:,|$)""")
_UNIT = re.compile(r":(\w+)$")
CONTENT = "our columns, each with one of the table: 'id: pod_uid', 'admission: created_at:ms'"
EXPECTED = 'pairs such as id=pod_uid, admission=created_at:ms, class=tier; a file of them; or "guess"'


@dataclass(frozen=True, slots=True)
class Column:
    """A column of ours: that of the table of a name, with the unit of its numbers; or one ``text`` in every row."""

    ours: str
    source: str
    unit: str = ""
    constant: bool = False

    def __str__(self) -> str:
        return f"{self.ours}={self.theirs}"

    @property
    def theirs(self) -> str:
        """As it is written behind the =."""
        if self.constant:
            return f"'{self.source}'"
        plain = not re.search(r"[,=:'\"]", self.source) and self.source == self.source.strip()
        return (self.source if plain else f'"{self.source}"') + (f":{self.unit}" if self.unit else "")


@dataclass(frozen=True, slots=True)
class Said:
    """What a user says; ``guess`` whether the rest may be guessed by name."""

    columns: tuple[Column, ...]
    guess: bool
    where: str


def said(columns: str | Mapping[str, str] | Path) -> Said:
    """The mapping of ``--columns``: a text, a file that keeps one, or (in Python) a mapping.

    Raises :class:`ConfigError` that names what is wrong with a pair.
    """
    if isinstance(columns, Mapping):
        return _checked([(str(key), str(one)) for key, one in columns.items()], guess=True, where="columns")
    if isinstance(columns, Path) or str(columns).strip().lower().endswith(settings_file.SUFFIXES):
        path = Path(str(columns).strip())
        kept = settings_file.read(path, "columns", CONTENT)
        return _checked([(key, str(one)) for key, one in kept.values.items()], guess=False, where=str(path))
    text = str(columns).strip()
    if text in ("", GUESS):
        return Said((), True, "--columns")
    pairs, at = [], 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None or not found[2]:
            raise ConfigError(f"--columns: found {text[at:].strip()!r}, expected {EXPECTED}")
        pairs.append((found[1], found[2]))
        at = found.end()
    return _checked(pairs, guess=True, where="--columns")


def _checked(pairs: Sequence[tuple[str, str]], *, guess: bool, where: str) -> Said:
    columns: list[Column] = []
    for ours, theirs in pairs:
        if ours not in OURS and not header.is_resource(ours) and not ours.startswith(header.LIMIT_PREFIX):
            raise ConfigError(f"{where}: found {ours!r}, expected {expected_name(ours, OURS)}, or resource:NAME")
        if any(one.ours == ours for one in columns):
            raise ConfigError(f"{where}: {ours}: named twice, expected every column of ours once")
        columns.append(_column(ours, theirs.strip(), where))
    if {"end", "duration"} <= {one.ours for one in columns}:
        raise ConfigError(f"{where}: found end and duration, expected one of them")
    return Said(tuple(columns), guess, where)


def _column(ours: str, theirs: str, where: str) -> Column:
    if len(theirs) > 1 and theirs[0] == theirs[-1] == "'":
        return Column(ours, theirs[1:-1], constant=True)
    units = units_of(ours)
    unit = _UNIT.search(theirs)
    name, found = (theirs[: unit.start()], unit[1]) if unit and (theirs[0] == '"' or unit[1] in _ALL) else (theirs, "")
    if found and found not in units:
        known = f"a unit of {', '.join(units)}" if units else f"no unit behind a column of {ours}"
        raise ConfigError(f"{where}: {ours}: found {theirs!r}, expected {known}")
    return Column(ours, name[1:-1] if name[:1] == '"' else name, found)


_ALL = {**TIME_UNITS, **AMOUNT_UNITS}


def units_of(ours: str) -> Sequence[str]:
    """The units that numbers of a column may have; none where its cells are no numbers of anything."""
    if ours in TIMED:
        return tuple(TIME_UNITS)
    amounts = ours in ("cpu", "memory") or ours.startswith((header.RESOURCE_PREFIX, header.LIMIT_PREFIX))
    return tuple(AMOUNT_UNITS) if amounts else ()


@dataclass(frozen=True, slots=True)
class Columns:
    """The whole mapping of a table: which were guessed, and which columns of the table stay behind."""

    columns: tuple[Column, ...]
    guessed: tuple[str, ...]
    behind: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.columns))

    def of(self, ours: str) -> Column | None:
        """The column that is ours of this name."""
        return next((one for one in self.columns if one.ours == ours), None)

    def kept(self) -> str:
        """The text of a file that keeps it."""
        return "".join(f"{json.dumps(one.ours)}: {json.dumps(one.theirs)}\n" for one in self.columns)


def settled(what: Said, names: Sequence[str], file: str) -> Columns:
    """The mapping for a table with columns of these ``names``.

    Raises :class:`ConfigError` for a column that the table has not, and for one of ours that nobody names.
    """
    for one in what.columns:
        if not one.constant and one.source not in names:
            raise ConfigError(f"{what.where}: {one.ours}: found {one.source!r}, expected "
                              f"{expected_name(one.source, list(names))} of {file}")  # fmt: skip
    guessed = _guessed(what, names) if what.guess else []
    columns = sorted((*what.columns, *guessed), key=lambda one: _place(one.ours))
    missing = [one for one in NEEDED if all(one != other.ours for other in columns)]
    if missing:
        listed = ", ".join(names)
        example = "class='gold' for one class of all" if missing == ["class"] else f"{missing[0]}=COLUMN"
        raise ConfigError(
            f'{file}: {", ".join(missing)}: nobody says which column, expected --columns "{example}" '
            f"with one of {listed}"
        )
    used = {one.source for one in columns if not one.constant}
    behind = tuple(name for name in names if name not in used)
    return Columns(tuple(columns), tuple(one.ours for one in guessed), behind)


def _place(ours: str) -> int:
    return OURS.index(ours) if ours in OURS else len(OURS)


def _guessed(what: Said, names: Sequence[str]) -> list[Column]:
    """Columns whose name says it; one of the table is taken once, and one of ours that is said is not guessed."""
    taken = {one.source for one in what.columns if not one.constant}
    there = {one.ours for one in what.columns}
    found: list[Column] = []
    for ours, words in NAMES.items():
        if ours not in OURS or ours in there or (ours in ("end", "duration") and {"end", "duration"} & there):
            continue
        free = [name for name in names if name not in taken]
        best = min(((rank, name, unit) for name in free for rank, unit in [_rank(name, words, ours)] if rank >= 0),
                   default=None)  # fmt: skip
        if best is not None:
            found.append(Column(ours, best[1], best[2]))
            taken.add(best[1])
            there.add(ours)
    return found


def _rank(name: str, words: Sequence[str], ours: str) -> tuple[int, str]:
    """How near a name is to one of the words (0: nearest, -1: not at all), and the unit behind it."""
    parts = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")
    plain = parts.replace("_", "")
    joined = [word.replace("_", "") for word in words]
    if plain in joined:
        return joined.index(plain), ""
    for suffix, unit in (SUFFIXES if ours in TIMED else AMOUNT_SUFFIXES if units_of(ours) else {}).items():
        stem = plain.removesuffix(suffix)
        if stem in joined and stem != plain and (len(suffix) > 1 or parts.endswith(f"_{suffix}")):
            return joined.index(stem), unit
    return -1, ""
