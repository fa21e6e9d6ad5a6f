"""What a policy is given and what it answers.

A policy is asked once a pass: ``decide(view, now)``. It must be deterministic (chance
comes from ``view.random``), must not keep the view, and must not change anything in
it. Its plan is checked before it is carried out: capacity, constraints, anti-affinity,
nothing bound twice, no victim without beneficiary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive.apply_plan import metric_in_queue, metric_on_host, spared, welcoming
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.schema import DONE, PLACED, WAITING
from slacktide.model import Hosts, Workload


@dataclass(frozen=True, slots=True)
class Bind:
    """Start instance ``row`` on host ``host`` after evicting ``victims`` (rows, in this order)."""

    row: int
    host: int
    victims: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """Instance ``row`` goes on waiting, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions in the order in which they are to be carried out."""

    binds: tuple[Bind, ...] = ()
    holds: tuple[Hold, ...] = ()


@dataclass(frozen=True)
class View:
    """A cluster as a policy sees it at one instant; rows and hosts are places in the workload and host file.

    Durations are not part of it: no policy may know how long a request will run.
    """

    tables: Tables = field(repr=False)
    workload: Workload = field(repr=False)
    hosts: Hosts
    now: float
    random: np.random.Generator = field(repr=False)
    """Seeded by the run's seed and the number of the pass."""

    @property
    def waiting(self) -> NDArray[np.int64]:
        """Rows that wait, by admission."""
        control = self.tables.control
        queued = self.tables["queue"][: int(control["queue"])]["row"]
        new = self.tables["incoming"][: int(control["incoming"])]["row"]
        return np.sort(np.concatenate([queued, new]))

    @property
    def free(self) -> NDArray[np.float64]:
        """Free amounts, shape (hosts, resources), in the hosts' unit, below 0 where more is taken than there is;
        0 on hosts that are down."""
        up = self.tables["hosts"]["down"] == 0
        return self.tables["free"] * self.tables["unit"] * up[:, None]  # type: ignore[no-any-return]

    def demand(self, row: int) -> NDArray[np.float64]:
        """What a request asks for, shape (resources,), rounded as amounts are."""
        kind = self.tables["kinds"][self.tables["instances"]["kind"][row]]
        return self.tables["demand"][kind["shape"]] * self.tables["unit"]  # type: ignore[no-any-return]

    def running(self, host: int) -> NDArray[np.int64]:
        """Rows on a host, in no particular order."""
        count = self.tables["hosts"]["count"][host]
        return np.array(self.tables["slots"][host, :count]["row"], np.int64)

    def allowed(self, row: int) -> NDArray[np.bool_]:
        """Which hosts a request may use as they are: up, constraints and rules satisfied, no other instance of its
        anti-affine job."""
        tb = self.tables
        kind = tb["kinds"][tb["instances"]["kind"][row]]
        hosts = tb["hosts"]
        mask = tb["allowed"][kind["term"]][hosts["group"]].astype(bool) & (hosts["down"] == 0)
        if kind["job"] >= 0:
            places = np.arange(tb["slots"].shape[1])[None, :] < hosts["count"][:, None]
            mask &= ~((tb["slots"]["job"] == kind["job"]) & places).any(axis=1)
        mask = np.ascontiguousarray(mask)
        if kind["conditions"]:
            welcoming(tb.state, int(tb["instances"]["kind"][row]), mask)
        return mask

    def spared(self, host: int, victims: Sequence[int]) -> int:
        """The first of these rows on a host that must not be preempted beside those before it (budgets, least running
        time), or -1."""
        return int(spared(self.tables.state, host, np.asarray(victims, np.int64), self.now))

    def metric(self, row: int) -> float:
        """Q of an instance that waits or runs, seconds: its time to violate, or below 0 its recoverability.

        Where its request is measured as a whole (docs/semantics.md), that of the request: were this one
        preempted now, or did it go on waiting; infinite where the promise cannot be missed.
        """
        tb = self.tables
        instance = tb["instances"][row]
        if instance["state"] == PLACED:
            return float(metric_on_host(tb.state, int(instance["host"]), row, self.now))
        if instance["state"] != WAITING:
            raise ValueError(f"row {row}: has no metric, it neither waits nor runs (done: {instance['state'] == DONE})")
        return float(metric_in_queue(tb.state, row, self.now))

    def attributes(self, host: int) -> Mapping[str, str]:
        """A host's attributes."""
        return self.hosts.attributes[host]

    def __iter__(self) -> Iterator[int]:
        """Rows that wait."""
        return iter(self.waiting.tolist())


@runtime_checkable
class Policy(Protocol):
    """Anything with ``decide``; built from the run's ``Config`` when its class needs an argument."""

    def decide(self, view: View, now: float) -> Plan:
        """What to do at ``now`` (seconds). Synchronous and deterministic; called once a pass, queue not empty."""
        ...
