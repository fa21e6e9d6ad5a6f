"""``python tests/simulated/retell.py SEED [WORD...]``: plays a seed again, and prints each write, each request of a
replica with its answer, each decision and each incident in which one of the words is; everything without words.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from simulated import incidents, world
from simulated.invariants import Invariants
from simulated.loop import EPOCH
from simulated.story import told


class Teller:
    """Prints what has one of the words in it."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self.invariants: Invariants | None = None

    def say(self, text: str) -> None:
        if self.invariants is not None and (not self._words or any(word in text for word in self._words)):
            sys.stdout.write(f"{self.invariants.store.now() - EPOCH:10.3f} {text[:2500]}\n")


class Log(logging.Handler):
    """Everything that replicas log."""

    def __init__(self, teller: Teller) -> None:
        super().__init__(logging.DEBUG)
        self._teller = teller

    def emit(self, record: logging.LogRecord) -> None:
        self._teller.say(f"LOG {record.getMessage()}")


def main(words: list[str]) -> int:
    """Tell it; 1 where the seed finds something."""
    teller = Teller(words[1:])
    begin, arrives, decided, see = Invariants.__init__, Invariants.arrives, Invariants.decided, Invariants.see

    def began(self: Invariants, store: Any) -> None:
        teller.invariants = self
        begin(self, store)

    def arrived(self: Invariants, actor: Any, request: Any, answer: Any) -> None:
        if request.method != "GET":
            teller.say(f"{actor.name} {request.method} {request.path} {request.body.decode()} -> {answer.code} "
                       f"{'' if answer.ok else answer.body.decode()}")  # fmt: skip
        arrives(self, actor, request, answer)

    def chosen(self: Invariants, replica: Any, decision: Any) -> None:
        teller.say(f"{replica.identity} decides {decision}")
        decided(self, replica, decision)

    def seen(self: Invariants, change: Any) -> None:
        teller.say(f"{change.type} {change.resource.plural} {change.data.decode()}")
        see(self, change)

    Invariants.__init__, Invariants.arrives = began, arrived  # type: ignore[method-assign]
    Invariants.decided, Invariants.see = chosen, seen  # type: ignore[method-assign]
    for name in ("kill", "stop", "freeze", "cut", "cut_all", "end_watch", "silence_watch", "expire_watch",
                 "break_watches", "compact", "fail_node", "lose_node", "step_clock", "cut_off_lease",
                 "overload", "heal"):  # fmt: skip
        _tell(incidents.Incidents, name, teller)
    logging.getLogger("slacktide").addHandler(Log(teller))
    world.LOGGED = logging.DEBUG
    found = told(int(words[0])).findings
    sys.stdout.write("\n".join(("", *found, "")))
    return 1 if found else 0


def _tell(kind: type, name: str, teller: Teller) -> None:
    act = getattr(kind, name)

    def telling(self: Any, *rest: Any) -> Any:
        teller.say(f"INCIDENT {name}")
        return act(self, *rest)

    setattr(kind, name, telling)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
