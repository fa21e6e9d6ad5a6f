"""A run from its beginning to its result, in one piece or piece by piece."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.inputs.formats.network_file import read_network
from slacktide.kernels.builtin import POLICIES
from slacktide.kernels.drive import apply_plan, event_loop
from slacktide.kernels.runtime.compiling import compile_clock, compiled_before
from slacktide.kernels.tables import schema
from slacktide.kernels.tables.arrays import ARRAYS, Tables
from slacktide.model import Hosts, Workload
from slacktide.model.host_events import HostEvents
from slacktide.policy.api import View
from slacktide.policy.loader import has_own_code, load
from slacktide.sim.engine import BUDGET, Progress, Recorder, check_end, drive, prepare, result_of, timed_step
from slacktide.sim.ignoring import considered
from slacktide.sim.observing import Observer, Watch
from slacktide.sim.result import RunResult
from slacktide.sim.stepwise import Stepper
from slacktide.state.growing_arrays import grow
from slacktide.state.layout import on_grid

WHOLE = ("classes", "qos", "startup", "failures")
"""Sections that say what has happened as well, or what hosts and requests are made of."""
BY_CLASS = ("patience", "late_below", "limit")
"""What tables have of each class by settings that may change in a run."""


class Run:
    """A run that goes on piece by piece: :meth:`until` as often as wanted, then :meth:`result`.

    ``copy.deepcopy`` makes another one that goes on by itself from the same state; workload and hosts are shared.
    Arguments are those of :func:`run`; ``further`` happens to hosts beside what the settings say.
    """

    def __init__(
        self,
        workload: Workload,
        hosts: Hosts,
        config: Config,
        *,
        own: object = None,
        events: bool = False,
        turns: bool = False,
        outages: bool = False,
        passes: bool = False,
        decisions: bool = False,
        intervals: float | None = None,
        observe: Observer | None = None,
        further: HostEvents | None = None,
    ) -> None:
        record = schema.RECORD_EVENTS * events + schema.RECORD_OUTAGES * (events or outages)
        record += schema.RECORD_TURNS * turns
        record += schema.RECORD_DECISIONS * decisions + schema.RECORD_PASSES * passes
        begun = time.perf_counter()
        self._own, self._record, self._further = load(config, own), record, further
        self._compiling = 0.0 if self._own.code.pieces is None else time.perf_counter() - begun
        if config.delay.network is not None:
            hosts = replace(hosts, network=read_network(config.delay.network, hosts))
        self.workload, self.hosts, self.config = considered(workload, config), hosts, config
        self.tb = tb = prepare(self.workload, hosts, config, self._own, record, further)
        self._recorder, self._stepper, self._watch = Recorder(), None, None
        self.at, self.over = 0.0, False
        if self._own.policy is not None:
            self._stepper = Stepper(tb, self.workload, hosts, config, self._own.policy, self._serve)
        if intervals is not None and observe is not None:
            self._watch = Watch(tb, self.workload, hosts, config.qos.startup, intervals, observe)

    def __deepcopy__(self, memo: dict[int, Any]) -> Run:
        made, tb = object.__new__(Run), self.tb
        shared = [self.workload, self.hosts, self._own]
        if self._stepper is not None:
            shared += [self._stepper.workload, self._stepper.hosts]
        memo |= {id(one): one for one in shared}
        memo[id(self)] = made
        memo[id(tb)] = Tables(tb.rules, tb.control, {name: tb[name].copy() for name in ARRAYS})
        made.__dict__ = {name: deepcopy(one, memo) for name, one in self.__dict__.items()}
        return made

    def _serve(self, code: int) -> bool:
        return grow(self.tb, code, self._recorder.drain)

    def _step(self) -> int:
        if self._stepper is not None:
            return self._stepper.step(self._recorder.seconds)
        if self._record & schema.RECORD_PASSES:
            return timed_step(self.tb, self._recorder)
        return int(event_loop.run(self.tb.state, BUDGET))

    def until(self, at: float = math.inf, progress: Progress | None = None) -> None:
        """Go on until all that happens at ``at`` seconds has, or to the end, which must be known then."""

        def report() -> None:
            if progress is not None:
                progress(float(self.tb.control["now"]), int(self.tb.control["arrived"]), len(self.workload))

        at = float(on_grid(np.array(at)))
        if at == math.inf:
            check_end(self.workload, self.config)
        self.over = drive(self.tb, self._step, self._recorder, report, self._watch, at)
        end = self.config.simulation.end
        self.at = at if not self.over else float(self.tb.control["now"]) if end is None else float(self.tb.rules["end"])

    def change(self, config: Config) -> None:
        """Decide by these settings from now on. Raises :class:`ConfigError` where they are not about decisions only."""
        old, new = (
            prepare(self.workload, self.hosts, one, self._own, self._record, self._further)
            for one in (self.config, config)
        )
        whole = [
            (*(getattr(one, name) for name in WHOLE), one.delay.network, one.simulation.epoch, one.simulation.ignore)
            for one in (self.config, config)
        ]
        own = [has_own_code(one) or one.policy.name not in POLICIES for one in (self.config, config)]
        theirs = {(one.policy.name, one.policy.score, one.policy.cost) for one in (self.config, config)}
        for name in BY_CLASS:
            old["classes"][name] = new["classes"][name]
        others = (name for name in ARRAYS if name != "class_numbers" and old[name].tobytes() != new[name].tobytes())
        if whole[0] != whole[1] or (any(own) and len(theirs) > 1) or any(others):
            raise ConfigError("this holds for a whole run: give it when the simulation is made")
        for name in schema.RULES.names or ():
            if name != "observe":
                self.tb.rules[name] = new.rules[name]
        for name in BY_CLASS:
            self.tb["classes"][name] = new["classes"][name]
        self.tb["class_numbers"][:] = new["class_numbers"]
        self.config = config
        for h in range(len(self.hosts)):  # whatever was found out about them may hold no more
            apply_plan.host_changed(self.tb.state, h)

    def view(self) -> View:
        """The cluster as it is now, as a policy sees it."""
        return View(self.tb, self.workload, self.hosts, self.at, np.random.default_rng(0))

    def result(self) -> RunResult:
        """What came of it; it cannot go on after that."""
        if self._watch is not None:
            self._watch.close(self.at)
        return replace(result_of(self.tb, self.workload, self._recorder, self.at), compile_seconds=self._compiling)


def run(
    workload: Workload,
    hosts: Hosts,
    config: Config,
    *,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
    **asked: Any,
) -> RunResult:
    """Simulate ``workload`` on ``hosts`` (of the same resources) under ``config``; ``asked`` as :class:`Run` takes it.

    ``own`` is a policy, or its class, that decides instead of the one that ``config.policy.name`` names;
    ``events``, ``passes`` and ``decisions`` ask for those columns of the result, ``outages`` for events that are
    outages of promises over a window, which ``events`` are among others; with ``turns`` each turn in vain is an
    event ``held``, and not only the first of a wait;
    ``progress`` is called now and then with simulated seconds, requests admitted, and
    requests in all; ``announce`` with a sentence when kernels must be compiled first;
    ``observe`` with a :class:`Snapshot` every ``intervals`` seconds of simulated time and at
    the end, which changes no decision. Raises ConfigError, InputError and PluginError.
    """
    if announce is not None and not compiled_before():
        announce("compiling the kernels, once after an installation or upgrade (up to a minute)")
    with compile_clock(has_own_code(config)) as seconds:
        going = Run(workload, hosts, config, **asked)
        going.until(progress=progress)
        result = going.result()
        return replace(result, compile_seconds=max(seconds(), result.compile_seconds))
