"""What a promise over a window means for a request of several instances: exactly: the integral of the
share that counts.

Nothing is remembered but what happened; slack that somebody found is held beside it.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from reference.windows import Promise

STEP = Fraction(1, 2**20)
Interval = tuple[float, float, int, int]
"""From, to (s), how many counted of how many."""


class Definition:
    """E of a history, exactly, and what a window that begins at ``t - W + v`` has too much."""

    def __init__(self, promise: Promise, history: list[Interval]) -> None:
        self.promise, self.history, self.now = promise, history, Fraction(history[-1][1])
        self.before = Fraction(1) if promise.whole else Fraction(promise.slo)
        self.length, self.good = Fraction(promise.rolling), Fraction(promise.good)

    def received(self, s: Fraction) -> Fraction:
        begun = Fraction(self.history[0][0])
        if s < begun:
            return -self.before * (begun - s)
        return sum(
            (Fraction(up, live) * max(Fraction(0), min(s, Fraction(end)) - Fraction(begin))
             for begin, end, up, live in self.history),
            start=Fraction(0),
        )  # fmt: skip

    def spare(self, v: Fraction, rho: Fraction) -> Fraction:
        s = self.now - self.length + v
        had = self.received(self.now) + rho * (s - self.now) if s > self.now else self.received(s)
        return self.received(self.now) + rho * v - had - self.good

    def corners(self) -> list[Fraction]:
        """All v between which the spare amount is a straight line, up to the whole window."""
        instants = [Fraction(self.history[0][0]), *(Fraction(end) for _, end, _, _ in self.history)]
        found = [one - (self.now - self.length) for one in instants]
        return sorted({Fraction(0), self.length, *(v for v in found if 0 < v < self.length)})


def check(found: float, of: Definition, c: int, live: int, name: str) -> str:
    """Whether a slack is what the definition says where ``c`` of ``live`` go on, and of which kind it is."""
    rho = Fraction(c, live)
    near = STEP * (len(of.history) + 12)  # each stretch is rounded once; and see TIE
    if found == inf:
        assert all(of.spare(v, rho) >= -near for v in of.corners()), name
        return "never"
    v = Fraction(found)
    if v < 0:
        x = of.now - of.length + v
        missing = of.received(of.now) - of.good
        assert abs(of.received(x) - missing) <= near, name
        assert of.received(x + 2 * near + Fraction(1, 1000)) > missing - near, name
        return "broken"
    corners = of.corners()
    assert all(of.spare(one, rho) >= -near for one in corners if one <= v), name
    assert abs(of.spare(v, rho)) <= near, name
    after = next((one for one in corners if one > v + near), of.length)
    if after > v + Fraction(1, 100):
        assert of.spare(after, rho) < of.spare(v, rho) + near, name
        slope = (of.spare(after, rho) - of.spare(v, rho)) / (after - v)
        assert slope < 0 or abs(of.spare(after, rho)) <= near, name
    return "at once" if v == 0 else "in time"


def check_calendar(found: float, of: Definition, c: int, live: int, name: str) -> str:
    """As :func:`check`, of a calendar window."""
    promise, rho = of.promise, Fraction(c, live)
    begins, ends, after = map(Fraction, promise.turns[promise.at : promise.at + 3])
    t, slo, since = of.now, Fraction(promise.slo), max(begins, Fraction(of.history[0][0]))
    e, near = of.received(t) - of.received(since), STEP * (len(of.history) + 12)

    def spare(v: Fraction) -> Fraction:
        """Of the present window after ``v``, how much more it has than it needs."""
        if promise.whole:
            return (1 - slo) * (ends - begins) - (t - since - e) - (1 - rho) * v
        return e + rho * v - slo * (t - since + v)

    if found == inf:
        assert spare(ends - t) >= -near, name
        assert rho >= slo, name
        return "never"
    v = Fraction(found)
    if v < 0:
        missing = spare(Fraction(0))
        assert abs((v if promise.whole else v * slo) - missing) <= near, name
        return "broken"
    if v < ends - t:
        assert abs(spare(v)) <= near, name
        assert rho < (1 if promise.whole else slo), name
        return "in this"
    assert spare(ends - t) >= -near, name
    budget = (1 - slo) * (after - ends) if promise.whole else Fraction(0)
    assert abs(budget - (1 - rho) * (v - (ends - t))) <= near if promise.whole else v == ends - t, name
    return "in the next"
