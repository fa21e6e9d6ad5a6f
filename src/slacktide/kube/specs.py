"""What pods ask for, as specs of the engine; ten thousand pods of one template share one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from slacktide.kube.access import Wants
from slacktide.kube.classes import Promised
from slacktide.kube.demand import Demands
from slacktide.kube.entries import Entry
from slacktide.kube.placements import Placed
from slacktide.kube.refusals import Unschedulable, refusal
from slacktide.kube.storage import both
from slacktide.kube.world import World
from slacktide.live.engine import Engine
from slacktide.model.constraint import Term
from slacktide.state.spec import Spec

NEVER = "Never"

SpecKey = tuple[tuple[tuple[str, int], ...], object, int, Term, bool, Wants]


class Asked(NamedTuple):
    """What a pod asks for; ``term`` is the one of ``placed`` and that of its volumes."""

    demand: tuple[tuple[str, int], ...]
    promised: Promised
    placed: Placed
    term: Term
    never: bool
    wants: Wants

    def spec(self) -> Spec:
        wants = self.wants
        return Spec(self.demand, self.promised.service, self.term, self.placed.placement, self.never,
                    wants.limit, wants.access, wants.application)  # fmt: skip


@dataclass(slots=True)
class Interned:
    """A spec by its number, and how many pods have it."""

    number: int
    key: SpecKey
    placed: Placed  # kept, because the key has its identity
    spec: Spec
    users: int = 0


class Specs:
    """Specs in use, numbered for the engine."""

    def __init__(self, world: World) -> None:
        self.demands = Demands()
        self._world = world
        self._known: dict[SpecKey, Interned] = {}
        self._by_number: dict[int, Interned] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def of(self, entry: Entry, engine: Engine) -> int:
        """The number of a pod's spec now, which is then to be taken, or said to be unused.

        Raises :class:`Unschedulable` with the reason where it has none.
        """
        asked = self._read(entry)
        key = (asked.demand, asked.promised.service, id(asked.placed), asked.term, asked.never, asked.wants)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Interned(self._count, key, asked.placed, asked.spec())
            self._by_number[self._count] = found
            self._count += 1
            engine.spec(found.number, found.spec)
        return found.number

    def check(self, entry: Entry) -> None:
        """Raises :class:`Unschedulable` with the reason where a pod has no spec now."""
        self._read(entry)

    def _read(self, entry: Entry) -> Asked:
        world, pod = self._world, entry.pod
        if reason := entry.malformed or refusal(pod):
            raise Unschedulable(reason)
        entry.promised = world.classes.of(pod, world.owners.is_batch(pod.metadata))
        demand = self.demands.of(pod)
        if isinstance(demand, str):
            raise Unschedulable(demand)
        placed = world.book.placement_of(pod)
        if pod.spec.volumes and not pod.spec.node_name:
            entry.needs = world.storage.needs(pod)
            if entry.needs.waits:
                raise Unschedulable(entry.needs.waits)
        term = both(placed.term, entry.needs.term)
        never = pod.spec.preemption_policy == NEVER
        wants = world.edge.wants_of(pod, world.owners)
        return Asked(world.edge.named(demand), entry.promised, placed, term, never, wants)

    def take(self, entry: Entry, number: int, engine: Engine) -> None:
        """A pod has this spec now, and no more the one it had."""
        self._by_number[number].users += 1
        if entry.spec >= 0:
            self.release(entry.spec, engine)
        entry.spec = number

    def alike(self, one: int, other: int) -> bool:
        """Whether two specs ask for the same."""
        return one == other or self._by_number[one].spec == self._by_number[other].spec

    def unused(self, number: int, engine: Engine) -> None:
        """A pod did not take it after all: one that nobody has is forgotten."""
        self._by_number[number].users += 1
        self.release(number, engine)

    def release(self, number: int, engine: Engine) -> None:
        """One pod fewer has it; one that nobody has is forgotten."""
        found = self._by_number[number]
        found.users -= 1
        if found.users == 0:
            del self._known[found.key], self._by_number[number]
            engine.spec_gone(number)
