"""Every error a caller may have to handle.

::

    SlacktideError
    ├── InputError        a workload, host, delay or failure file that cannot be used
    │   └── RefusedError  documents that cannot become what is asked for
    ├── ConfigError       a setting that is unknown, of the wrong type or out of range
    ├── PluginError       a user's own policy, score or cost that cannot be loaded or misbehaves
    ├── OutputError       results that cannot be written
    ├── RunsError         some runs of an experiment failed; the others are done
    ├── KernelError       kernels that can neither be loaded nor compiled here
    ├── StateError        an operation that does not fit what is known of a live cluster
    └── KubeError         the API server refused or could not be reached (:mod:`slacktide.kube`)

Expected failure (a request that finds no host) is never an exception: it is a
reason on the plan.  Exceptions are for misuse and broken input; their text
names the file, line, field and value, and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHOWN_PROBLEMS = 10
"""Of many broken rows this many are shown; all are counted."""


class SlacktideError(Exception):
    """Base of all errors raised on purpose by slacktide."""


class ConfigError(SlacktideError):
    """A setting is unknown, of the wrong type, or out of range."""


class PluginError(SlacktideError):
    """A user's own policy, score or cost cannot be loaded, or broke its contract."""


class OutputError(SlacktideError):
    """Results cannot be written where they were asked for."""


class RunsError(SlacktideError):
    """Some runs of an experiment failed; the others are done, and the failures noted."""


class KernelError(SlacktideError):
    """The kernels can neither be loaded nor compiled on this machine."""


class StateError(SlacktideError):
    """An operation on a live cluster's state names what is not known, or comes at the wrong time."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken place in an input: where it is, what stands there, what was expected.

    ``line`` counts from 1; for columnar files (Parquet) it is the row number,
    and 0 where the whole file or column is meant. Of a ``frame``, a table in memory, ``file`` is what it is for, and
    the text counts rows from 0, as frames do.
    """

    file: str
    line: int
    column: str
    value: str
    expected: str
    frame: bool = False

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place = f"{self.file}, row {self.line - 1}" if self.frame else f"{self.file}:{self.line}"
        value = self.value if len(self.value) <= 80 else self.value[:77] + "..."
        field = f"{self.column}: " if self.column else ""
        found = f"found {value!r}, " if value else ""
        return f"{place}: {field}{found}expected {self.expected}"


class InputError(SlacktideError):
    """An input file is broken.

    ``problems`` holds the first few; ``total`` counts all of them.
    """

    def __init__(self, problems: Sequence[Problem], total: int | None = None) -> None:
        self.problems = tuple(problems[:SHOWN_PROBLEMS])
        self.total = len(problems) if total is None else total
        lines = [str(problem) for problem in self.problems]
        hidden = self.total - len(self.problems)
        if hidden > 0:
            lines.append(f"... and {hidden} more ({self.total} problems in all)")
        super().__init__("\n".join(lines))


class RefusedError(InputError):
    """Documents are refused: a text for each, which says where, what stands there, and what to do."""

    def __init__(self, refusals: Sequence[str]) -> None:
        self.problems = ()
        self.total = len(refusals)
        Exception.__init__(self, "\n".join(refusals))


def fail(file: str | Path, expected: str, *, line: int = 0, column: str = "", value: str = "") -> InputError:
    """The error for one place of an input, or for a file that is wrong as a whole."""
    return InputError([Problem(str(file), line, column, value, expected)])
