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
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.engine.core import disruptions, types
from slacktide.engine.core.engine import Engine
from slacktide.engine.ledger import accounts
from slacktide.engine.ledger.accounts import Accounts, Stretch
from slacktide.engine.ledger.excused import causes_said, excused_on_hosts, work_at_risk
from slacktide.engine.ledger.pod_observation import hashed as hashed
from slacktide.engine.ledger.promise import promise_said
from slacktide.engine.ledger.slo_status import SUMS, Accrued, accrue, known, not_before, stand, totals
from slacktide.errors import ConfigError, StateError
from slacktide.kernels.tables import schema
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
MOST_INSTANCES = 1_000_000
"""Of one controller; checkpoints that claim more are broken."""

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
    excuses: bool = True


def export(engine: Engine, key: str, now: float) -> dict[str, Any]:
    """The controller's ledger at ``now``, for :func:`read`; plain JSON. O(its live instances).

    ``at`` says for which instant it holds: ``now``, but no earlier than what the ledger knows.
    Raises :class:`StateError` where the controller is not known.
    """
    controller = known(engine, key)
    at = not_before(engine, controller, now)
    vacant = set(controller.vacant)
    order = [row for row in controller.rows if row not in vacant] + list(controller.vacant)
    had = accrue(engine.tables.tb, order, len(order), at)
    said: dict[str, Any] = {"version": LIFETIME_VERSION, "approach": APPROACHES[controller.approach], "at": at}
    said["promise"] = promise_said(controller)
    had_to = disruptions.suffered(engine.instances, controller)
    if had_to is not None:
        said["disruptions"] = _of_suffered(had_to)
    said |= causes_said(engine, controller, at)
    if controller.approach != INDEPENDENT:
        said |= _in_sums(engine, controller, had, at)
        return said | _of_window(engine, controller, at)
    past, window = controller.past, controller.service.window
    if window is not None:
        kept = accounts.of_rows(engine.tables.tb, had.rows, at)
        said |= {
            "version": INSTANCES_VERSION,
            "window": accounts.window_said(window),
            "outages": _squeeze(kept.packed()),
        }
    return {
        **said,
        "sums": {name: getattr(past, name) for name in SUMS} | {"overhead": 0.0},
        "counts": {"live": len(order), "preemptions": past.preemptions, "starts": past.starts},
        "records": pack(_records(engine, had)),
        "names": _squeeze(json.dumps([controller.rows[row] for row in order]).encode()),
    }


def _of_suffered(had: types.Suffered) -> dict[str, Any]:
    """An account of disruptions, without what there is not."""
    said: dict[str, Any] = {"begun": list(had.begun), "recovering": had.recovering}
    said |= {name: at for name, at in (("ended", had.ended), ("since", had.since)) if math.isfinite(at)}
    return {**said, "told": list(had.told)} if had.told else said


def _states(engine: Engine, had: Accrued) -> NDArray[np.int64]:
    """Of each row what its pod does."""
    states = np.full(len(had.rows), VACANT, np.int64)
    of = {types.ASLEEP: WAITING, types.WAITING: WAITING, types.PLACED: PLACED, types.LEAVING: LEAVING}
    for i, row in enumerate(had.rows.tolist()):
        uid = engine.uid_of_row.get(row)
        if uid is not None:
            one = engine.pods[uid]
            states[i] = LEAVING if one.preempted else of[one.state]  # also one that was leaving when it was restored
    return states


def _records(engine: Engine, had: Accrued) -> Any:
    records = np.zeros(len(had.rows), RECORD)
    for name in ("running", "startup_first", "startup_restarts", "discarded", "overhead", "starts", "preemptions"):
        records[name] = had.records[name]
    records["lifetime"], records["age"] = had["lifetime"], had["age"]
    excused = had.records["state"] == schema.EXCUSED
    records["running"][excused] = had["running"][excused]
    records["startup"] = np.where(had["on"], had.records["startup"], 0.0)
    records["state"] = _states(engine, had)
    uids = (engine.uid_of_row.get(row, "") for row in had.rows.tolist())
    records["uid"] = [hashed(uid) if uid else 0 for uid in uids]
    return records


