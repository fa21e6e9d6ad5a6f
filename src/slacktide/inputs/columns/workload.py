"""The columns of a workload as a reader finds them, before they are checked."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from slacktide.inputs.columns.cells import Codes, Floats, Integers
from slacktide.inputs.columns.instances import RequestColumns
from slacktide.inputs.columns.texts import Tables
from slacktide.model import (
    ALWAYS_READY,
    NEVER_RESIZED,
    NO_ACCESS,
    NO_LABEL,
    NO_NEIGHBOURS,
    NOTHING_LOST,
    Access,
    Budget,
    Label,
    Past,
    Placement,
    Resizing,
    Term,
    Unreadiness,
    resting,
)


@dataclass(slots=True)
class WorkloadColumns:
    """A workload as read: rows in the order of the file, values not yet checked.

    ``names`` maps a field of the workload to the name of its column in this format. ``requests`` is ``None``
    where the file has none of their columns; ``request`` is made of them. ``codes`` and ``numbers`` are further columns
    of texts and of numbers that the file has, by name; ``tables`` says what codes stand for, ``limits`` names the
    column of limits of each resource, where there is any. Of these are made the fields below them, of which those that
    are ``None`` say nothing.
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
    placement: NDArray[np.int32] | None = None
    placements: tuple[Placement, ...] = (NO_NEIGHBOURS,)
    budget: NDArray[np.int32] | None = None
    budgets: tuple[Budget, ...] = ()
    resize: NDArray[np.int32] | None = None
    resizings: tuple[Resizing, ...] = (NEVER_RESIZED,)
    lost: NDArray[np.int32] | None = None
    losses: tuple[Past, ...] = (NOTHING_LOST,)
    access: NDArray[np.int32] | None = None
    accesses: tuple[Access, ...] = (NO_ACCESS,)
    limit: Floats | None = None
    grace: Floats | None = None
    unready: NDArray[np.int32] | None = None
    spells: tuple[Unreadiness, ...] = (ALWAYS_READY,)
    label: NDArray[np.int32] | None = None
    labels: tuple[Label, ...] = (NO_LABEL,)

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
