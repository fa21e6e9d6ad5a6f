"""What all acts share: their counts, and the pause before a question is asked again."""

from __future__ import annotations

from dataclasses import dataclass

ASK_AGAIN_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0


@dataclass
class Counts:
    """What was done, for the metrics."""

    bound: int = 0
    refused: int = 0
    evicted: int = 0
    spared: int = 0
    given_up: int = 0
    retried: int = 0
    evictions_refused: int = 0
    moved: int = 0
