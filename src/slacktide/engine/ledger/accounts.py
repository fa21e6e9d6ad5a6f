"""What a ledger keeps of promises over a window: which outages of each instance still count (docs/semantics.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive import live_events
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.window_records import MOST_OUTAGES
from slacktide.model import Window

SECONDS = ("base", "spent", "booked", "dropped", "short")
RECORD = np.dtype([*((name, "<f8") for name in SECONDS), ("known", "<f8"), ("kind", "<i4"), ("count", "<i4")])
"""An account: fields of ACCOUNT that do not follow from others; ``known``, for how many seconds it has been there where
that is less than its instance has; and how many outages it keeps."""
OUTAGE = np.dtype([("at", "<f8"), ("length", "<f8"), ("width", "<f8")])


@dataclass(frozen=True, slots=True)
class Accounts:
    """Of some instances: RECORDs, shape (instances,), and OUTAGEs, those of the first instance first, oldest first."""

    records: Any
    outages: Any

    def outages_of(self, i: int) -> Any:
        """The outages of the ``i``-th instance."""
        first = int(self.records["count"][:i].sum())
        return self.outages[first : first + int(self.records["count"][i])]

    def packed(self) -> bytes:
        """All of it, for :func:`unpack`."""
        return bytes(self.records.tobytes() + self.outages.tobytes())


def of_rows(tb: Tables, rows: NDArray[np.int64], at: float) -> Accounts:
    """What the tables know of these instances at an instant."""
    had, chain = tb["accounts"][rows], tb["outages"]
    records = np.zeros(len(rows), RECORD)
    for name in (*SECONDS, "kind", "count"):
        records[name] = had[name]
    records["known"] = np.where(had["begun"] > 0.0, at - had["begun"], 0.0)
    places: list[int] = []
    for head in had["head"].tolist():
        place = head
        while place:
            places.append(place)
            place = int(chain["next"][place])
    outages = np.zeros(len(places), OUTAGE)
    for name in OUTAGE.names or ():
        outages[name] = chain[name][places]
    return Accounts(records, outages)


def unpack(data: bytes, count: int) -> Accounts | None:
    """Accounts of ``count`` instances from :meth:`Accounts.packed`; None where it is something else."""
    size = count * RECORD.itemsize
    if len(data) < size or (len(data) - size) % OUTAGE.itemsize:
        return None
    records, outages = np.frombuffer(data[:size], RECORD), np.frombuffer(data[size:], OUTAGE)
    numbers = [records[name] for name in (*SECONDS, "known")] + [outages[name] for name in OUTAGE.names or ()]
    sound = all(np.isfinite(one).all() and (one >= 0.0).all() for one in numbers)
    counts = records["count"]
    if not sound or (counts < 0).any() or (counts > MOST_OUTAGES).any() or int(counts.sum()) != len(outages):
        return None
    return Accounts(records, outages)


def most_bytes(count: int) -> int:
    """Of accounts of ``count`` instances."""
    return count * (RECORD.itemsize + MOST_OUTAGES * OUTAGE.itemsize)


def install(tb: Tables, row: int, cls: int, record: Any, outages: Any, at: float) -> None:
    """Let instance ``row`` of class ``cls``, whose ledger is there already, go on with an account as of ``at``; there
    must be room for its outages."""
    control, account, chain = tb.control, tb["accounts"][row : row + 1], tb["outages"]
    first = int(control["outages"]) + 1
    last = first + len(outages) - 1
    for name in OUTAGE.names or ():
        chain[name][first : last + 1] = outages[name]
    chain["next"][first : last + 1] = np.arange(first + 1, last + 2)
    if len(outages):
        chain["next"][last] = 0
        account["head"], account["tail"] = first, last
        control["outages"] = last
    for name in (*SECONDS, "kind", "count"):
        account[name] = record[name]
    account["cls"], account["begun"] = cls + 1, at - record["known"] if record["known"] > 0.0 else 0.0
    live_events.go_on(tb.state, row, cls)


def window_said(window: Window) -> dict[str, Any]:
    """A window as a ledger says it, for :func:`window_from`."""
    names = ("rolling", "calendar", "budget", "time_zone", "start")
    return {name: value for name in names if (value := getattr(window, name)) is not None}


def window_from(said: Any) -> Window | None:
    """The window that a ledger says. Raises ``TypeError`` or :class:`.ConfigError` for anything else."""
    return None if said is None else Window(**said)
