"""Histories of a request's instances, and T chapter 7.2 summed over them term by term: slow, obvious, exact."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from hypothesis import strategies as st

from reference.approaches import Standing, batch_standing, service_standing
from slacktide.model.workload import AGGREGATED, CONCURRENT, INDEPENDENT

ZERO = Fraction(0)


@dataclass(frozen=True)
class Incarnation:
    """Waits from ``since``, runs from ``started`` and is over ``ended``: failed, completed or removed."""

    since: Fraction
    started: Fraction | None = None
    ended: Fraction | None = None
    how: str = ""

    def w(self, t: Fraction) -> Fraction:
        for instant in (self.started, self.ended):
            if instant is not None:
                return instant - self.since
        return t - self.since

    def r(self, t: Fraction) -> Fraction:
        if self.started is None:
            return ZERO
        return (t if self.ended is None else self.ended) - self.started

    @property
    def waits(self) -> bool:
        return self.started is None and self.ended is None

    @property
    def runs(self) -> bool:
        return self.started is not None and self.ended is None


Instance = tuple[Incarnation, ...]
History = tuple[Instance, ...]


def incarnations(history: History) -> list[Incarnation]:
    return [one for instance in history for one in instance]


def lived(instance: Instance, t: Fraction) -> Fraction:
    """Admission to now, completion or removal."""
    end = t if instance[-1].ended is None else instance[-1].ended
    return end - instance[0].since


def together(history: History, t: Fraction) -> Fraction:
    """Seconds summed over instances in which all that lived then ran."""
    instants = {t}
    for one in incarnations(history):
        instants |= {x for x in (one.since, one.started, one.ended) if x is not None}
    cuts = sorted(instants)
    whole = ZERO
    for a, b in pairwise(cuts):
        live = [i for i in history if i[0].since <= a and (i[-1].ended is None or i[-1].ended > a)]
        if live and all(any(runs_at(one, a) for one in instance) for instance in live):
            whole += (b - a) * len(live)
    return whole


def runs_at(one: Incarnation, t: Fraction) -> bool:
    return one.started is not None and one.started <= t and (one.ended is None or one.ended > t)


def availability(history: History, t: Fraction, approach: int, *, batch: bool) -> Fraction | None:
    """Running time over running and waiting time, as the approach counts them; None: nothing was owed yet."""
    if approach == INDEPENDENT and len(history) > 1:
        each = [availability((instance,), t, approach, batch=batch) for instance in history]
        return min((one for one in each if one is not None), default=None)
    every = incarnations(history)
    whole = sum((one.r(t) for one in every), ZERO) + sum((one.w(t) for one in every), ZERO)
    if whole == 0:
        return None
    if approach == CONCURRENT:
        return together(history, t) / whole
    if batch:
        return sum((one.r(t) for one in every if one.how != "failed"), ZERO) / whole
    return sum((one.r(t) for one in every), ZERO) / whole


def standing(history: History, t: Fraction, approach: int, *, batch: bool) -> Standing:
    """By way of the functions under test."""
    every = incarnations(history)
    running, pending = sum((one.r(t) for one in every), ZERO), sum((one.w(t) for one in every), ZERO)
    r, w = sum(one.runs for one in every), sum(one.waits for one in every)
    if batch:
        failed = sum((one.r(t) for one in every if one.how == "failed"), ZERO)
        return batch_standing(running, failed, pending, r, w)
    return service_standing(approach, running, pending, together(history, t), r, w)


def stopped(history: History, index: int, t: Fraction) -> History:
    """The considered instance is preempted at ``t`` if it runs, and waits from then on."""
    last = history[index][-1]
    if last.waits:
        return history
    assert last.runs
    after = (*history[index][:-1], replace(last, ended=t, how="failed"), Incarnation(t))
    return (*history[:index], after, *history[index + 1 :])


@dataclass(frozen=True)
class Case:
    """A request at ``t`` and the instance of it that is considered."""

    history: History
    t: Fraction
    approach: int
    batch: bool
    slo: Fraction
    alpha: Fraction
    index: int

    @property
    def considered(self) -> Incarnation:
        return self.history[self.index][-1]


lengths = st.integers(0, 40).map(lambda n: Fraction(n, 4))
slos = st.integers(1, 20).map(lambda n: Fraction(n, 20))


@st.composite
def instances(draw: st.DrawFn, ends: tuple[str, ...], *, together_since: Fraction | None = None) -> Instance:
    at = draw(lengths) if together_since is None else together_since
    found = []
    for _ in range(draw(st.integers(0, 3))):
        begun = at + draw(lengths)
        over = begun + draw(lengths)
        found.append(Incarnation(at, begun, over, "failed"))
        at = over
    begun, end = at + draw(lengths), draw(st.sampled_from(ends))
    over = begun + draw(lengths)
    last = {
        "waits": Incarnation(at),
        "runs": Incarnation(at, begun),
        "completed": Incarnation(at, begun, over, "completed"),
        "removed": Incarnation(at, None, over, "removed"),
        "scaled in": Incarnation(at, begun, over, "removed"),
    }
    return (*found, last[end])


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Of any kind and approach; at least one instance is live."""
    batch = draw(st.booleans())
    approach = AGGREGATED if batch else draw(st.sampled_from((INDEPENDENT, CONCURRENT, AGGREGATED)))
    live = instances(("waits", "runs"))
    ends = ("waits", "runs", "completed") if batch else ("waits", "runs", "completed", "removed", "scaled in")
    others = [] if approach == INDEPENDENT else draw(st.lists(instances(ends), max_size=4))
    history = (draw(live), *others)
    t = latest(history) + draw(lengths)
    return Case(history, t, approach, batch, draw(slos), draw(lengths), 0)


@st.composite
def equal_lives(draw: st.DrawFn) -> tuple[History, Fraction]:
    """Instances that all came at 0 and are all still there."""
    one = instances(("waits", "runs"), together_since=ZERO)
    history = tuple(draw(st.lists(one, min_size=1, max_size=5)))
    return history, latest(history) + draw(lengths) + 1


def latest(history: History) -> Fraction:
    return max(x for one in incarnations(history) for x in (one.since, one.started, one.ended) if x is not None)
