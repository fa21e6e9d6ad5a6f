"""What people call an instance; no decision knows it."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """A name, the namespace that it is in, and what it belongs to: a Deployment or a team, say; "" where nothing is
    said."""

    namespace: str = ""
    owner: str = ""
    name: str = ""

    def __str__(self) -> str:
        """What is said, from the widest on: ``shop/web/web-1``; of an owner that is its name, once."""
        return "/".join(dict.fromkeys(part for part in astuple(self) if part))


NO_LABEL = Label()
