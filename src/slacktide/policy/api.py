"""What a policy is given and what it answers.

A policy is asked once a pass: ``decide(view, now)``. It must be deterministic (chance
comes from ``view.random``), must not keep the view, and cannot change anything in it:
arrays are read-only. Its plan is checked before it is carried out: capacity, constraints, anti-affinity,
nothing bound twice, no victim without beneficiary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slacktide.kernels.drive.apply_plan import metric_in_queue, metric_on_host, spared, welcoming
from slacktide.kernels.tables.arrays import Tables
from slacktide.kernels.tables.schema import DONE, PLACED, WAITING
from slacktide.model import Hosts, Workload
from slacktide.policy.read_only import ReadOnlyTables


@dataclass(frozen=True, slots=True)
class Bind:
    """Start instance ``row`` on host ``host`` after evicting ``victims`` (rows, in this order)."""

    row: int
    host: int
    victims: tuple[int, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """Instance ``row``, or each of several, goes on waiting, and why."""

    row: int | tuple[int, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions in the order in which they are to be carried out."""

    binds: tuple[Bind, ...] = ()
    holds: tuple[Hold, ...] = ()


class Masks:
    """Which hosts satisfy which term and are up, and where jobs run: kept from pass to pass, until hosts change."""

    def __init__(self) -> None:
        self._down: NDArray[Any] = np.zeros(0)
        self._group: NDArray[Any] = np.zeros(0)
        self._of_term: dict[int, NDArray[np.bool_]] = {}
        self._of_job: dict[int, NDArray[np.int64]] = {}

    def of_term(self, tb: Tables, term: int) -> NDArray[np.bool_]:
        """Shape (hosts,), read-only."""
        mask = self._of_term.get(term)
        if mask is None:
            hosts = tb["hosts"]
            mask = tb["allowed"][term][hosts["group"]].astype(bool) & (hosts["down"] == 0)
            mask.flags.writeable = False
            self._of_term[term] = mask
        return mask

    def of_job(self, tb: Tables, job: int) -> NDArray[np.int64]:
        """Rows of a job that one which keeps away from its own siblings must not be beside."""
        rows = self._of_job.get(job)
        if rows is None:
            of = tb["member"] if len(tb["member"]) else tb["kinds"]["job"][tb["instances"]["kind"]]
            rows = self._of_job[job] = np.flatnonzero(of == job)
        return rows

    def refresh(self, tb: Tables) -> None:
        """Forget what no longer holds."""
        hosts = tb["hosts"]
        if not (np.array_equal(self._down, hosts["down"]) and np.array_equal(self._group, hosts["group"])):
            self._down, self._group = hosts["down"].copy(), hosts["group"].copy()
            self._of_term.clear()


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

    masks: Masks = field(default_factory=Masks, repr=False)
    """Those of the run."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", ReadOnlyTables(self.tables))
        self.masks.refresh(self.tables)

    @cached_property
    def waiting(self) -> NDArray[np.int64]:
        """Rows that wait, by admission; read-only."""
        control = self.tables.control
        queued = self.tables["queue"][: int(control["queue"])]["row"]
        new = self.tables["incoming"][: int(control["incoming"])]["row"]
        found = np.sort(np.concatenate([queued, new]))
        found.flags.writeable = False
        return found

    @cached_property
    def demands(self) -> NDArray[np.float64]:
        """What those of ``waiting`` ask for, shape (waiting, resources), rounded as amounts are; read-only."""
        found = self.tables["demand"][self.tables["kinds"]["shape"][self.kinds]] * self.tables["unit"]
        found.flags.writeable = False
        return found  # type: ignore[no-any-return]

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """The kind of each of ``waiting``: those of one kind ask for the same, may use the same hosts and were promised
        the same, so what one of them finds holds for all; read-only."""
        found = self.tables["instances"]["kind"][self.waiting]
        found.flags.writeable = False
        return found

    def as_hard(self, at: int, free: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of ``waiting`` find no host either where ``waiting[at]`` found none, with these free amounts of hosts
        or less: those that ask for as much of the same hosts, or are of its kind; shape (waiting,)."""
        kinds = self.tables["kinds"]
        own = kinds[self.kinds[at]]
        term, demand = int(own["term"]), self.demands[at]
        has_rules = own["job"] >= 0 or own["conditions"]
        if has_rules and (self.masks.of_term(self.tables, term) & (free >= demand).all(axis=1)).any():
            return self.kinds == self.kinds[at]  # type: ignore[no-any-return]  # its neighbours keep it away
        return (kinds["term"][self.kinds] == term) & (self.demands >= demand).all(axis=1)  # type: ignore[no-any-return]

    @property
    def free(self) -> NDArray[np.float64]:
        """Free amounts, shape (hosts, resources), in the hosts' unit, below 0 where more is taken than there is;
        0 on hosts that are down. A copy."""
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
        anti-affine job; read-only."""
        tb = self.tables
        number = int(tb["instances"]["kind"][row])
        term, job, conditions = tb["kinds"][["term", "job", "conditions"]][number].item()
        mask = self.masks.of_term(tb, term)
        if job < 0 and not conditions:
            return mask
        mask = mask.copy()
        if job >= 0:
            siblings = tb["instances"][self.masks.of_job(tb, job)]
            mask[siblings["host"][siblings["state"] == PLACED]] = False
        if conditions:
            welcoming(tb.state, number, mask)
        mask.flags.writeable = False
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

    def ran(self, row: int) -> float:
        """Seconds for which an instance has run so far of those that it needs to complete: useful running time that was
        kept, without start-ups. ``workload.duration[row] - ran(row)`` remain, to whoever may know durations."""
        instance = self.tables["instances"][row]
        running = float(instance["running"])
        if instance["state"] != PLACED:
            return running
        return running + max(0.0, self.now - float(instance["since"]) - float(instance["startup"]))

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
