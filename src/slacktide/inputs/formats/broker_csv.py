"""Workloads as the papers' broker takes them: CSV, mostly without a header, a row for each controller (Farias's thesis,
A.2).

::

    submitTime,task,job,user,affinity,priority,runtime,endTime,cpuReq,memReq,userClass,slo
    ... controller,replicaOrParallelism,completions,qosMeasuring    (of the broker for several instances)

Eleven columns are the thesis's own list, which has no ``endTime``. A header, where there is one, names the columns as
the broker's example does: ``jid`` is the job then, rows are numbered, and ``schedulingClass`` says nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

from slacktide.errors import Problem, remedy
from slacktide.inputs.columns.cells import format_float, parse_float
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.formats.csv_files import BATCH_ROWS, CsvFile
from slacktide.inputs.problems import Problems
from slacktide.model import ServiceClass

FIELDS = (
    *("submittime", "task", "job", "user", "affinity", "priority", "runtime", "endtime", "cpureq", "memreq"),
    *("userclass", "slo", "controller", "replicas", "completions", "qosmeasuring"),
)
LAYOUTS = {11: tuple(one for one in FIELDS[:12] if one != "endtime"), 12: FIELDS[:12], 16: FIELDS}
"""By the number of columns of a file without a header, which they are."""
NEEDED = ("submittime", "runtime", "cpureq", "memreq", "userclass")
HEADER_NAMES = {"jid": "job", "tid": "", "schedulingclass": "", "replicaorparalelism": "replicas",
                "replicaorparallelism": "replicas"}  # fmt: skip
TAKEN = {"admission": "submittime", "duration": "runtime", "cpu": "cpureq", "memory": "memreq"}
"""Columns of ours that are copied."""
SHOWN = {
    "id": "task", "admission": "submitTime", "duration": "runtime", "cpu": "cpuReq", "memory": "memReq",
    "class": "userClass", "anti_affinity": "affinity", "instances": "replicas", "parallelism": "replicas",
}  # fmt: skip
"""What the file's own columns are called in problems."""
WORDS = {"prod": "gold", "batch": "silver", "free": "bronze"}
"""The papers' words for their classes."""
CONTROLLERS = {"": "service", "deployment": "service", "job": "batch"}
MEASURES = {"": "", "independent": "independent", "concurrent": "concurrent", "time_aggregated": "aggregated",
            "task_aggregated": "aggregated"}  # fmt: skip


def recognises(path: Path) -> bool:
    """Whether a file begins as a workload of the broker; other CSV files begin with the header of docs/formats.md."""
    try:
        with path.open("rb") as file:
            cells = file.readline(4096).decode("utf-8-sig").strip().split(",")
    except (OSError, ValueError):  # no text, or no name of a file
        return False  # whoever reads it says what is wrong with it
    if cells[0].strip().lower() == "submittime":
        return True
    with suppress(ValueError):
        parse_float(cells[0].strip())
        return len(cells) in LAYOUTS
    return False


@dataclass(frozen=True, slots=True)
class Naming:
    """Which class a word of the file is; ``promises`` of these, where the file must say the same."""

    words: Mapping[str, str]
    promises: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, classes: Sequence[ServiceClass]) -> Naming:
        """The papers' words, but where a class has the very name."""
        return cls({**WORDS, **{one.name: one.name for one in classes}}, {one.name: one.slo for one in classes})


class _Shown(Problems):
    """Problems that name a column as the file does."""

    def keep(self, found: Problem) -> None:
        super().keep(replace(found, column=SHOWN.get(found.column, found.column)))


class BrokerFile(CsvFile):
    """A workload of the broker, with the columns of docs/formats.md; ``promised`` are the SLOs that it names, by class.

    Raises :class:`InputError` for a header without a column that is needed.
    """

    def __init__(self, path: Path, naming: Naming) -> None:  # it has no header to check: CsvFile's is left out
        self.problems = _Shown(str(path))
        self.rows, text = self._open(path)
        self._naming = naming
        self.promised: dict[str, set[float]] = {}
        rows = self._read(text)
        line, first = next(rows)  # a file without rows is not recognised
        self._numbered = first[0].strip().lower() == "submittime"
        if self._numbered:
            words = [cell.strip().lower() for cell in first]
            self._fields: tuple[str, ...] = tuple(HEADER_NAMES.get(word, word) for word in words)
            for name in NEEDED:
                if name not in self._fields:
                    self.problems.add(line, name, "", "this column")
            self.problems.raise_if_any()
            self._content = rows
        else:
            self._fields = LAYOUTS[len(first)]
            self._content = chain([(line, first)], rows)
        self.names = ["id", *TAKEN, "class", "job", "anti_affinity"]
        if "controller" in self._fields:
            self.names += ["kind", "instances", "completions", "parallelism", "approach"]
        self._done = 0

    def batches(self) -> Iterator[ColumnBatch]:
        """Some rows at a time."""
        width = len(self._fields)
        while chunk := list(islice(self._content, BATCH_ROWS)):
            rows = []
            for line, row in chunk:
                if len(row) == width:
                    cells = dict(zip(self._fields, map(str.strip, row), strict=True))
                    rows.append((line, self._ours(line, cells)))
                else:
                    self.problems.add(line, "", f"{len(row)} fields", f"{width} fields, as the first row has")
            columns = {name: [row[name] for _, row in rows] for name in self.names}
            yield ColumnBatch.of_texts(columns, [line for line, _ in rows], self.problems)

    def _ours(self, line: int, cells: Mapping[str, str]) -> dict[str, str]:
        """A row by our columns."""
        found = {ours: cells[theirs] for ours, theirs in TAKEN.items()}
        found["id"] = str(self._done) if self._numbered else cells["task"]
        found["job"], found["anti_affinity"] = cells.get("job", ""), cells.get("affinity", "")
        found["class"] = self._naming.words.get(cells["userclass"], cells["userclass"])
        self._done += 1
        if cells.get("slo"):
            self._promise(line, found["class"], cells["slo"])
        if "controller" in cells:
            found |= self._controller(line, cells)
        return found

    def _promise(self, line: int, name: str, text: str) -> None:
        """Notes what the file promises, which has to be what the class does."""
        promised = self._naming.promises.get(name)
        try:
            slo = parse_float(text)
        except ValueError:
            self.problems.add(line, "slo", text, "a promise from 0 to 1")
            return
        self.promised.setdefault(name, set()).add(slo)
        if promised is not None and abs(slo - promised) > 1e-9:
            where = remedy("--config FILE", "config='FILE'")
            expected = f"{format_float(promised)}, as class {name} promises; name the file's classes in {where}"
            self.problems.add(line, "slo", text, expected)

    def _controller(self, line: int, cells: Mapping[str, str]) -> dict[str, str]:
        """What makes one row several instances."""
        kind, measure = CONTROLLERS.get(cells["controller"]), MEASURES.get(cells.get("qosmeasuring", ""))
        if kind is None:
            self.problems.add(line, "controller", cells["controller"], "deployment or job")
        if measure is None:
            expected = ", ".join(word for word in MEASURES if word)
            self.problems.add(line, "qosMeasuring", cells["qosmeasuring"], f"one of {expected}")
        batch = kind == "batch"
        several, completions = cells.get("replicas", ""), cells.get("completions", "")
        return {
            "kind": kind or "service",
            "instances": "" if batch else several,
            "parallelism": several if batch else "",
            "completions": completions if batch else "",
            "approach": measure or "",
        }
