"""The four result files of the authors' simulator (Sim-Diasca probes): allocation, preemption, termination, queue.

Lines that begin with ``#`` name the columns; the others begin with the second of the event, which is one more than that
of the workload. Numbers are written as Erlang writes them. What the files say is a list of things that happened
(:class:`Happening`) and the queue of each pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slacktide import __version__
from slacktide.errors import InputError, fail
from slacktide.inputs.columns.cells import parse_float, parse_integer
from slacktide.inputs.problems import read_text

ALLOCATION, PREEMPTION = "Allocation_Infra_Manager_1.dat", "Preemption_Infra_Manager_1.dat"
TERMINATION, QUEUE = "Termination_Infra_Manager_1.dat", "Waiting_queue_Task_Agent.dat"
CURVES = {
    ALLOCATION: ("TastId", "HostId", "CPUAlloc", "MemAlloc", "Index", "Overhead"),
    PREEMPTION: ("TastId", "HostId"),
    TERMINATION: ("TastId", "HostId", "CPUAlloc", "MemAlloc", "Runtime", "Index"),
    QUEUE: ("TastId", "Runtime"),
}
"""The columns of each file behind the time, by the names that the authors' files have ('TastId' is theirs)."""
FILES: frozenset[str] = frozenset(CURVES)
AHEAD = 1.0
"""Seconds by which the files' clock is ahead of the workload's."""
AFTER_THE_END = 2.0
"""Seconds after the last termination at which the queue is written once more."""
AT_ADMISSION, AT_WATCHDOG, EACH = 7, 6, 4
"""``Index``: of the first in the queue of a pass that an admission called for, or the watchdog; and of each further
place in the queue so many more."""
AT_THE_END = 1

PLACED, PREEMPTED, ENDED = "placed", "preempted", "ended"

Row = Sequence[int | float]


@dataclass(frozen=True, slots=True)
class Happening:
    """One instance is placed, preempted or over; ``time`` in the workload's seconds, numbers as in the input.

    ``startup``, s, is that of a start; None where the file does not say it.
    """

    time: float
    what: str
    request: int
    host: int
    startup: float | None = None


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of a file: its line, and the numbers, time first."""

    line: int
    numbers: tuple[float, ...]


def erlang(number: float, *, whole: bool = True) -> str:
    """A number as Erlang writes it: the shortest digits, with an exponent where that is shorter (1.0e3, 100.0).

    A whole one is written as an integer, unless ``whole`` is false.
    """
    if number == int(number) and whole:
        return str(int(number))
    if number == 0.0:
        return "0.0"
    mantissa, _, exponent = f"{abs(number)!r}".partition("e")
    before, _, after = mantissa.partition(".")
    digits = (before + after).lstrip("0")
    leading = len(before) if before != "0" else len(digits) - len(after)
    place = leading + int(exponent or 0)
    digits = digits.rstrip("0") or "0"
    return ("-" if number < 0 else "") + _placed(digits, place)


def _placed(digits: str, place: int) -> str:
    """Digits with a point before the digit ``place``, as ``io_lib_format`` of Erlang has it."""
    length = len(digits)
    if place == 0:
        return f"0.{digits}"
    if 0 < place < length:
        return f"{digits[:place]}.{digits[place:]}"
    exponent = f"{place - 1}"
    cost = len(exponent) + 1 + (2 if length == 1 else 1)
    if place < 0:
        if 2 - place <= cost:
            return "0." + "0" * -place + digits
    elif place - length + 2 <= cost:
        return digits + "0" * (place - length) + ".0"
    return f"{digits[0]}.{digits[1:] or '0'}e{exponent}"


def header(file: str, curves: Sequence[str]) -> str:
    """What stands before the rows."""
    lines = [
        f"# Written by slacktide {__version__}, as the simulator of da Silva et al. 2020 writes it.",
        f"# Probe: {file}",
        "# - tick duration (in virtual seconds): 1.000000",
        "# First column corresponds to the abscissa, expressed in tick offsets.",
        "# Next columns correspond to following curve names (in that order):",
        *(f"# - curve #{number}: '{name}'" for number, name in enumerate(curves, start=1)),
    ]
    return "".join(f"{line}\n" for line in lines)


def write(path: Path, rows: Iterable[Sequence[str]], curves: Sequence[str] | None = None) -> None:
    """A file of rows whose cells are texts, time first."""
    with path.open("w", encoding="utf-8") as file:
        file.write(header(path.stem, CURVES[path.name] if curves is None else curves))
        for time, *cells in rows:
            file.write(f"{time}  {' '.join(cells)}\n")


def rows_of(path: Path, widths: Sequence[int]) -> list[Logged]:
    """The rows of a file, which have one of these numbers of columns. Raises :class:`InputError` for others."""
    return list(_rows(path, widths))


def _rows(path: Path, widths: Sequence[int]) -> Iterator[Logged]:
    expected = " or ".join(map(str, widths))
    for line, text in enumerate(read_text(path).split("\n"), start=1):
        cells = text.split()
        if not cells or cells[0].startswith("#"):
            continue
        if len(cells) not in widths:
            raise fail(path, f"{expected} columns, as its header says", line=line, value=f"{len(cells)} columns")
        try:
            numbers = tuple(map(parse_float, cells))
            if not all(map(math.isfinite, numbers)):
                raise ValueError
            for cell in cells[1 : 2 if path.name == QUEUE else 3]:
                parse_integer(cell)
        except ValueError:
            raise fail(path, "numbers, the request and the host as whole ones", line=line, value=text) from None
        yield Logged(line, numbers)


def folder_has_them(folder: Path) -> bool:
    """Whether the folder has the files of the authors' simulator."""
    return (folder / ALLOCATION).is_file()


