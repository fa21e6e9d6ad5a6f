"""What fails: processes, connections, watches, nodes, clocks, the API server's memory; as a seed draws it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextvars import Context
from functools import partial

from simulated.replica import Replica
from simulated.world import NODE_STRIKES, OVERLOADS, STRIKES, Part, World

LONG_CUT, LONG_FREEZE = 60.0, 40.0
OVERLOADED, LONG_OVERLOAD = 0.5, 20.0
BUSY, OVERLOADING = 0.15, 0.1
"""In so many stories the API server has no time just after so many decisions: what is decided is carried out late."""
STRIKING, MOMENT = 0.05, 0.06
NODE_STRIKING, NODE_MOMENT = 0.02, 2.0
STRUCK_FOR_GOOD = 0.5
"""So many nodes that are struck are deleted, too: another one joins."""


class Incidents:
    """One after the other, ``pause`` seconds apart on average; several may last at once. Each draws from a stream of
    its own, so that one that is left out changes none of the others."""

    def __init__(self, world: World, pause: float) -> None:
        self._world, self._pause, self._chance = world, pause, world.chance
        self._kinds: tuple[tuple[int, Callable[[], None]], ...] = (
            (3, self.kill), (1, self.stop), (4, self.freeze), (4, self.cut), (1, self.cut_all), (3, self.end_watch),
            (3, self.silence_watch), (3, self.expire_watch), (3, self.break_watches), (2, self.compact),
            (3, self.fail_node), (1, self.lose_node), (1, self.step_clock),
            (4, self.cut_off_lease), (3, self.overload),
        )  # fmt: skip
        self._nodes = 0
        self._subject = ""
        self._is_busy = self._chance.happens("busy", BUSY)

    async def run(self) -> None:
        """Until cancelled."""
        self._world.invariants.chosen, self._world.invariants.told_to_go = self.strike, self.strike_node
        draw = self._chance.of("incidents")
        weights = [weight for weight, _ in self._kinds]
        for number in itertools.count():
            await asyncio.sleep(draw.expovariate(1.0 / self._pause))
            ((_, kind),) = draw.choices(self._kinds, weights)
            if self._world.comes(Part("incident", number), kind.__name__):
                self._as(f"incident {number}", kind)

    def _as(self, subject: str, act: Callable[[], None]) -> None:
        self._subject = subject
        act()

    def heal(self) -> None:
        """Nothing fails any more, and what is broken is mended."""
        self._world.invariants.chosen = lambda _: None
        self._world.invariants.told_to_go = lambda _: None
        self._world.weather.clear()
        for one in self._world.replicas:
            one.thaw()
            if one.wire is not None:
                one.wire.leaseless = False
        for name in sorted(self._world.kubelets.down):
            self._world.kubelets.come_back(name)

    # -- processes -------------------------------------------------------------------------------------------------

    def _one(self) -> Replica:
        """The leader, more often than not."""
        leader = self._world.leader
        if leader is not None and self._chance.happens(self._subject, 0.6):
            return leader
        return self._chance.one_of(self._subject, self._world.replicas)

    def strike(self, one: Replica) -> None:
        """It has just decided: now and then it is struck within the moment in which that is carried out."""
        if self._world.has(STRIKES) and self._chance.happens("strikes", STRIKING):
            acts: tuple[Callable[[], None], ...] = one.kill, partial(self.freeze, one), partial(self.cut, one)
            act = self._chance.one_of("strikes", acts)
            wait = MOMENT * self._chance.between("strikes", 0.0, 1.0) ** 2  # most is sent at once
            self._world.loop.call_later(wait, self._as, "strikes", act, context=Context())
        if self._is_busy and self._world.has(OVERLOADS) and self._chance.happens("overloads", OVERLOADING):
            self._world.loop.call_soon(self._as, "overloads", self.overload, context=Context())

    def strike_node(self, name: str) -> None:
        """Somebody was evicted from a node: now and then it fails before that one has gone."""
        if self._world.has(NODE_STRIKES) and self._chance.happens("node strikes", NODE_STRIKING):
            wait = self._chance.between("node strikes", 0.0, NODE_MOMENT)
            act = self._lose if self._chance.happens("nodes struck for good", STRUCK_FOR_GOOD) else self._fail
            self._world.loop.call_later(wait, self._as, "node strikes", partial(act, name), context=Context())

    def kill(self) -> None:
        self._one().kill()

    def stop(self) -> None:
        self._one().stop()

    def freeze(self, one: Replica | None = None) -> None:
        one = one or self._one()
        one.freeze()
        wire = one.wire

        def thaw() -> None:
            if one.wire is wire:
                one.thaw()

        self._world.loop.call_later(self._chance.between(self._subject, 0.5, LONG_FREEZE), thaw)

    def cut(self, one: Replica | None = None) -> None:
        self._world.begin((one or self._one()).cut_off(self._chance.between(self._subject, 0.5, LONG_CUT)))

    def cut_all(self) -> None:
        """The API server is away."""
        seconds = self._chance.between(self._subject, 0.5, LONG_CUT)
        for one in self._world.replicas:
            self._world.begin(one.cut_off(seconds))

    def cut_off_lease(self) -> None:
        """The leader cannot renew its lease for a while, and all else that it sends comes through."""
        leader = self._world.leader
        if leader is None or leader.wire is None or leader.wire.leaseless:
            return
        wire = leader.wire
        wire.leaseless = True
        seconds = self._chance.between(self._subject, 1.0, LONG_CUT)
        self._world.loop.call_later(seconds, setattr, wire, "leaseless", False)

    def overload(self) -> None:
        """The API server has no time for many a request, but for those about leases."""
        self._world.weather.overloaded = OVERLOADED
        seconds = self._chance.between(self._subject, 1.0, LONG_OVERLOAD)
        self._world.loop.call_later(seconds, setattr, self._world.weather, "overloaded", 0.0)

    def step_clock(self) -> None:
        wire = self._one().wire
        if wire is not None:
            wire.actor.stepped += self._chance.between(self._subject, -60.0, 60.0)

    # -- watches ---------------------------------------------------------------------------------------------------

    def _watch(self, act: str) -> None:
        connection = self._one().connection
        watches = connection.watches() if connection is not None else []
        if watches:
            busy = [one for one in watches if one.resource.plural in ("pods", "nodes", "replicasets", "deployments")]
            some = busy if busy and self._chance.happens(self._subject, 0.8) else watches
            getattr(self._chance.one_of(self._subject, some), act)()

    def end_watch(self) -> None:
        self._watch("end")

    def silence_watch(self) -> None:
        self._watch("fall_silent")

    def expire_watch(self) -> None:
        self._watch("expire")

    def break_watches(self) -> None:
        """All of a process, as its connection breaks."""
        connection = self._one().connection
        for one in connection.watches() if connection is not None else ():
            one.break_off()

    def compact(self) -> None:
        """The API server forgets what happened; some are behind then."""
        self._world.store.compact_all(self._chance.whole(self._subject, 0, 20))
        self._world.api.forget_pages()
        self.break_watches()

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _node(self) -> str | None:
        up = self._up()
        return self._chance.one_of(self._subject, up) if len(up) > 1 else None

    def _up(self) -> list[str]:
        names = sorted(name for _, name in self._world.store.objects["nodes"])
        return [one for one in names if one not in self._world.kubelets.down]

    def fail_node(self) -> None:
        """It comes back under its name."""
        name = self._node()
        if name is not None:
            self._fail(name)

    def _fail(self, name: str) -> None:
        if len(self._up()) > 1 and name in self._up():
            self._world.kubelets.fail(name)
            seconds = self._chance.between(self._subject, 5.0, 500.0)
            self._world.loop.call_later(seconds, self._come_back, name)

    def _come_back(self, name: str) -> None:
        if name in self._world.kubelets.down:
            self._world.kubelets.come_back(name)

    def lose_node(self) -> None:
        """It is deleted; another machine of its name joins, or one of another name."""
        name = self._node()
        if name is not None:
            self._lose(name)

    def _lose(self, name: str) -> None:
        if len(self._up()) > 1 and name in self._up():
            self._world.kubelets.lose(name)
            self._nodes += 1
            other = name if self._chance.happens(self._subject, 0.5) else f"spare-{self._nodes}"
            cpu = self._chance.whole(self._subject, 3, 6)
            self._world.loop.call_later(self._chance.between(self._subject, 1.0, 60.0), self._join, other, cpu)

    def _join(self, name: str, cpu: int) -> None:
        if self._world.store.get("nodes", "", name) is None:
            self._world.make_node(name, cpu)
