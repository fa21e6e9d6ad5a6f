"""What the engine knows of pods and controllers, and what it answers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from slacktide.model import DisruptionLimits, ServiceClass
from slacktide.state.layout import GRID

ASLEEP, WAITING, PLACED, LEAVING = range(4)
STATES = ("asleep", "waiting", "placed", "leaving")
MOST_INSTANCES = 1_000_000
"""Of one controller, or one group; ledgers that claim more are broken."""
MOST_SECONDS = 2.0**43
"""The longest time that a ledger can say, of all instances of a controller together."""


def snap(at: float) -> float:
    """The nearest time on the grid (docs/semantics.md, 'Times')."""
    return round(at * GRID) / GRID


@dataclass(slots=True)
class Pod:
    """What an instance runs in for a while.

    ``row`` is the instance, ``host`` where the pod is or will be; ``bound``: it is known to run there, not only
    assumed. ``cause``: whose doing it is while it delivers nothing (a number of :data:`slacktide.model.causes.CAUSES`).
    """

    uid: str
    name: str
    key: str
    row: int
    spec: int
    state: int
    host: str = ""
    bound: bool = False
    ready: bool = False
    preempted: bool = False
    doomed: bool = False
    budget: str = ""
    cause: int = 0
    group: str = ""
    """Its pod group, known or not; empty: none."""
    told: bool = False
    """It was told to go, or is to be, though it counts as placed: to be moved, or by a former leader."""


@dataclass(slots=True)
class Past:
    """Sums over instances that are live no more, seconds and counts."""

    running: float = 0.0
    startup_first: float = 0.0
    startup_restarts: float = 0.0
    discarded: float = 0.0
    lifetime: float = 0.0
    preemptions: int = 0
    starts: int = 0


@dataclass(frozen=True, slots=True)
class Suffered:
    """What a controller's account of disruptions says: when the latest began, in order; when the last that ended did;
    how many have not ended, since when the oldest of these, and the UIDs of their pods that are still there. Seconds
    since 1970."""

    begun: tuple[float, ...] = ()
    ended: float = float("-inf")
    recovering: int = 0
    since: float = float("-inf")
    told: tuple[str, ...] = ()


@dataclass(slots=True)
class Controller:
    """A request: the instances that one promise is made to.

    ``q`` is its place in the tables, ``vacant`` are its live instances without a pod, the longest so first; ``desired``
    -1: not known.
    """

    key: str
    q: int
    service: ServiceClass
    approach: int
    batch: bool
    rows: dict[int, str] = field(default_factory=dict)
    """Live instances by row, and the name of each one's last pod."""
    vacant: deque[int] = field(default_factory=deque)
    desired: int = -1
    past: Past = field(default_factory=Past)
    limits: DisruptionLimits | None = None
    """What it may suffer."""
    account: int = -1
    """Its account of disruptions in the tables; -1: nothing of it is counted."""
    suffered: Suffered | None = None
    """What a ledger says that it suffered, while nothing is counted."""
    everything: bool = False
    """Its promise counts every loss, whoever caused it."""
    lost: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    """Seconds by cause in which instances delivered nothing, of spans that are over; the cluster's are not kept."""
    excused: float = 0.0
    """How many of these counted as running."""
    suspended: tuple[int, float] = (0, 0.0)
    """So many instances are suspended, since then."""
    suspended_for: float = 0.0
    """Instance seconds in which they were suspended before."""
    drained: float = 0.0
    """The end of the maintenance window in which pods of it were drained last, seconds since 1970; 0: none, or
    what is lost since its end was told to be another's doing."""


@dataclass(frozen=True, slots=True)
class Victim:
    """Who is preempted, and its metric then, seconds."""

    uid: str
    metric: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Bind ``uid`` to ``host`` once the victims are gone."""

    uid: str
    host: str
    metric: float
    victims: tuple[Victim, ...] = ()
    beyond: bool = field(default=False, compare=False)
    """Some victim may have to go although its disruption budget is used up: nobody else makes room."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass decided, in order; how many still wait; host evaluations it took; how a user's own policy broke its
    contract, if it did."""

    number: int
    decisions: tuple[Decision, ...]
    waiting: int
    operations: int
    problem: str = field(default="", compare=False)
