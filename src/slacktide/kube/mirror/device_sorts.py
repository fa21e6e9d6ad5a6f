"""Waiting pods whose claims ask for the same, and for how many of them there are devices on each node."""

from __future__ import annotations

from dataclasses import dataclass, field

from slacktide.kube.translate.devices.allocation import Effort
from slacktide.kube.translate.devices.claims import Wish


@dataclass(slots=True)
class Sort:
    """Waiting pods whose claims without devices ask for the same."""

    resource: str
    wishes: tuple[Wish, ...]
    users: set[str] = field(default_factory=set)
    effort: Effort = field(default_factory=Effort)
    counts: dict[str, int] = field(default_factory=dict)
    """For how many of them devices are free, by node."""
    somewhere: int = 0
    """On so many nodes there are devices for one of them at least."""
    problem: str = ""
    """Why the claims cannot have devices on some node, whoever else has some."""
    hopeless: str = ""
    """The same, where there are devices on no node; pods of the sort know it."""

    def note(self, node: str, count: int) -> None:
        """For so many of them devices are free on a node, of which nothing was known."""
        self.counts[node] = count
        self.somewhere += count > 0

    def forget(self, node: str) -> None:
        """What was known of a node is not so any more."""
        self.somewhere -= self.counts.pop(node, 0) > 0

    def forget_all(self) -> None:
        """The same, of all nodes."""
        self.counts.clear()
        self.somewhere = 0
