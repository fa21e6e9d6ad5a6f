"""Which probes were seen already, so that a recorded one is worth nothing.

A probe must be fresh by its sender's clock, not older than this memory, and new. Within the time in which it counts as
fresh its prober's sequence numbers are remembered (a sliding window, as IPsec has it, RFC 4303).
"""

from __future__ import annotations

from collections import OrderedDict

WINDOW = 1024
"""Sequence numbers before the highest one that may still come; older ones count as seen."""
MOST_PROBERS = 65_536
"""Only who has the key can make this memory grow; beyond this the longest silent prober is forgotten."""


class Replays:
    """``skew`` is how far another node's clock may be off, seconds; ``began`` when this memory began, UNIX seconds."""

    def __init__(self, skew: float, began: float) -> None:
        self.skew, self.began = skew, began
        self._seen: OrderedDict[tuple[bytes, int], tuple[float, int, int]] = OrderedDict()

    def why_not(self, sender: bytes, epoch: int, sequence: int, sent: float, now: float) -> str:
        """Empty for a probe that is new, and notes it; else ``stale`` (by its clock) or ``replayed``.

        ``sent`` and ``now`` are UNIX seconds by the sender's and by this node's clock.
        """
        self.began = min(self.began, now)  # the clock was set back; who comes from before that is still remembered
        if abs(now - sent) > self.skew or sent < self.began:
            return "stale"
        self._forget(now)
        key = sender, epoch
        _, highest, bits = self._seen.pop(key, (0.0, 0, 0))
        new = sequence > highest
        if new:
            bits = (bits << min(sequence - highest, WINDOW) | 1) & ((1 << WINDOW) - 1)
            highest = sequence
        elif highest - sequence < WINDOW:
            bit = 1 << (highest - sequence)
            new = not bits & bit
            bits |= bit
        self._seen[key] = (now, highest, bits)
        return "" if new else "replayed"

    def _forget(self, now: float) -> None:
        # Until then a recorded probe of this prober fails by its clock alone.
        while self._seen:
            key, (heard, _, _) = next(iter(self._seen.items()))
            if now - heard <= 2.0 * self.skew and len(self._seen) <= MOST_PROBERS:
                return
            del self._seen[key]
