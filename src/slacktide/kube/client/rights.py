"""Rights that the API server does not know of: for a moment, when it has just begun, it answers 403 to everybody.

Such an answer says nothing about what was asked. Nothing was carried out, so it can be asked again, whatever it was.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable

from slacktide.kube.clock import monotonic_seconds

LOG = logging.getLogger(__name__)

PATIENCE_SECONDS = 30.0
"""After so long without a right it is missing in earnest."""
AGAIN_SECONDS = 0.5
_BY_AUTHORIZER = re.compile(r'User "[^"]*" cannot ')
"""So an authorizer says that a right is missing. Quotas, admission policies and namespaces that end say else."""

Right = tuple[str, ...]


def lacks_right(message: str) -> bool:
    """Whether an answer 403 with this message says that who asked has no right to ask."""
    return _BY_AUTHORIZER.search(message) is not None


def right_of(method: str, path: str) -> Right:
    """What a request asks to do: its method, and the path but for the namespace and the name in it."""
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return (method, *group, *rest[:1], *rest[2:])


class MissingRights:
    """Rights that were refused and not granted since; one that has been missing for ``patience`` seconds is not waited
    for, until it is granted."""

    def __init__(self, patience: float, clock: Callable[[], float] = monotonic_seconds) -> None:
        self.since: dict[Right, float] = {}
        """Since when each is missing, by the steady ``clock``."""
        self._patience, self._clock = patience, clock

    def may_come(self, method: str, path: str, message: str) -> bool:
        """Whether a request that was answered 403, with this message, is to be sent again."""
        if not self._patience or not lacks_right(message):
            return False
        now, right = self._clock(), right_of(method, path)
        if right not in self.since:
            LOG.warning("%s; retrying for %g s, as the API server may just have started", message, self._patience)
        return now - self.since.setdefault(right, now) < self._patience

    def granted(self, method: str, path: str) -> None:
        """A request was carried out."""
        if self.since:
            self.since.pop(right_of(method, path), None)
