"""The simulator with ``Policy.decide`` in every pass: for a user's own policy, and as the live scheduler works."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.errors import PluginError
from slacktide.kernels import carry, loop, room
from slacktide.kernels.tables import PLACED, WAITING, Tables
from slacktide.model import Hosts, Workload
from slacktide.policy.api import Bind, Hold, Plan, Policy, View
from slacktide.policy.builtin import CompiledPolicy
from slacktide.policy.loader import Loaded


def check_types(plan: Plan, name: str) -> None:
    """Refuse a plan whose parts are not what they should be: a user's own code is not type-checked."""
    binds: Any = plan.binds
    holds: Any = plan.holds
    if not isinstance(binds, tuple) or not isinstance(holds, tuple):
        raise PluginError(f"{name}: found a Plan of something else, expected tuples of Bind and of Hold")
    for bind in binds:
        if not isinstance(bind, Bind) or not isinstance(bind.victims, tuple):
            raise PluginError(f"{name}: found {bind!r} in Plan.binds, expected a Bind with a tuple of victims")
        if not all(map(is_whole, (bind.row, bind.host, *bind.victims))):
            raise PluginError(f"{name}: found {bind!r} in Plan.binds, expected whole numbers")
    for hold in holds:
        if not isinstance(hold, Hold) or not is_whole(hold.row):
            raise PluginError(f"{name}: found {hold!r} in Plan.holds, expected a Hold of a row")


def is_whole(value: Any) -> bool:
    """Whether it can be a row number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class Stepper:
    """One pass after the other: view, decide, check, carry out."""

    def __init__(self, tb: Tables, workload: Workload, hosts: Hosts, config: Config, own: Loaded) -> None:
        self.tb, self.workload, self.hosts, self.config = tb, workload, hosts, config
        self.policy: Policy = own.policy if own.policy is not None else CompiledPolicy()
        self._own = own.policy is not None
        self._waiting: list[Bind] = []
        self._open = False

    def step(self, seconds: list[float]) -> int:
        """Go on to the next pass and through it; what must grow, or PAUSE, or OVER."""
        if not self._open:
            code = int(loop.advance(self.tb.state))
            if code != room.PASS_DUE:
                return code
            now = float(self.tb.control["now"])
            begun = time.perf_counter()
            plan = self._decide(now)
            self._waiting = list(plan.binds)
            seconds.append(time.perf_counter() - begun)
            carry.open_pass(self.tb.state)
            self._open = True
        while self._waiting:
            code = int(carry.room_to_act(self.tb.state))
            if code != room.FINISHED:
                return code
            self._carry_out(self._waiting.pop(0))
        carry.close_pass(self.tb.state)
        self._open = False
        return room.PAUSE

    def view(self, now: float) -> View:
        """The cluster as the policy may see it."""
        seed = [self.config.simulation.seed % 2**64, int(self.tb.control["batch"])]
        return View(self.tb, self.workload, self.hosts, now, np.random.default_rng(seed))

    def _decide(self, now: float) -> Plan:
        try:
            plan = self.policy.decide(self.view(now), now)
        except Exception as problem:
            if not self._own:
                raise
            name = self.config.policy.name
            raise PluginError(f"{name}: at {now:g} s: {type(problem).__name__}: {problem}") from problem
        if isinstance(self.policy, CompiledPolicy):
            self.tb.control["operations"] += self.policy.operations
            self.tb.control["bounds"] += self.policy.bounds
        if not isinstance(plan, Plan):
            raise PluginError(f"{self.config.policy.name}: found {type(plan).__name__}, expected a Plan")
        if self._own:
            check_types(plan, self.config.policy.name)
        return plan

    def _carry_out(self, bind: Bind) -> None:
        view = self.view(float(self.tb.control["now"]))
        if self._own:
            self._check(view, bind)
        lost = np.array([view.metric(v) for v in bind.victims])
        victims = np.array(bind.victims, np.int64)
        carry.bind(self.tb.state, bind.row, bind.host, victims, view.metric(bind.row), lost)

    def _check(self, view: View, bind: Bind) -> None:
        """A user's own policy must keep the contract; the compiled one does by its tests."""

        def refuse(found: str, expected: str) -> None:
            name = self.config.policy.name
            raise PluginError(f"{name}: at {view.now:g} s: row {bind.row}: {found}, expected {expected}")

        requests = self.tb["instances"]
        if not 0 <= bind.row < len(requests) or requests[bind.row]["state"] != WAITING:
            refuse("bound without waiting", "a row of view.waiting, bound once")
        if not 0 <= bind.host < len(self.hosts):
            refuse(f"host {bind.host}", f"0 to {len(self.hosts) - 1}")
        if len(set(bind.victims)) != len(bind.victims):
            refuse("a victim named twice", "each once")
        batch = self.tb.control["batch"]
        slots = self.tb["slots"][bind.host]
        if np.isin(slots["row"][slots["batch"] == batch], bind.victims).any():
            refuse("a victim placed in this very pass", "instances that ran before it")
        for v in bind.victims:
            if not 0 <= v < len(requests) or requests[v]["state"] != PLACED or requests[v]["host"] != bind.host:
                refuse(f"victim {v}", "requests that run on the chosen host")
        if not view.allowed(bind.row)[bind.host]:
            refuse(f"host {bind.host} not allowed", "a host of view.allowed(row)")
        room = self.tb["free"][bind.host].copy()
        kinds = self.tb["kinds"]
        for row in bind.victims:
            room += self.tb["demand"][kinds[requests[row]["kind"]]["shape"]]
        if (self.tb["demand"][kinds[requests[bind.row]["kind"]]["shape"]] > room).any():
            refuse(f"host {bind.host} has no room", "enough free amounts, victims gone")
