"""The ledger of a controller as it is kept outside of the scheduler: exact, at one instant, plain JSON.

Aggregated and concurrent controllers keep sums and counts, at most some kilobytes however
many instances they have; of independent ones each instance has a record (some 40 bytes
of JSON text for every one that runs). :mod:`slacktide.engine.ledger.restore` goes on from them.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from slacktide.config import Accounting
from slacktide.engine.core import types
from slacktide.engine.core.types import MOST_INSTANCES, MOST_SECONDS
from slacktide.engine.ledger import accounts
from slacktide.engine.ledger.accounts import Accounts, Stretch
from slacktide.engine.ledger.pod_observation import hashed as hashed
from slacktide.engine.ledger.slo_status import SUMS
from slacktide.errors import ConfigError, StateError
from slacktide.model import APPROACHES, INDEPENDENT, Window
from slacktide.model.causes import CAUSES, WORKLOAD
from slacktide.model.disruption_limits import MOST_DISRUPTIONS
from slacktide.qos.availability import ACCOUNTINGS
from slacktide.state.layout import GRID

VERSION = 3
"""Of ledgers of promises over a window to a request of several instances."""
INSTANCES_VERSION = 2
"""Of ledgers of promises over a window to each instance."""
LIFETIME_VERSION = 1
"""Of ledgers of promises over a lifetime. A ledger has the least version that says all of it, so that every release
which can goes on from it, and an earlier one leaves it alone."""
MOST_RISKS = 256
"""A sum must do for more instances of a batch request than this: which of them had run how long is then a guess."""

VACANT, WAITING, PLACED, LEAVING = range(4)
"""What the pod of an instance does: there is none, it is on no host, on one, or was told to leave it."""

RECORD = np.dtype(
    [
        ("uid", "u8"),  # of the pod, hashed; 0: none
        ("lifetime", "f8"),
        ("running", "f8"),  # this and the next four as of the beginning of the present state
        ("startup_first", "f8"),
        ("startup_restarts", "f8"),
        ("discarded", "f8"),
        ("overhead", "f8"),
        ("age", "f8"),  # of the present state
        ("startup", "f8"),  # of the present pod, infinite until it is ready
        ("starts", "i8"),
        ("preemptions", "i8"),
        ("state", "i8"),
    ]
)
"""An instance at the checkpoint's instant; times in seconds."""
TIMES = ("lifetime", "running", "startup_first", "startup_restarts", "discarded", "overhead", "age", "startup")
NOT_REACHED = 262
"""So many bytes of its window zlib looks for nothing in."""
STRETCH = tuple(one.name for one in fields(Stretch))
COUNTS = ("live", "vacant", "waiting", "starting", "restarting", "up", "leaving", "fresh", "preemptions", "starts")


