"""What the page shows, as rows of tables: the one model for a live scheduler, a simulation and a record.

A :class:`View` is the whole, or what has changed since the last one: rows that are new or different, and the numbers of
rows that are no more. As JSON a row is a list; :data:`COLUMNS` tells the page which place means what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import fields

from slacktide import __version__
from slacktide.engine.ledger.slo_status import STATES

FORMAT, VERSION = "slacktide-view", 1
WAITING, STARTING, READY, LEAVING = range(4)
POD_STATES = ("waiting", "starting", "ready", "leaving")
NOT_PLACED, HOSTS = -1, -2
Lost = tuple[tuple[int, float], ...]
"""Instance seconds of waiting by whose doing: a class by its number, or nobody's before the first place
(:data:`NOT_PLACED`), or that of hosts that failed (:data:`HOSTS`). Empty where that is not known."""


class ClassRow(msgspec.Struct, array_like=True, frozen=True):
    """A class and how its promises stand. ``promised`` and ``left`` are shares: ``left`` is 1 where all of its budget
    is left, below 0 where more was lost than may be. ``counts`` are workloads by the places of STATES; ``margin`` is in
    seconds; ``lost`` is that of those who missed."""

    number: int
    name: str
    promised: float
    rank: int
    margin: float
    counts: tuple[int, ...]
    left: float | None
    running: int
    waiting: int
    preempted: int
    lost: Lost = ()


class WorkloadRow(msgspec.Struct, array_like=True, frozen=True):
    """A workload: shares ``promised`` and ``delivered``; ``slack`` in seconds, None: its promise cannot break.

    ``cls`` is the number of its class, ``state`` a place of STATES, ``running``, ``waiting`` and ``late`` count pods:
    ready, not ready, and those of the waiting whose promise cannot be kept any more. ``over``: it has ended.
    ``given_up``: since when plans have given it up, in seconds of the page's clock, None: they do not.
    ``lost`` is empty unless the promise is missed.
    """

    number: int
    namespace: str
    name: str
    kind: str
    cls: int
    promised: float
    delivered: float | None
    slack: float | None
    state: int
    running: int
    waiting: int
    preempted: int
    late: int = 0
    over: bool = False
    given_up: float | None = None
    lost: Lost = ()


class NodeRow(msgspec.Struct, array_like=True, frozen=True):
    """A node. ``used``: the largest share of any resource that is taken, None: not known; ``others``: pods that are not
    ours; ``up``: it takes pods."""

    number: int
    name: str
    used: float | None
    others: int
    up: bool


class PodRow(msgspec.Struct, array_like=True, frozen=True):
    """A pod, or an instance of a simulation: its workload and node by number (-1: none); ``state`` is a place of
    POD_STATES.

    ``since``: when it began to wait or was placed, None: not known. ``reason``: why it waits.
    """

    number: int
    namespace: str
    name: str
    workload: int
    node: int
    state: int
    since: float | None
    reason: str = ""


class Loss(msgspec.Struct, array_like=True, frozen=True):
    """A pod that made room: its slack then, seconds (None: infinite)."""

    pod: str
    workload: int
    cls: int
    slack: float | None


class DecisionRow(msgspec.Struct, array_like=True, frozen=True):
    """A pod that was given a place at an instant, and at whose cost. ``slack`` is what it was decided by, seconds."""

    number: int
    at: float
    pod: str
    workload: int
    cls: int
    node: str
    slack: float | None
    victims: tuple[Loss, ...] = ()


TABLES: dict[str, type[msgspec.Struct]] = {
    "classes": ClassRow,
    "workloads": WorkloadRow,
    "nodes": NodeRow,
    "pods": PodRow,
    "decisions": DecisionRow,
}
COLUMNS = {name: [one.name for one in fields(row)] for name, row in TABLES.items()} | {
    "victims": [one.name for one in fields(Loss)]
}


class Head(msgspec.Struct):
    """Where the view comes from. ``clock``: times are seconds since 1970, or since the beginning of a simulation.

    ``span``: first and last instant of what can be looked at, None: it goes on by itself. ``marks``: preemptions in
    equal parts of the span. ``remarks``: what the reader has to know of this source.
    """

    source: Literal["scheduler", "simulation", "record"]
    title: str
    policy: str
    clock: Literal["epoch", "seconds"]
    span: tuple[float, float] | None = None
    marks: list[int] = []
    remarks: list[str] = []
    format: str = FORMAT
    version: int = VERSION
    slacktide: str = __version__
    columns: dict[str, list[str]] = msgspec.field(default_factory=lambda: COLUMNS)
    states: Sequence[str] = STATES
    pod_states: Sequence[str] = POD_STATES


class View(msgspec.Struct, omit_defaults=True):
    """The state ``at`` an instant, seconds; ``whole``: begin anew with this. ``hidden``: workloads that are counted in
    the classes and have no row, as they are too many.

    ``asks`` is the pod that waits most urgently and may preempt (empty: none), ``free`` the numbers of all pods that
    could make room for it by the rules of the policy; both None: as before.
    """

    at: float
    whole: bool = False
    head: Head | None = None
    classes: list[ClassRow] = []
    workloads: list[WorkloadRow] = []
    nodes: list[NodeRow] = []
    pods: list[PodRow] = []
    decisions: list[DecisionRow] = []
    gone: dict[str, list[int]] = {}
    hidden: int = 0
    asks: str | None = None
    free: list[int] | None = None
    sentences: list[str] | None = None


def encode(value: Any) -> bytes:
    """As JSON; infinite and undefined numbers are null."""
    return msgspec.json.encode(value)
