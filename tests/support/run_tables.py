"""Tables of a run as tests write them down."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from slacktide.model import DEFAULT_CLASSES

GOLD, SILVER, BRONZE = DEFAULT_CLASSES
CLASSES = DEFAULT_CLASSES


def requests(*rows: tuple[str, float], **columns: list[Any]) -> pa.Table:
    """requests.parquet of these rows of class and availability (in the accounting restart), and further columns."""
    words = pa.array([name for name, _ in rows], pa.string()).dictionary_encode()
    found = {"id": list(range(len(rows))), "class": words, "availability_restart": [float(a) for _, a in rows]}
    return pa.table(found | columns)


def asked(*rows: tuple[str, float, float, float | None, float, float | None, float]) -> pa.Table:
    """Of class, availability, admission, completion, running, duration and CPU: what penalties need."""
    names = ("class", "availability_restart", "admission", "completion", "running", "duration", "demand_cpu")
    types = (pa.string(), *[pa.float64()] * 6)
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(zip(names, types, strict=True))
    }
    work = [None if row[5] is None else row[5] * row[6] for row in rows]
    return pa.table(columns | {"instances": [1] * len(rows), "cpu_seconds": pa.array(work, pa.float64())})


def intervals(*rows: tuple[float, str, float | None, float | None]) -> pa.Table:
    """intervals.parquet of time, class, minimum availability and fulfilment (None: nobody is active)."""
    names = ("time", "class", "availability_min", "fulfilment")
    types = (pa.float64(), pa.string(), pa.float64(), pa.float64())
    return pa.table(
        {
            name: pa.array([row[place] for row in rows], kind)
            for place, (name, kind) in enumerate(zip(names, types, strict=True))
        }
    )
