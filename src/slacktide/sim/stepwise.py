"""The simulator with ``Policy.decide`` in every pass: for a user's own policy, and to read the reasons of plans.

The live engine makes the passes of a user's own policy in the same way (:mod:`slacktide.policy.plan_pass`). Those of
a built-in policy it makes as the compiled simulator does, without a plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from slacktide.config import Config
from slacktide.kernels.drive import event_loop
from slacktide.kernels.tables import buffer_capacity
from slacktide.kernels.tables.arrays import Tables
from slacktide.model import Hosts, Workload
from slacktide.policy.api import Masks, Plan, Policy, View
from slacktide.policy.compiled import CompiledPolicy
from slacktide.policy.loader import Loaded
from slacktide.policy.plan_pass import carry_out, decided


class Stepper:
    """One pass after the other: view, decide, check, carry out. ``grow`` serves what a pass stops for."""

    def __init__(
        self,
        tb: Tables,
        workload: Workload,
        hosts: Hosts,
        config: Config,
        own: Loaded,
        grow: Callable[[int], bool],
    ) -> None:
        self.tb, self.workload, self.hosts, self.config = tb, workload, hosts, config
        self.policy: Policy = CompiledPolicy() if own.policy is None else own.policy
        self._name = "" if own.policy is None else config.policy.name
        self._grow, self._masks = grow, Masks()

    def step(self, seconds: list[float]) -> int:
        """Go on to the next pass and through it, noting how long it took to decide; PAUSE, or what comes first."""
        code = int(event_loop.advance(self.tb.state))
        if code != buffer_capacity.PASS_DUE:
            return code
        view = self.view(float(self.tb.control["now"]))
        begun = time.perf_counter()
        plan = self._decide(view)
        seconds.append(time.perf_counter() - begun)
        carry_out(plan, view, self._grow, self._name)
        return buffer_capacity.PAUSE

    def view(self, now: float) -> View:
        """The cluster as the policy may see it."""
        seed = [self.config.simulation.seed % 2**64, int(self.tb.control["batch"])]
        return View(self.tb, self.workload, self.hosts, now, np.random.default_rng(seed), self._masks)

    def _decide(self, view: View) -> Plan:
        plan = decided(self.policy, view, self._name) if self._name else self.policy.decide(view, view.now)
        if isinstance(self.policy, CompiledPolicy):
            self.tb.control["operations"] += self.policy.operations
            self.tb.control["bounds"] += self.policy.bounds
        return plan
