"""The simulator with ``Policy.decide`` in every pass: for a user's own policy, and as the live scheduler works."""

from __future__ import annotations

import time

import numpy as np

from slacktide.config import Config
from slacktide.errors import PluginError
from slacktide.kernels import carry, loop, room
from slacktide.kernels.tables import Tables
from slacktide.model import Hosts, Workload
from slacktide.policy.api import Bind, Plan, Policy, View
from slacktide.policy.builtin import CompiledPolicy
from slacktide.policy.checking import check_bind, check_types
from slacktide.policy.loader import Loaded


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
            check_bind(view, bind, self.config.policy.name)
        lost = np.array([view.metric(v) for v in bind.victims])
        victims = np.array(bind.victims, np.int64)
        carry.bind(self.tb.state, bind.row, bind.host, victims, view.metric(bind.row), lost)
