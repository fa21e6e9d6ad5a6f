"""Hosts for which somebody else nominated who waits (docs/semantics.md, 'Nominations by others')."""

from __future__ import annotations

from reference.amounts import Amounts, fits, minus


class Pass:
    """What is free on each host while those who wait have their turns; ``free`` is changed."""

    def __init__(self, free: dict[str, Amounts]) -> None:
        self.free = free

    def first_choice(self, demand: Amounts, nominated: str) -> str:
        """The host for which one is nominated, where it has room for it, else empty."""
        return nominated if nominated in self.free and fits(demand, self.free[nominated]) else ""

    def keep_room(self, demand: Amounts, nominated: str) -> None:
        """One found no host: what it asks for is not free any more for those whose turn comes later."""
        if nominated in self.free:
            self.free[nominated] = minus(self.free[nominated], demand)
