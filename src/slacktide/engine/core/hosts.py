"""The hosts of a live cluster, and what pods of others take there."""

from __future__ import annotations

from collections.abc import Mapping

from slacktide.state.growth import Growing


class Hosts:
    """``numbers`` are the hosts' in the tables, by name; ``others`` host, amounts and marks of others' pods, by uid.

    ``going`` are hosts that are no more, while something is on them.
    """

    def __init__(self, tables: Growing) -> None:
        self.tables = tables
        self.numbers: dict[str, int] = {}
        self.going: set[str] = set()
        self.others: dict[str, tuple[str, dict[str, int], tuple[str, ...]]] = {}

    def put(self, name: str, amounts: Mapping[str, int], attributes: Mapping[str, str], up: bool) -> None:
        """A host as it is now, new or not."""
        known = self.numbers.get(name)
        self.going.discard(name)
        h = self.numbers[name] = self.tables.new_host(name) if known is None else known
        if known is not None:
            self.tables.set_up(h, up)
        self.tables.set_host(h, amounts, attributes, up)

    def close(self, name: str) -> None:
        """A host is no more; it is forgotten once nothing is on it."""
        self.tables.set_up(self.numbers[name], False)
        self.going.add(name)
        self.forget_if_empty(name)

    def forget_if_empty(self, name: str) -> None:
        """Forget a host that is no more, where nothing is on it."""
        if name not in self.going or self.tables.tb["hosts"]["count"][self.numbers[name]]:
            return
        if not any(host == name for host, _, _ in self.others.values()):
            self.going.remove(name)
            self.tables.remove_host(self.numbers.pop(name))

    def is_up(self, name: str) -> bool:
        """Whether a host is known and takes pods."""
        h = self.numbers.get(name)
        return h is not None and not self.tables.tb["hosts"]["down"][h]

    def put_other(self, uid: str, host: str, amounts: Mapping[str, int], marks: tuple[str, ...]) -> None:
        """A pod of somebody else is on a host, or is different now."""
        if uid in self.others:
            self._take_off(uid)
        h = self.numbers[host]
        self.others[uid] = (host, dict(amounts), tuple(marks))
        self.tables.take_room(h, self.tables.amounts(amounts), 1)
        self.tables.foreign_marks[uid] = (h, tuple(marks))
        self.tables.count_marks(h, tuple(marks), 1)

    def remove_other(self, uid: str) -> None:
        """A pod of somebody else is no more."""
        host = self.others[uid][0]
        self._take_off(uid)
        self.forget_if_empty(host)

    def _take_off(self, uid: str) -> None:
        host, amounts, marks = self.others.pop(uid)
        h = self.numbers[host]
        self.tables.take_room(h, self.tables.amounts(amounts), -1)
        del self.tables.foreign_marks[uid]
        self.tables.count_marks(h, marks, -1)
