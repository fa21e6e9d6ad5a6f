"""Whatever happens to pod groups, in any order: none is bound by half, no node is overfull, nobody waits for ever."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from kube.act.backstage import Backstage
from slacktide.kube.client.http import ApiError, Unreachable
from support import virtual_time

STEPS = 40


class Play:
    """Random steps, each followed by a pass and by what is then to hold."""

    def __init__(self, house: Backstage, seed: int) -> None:
        self.house, self.dice = house, random.Random(seed)
        self.least: dict[str, int] = {}
        self.group_of: dict[str, str] = {}
        self.cores: dict[str, int] = {}
        self.room: dict[str, int] = {}
        self.going: set[str] = set()
        """Pods that are being deleted."""
        self.number = 0
        self.started = Counter[str]()

    def bound(self, group: str = "") -> dict[str, str]:
        """Where pods (of a group) are."""
        every = self.house.server.bindings
        return {
            name: node for name, node in every.items() if name in self.group_of and group in ("", self.group_of[name])
        }

    def node(self, cores: int) -> None:
        name = f"node-{len(self.room)}"
        self.room[name] = cores
        self.house.node(name, cores)
        if self.dice.random() < 0.6:
            self._make(f"low-{name}", "", cores, node=name)

    def _make(self, name: str, group: str, cores: int, node: str = "") -> None:
        self.group_of[name], self.cores[name] = group, cores
        if node:
            self.house.server.bindings[name] = node
            self.house.low(name, node, cores)
        else:
            self.house.pod(name, group, cores=cores)

    def gone(self, name: str) -> None:
        self.house.gone(name)
        del self.group_of[name]
        self.house.server.bindings.pop(name, None)
        self.going.discard(name)

    def evicted(self) -> list[str]:
        """Pods that are told to go and are there."""
        return [name for name in dict.fromkeys(self.house.server.evicted) if name in self.group_of]

    def step(self) -> str:
        """Something happens; the group concerned."""
        dice, house = self.dice, self.house
        what, group = dice.randrange(11), dice.choice("gh")
        members = [name for name, of in self.group_of.items() if of == group]
        waiting = [name for name in members if name not in house.server.bindings]
        if what < 3:
            self.number += 1
            self._make(f"{group}{self.number}", group, dice.randint(1, 3))
        elif what == 3:
            self.least[group] = dice.randint(1, 4)
            house.gang(group, self.least[group])
        elif what == 4 and dice.random() < 0.4:
            self.least.pop(group, None)
            house.no_gang(group)
        elif what == 5 and members:
            self.gone(dice.choice(members))
        elif what == 6 and waiting and len(self.going) < 2:
            name = dice.choice(waiting)
            self.going.add(name)
            house.pod(name, group, cores=self.cores[name], goes=True)
        elif what == 7 and len(self.room) < 6:
            self.node(dice.randint(2, 5))
        elif what == 8:
            for name in self.evicted():
                if dice.random() < 0.7:
                    self.gone(name)
        elif what == 9:
            name = dice.choice(sorted(self.room))
            house.node(name, self.room[name], unschedulable=dice.random() < 0.5)
        elif what == 10 and waiting:
            house.nominate(dice.choice(waiting), dice.choice(sorted(self.room)))
        return group

    def check(self, before: dict[str, str], strict: bool) -> None:
        taken = Counter[str]()
        for name, node in self.bound().items():
            taken[node] += self.cores[name]
        assert all(cores <= self.room[node] for node, cores in taken.items()), taken
        if not strict:
            return
        for group in "gh":
            there = self.bound(group)
            if there.keys() - before.keys():
                self.started[group] += 1
                assert group in self.least, f"{group} is not there"
                assert len(there) >= self.least[group], f"{group} of {self.least[group]}: {there}"


async def played(house: Backstage, seed: int) -> int:
    play = Play(house, seed)
    for cores in (4, 3):
        play.node(cores)
    faults = [
        ApiError(403, "Forbidden", "no"),
        ApiError(409, "Conflict", "?"),
        ApiError(500, "", "?"),
        Unreachable("?"),
    ]
    for _ in range(play.dice.randint(1, 3)):  # terms
        async with house.leading():
            for _ in range(STEPS):
                faulty = play.dice.random() < 0.2
                house.server.refuses = lambda kind, _name, faulty=faulty: (  # type: ignore[misc]
                    play.dice.choice(faults) if faulty and kind != "patch" and play.dice.random() < 0.3 else None
                )
                before = play.bound()
                play.step()
                await house.decide(play.dice.randint(1, 2), pause=play.dice.choice([0.0, 0.01, 1.0]))
                house.server.refuses = lambda _kind, _name: None
                await asyncio.sleep(play.dice.choice([1.0, 1.0, 20.0]))
                play.check(before, strict=not faulty)
    await ends_well(house, play)
    return sum(play.started.values())


async def ends_well(house: Backstage, play: Play) -> None:
    """There is room for all: every group that has enough pods is bound in the end."""
    async with house.leading():
        for name in [*sorted(play.going), *play.evicted()]:
            play.gone(name)
        for group in "gh":
            house.gang(group, 2)
        for _ in range(3):
            play.node(40)
        for _ in range(12):
            await house.decide(2, pause=0.01)
            await asyncio.sleep(15.0)
            for name in play.evicted():
                play.gone(name)
        left = play.group_of.keys() - play.bound().keys()
        for group in "gh":
            members = {name for name, of in play.group_of.items() if of == group}
            if len(members) < 2:
                left -= members
        assert not left, {one: house.session.feed.pods[one] for one in left}
        assert house.session.actor._gangs.groups() == []
        assert house.session.actor.nominations == {}


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_groups_that_much_happens_to(first: int) -> None:
    started = 0
    for seed in range(first, first + 10):

        async def begin(seed: int = seed) -> int:
            return await played(Backstage(), seed)

        found, _ = virtual_time.run(begin)
        started += found
    assert started > 10
