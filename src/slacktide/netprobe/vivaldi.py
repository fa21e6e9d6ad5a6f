"""Network coordinates: Vivaldi (Dabek, Cox, Kaashoek, Morris, SIGCOMM 2004), adaptive timestep, with heights.

For a round-trip time ``rtt`` to a peer at ``y`` with error ``e_y`` a node at ``x`` with error ``e`` moves::

    w   = e / (e + e_y)                           how much to believe it
    e_s = | |x - y| - rtt | / rtt                 relative error of this sample
    e   = e_s * CE * w + e * (1 - CE * w)
    x   = x + CC * w * (rtt - |x - y|) * u(x - y)

With heights ``x - y`` is the difference of the points and the sum of the heights, ``|x - y|`` the length
of the one plus the other, and moving along it changes the height in proportion. Lengths are in seconds.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from slacktide.model.latency import Coordinate

CC = CE = 0.25
"""The constants that the authors found best."""
LEAST_HEIGHT = 1e-5
SHORTEST_RTT = 1e-6
WORST = 1.0


@dataclass(slots=True)
class Position:
    """A node's coordinate and the relative error that it expects of it, 0 to 1 (1: it knows nothing)."""

    coordinate: Coordinate
    error: float = WORST

    @classmethod
    def unknown(cls, dimensions: int) -> Position:
        """Where a node begins: at the origin."""
        return cls(Coordinate((0.0,) * dimensions, LEAST_HEIGHT))

    def learn(self, rtt: float, peer: Coordinate, peer_error: float, chance: random.Random) -> None:
        """Move by a measured round-trip time (seconds, above 0) to ``peer``.

        ``chance`` gives the direction in which to leave a peer at the same point.
        """
        rtt = max(rtt, SHORTEST_RTT)
        mine, theirs = self.coordinate, peer
        weight = self.error / max(self.error + peer_error, 1e-9)
        apart = math.dist(mine.point, theirs.point)
        length = apart + mine.height + theirs.height
        sample = abs(length - rtt) / rtt
        self.error = min(WORST, sample * CE * weight + self.error * (1.0 - CE * weight))
        force = CC * weight * (rtt - length)
        if apart > 0.0:
            away = [a - b for a, b in zip(mine.point, theirs.point, strict=True)]
        else:
            # Nothing says where to; a step of the same length in a direction of chance takes them apart.
            drawn = [chance.gauss(0.0, 1.0) for _ in mine.point]
            away = [one * length / math.hypot(*drawn) for one in drawn]
        point = tuple(a + force * one / length for a, one in zip(mine.point, away, strict=True))
        height = mine.height + force * (mine.height + theirs.height) / length
        self.coordinate = Coordinate(point, max(LEAST_HEIGHT, height))
