"""Pods that come while those they replace are still being ended.

A controller replaces a pod as soon as that is told to go, and it may take its whole
grace period to be gone. Until then the instance runs on in the old pod, so that the
new one is not a further instance that was given nothing yet: it waits for the ledger.
"""

from __future__ import annotations


class Succession:
    """Who was preempted and is not gone, by controller, and who waits to continue them, the first come first."""

    def __init__(self) -> None:
        self.leaving: dict[str, dict[str, None]] = {}
        self.held: dict[str, dict[str, None]] = {}
        self._owed: dict[str, int] = {}
        """How many preempted pods of a controller have no replacement yet."""

    def told(self, key: str, uid: str) -> None:
        """A pod of a controller was told to go."""
        self.leaving.setdefault(key, {})[uid] = None
        self._owed[key] = self._owed.get(key, 0) + 1

    def stays(self, key: str) -> None:
        """A pod that was told to go stays after all: nobody will replace it."""
        self.replaces(key)

    def replaces(self, key: str) -> bool:
        """Whether a pod of the controller that comes now takes a preempted one's place; the next one may not."""
        owed = self._owed.pop(key, 0)
        if owed > 1:
            self._owed[key] = owed - 1
        return owed > 0

    def forget(self, key: str) -> None:
        """A controller is no more."""
        for known in (self.leaving, self.held, self._owed):
            known.pop(key, None)

    def must_wait(self, key: str, uid: str) -> bool:
        """Whether a new pod of the controller continues one that is not gone; it is then kept until that is."""
        waiting = self.held.get(key, {})
        if uid not in waiting and len(waiting) >= len(self.leaving.get(key, ())):
            return False
        self.held.setdefault(key, {})[uid] = None
        return True

    def ended(self, key: str, uid: str) -> str:
        """A pod of a controller is gone, or stays after all; the pod that needs not wait for it any more, if any."""
        leaving, waiting = self.leaving.get(key), self.held.get(key)
        if waiting is not None:
            waiting.pop(uid, None)
        if leaving is not None and uid in leaving:
            del leaving[uid]
            if not leaving:
                del self.leaving[key]
        released = ""
        if waiting and len(waiting) > len(self.leaving.get(key, ())):
            released = next(iter(waiting))
            del waiting[released]
        if waiting is not None and not waiting:
            del self.held[key]
        return released
