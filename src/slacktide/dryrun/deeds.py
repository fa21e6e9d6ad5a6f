"""What a scheduler did, or would have done, since a dry run began."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Deeds:
    """Pods bound; pods preempted, by controller; and of ours its passes, the longest in seconds."""

    bound: int = 0
    preempted: Counter[str] = field(default_factory=Counter)
    passes: int = 0
    longest_pass: float = 0.0
