"""The column ``request``: rows that are the instances of one request, where these differ."""

from __future__ import annotations

import numpy as np

from slacktide.inputs.columns.cells import Integers
from slacktide.inputs.columns.column_batch import ColumnBatch
from slacktide.inputs.columns.instances import KINDS, format_scale
from slacktide.inputs.columns.workload import WorkloadColumns
from slacktide.inputs.problems import Problems
from slacktide.model import APPROACHES

COLUMN = "request"
EXPECTED = "the number of the request of which this row is an instance, a whole number from 0; empty: its own id"
ONE = "nothing or 1: each row of a request of several rows is one instance"
ALIKE = "what the first row of its request has"
PRESENT = "as many as were there before the run begins, or more"


def read(batch: ColumnBatch, ids: Integers) -> Integers:
    """The request of each row of a batch whose rows have these ids."""
    found = batch.integers(COLUMN, EXPECTED, empty=0)
    given = batch.filled(COLUMN)
    wrong = (found < 0) & given
    batch.refuse(wrong, COLUMN, EXPECTED)
    return np.where(given & ~wrong, found, ids)


def check(columns: WorkloadColumns, problems: Problems) -> None:
    """Add to ``problems`` what differs within a request of several rows and may not, and rows that are no instance."""
    requests = columns.requests
    if requests is None or requests.member is None:
        return
    _, first, of, count = np.unique(requests.member, return_index=True, return_inverse=True, return_counts=True)
    of = of.reshape(-1)
    several = (count > 1)[of]
    for name in ("instances", "completions"):
        values = getattr(requests, name)
        problems.add_rows(several & (values > 1), columns.lines, name, values.tolist(), ONE)
    scales = [format_scale(one) for one in requests.scales]
    for name, found, words in (
        ("class", columns.service_class, None),
        ("kind", requests.kind, (*KINDS, "")),
        ("approach", requests.approach, (*APPROACHES, "")),
        ("parallelism", requests.parallelism, None),
        ("scale", requests.scale, scales),
    ):
        wrong = found != found[first][of]
        if wrong.any():
            shown = found.tolist() if words is None else [words[code] for code in found.tolist()]
            problems.add_rows(wrong, columns.lines, name, shown, ALIKE)
    before = several & (requests.kind == KINDS.index("batch")) & (columns.admission < 0.0)
    present = np.bincount(of, before)[of]
    wrong = before & (present > np.maximum(requests.parallelism, 1))
    problems.add_rows(wrong, columns.lines, "parallelism", requests.parallelism.tolist(), PRESENT)
