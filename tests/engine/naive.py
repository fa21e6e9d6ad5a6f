"""Books kept the slow way: every instance's history as a list of segments, summed up whenever somebody asks.

Written from docs/semantics.md; shares no code with the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from reference.metric import Ledger, promise_state, running_metric
from slacktide.config import Config
from slacktide.model import ServiceClass

ACCOUNTINGS = ("always", "restart", "never")


@dataclass
class Segment:
    """From ``begin`` to ``end`` (None: still) an instance is in a ``kind``: wait, first, again, run."""

    begin: float
    kind: str
    incarnation: int
    end: float | None = None

    def seconds(self, t: float) -> float:
        return max(0.0, (t if self.end is None else min(t, self.end)) - self.begin)


@dataclass(eq=False)
class Life:
    """One instance."""

    admitted: float
    name: str
    uid: str | None = None
    segments: list[Segment] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)  # incarnations whose work was lost
    starts: int = 0
    preemptions: int = 0
    ended: float | None = None

    def enter(self, t: float, kind: str) -> None:
        if self.segments:
            self.segments[-1].end = t
        self.segments.append(Segment(t, kind, self.starts))

    @property
    def kind(self) -> str:
        return self.segments[-1].kind

    def lifetime(self, t: float) -> float:
        return (t if self.ended is None else self.ended) - self.admitted

    def sum(self, t: float, *kinds: str) -> float:
        return sum(
            s.seconds(t)
            for s in self.segments
            if s.kind in kinds and not (s.kind == "run" and s.incarnation in self.failed)
        )

    def discarded(self, t: float) -> float:
        return sum(s.seconds(t) for s in self.segments if s.kind == "run" and s.incarnation in self.failed)

    def received(self, t: float, accounting: str) -> float:
        kinds = {"always": ("run",), "restart": ("run", "first"), "never": ("run", "first", "again")}
        return self.sum(t, *kinds[accounting])

    def up_at(self, t: float, accounting: str) -> bool:
        """Whether it counts as running just after ``t``."""
        kinds = {"always": ("run",), "restart": ("run", "first"), "never": ("run", "first", "again")}
        return any(s.begin <= t and (s.end is None or t < s.end) and s.kind in kinds[accounting] for s in self.segments)


@dataclass
class Naive:
    """One controller."""

    approach: str
    batch: bool = False
    lives: list[Life] = field(default_factory=list)
    vacant: list[Life] = field(default_factory=list)
    desired: int = -1
    refusals: int = 0

    def live(self) -> list[Life]:
        return [one for one in self.lives if one.ended is None]

    def of(self, uid: str) -> Life:
        return next(one for one in self.live() if one.uid == uid)

    # What happens

    def arrive(self, uid: str, name: str, t: float) -> None:
        named = [one for one in self.vacant if one.name == name]
        if self.vacant:
            one = (named or self.vacant)[0]
            self.vacant.remove(one)
        else:
            one = Life(t, name)
            one.enter(t, "wait")
            self.lives.append(one)
        one.uid, one.name = uid, name

    def place(self, uid: str, t: float) -> None:
        one = self.of(uid)
        one.starts += 1
        one.enter(t, "first" if one.starts == 1 else "again")

    def ready(self, uid: str, t: float) -> None:
        self.of(uid).enter(t, "run")

    def unready(self, uid: str, t: float) -> None:
        one = self.of(uid)
        incarnation = one.segments[-1].incarnation
        one.enter(t, "again")
        one.starts = max(2, one.starts)
        one.segments[-1].incarnation = incarnation
        if incarnation != one.starts:  # the same incarnation, though it counts as a restart from now on
            for segment in one.segments:
                if segment.incarnation == incarnation:
                    segment.incarnation = one.starts

    def refused(self, uid: str) -> None:
        """As if it had waited on since it was placed."""
        one = self.of(uid)
        self.refusals += 1
        while one.segments[-1].incarnation == one.starts and one.kind != "wait":
            one.segments.pop()
        one.segments[-1].end = None
        one.starts -= 1

    def gone(self, uid: str, t: float, completed: bool = False) -> None:
        one = self.of(uid)
        if one.kind != "wait":
            if self.batch and not completed:
                one.failed.add(one.segments[-1].incarnation)
            one.enter(t, "wait")
        one.uid = None
        if completed:
            self._end(one, t)
        elif 0 <= self.desired < len(self.live()):
            self._end(self._hand_over(one, t), t)
        else:
            self.vacant.append(one)

    def _end(self, one: Life, t: float) -> None:
        one.segments[-1].end = one.ended = t

    def _hand_over(self, one: Life, t: float) -> Life:
        """Of independent ones the youngest ends, and its pod goes on in the ledger of the one that lost its own."""
        youngest = max(self.live(), key=lambda other: (other.admitted, self.lives.index(other)))
        if self.approach != "independent" or youngest is one or youngest.uid is None or youngest.uid in self.leaving:
            return one
        one.uid, one.name = youngest.uid, youngest.name
        if youngest.kind != "wait":
            one.starts += 1
            one.enter(t, "run" if youngest.kind == "run" else "first" if one.starts == 1 else "again")
        youngest.enter(t, "wait")
        youngest.uid = None
        return youngest

    leaving: set[str] = field(default_factory=set)

    def want(self, count: int, t: float) -> None:
        self.desired = count
        while 0 <= count < len(self.live()) and self.vacant:
            self._end(self.vacant.pop(), t)

    # What it amounts to

    def lifetime(self, t: float) -> float:
        return sum(one.lifetime(t) for one in self.lives)

    def received(self, t: float, accounting: str) -> float:
        if self.approach == "concurrent":
            return self.together(t, accounting)
        return sum(one.received(t, accounting) for one in self.lives)

    def together(self, t: float, accounting: str) -> float:
        """Instance seconds in which all that were live counted as running."""
        edges = {t}
        for one in self.lives:
            edges |= {edge for s in one.segments for edge in (s.begin, s.end) if edge is not None}
            edges |= {one.admitted} | ({one.ended} if one.ended is not None else set())
        ordered = sorted(edge for edge in edges if edge <= t)
        total = 0.0
        for begin, end in pairwise(ordered):
            there = [one for one in self.lives if one.admitted <= begin and (one.ended is None or begin < one.ended)]
            if there and all(one.up_at(begin, accounting) for one in there):
                total += len(there) * (end - begin)
        return total

    def availability(self, t: float, accounting: str) -> float:
        if self.approach == "independent" and self.live():
            lives = [one for one in self.live() if one.lifetime(t) > 0]
            return min((one.received(t, accounting) / one.lifetime(t) for one in lives), default=1.0)
        lifetime = self.lifetime(t)
        return self.received(t, accounting) / lifetime if lifetime > 0 else 1.0

    def state(self, t: float, accounting: str, slack: float, service: ServiceClass, alpha: float) -> str:
        """How the promise stands; ``slack`` is that of the whole, seconds, where instances have none of their own."""
        accounts = [(self.received(t, accounting), self.lifetime(t), slack)]
        if self.approach == "independent":
            lives = [(one.received(t, accounting), one.lifetime(t)) for one in self.live()]
            metric = [running_metric(Ledger(e, lived - e), service.slo, alpha) for e, lived in lives]
            alone = [(*life, q) for life, q in zip(lives, metric, strict=True)]
            accounts = alone or [(*accounts[0][:2], float("inf"))]
        found = [promise_state(e, lived, q, service.slo, alpha, service.margin) for e, lived, q in accounts]
        owed, broken, risky = (any(column) for column in zip(*found, strict=True))
        return "Unknown" if not owed else "Missed" if broken else "AtRisk" if risky else "Kept"

    def late(self, uid: str, t: float, service: ServiceClass, config: Config) -> str:
        """What a waiting instance is: lost, starving, or neither (docs/semantics.md, 'Triage')."""
        one, accounting, policy = self.of(uid), config.qos.startup, config.policy
        alone = self.approach == "independent"
        received = (one if alone else self).received(t, accounting)
        lifetime = (one if alone else self).lifetime(t)
        behind = round(received / service.slo * 2**20) / 2**20 - lifetime
        assert config.qos.alpha <= policy.savable, "whoever is not behind is not late"
        q = behind - config.qos.alpha
        if policy.overload != "triage" or behind >= 0 or q >= service.margin or q >= -policy.savable:
            return ""
        recovers = policy.savable <= (1 / service.slo - 1) * policy.recovery
        spared = recovers and policy.floor > 0 and behind < (policy.floor - 1) * lifetime
        return "starving" if spared else "lost"
