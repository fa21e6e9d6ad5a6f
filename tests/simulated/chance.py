"""What a seed decides."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """One stream of chance for each subject, so that what one of them draws shifts nothing elsewhere."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    def of(self, subject: str) -> random.Random:
        found = self._streams.get(subject)
        if found is None:
            found = self._streams[subject] = random.Random(f"{self.seed}/{subject}")
        return found

    def happens(self, subject: str, probability: float) -> bool:
        return probability > 0.0 and self.of(subject).random() < probability

    def between(self, subject: str, low: float, high: float) -> float:
        return low + (high - low) * self.of(subject).random()

    def one_of(self, subject: str, choices: Sequence[T]) -> T:
        return self.of(subject).choice(choices)

    def whole(self, subject: str, low: int, high: int) -> int:
        """From low to high, both among them."""
        return self.of(subject).randint(low, high)
