"""Every error a caller may have to handle.

::

    SlacktideError
    ├── InputError        a workload, host, delay or failure file that cannot be used
    │   └── RefusedError  documents that cannot become what is asked for
    ├── ConfigError       a setting that is unknown, of the wrong type or out of range
    │   └── AbsentError   what a result or experiment has not, an AttributeError too
    ├── PluginError       a user's own policy, score or cost that cannot be loaded or misbehaves
    ├── OutputError       results that cannot be written
    ├── RunsError         some runs of an experiment failed; the others are done
    ├── KernelError       kernels that can neither be loaded nor compiled here
    ├── StateError        an operation that does not fit what is known of a live cluster
    └── KubeError         the API server refused or could not be reached (:mod:`slacktide.kube`)

Of what is left out of an input that is taken :class:`InputWarning` warns, of what a result hides
:class:`ResultWarning`.

Expected failure (a request that finds no host) is never an exception: it is a
reason on the plan.  Exceptions are for misuse and broken input; their text
names the file, line, field and value, and what would be right.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

SPOKEN: ContextVar[str] = ContextVar("slacktide_spoken", default="")
"""Who is told what to type: the user of a "command", of "python", or, where nobody knows, of both."""
SHOWN_PROBLEMS = 10
"""Of many causes this many are shown; all are counted."""
SHOWN_ROWS = 3
"""Of many rows that are broken in one way this many are named behind the first one."""


def remedy(command: str, python: str) -> str:
    """What to type, in the words of who asked."""
    spoken = {"command": command, "python": python}
    return spoken.get(SPOKEN.get(), f"{command} (in Python {python})")


class SlacktideError(Exception):
    """Base of all errors raised on purpose by slacktide."""


class ConfigError(SlacktideError):
    """A setting is unknown, of the wrong type, or out of range."""


class AbsentError(ConfigError, AttributeError):
    """A run or experiment has no such table, so that ``hasattr`` says no."""


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


class InputWarning(UserWarning):
    """An input is taken, and something in it is left out."""


class ResultWarning(UserWarning):
    """A result is there, and is easily taken for better than it is."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken place in an input: where it is, what stands there, what was expected.

    ``line`` counts from 1; for columnar files (Parquet) it is the row number,
    and 0 where the whole file or column is meant. Of a ``frame``, a table in memory, ``file`` is what it is for, and
    the text counts rows from 0, as frames do. Of many places that are wrong for one cause it is the first; ``times``
    counts them, and ``more`` are the next lines and values.
    """

    file: str
    line: int
    column: str
    value: str
    expected: str
    frame: bool = False
    times: int = 1
    more: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place = f"{self.file}, row {self._row(self.line)}" if self.frame else f"{self.file}:{self.line}"
        field = f"{self.column}: " if self.column else ""
        found = f"found {_short(self.value)}, " if self.value else ""
        return f"{place}: {field}{found}expected {self.expected}{self._often()}"

    @property
    def cause(self) -> tuple[str, str, str]:
        """What two problems have in common that need the same remedy."""
        return (self.file, self.column, self.expected)

    def and_also(self, other: Problem) -> Problem:
        """This one and another of the same cause as one."""
        first, later = (self, other) if self.line <= other.line else (other, self)
        more = sorted([*first.more, (later.line, later.value), *later.more], key=lambda one: one[0])
        return replace(first, times=self.times + other.times, more=tuple(more[:SHOWN_ROWS]))

    def _often(self) -> str:
        """In which other places the same is wrong."""
        if self.times == 1:
            return ""
        before = [self.value, *(value for _, value in self.more)]
        shown = [
            f"{self._row(line)}" + (f" {_short(value)}" if value and value != last else "")
            for (line, value), last in zip(self.more, before, strict=False)
            if line
        ]
        rest = ", ..." if self.times > 1 + len(shown) else ""
        also = f"; also {'rows' if self.frame else 'lines'} {', '.join(shown)}{rest}" if shown else ""
        return f" ({self.times} times{also})"

    def _row(self, line: int) -> int:
        return line - 1 if self.frame else line


def _short(value: str) -> str:
    return repr(value if len(value) <= 80 else value[:77] + "...")


class InputError(SlacktideError):
    """An input file is broken.

    ``problems`` holds the first few, one for each cause; ``total`` counts the broken places of all of them.
    """

    def __init__(self, problems: Sequence[Problem], total: int | None = None) -> None:
        causes: dict[tuple[str, str, str], Problem] = {}
        for one in problems:
            causes[one.cause] = causes[one.cause].and_also(one) if one.cause in causes else one
        self.problems = tuple(causes.values())[:SHOWN_PROBLEMS]
        self.total = sum(one.times for one in problems) if total is None else total
        lines = [str(problem) for problem in self.problems]
        hidden = self.total - sum(one.times for one in self.problems)
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
