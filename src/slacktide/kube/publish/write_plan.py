"""In which order ledgers are written, and when: plain bookkeeping, without a clock or a connection of its own.

States come first, then what happened, then first ledgers, then the ledgers whose numbers are oldest. Of one ledger
there is a write a second at most. How many a second there are in all, the one who asks sees to.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

LEAST_SECONDS = 1.0
NEW_SECONDS, BUSY_SECONDS = 0.1, 10.0
"""So long a new controller's first ledger waits, and at most so long where others' pods are being bound."""
CROWD, CROWDED_PAUSE = 100, 0.1
"""Where so many bindings and evictions wait for their turn, a ledger to which nothing happened is written after such a
pause only."""
REFRESH_SECONDS = 55.0
"""A ledger to which nothing happens is written anew after this long; the rest of the minute is for waiting its turn."""
SPARE_PART, SPARE_SECONDS = 5.0, 1.0
"""While there are decisions, and so long after the latest one, such ledgers take one part in so many of the rate."""

LONG_AGO = 0.0


class WritePlan:
    """Which ledgers are to be written, by the keys of their controllers; times in seconds of one clock."""

    def __init__(self) -> None:
        self.turned: dict[str, None] = {}
        """Those whose state is not what is written."""
        self.dirty: dict[str, None] = {}
        """Those to which something happened."""
        self.new: dict[str, float] = {}
        """Those that were never written, and since when they wait."""
        self.written_at: dict[str, float] = {}
        """The latest write of each, the oldest first."""

    def changed(self, key: str, now: float) -> None:
        """Something happened to a controller."""
        if key in self.written_at:
            self.dirty[key] = None
        else:
            self.new.setdefault(key, now)

    def knows(self, key: str) -> None:
        """A former leader wrote a controller's ledger, one knows not when; what has happened since is not in it."""
        self.written_at.setdefault(key, LONG_AGO)
        if self.new.pop(key, None) is not None:
            self.dirty[key] = None

    def turn(self, key: str) -> None:
        """A controller's state is another one than its ledger says."""
        if key in self.written_at:
            self.dirty.pop(key, None)
            self.turned[key] = None

    def forget(self, key: str) -> None:
        """A controller is no more."""
        for noted in (self.turned, self.dirty, self.new, self.written_at):
            noted.pop(key, None)

    def begins(self, key: str, now: float) -> None:
        """A ledger is being written, with all that is known by now."""
        self.forget(key)
        self.written_at[key] = now

    def take_all(self) -> list[str]:
        """All that is noted down, which is forgotten here."""
        due = list(self.turned | self.dirty | dict.fromkeys(self.new))
        self.turned, self.dirty, self.new = {}, {}, {}
        return due

    def __len__(self) -> int:
        """How many wait to be written because something happened."""
        return len(self.turned) + len(self.dirty) + len(self.new)

    def refresh_due(self, now: float) -> bool:
        """Whether the oldest numbers are old enough to be written anew; O(1)."""
        oldest = next(iter(self.written_at.values()), None)
        return oldest is not None and now - oldest >= REFRESH_SECONDS

    def take_urgent(self, now: float, under_way: Container[str]) -> str | None:
        """The ledger to be written now because something happened, or None."""
        for waiting in (self.turned, self.dirty):
            for key in waiting:
                if now - self.written_at.get(key, 0.0) >= LEAST_SECONDS and key not in under_way:
                    self.begins(key, now)
                    return key
        return None

    def take_new(self, now: float, patience: float, under_way: Container[str]) -> str | None:
        """The first ledger to be written now, after ``patience`` seconds, or None."""
        return self._take(self.new, patience, now, under_way)

    def take_oldest(self, now: float, under_way: Container[str]) -> str | None:
        """The ledger with the oldest numbers, if they are old enough to be written anew, or None."""
        return self._take(self.written_at, REFRESH_SECONDS, now, under_way)

    def _take(self, since: Mapping[str, float], patience: float, now: float, under_way: Container[str]) -> str | None:
        for key, at in since.items():
            if now - at < patience:
                break
            if key not in under_way:
                self.begins(key, now)
                return key
        return None
