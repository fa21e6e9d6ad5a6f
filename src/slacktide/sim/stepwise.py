"""The simulator with ``Policy.decide`` in every pass, for a user's own policy.

The live engine makes its passes in the same way (:mod:`slacktide.policy.plan_pass`).
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
from slacktide.policy.api import Masks, Policy, View
from slacktide.policy.plan_pass import carry_out, decided
from slacktide.policy.read_only import read_only


class Stepper:
    """One pass after the other: view, decide, check, carry out. ``grow`` serves what a pass stops for."""

    def __init__(
        self,
        tb: Tables,
        workload: Workload,
        hosts: Hosts,
        config: Config,
        policy: Policy,
        grow: Callable[[int], bool],
    ) -> None:
        self.tb, self.config = tb, config
        self.workload, self.hosts = read_only(workload), read_only(hosts)
        self.policy, self._name = policy, config.policy.name
        self._grow, self._masks = grow, Masks()

    def step(self, seconds: list[float]) -> int:
        """Go on to the next pass and through it, noting how long it took to decide; PAUSE, or what comes first."""
        code = int(event_loop.advance(self.tb.state))
        if code != buffer_capacity.PASS_DUE:
            return code
        view = self.view(float(self.tb.control["now"]))
        begun = time.perf_counter()
        plan = decided(self.policy, view, self._name)
        seconds.append(time.perf_counter() - begun)
        carry_out(plan, view, self._grow, self._name)
        return buffer_capacity.PAUSE

    def view(self, now: float) -> View:
        """The cluster as the policy may see it."""
        seed = [self.config.simulation.seed % 2**64, int(self.tb.control["batch"])]
        return View(self.tb, self.workload, self.hosts, now, np.random.default_rng(seed), self._masks)
