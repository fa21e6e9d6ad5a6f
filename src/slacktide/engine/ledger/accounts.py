"""What a ledger keeps of promises over a window (docs/semantics.md): which outages of each instance still count, or of
a request of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive import live_events
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.window_records import ACCOUNT, HELD, MOST_OUTAGES, OPEN, STRETCH
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


@dataclass(frozen=True, slots=True)
class Stretch:
    """The present stretch of a request of several instances.

    known     seconds since its history began
    age       seconds since the stretch began
    received  seconds that it had received then
    up, live  the share that counts: so many, of so many
    """

    known: float
    age: float
    received: float
    up: int
    live: int


def of_rows(tb: Tables, rows: NDArray[np.int64], at: float) -> Accounts:
    """What the tables know of these instances at an instant."""
    return _of(tb, tb["accounts"][rows], at)


def of_request(tb: Tables, q: int, at: float) -> tuple[Accounts, Stretch | None]:
    """What the tables know of a request of several instances at an instant, as of which it was asked for its slack;
    None: no instance was admitted yet."""
    had = tb["stretches"][q]
    stretch = None
    if had["open"] == OPEN:
        seconds = (at - float(had["begun"]), at - float(had["since"]), float(had["received"]))
        stretch = Stretch(*seconds, int(had["up"]), int(had["live"]))
    return _of(tb, tb["request_accounts"][q : q + 1], at), stretch


def _of(tb: Tables, had: Any, at: float) -> Accounts:
    chain, records = tb["outages"], np.zeros(len(had), RECORD)
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
    account = tb["accounts"][row : row + 1]
    _enter(tb, account, record, outages, at)
    account["cls"] = cls + 1
    live_events.go_on(tb.state, row, cls)


def hold_request(tb: Tables, q: int) -> None:
    """Until :func:`install_request` nothing that happens to a request of several instances is its history."""
    tb["stretches"]["open"][q] = HELD


def install_request(tb: Tables, q: int, saved: Accounts | None, stretch: Stretch | None, at: float) -> None:
    """Let a request of several instances, whose ledger and class are there already, go on with an account as of ``at``;
    without one its history begins now, if its promise is over a window. There must be room for its outages."""
    account, present = tb["request_accounts"][q : q + 1], tb["stretches"][q : q + 1]
    account[:], present[:] = np.zeros(1, ACCOUNT), np.zeros(1, STRETCH)
    if saved is not None:
        _enter(tb, account, saved.records[0], saved.outages, at)
    if stretch is not None:
        present["begun"], present["since"] = at - stretch.known, at - stretch.age
        present["received"], present["up"], present["live"] = stretch.received, stretch.up, stretch.live
        present["open"] = OPEN
    live_events.enter_request(tb.state, q, at)


def _enter(tb: Tables, account: Any, record: Any, outages: Any, at: float) -> None:
    """Fill an account; its outages come behind all others."""
    control, chain = tb.control, tb["outages"]
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
    account["begun"] = at - record["known"] if record["known"] > 0.0 else 0.0


def window_said(window: Window) -> dict[str, Any]:
    """A window as a ledger says it, for :func:`window_from`."""
    names = ("rolling", "calendar", "budget", "time_zone", "start")
    return {name: value for name in names if (value := getattr(window, name)) is not None}


def window_from(said: Any) -> Window | None:
    """The window that a ledger says. Raises ``TypeError`` or :class:`.ConfigError` for anything else."""
    return None if said is None else Window(**said)
