"""The columns of a workload as a reader finds them, before they are checked."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Codes, Floats, Integers
from slacktide.inputs.columns.instances import RequestColumns
from slacktide.inputs.columns.texts import Tables
from slacktide.model import Term, resting


@dataclass(slots=True)
class WorkloadColumns:
    """A workload as read: rows in the order of the file, values not yet checked.

    ``names`` maps a field of the workload to the name of its column in this format. ``requests`` is ``None``
    where the file has none of their columns; ``request`` is made of them. ``codes`` and ``numbers`` are further columns
    of texts and of numbers that the file has, by name; ``tables`` says what codes stand for, ``limits`` names the
    column of limits of each resource, where there is any. Of these is made what is ``further`` in the workload, by its
    fields; of what says nothing, nothing.
    """

    ids: Integers
    admission: Floats
    duration: Floats
    demand: Floats
    service_class: NDArray[np.int16]
    job: Integers
    anti_affinity: NDArray[np.bool_]
    term: NDArray[np.int32]
    resources: tuple[str, ...]
    terms: tuple[Term, ...]
    lines: Integers | None = None
    names: tuple[str, str, str] = ("id", "admission", "duration")
    demand_names: tuple[str, ...] = ()
    requests: RequestColumns | None = None
    request: NDArray[np.int32] | None = None
    codes: dict[str, Codes] = field(default_factory=dict)
    numbers: dict[str, Floats] = field(default_factory=dict)
    tables: Tables = field(default_factory=Tables)
    limits: tuple[str, ...] = ()
    further: dict[str, Any] = field(default_factory=dict)

    def let_go(self) -> None:
        """Columns that rest in files need no memory now."""
        resting.let_go(*(self.ids, self.admission, self.duration, self.demand))
        resting.let_go(*(self.service_class, self.job, self.anti_affinity, self.term))

    def cut(self, count: int) -> None:
        """Keep the first ``count`` rows: of a CSV file it is known only in the end how many there are."""
        for part in (self, self.requests):
            for one in fields(part) if part is not None else ():
                value = getattr(part, one.name)
                if isinstance(value, np.ndarray):
                    setattr(part, one.name, value[:count])
        self.codes = {name: one[:count] for name, one in self.codes.items()}
        self.numbers = {name: one[:count] for name, one in self.numbers.items()}