def _in_sums(engine: Engine, controller: types.Controller, had: Accrued, at: float) -> dict[str, Any]:
    """The ledger of all instances together."""
    stood = stand(engine.tables.tb, (controller,), at)
    states, starts = _states(engine, had), had.records["starts"].copy()
    bound = np.array([_is_bound(engine, row) for row in had.rows.tolist()], np.bool_)
    assumed = had["on"] & ~bound  # may never be bound: as if it waited
    states[assumed] = WAITING
    starts -= assumed
    first = had.records["starts"] == 1
    sums = totals(controller, had)
    sums["startup_first"] -= float(had["spent"][assumed & first].sum())
    sums["startup_restarts"] -= float(had["spent"][assumed & ~first].sum())
    ready = had["up"] & ~excused_on_hosts(engine, had.rows)
    starting = had["on"] & bound & ~ready
    leaving = states == LEAVING
    counts = {
        "live": len(states),
        "vacant": int(np.count_nonzero(states == VACANT)),
        "waiting": int(np.count_nonzero(states == WAITING)),
        "starting": int(np.count_nonzero(starting)),
        "restarting": int(np.count_nonzero(starting & ~first)),
        "up": int(np.count_nonzero(ready & bound)),
        "leaving": int(np.count_nonzero(leaving)),
        "fresh": int(np.count_nonzero((states <= WAITING) & (starts == 0))),
        "preemptions": controller.past.preemptions + int(had.records["preemptions"].sum()),
        "starts": controller.past.starts + int(starts.sum()),
    }
    return {
        "sums": {**sums, "overhead": float(engine.tables.tb["requests"]["overhead"][controller.q])},
        "counts": counts,
        "together": dict(zip(ACCOUNTINGS, stood.together[0].tolist(), strict=True)),
        "atRisk": float(work_at_risk(engine, had).sum()) if controller.batch else 0.0,
        "risks": _risks(engine, had) if controller.batch else {},
        "leavingStartup": float(had["spent"][leaving].sum()),
    }


def _of_window(engine: Engine, controller: types.Controller, at: float) -> dict[str, Any]:
    """What a promise over a window asks of a request of several instances, where it is over one."""
    window = controller.service.window
    if window is None or controller.batch:
        return {}
    kept, stretch = accounts.of_request(engine.tables.tb, controller.q, at)
    said = {"version": VERSION, "window": accounts.window_said(window), "outages": _squeeze(kept.packed())}
    return said if stretch is None else said | {"stretch": asdict(stretch)}


def _risks(engine: Engine, had: Accrued) -> dict[str, float]:
    """What a pod's own timestamps tell only if it has been ready ever since it first was."""
    risked = work_at_risk(engine, had)
    some = np.argsort(-risked, kind="stable")[:MOST_RISKS]
    return {f"{hashed(engine.uid_of_row[int(had.rows[i])]):x}": float(risked[i]) for i in some if risked[i] > 0.0}


def _is_bound(engine: Engine, row: int) -> bool:
    uid = engine.uid_of_row.get(row)
    return uid is not None and engine.pods[uid].bound


# -- as text -----------------------------------------------------------------------------------------------------------


def _squeeze(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def pack(records: Any) -> str:
    """Columns of 64-bit numbers, times in units of 2^-20 s (-1: infinite), by place of the byte: most are 0."""
    columns = np.empty((len(RECORD.names or ()), len(records)), "<i8")
    for i, name in enumerate(RECORD.names or ()):
        values = records[name]
        if name in TIMES:
            endless = np.isinf(values)
            values = np.where(endless, -1.0, np.rint(np.where(endless, 0.0, values) * GRID))
        columns[i] = values
    return _squeeze(columns.view("u1").reshape(*columns.shape, 8).transpose(0, 2, 1).tobytes())


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
    """A checkpoint from what :func:`export` said, through JSON or not.

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
    """What :func:`export` said, as if all of it had happened so much later that it holds for the instant ``at``."""
    moved_on = {**said, "at": at}
    had = _read_suffered(said)
    if had is not None:
        later = at - _number(said, "at")
        begun = tuple(one + later for one in had.begun)
        ended, since = had.ended + later, had.since + later
        moved_on["disruptions"] = _of_suffered(replace(had, begun=begun, ended=ended, since=since))
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
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 2**43:
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