class _Room:
    """Who runs where, as the files tell it, and what hosts have left."""

    def __init__(self, demand: Mapping[int, Sequence[float]], capacity: Mapping[int, Sequence[float]]) -> None:
        self._demand = demand
        self._free = {host: list(amounts) for host, amounts in capacity.items()}
        self.where: dict[int, int] = {}

    def has_room(self, request: int, host: int) -> bool:
        pairs = zip(self._demand[request], self._free[host], strict=True)
        return all(asked <= free + 1e-9 for asked, free in pairs)

    def put(self, request: int, host: int) -> None:
        self.where[request] = host
        self._free[host] = [free - asked for asked, free in zip(self._demand[request], self._free[host], strict=True)]

    def take(self, request: int) -> None:
        host = self.where.pop(request)
        self._free[host] = [free + asked for asked, free in zip(self._demand[request], self._free[host], strict=True)]


@dataclass(frozen=True, slots=True)
class Told:
    """What a folder says: what happened, in order; passes by their second, with who waited; and the last second."""

    happenings: list[Happening]
    passes: dict[float, list[int]]
    end: float
    without_startups: bool


def read(folder: Path, demand: Mapping[int, Sequence[float]], capacity: Mapping[int, Sequence[float]]) -> Told:
    """What the four files of ``folder`` say of requests and hosts of which ``demand`` and ``capacity`` are known, by
    their numbers.

    A preemption makes room for an allocation of the same second: who goes for whom follows from what hosts have left.
    Raises :class:`InputError` with file and line for what cannot have happened.
    """
    starts, stops = rows_of(folder / ALLOCATION, (6, 7)), rows_of(folder / PREEMPTION, (3,))
    ends = rows_of(folder / TERMINATION, (7,))
    for path, rows in ((ALLOCATION, starts), (PREEMPTION, stops), (TERMINATION, ends)):
        _check_known(folder / path, rows, demand, capacity)
    room, found = _Room(demand, capacity), list[Happening]()
    stopped, ended = _Queue(stops), _Queue(ends)
    for start in starts:
        now, request, host = start.numbers[0], int(start.numbers[1]), int(start.numbers[2])
        found += _ends(folder, ended, room, now)
        while not room.has_room(request, host):
            stop = stopped.next_at(now)
            if stop is None or int(stop.numbers[2]) != host:
                value = f"request {request} on host {host}"
                expected = f"room there, or a preemption there in the same second ({PREEMPTION})"
                raise fail(folder / ALLOCATION, expected, line=start.line, value=value)
            found.append(_gone(folder / PREEMPTION, stop, PREEMPTED, room))
        if request in room.where:
            raise fail(folder / ALLOCATION, "a request that waits", line=start.line, value=f"request {request}")
        room.put(request, host)
        startup = start.numbers[6] if len(start.numbers) > 6 else None
        found.append(Happening(now - AHEAD, PLACED, request, host, startup))
    if (left := stopped.next_at(math.inf)) is not None:
        expected = "an allocation that needs the room"
        raise fail(folder / PREEMPTION, expected, line=left.line, value=f"request {int(left.numbers[1])}")
    found += _ends(folder, ended, room, math.inf)
    end = max([row.numbers[0] for row in (*starts, *ends)], default=AHEAD) - AHEAD
    passes: dict[float, list[int]] = {}
    for row in rows_of(folder / QUEUE, (3,)):
        if int(row.numbers[1]) not in demand:
            raise _unknown(folder / QUEUE, row, "request", int(row.numbers[1]))
        if row.numbers[0] - AHEAD <= end:
            passes.setdefault(row.numbers[0] - AHEAD, []).append(int(row.numbers[1]))
    return Told(found, passes, end, any(len(row.numbers) == 6 for row in starts))


class _Queue:
    """Rows in their order, taken one after the other."""

    def __init__(self, rows: Sequence[Logged]) -> None:
        self._rows, self._at = rows, 0

    def next_at(self, latest: float) -> Logged | None:
        """The next row, where it is of ``latest`` or before; it is taken."""
        if self._at == len(self._rows) or self._rows[self._at].numbers[0] > latest:
            return None
        self._at += 1
        return self._rows[self._at - 1]


def _ends(folder: Path, ended: _Queue, room: _Room, now: float) -> Iterator[Happening]:
    while (row := ended.next_at(now)) is not None:
        yield _gone(folder / TERMINATION, row, ENDED, room)


def _gone(path: Path, row: Logged, what: str, room: _Room) -> Happening:
    """Somebody leaves a host, who must have been there."""
    request, host = int(row.numbers[1]), int(row.numbers[2])
    if room.where.get(request) != host:
        raise fail(path, "a request that runs on this host", line=row.line, value=f"request {request}, host {host}")
    room.take(request)
    return Happening(row.numbers[0] - AHEAD, what, request, host)


def _check_known(
    path: Path, rows: Sequence[Logged], requests: Mapping[int, object], hosts: Mapping[int, object]
) -> None:
    last = -math.inf
    for row in rows:
        for what, known, number in (("request", requests, row.numbers[1]), ("host", hosts, row.numbers[2])):
            if int(number) not in known:
                raise _unknown(path, row, what, int(number))
        if row.numbers[0] < last:
            raise fail(path, "rows in order of time", line=row.line, value=f"{row.numbers[0]:g}")
        last = row.numbers[0]


def _unknown(path: Path, row: Logged, what: str, number: int) -> InputError:
    return fail(path, f"a {what} of the {'workload' if what == 'request' else 'hosts'} file", line=row.line,
                value=f"{what} {number}")  # fmt: skip
