"""What a live cluster's decisions depend on besides its pods: hosts, strangers on them, specs, budgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slacktide.config import Config
from slacktide.kernels import neighbour_records
from slacktide.live.parts import Controller, Incarnation
from slacktide.policy.loader import load
from slacktide.state.growing import Growing
from slacktide.state.spec import Spec

Journal = Callable[[str, tuple[Any, ...]], None]


class Surroundings:
    """The part of :class:`slacktide.live.engine.Engine` that does not concern pods.

    Raises PluginError where a user's own policy, score or cost cannot be loaded.
    """

    def __init__(self, config: Config, journal: Journal | None = None) -> None:
        self.config = config
        self._own = load(config)
        self.tables = Growing(config, self._own.code)
        self.journal = journal
        self.hosts: dict[str, int] = {}
        self.going: set[str] = set()  # hosts that are no more, with something on them
        self.specs: dict[int, Spec] = {}
        self.controllers: dict[str, Controller] = {}
        self.incarnations: dict[str, Incarnation] = {}
        self.uid_of_row: dict[int, str] = {}
        self.others: dict[str, tuple[str, dict[str, int], tuple[str, ...]]] = {}
        self.budgets: dict[str, int] = {}
        self.free_budgets: list[int] = []
        self.passes = 0
        self.latest = 0.0  # instant that anything was told for
        self._note("begin")

    def _note(self, name: str, *arguments: Any) -> None:
        if self.journal is not None:
            self.journal(name, arguments)

    # -- hosts -----------------------------------------------------------------------------------------------------

    def host(self, name: str, amounts: Mapping[str, int], attributes: Mapping[str, str], up: bool) -> None:
        """A host as it is now: allocatable amounts, attributes, whether it takes instances."""
        self._note("host", name, dict(amounts), dict(attributes), up)
        known = self.hosts.get(name)
        self.going.discard(name)
        h = self.hosts[name] = self.tables.new_host(name) if known is None else known
        if known is not None:
            self.tables.set_up(h, up)
        self.tables.set_host(h, amounts, attributes, up)

    def host_gone(self, name: str) -> None:
        """A host is no more; what is on it goes when its end is told."""
        self._note("host_gone", name)
        self.tables.set_up(self.hosts[name], False)
        self.going.add(name)
        self._bury(name)

    def _bury(self, name: str) -> None:
        h = self.hosts[name]
        if name in self.going and not self.tables.tb["hosts"]["count"][h] and not self._others_on(name):
            self.going.remove(name)
            self.tables.remove_host(self.hosts.pop(name))

    def _others_on(self, name: str) -> bool:
        return any(host == name for host, _, _ in self.others.values())

    def other(self, uid: str, host: str, amounts: Mapping[str, int], marks: tuple[str, ...]) -> None:
        """A pod of somebody else is on a host, or is different now."""
        self._note("other", uid, host, dict(amounts), marks)
        if uid in self.others:
            self._drop_other(uid)
        h = self.hosts[host]
        self.others[uid] = (host, dict(amounts), tuple(marks))
        self.tables.take_room(h, self.tables.amounts(amounts), 1)
        self.tables.foreign_marks[uid] = (h, tuple(marks))
        self.tables.count_marks(h, tuple(marks), 1)

    def other_gone(self, uid: str) -> None:
        """A pod of somebody else is no more."""
        self._note("other_gone", uid)
        host = self.others[uid][0]
        self._drop_other(uid)
        self._bury(host)

    def _drop_other(self, uid: str) -> None:
        host, amounts, marks = self.others.pop(uid)
        h = self.hosts[host]
        self.tables.take_room(h, self.tables.amounts(amounts), -1)
        del self.tables.foreign_marks[uid]
        self.tables.count_marks(h, marks, -1)

    # -- where hosts and users are ---------------------------------------------------------------------------------

    def network(self, places: tuple[str, ...], site_key: str, changes: Sequence[tuple[int, int, float]]) -> None:
        """Places by name, the attribute by which hosts are at them (empty: their names), and what changed since.

        ``changes`` are two places, by number, and the round-trip time between them, seconds; what was told between
        places that stay holds on, everything else is 0 until it is told.
        """
        self._note("network", places, site_key, list(changes))
        self.tables.whereabouts.move(tuple(places), site_key, changes)

    def image(self, name: str, seconds: float, size: float) -> None:
        """What fetching an image takes where it is absent: seconds, or a size over a host's resource ``network``."""
        self._note("image", name, seconds, size)
        self.tables.whereabouts.image(name, seconds, size)

    def images(self, host: str, names: Sequence[str]) -> None:
        """All images that a host lists."""
        self._note("images", host, list(names))
        self.tables.whereabouts.list_images(host, frozenset(names))

    # -- what pods are like ----------------------------------------------------------------------------------------

    def spec(self, number: int, spec: Spec) -> None:
        """Number a spec, for the operations that follow."""
        self._note("spec", number, spec)
        self.specs[number] = spec

    def spec_gone(self, number: int) -> None:
        """Nobody has this spec any more."""
        self._note("spec_gone", number)
        del self.specs[number]

    def budget(self, name: str, left: int) -> None:
        """How many instances with a budget may be disrupted now."""
        self._note("budget", name, left)
        b = self.budgets.get(name)
        if b is None:
            b = self.budgets[name] = self.free_budgets.pop() if self.free_budgets else len(self.budgets)
            self.tables.make_budgets(b + 1)
            self._point_to(name, b)
        record = self.tables.tb["budgets"][b]
        if left > record["amount"]:
            self.tables.tb.control["loosened"] += 1
        elif left < record["amount"]:
            self.tables.tb.control["tightened"] = self.tables.tb.control["looks"] + 1
        self.tables.tb["budgets"][b] = (neighbour_records.GIVEN, left, 0, 0)

    def budget_gone(self, name: str) -> None:
        """A budget is no more: its instances have none."""
        self._note("budget_gone", name)
        self.free_budgets.append(self.budgets.pop(name))
        self._point_to(name, -1)
        self.tables.tb.control["loosened"] += 1

    def _point_to(self, name: str, b: int) -> None:
        """Instances that name a budget may have come before it."""
        for one in self.incarnations.values():
            if one.budget == name:
                self.tables.tb["budget"][one.row] = b