class BrokenLedger(StateError):  # noqa: N818  # says what is the matter
    """A ledger cannot be read: its ``field`` has a ``value`` other than ``expected``."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        found = repr(value)
        found = found if len(found) <= 80 else found[:77] + "..."
        super().__init__(f"books: {field}: found {found}, expected {expected}")
        self.field, self.value, self.expected = field, value, expected


class NewerLedger(BrokenLedger):
    """A ledger of a later release. What is in it is not known, so that nobody must write it but that release."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a checkpoint says; ``at`` in seconds since 1970.

    sums       seconds by name of :data:`.slo_status.SUMS`, and ``overhead``: independent, of instances that
               are no more; else of all
    counts     independent: ``preemptions`` and ``starts`` of instances that are no more; else of all, and how many
               instances are live, vacant, waiting with a pod, starting (of these ``restarting`` not for the first
               time), up; how many of the latter two are leaving; how many ``fresh`` ones wait for their first start
    records    independent: RECORD, shape (live,), vacant ones last, the longest vacant first
    names      independent: of each record the name of its last pod
    together   concurrent: seconds times instances in which all ran, by accounting
    at_risk    batch: running seconds that stopping all instances would discard
    risks      batch: the MOST_RISKS largest of those, by hashed uid
    lost       seconds by cause (the cluster's apart) in which instances delivered nothing, of all instances
    excused    how many of these counted as running
    suspended  instance seconds in which the controller was suspended, and how many instances were at the instant
    blamed     pods that delivered nothing at the instant for a cause that is not the cluster's, by hashed uid
    excuses    whether that time counts as running: its class does not count everything
    vacant_causes  of each vacant instance, the longest vacant first, the cause
    drained    the end of the maintenance window in which pods were drained last, until what they lose then is told to
               be another's doing; else 0
    leaving_startup  start-up seconds of those that are leaving
    suffered   where disruptions are limited: the account of them
    window     where the promise is over one: that
    accounts   what that asks for: independent, of each record; else of the request, as long as its stretches are over
    stretch    aggregated and concurrent: the one that goes on
    """

    at: float
    approach: int
    sums: Mapping[str, float]
    counts: Mapping[str, int]
    records: Any
    names: tuple[str, ...]
    together: Mapping[Accounting, float]
    at_risk: float
    risks: Mapping[int, float]
    leaving_startup: float
    window: Window | None = None
    accounts: Accounts | None = None
    stretch: Stretch | None = None
    suffered: types.Suffered | None = None
    lost: Mapping[str, float] = field(default_factory=dict)
    excused: float = 0.0
    suspended: tuple[float, int] = (0.0, 0)
    blamed: Mapping[int, int] = field(default_factory=dict)
    vacant_causes: tuple[int, ...] = ()
    drained: float = 0.0
    excuses: bool = True


def suffered_said(had: types.Suffered) -> dict[str, Any]:
    """An account of disruptions, without what there is not."""
    said: dict[str, Any] = {"begun": list(had.begun), "recovering": had.recovering}
    said |= {name: at for name, at in (("ended", had.ended), ("since", had.since)) if math.isfinite(at)}
    return {**said, "told": list(had.told)} if had.told else said


# -- as text -----------------------------------------------------------------------------------------------------------


def squeeze(data: bytes) -> str:
    """Compressed, in base64."""
    # A larger window than that finds no more, and laying it out takes longer than all else: most data are short.
    window = min(zlib.MAX_WBITS, max(9, (len(data) + NOT_REACHED).bit_length()))
    compressor = zlib.compressobj(6, zlib.DEFLATED, window, min(zlib.DEF_MEM_LEVEL, window - 7))
    return base64.b64encode(compressor.compress(data) + compressor.flush()).decode("ascii")


def pack(records: Any) -> str:
    """Columns of 64-bit numbers, times in units of 2^-20 s (-1: infinite), by place of the byte: most are 0."""
    fields = RECORD.names or ()
    columns = np.empty((len(fields), len(records)), "<i8")
    times = np.array([records[name] for name in TIMES])
    times[np.isinf(times)] = -1.0 / GRID
    columns[[fields.index(name) for name in TIMES]] = np.rint(times * GRID)
    for i, name in enumerate(fields):
        if name not in TIMES:
            columns[i] = records[name]
    return squeeze(columns.view("u1").reshape(*columns.shape, 8).transpose(0, 2, 1).tobytes())


def _unpack(data: bytes, count: int) -> Any:
    fields = RECORD.names or ()
    planes = np.frombuffer(data, "u1").reshape(len(fields), 8, count)
    columns = np.ascontiguousarray(planes.transpose(0, 2, 1)).view("<i8").reshape(len(fields), count)
    records = np.zeros(count, RECORD)
    for i, name in enumerate(fields):
        records[name] = columns[i] / GRID if name in TIMES else columns[i]
    records["startup"][columns[fields.index("startup")] < 0] = np.inf
    return records


def read(said: Mapping[str, Any]) -> Checkpoint:
    """A checkpoint from what :func:`.checkpoint_export.export` said, through JSON or not.

    Raises :class:`BrokenLedger` naming the field, its value and what is expected, where it is broken, and of these
    :class:`NewerLedger` where its version is one to come.
    """
    version = said.get("version")
    if isinstance(version, int | float) and version > VERSION:
        raise NewerLedger("version", version, f"at most {VERSION}: a later release wrote them")
    if version not in range(LIFETIME_VERSION, VERSION + 1):
        raise BrokenLedger("version", version, f"a number from {LIFETIME_VERSION} to {VERSION}")
    if said.get("approach") not in APPROACHES:
        raise BrokenLedger("approach", said.get("approach"), f"one of {', '.join(APPROACHES)}")
    approach = APPROACHES.index(str(said["approach"]))
    alone = approach == INDEPENDENT
    counts = {name: _count(said, name) for name in (("live", "preemptions", "starts") if alone else COUNTS)}
    records = np.zeros(0, RECORD)
    names: tuple[str, ...] = ()
    if alone:
        width = 8 * len(RECORD.names or ())
        data = _unsqueeze(said, "records", counts["live"] * width)
        if len(data) != counts["live"] * width:
            raise BrokenLedger("records", f"{len(data)} bytes", f"{counts['live']} records of {width} bytes")
        records = _unpack(data, counts["live"])
        names = _names(said, counts["live"])
        _check(records)
    return Checkpoint(
        at=_number(said, "at"),
        approach=approach,
        sums={name: _number(said, "sums", name) for name in (*SUMS, "overhead")},
        counts=counts,
        records=records,
        names=names,
        together=dict.fromkeys(ACCOUNTINGS, 0.0) if alone else {a: _number(said, "together", a) for a in ACCOUNTINGS},
        at_risk=0.0 if alone else _number(said, "atRisk"),
        risks={} if alone else _read_risks(said),
        leaving_startup=0.0 if alone else _number(said, "leavingStartup"),
        window=_window(said),
        accounts=_accounts(said, counts["live"] if alone else 1) if said.get("outages") is not None else None,
        stretch=None if alone else _read_stretch(said),
        suffered=_read_suffered(said),
        **_read_causes(said),
    )


def _read_stretch(said: Mapping[str, Any]) -> Stretch | None:
    if said.get("stretch") is None:
        return None
    known, age, received, up, live = (_number(said, "stretch", name) for name in STRETCH)
    if not (up.is_integer() and live.is_integer() and 0 <= up <= live <= MOST_INSTANCES and live >= 1):
        raise BrokenLedger("stretch", said["stretch"], "a share: so many (up) of at least one (live)")
    if not (0.0 <= age <= known and received >= 0.0):
        raise BrokenLedger("stretch", said["stretch"], "seconds from 0 on, age at most known")
    return Stretch(known, age, received, int(up), int(live))


def _read_causes(said: Mapping[str, Any]) -> dict[str, Any]:
    """What was not the cluster's doing; ledgers of before do not say it."""
    if said.get("lost") is None:
        return {}
    blamed = said.get("blamed")
    blamed = {} if blamed is None else blamed
    if not isinstance(blamed, Mapping) or not all(re.fullmatch("[0-9a-f]{1,16}", str(uid)) for uid in blamed):
        raise BrokenLedger("blamed", blamed, "causes by hexadecimal number")
    vacant = said.get("vacantCauses") or []
    if not isinstance(vacant, list):
        raise BrokenLedger("vacantCauses", vacant, "a list of causes")
    for cause in (*blamed.values(), *vacant):
        if cause not in CAUSES:
            raise BrokenLedger("blamed", cause, f"one of {', '.join(CAUSES)}")
    count = _number(said, "suspended", "count")
    if not 0 <= count <= MOST_INSTANCES:
        raise BrokenLedger("suspended.count", count, f"a number from 0 to {MOST_INSTANCES}")
    return {
        "lost": {name: _number(said, "lost", name) for name in CAUSES[WORKLOAD:]},
        "excused": _number(said, "excused"),
        "excuses": said.get("excuses") is not False,
        "suspended": (_number(said, "suspended", "seconds"), int(count)),
        "blamed": {int(uid, 16): CAUSES.index(cause) for uid, cause in blamed.items()},
        "vacant_causes": tuple(CAUSES.index(cause) for cause in vacant),
        "drained": 0.0 if said.get("drained") is None else _number(said, "drained"),
    }


def _window(said: Mapping[str, Any]) -> Window | None:
    try:
        return accounts.window_from(said.get("window"))
    except (TypeError, ConfigError) as error:
        raise BrokenLedger("window", said.get("window"), f"a window: {error}") from error


def _accounts(said: Mapping[str, Any], count: int) -> Accounts:
    data = _unsqueeze(said, "outages", accounts.most_bytes(count))
    found = accounts.unpack(data, count)
    if found is None:
        raise BrokenLedger("outages", f"{len(data)} bytes", f"accounts of {count} instances, seconds not negative")
    return found


def moved(said: Mapping[str, Any], at: float) -> dict[str, Any]:
    """What :func:`.checkpoint_export.export` said, as if all of it had happened later: so that it holds for ``at``."""
    moved_on = {**said, "at": at}
    had = _read_suffered(said)
    if had is not None:
        later = at - _number(said, "at")
        begun = tuple(one + later for one in had.begun)
        ended, since = had.ended + later, had.since + later
        moved_on["disruptions"] = suffered_said(replace(had, begun=begun, ended=ended, since=since))
    return moved_on


def _check(records: Any) -> None:
    for name in (*TIMES, "starts", "preemptions"):
        if len(records) and not float(records[name].min()) >= 0.0:
            raise BrokenLedger("records", f"{name} {float(records[name].min())}", f"no negative {name}")
    if not np.isin(records["state"], (VACANT, WAITING, PLACED, LEAVING)).all():
        raise BrokenLedger("records", f"state {int(records['state'].max())}", "a state from 0 to 3")


def _names(said: Mapping[str, Any], count: int) -> tuple[str, ...]:
    try:
        names = json.loads(_unsqueeze(said, "names", 300 * count + 2))
    except ValueError:
        names = None
    if not isinstance(names, list) or len(names) != count or not all(isinstance(name, str) for name in names):
        raise BrokenLedger("names", said.get("names"), f"a list of {count} names, compressed, in base64")
    return tuple(names)


def _unsqueeze(said: Mapping[str, Any], field: str, most: int) -> bytes:
    text = said.get(field)
    try:
        packed = base64.b64decode(text if isinstance(text, str) else "", validate=True)
        return zlib.decompressobj().decompress(packed, most + 1)
    except (binascii.Error, zlib.error, ValueError):
        raise BrokenLedger(field, text, "compressed data in base64") from None


def _read_risks(said: Mapping[str, Any]) -> dict[int, float]:
    value = said.get("risks")
    value = {} if value is None else value  # an API server does not keep empty objects
    if not isinstance(value, Mapping) or not all(re.fullmatch("[0-9a-f]{1,16}", str(uid)) for uid in value):
        raise BrokenLedger("risks", value, "seconds by hexadecimal number")
    return {int(uid, 16): _number(said, "risks", uid) for uid in value}


def _read_suffered(said: Mapping[str, Any]) -> types.Suffered | None:
    value = said.get("disruptions")
    if value is None:
        return None
    begun = value.get("begun", []) if isinstance(value, Mapping) else None
    if not isinstance(begun, list) or len(begun) > MOST_DISRUPTIONS:
        raise BrokenLedger("disruptions.begun", begun, f"at most {MOST_DISRUPTIONS} instants in order")
    instants = tuple(_number({"disruptions.begun": one}, "disruptions.begun") for one in begun)
    if list(instants) != sorted(instants):
        raise BrokenLedger("disruptions.begun", begun, "instants in order")
    count = value.get("recovering", 0)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_INSTANCES:
        raise BrokenLedger("disruptions.recovering", count, f"a whole number from 0 to {MOST_INSTANCES}")
    never = float("-inf")
    ended, since = (
        _number(said, "disruptions", name) if value.get(name) is not None else never for name in ("ended", "since")
    )
    told = value.get("told", [])
    if not isinstance(told, list) or len(told) > count or not all(isinstance(uid, str) for uid in told):
        raise BrokenLedger("disruptions.told", told, f"at most {count} UIDs of pods")
    return types.Suffered(instants, ended, count, since, tuple(told))


def _number(said: Mapping[str, Any], *path: str) -> float:
    value: Any = said
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or abs(value) > MOST_SECONDS
    ):
        raise BrokenLedger(".".join(path), value, "seconds")
    return float(value)


def _count(said: Mapping[str, Any], name: str) -> int:
    value = said.get("counts", {})
    value = value.get(name) if isinstance(value, Mapping) else None
    most = 2**53 if name in ("preemptions", "starts") else MOST_INSTANCES
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BrokenLedger(f"counts.{name}", value, f"a whole number from 0 to {most}")
    return value
