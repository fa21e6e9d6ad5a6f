"""The rows of ``slacktide top``, and in which order they stand."""

from __future__ import annotations

from dataclasses import dataclass

from slacktide.cli.text import Tone, paint, width_of
from slacktide.for_people import duration, share

MOST_NAMES = 5
"""So many are named in a sentence."""
STATES = ("Missed", "AtRisk", "Kept", "Unknown")
HEAD = (
    "NAMESPACE", "WORKLOAD", "CLASS", "PROMISED", "DELIVERED", "SLACK", "STATE", "LOST", "STARVING",
    "RUNNING", "WAITING", "PREEMPTED", "BY CLUSTER", "BY WORKLOAD", "BY OPERATOR",
)  # fmt: skip
LAST = (
    "BY OPERATOR", "BY WORKLOAD", "BY CLUSTER", "PREEMPTED", "STARVING", "RUNNING", "LOST", "WAITING", "PROMISED",
    "NAMESPACE",
)  # fmt: skip
"""These columns are left out, in this order, until the others fit on the terminal; ``--wide`` leaves none out."""
TONES: dict[str, Tone] = {"Missed": "bad", "AtRisk": "risk", "Kept": "good"}


@dataclass(frozen=True, slots=True)
class Line:
    """A ledger as it is by now; ``slack`` is infinite where there is none. Without a class nothing is promised."""

    namespace: str
    name: str
    service: str
    promised: float | None
    delivered: float | None
    slack: float
    state: str
    running: int
    waiting: int
    preempted: int
    lost: int = 0
    starving: int = 0
    lost_by: tuple[float, float, float] | None = None
    """Instance seconds lost by the doing of the cluster, the workload, an operator, as written; None: nobody counts."""
    given_up: float | None = None
    """Since when plans have given it up, seconds since 1970; None: they do not."""

    def cells(self) -> tuple[str, ...]:
        """For the table."""
        slack = duration(self.slack)
        shares = ["-" if one is None else share(one) for one in (self.promised, self.delivered)]
        late = str(self.lost or "-"), str(self.starving or "-")
        counts = str(self.running), str(self.waiting), str(self.preempted)
        by = ("-",) * 3 if self.lost_by is None else tuple(duration(one) for one in self.lost_by)
        state = paint(self.state, TONES.get(self.state)) + (", given up" if self.given_up is not None else "")
        return (self.namespace, self.name, self.service, *shares, slack, state, *late, *counts, *by)


ORDERS = {
    "slack": lambda one: (one.slack, one.namespace, one.name),
    "name": lambda one: (one.namespace, one.name),
    "delivered": lambda one: (2.0 if one.delivered is None else one.delivered, one.namespace, one.name),
    "state": lambda one: (STATES.index(one.state) if one.state in STATES else 9, one.slack, one.name),
    "lost": lambda one: (-one.lost, -one.starving, one.slack, one.namespace, one.name),
    "preempted": lambda one: (-one.preempted, one.namespace, one.name),
}


def named(names: list[str]) -> str:
    """The first few of them."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def fitting(rows: list[tuple[str, ...]], width: int) -> list[int]:
    """Places of the columns that are shown on a terminal so wide."""
    places = list(range(len(HEAD)))
    for name in LAST:
        if sum(2 + max(map(width_of, (HEAD[place], *(row[place] for row in rows)))) for place in places) - 2 <= width:
            break
        places.remove(HEAD.index(name))
    return places
