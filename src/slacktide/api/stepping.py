"""``slacktide.Simulation``: a simulation that can be paused, looked at, changed and copied."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace
from inspect import isclass
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, Unpack

import numpy as np

from slacktide import settings as known_settings
from slacktide.api.changing import amounts_of, ended, resized, rows_of
from slacktide.api.configuring import (
    Duration,
    PolicyChoice,
    in_python,
    only_once,
    plain,
    seconds,
    sections,
    without_network,
)
from slacktide.api.drawing import frame_of
from slacktide.api.progress import of_run
from slacktide.api.result import Made, Result
from slacktide.api.simulating import job_of, warn_of_unserved
from slacktide.api.sources import Columns, Source, frame_given
from slacktide.api.state import State, state_of
from slacktide.api.typed_settings import Settings
from slacktide.config import Config, PresetName
from slacktide.errors import ConfigError, OutputError
from slacktide.experiment.run_folder import Finished, wanted_of
from slacktide.inputs import align
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.formats.frames import workload_frame
from slacktide.inputs.formats.tables import workload_of
from slacktide.inputs.grouping import Approach, GroupBy, Kind
from slacktide.inputs.write import workload_table
from slacktide.metrics.intervals import IntervalRecorder
from slacktide.model.host_events import EVENT_KINDS, HostEvents, merged, no_events
from slacktide.settings_file import SettingsFile
from slacktide.sim import Run
from slacktide.state.layout import GRID

if TYPE_CHECKING:
    import polars as pl

WHERE = "Simulation"
NEXT = 1.0 / GRID
"""Seconds to the instant after this one."""


class Simulation:
    """A simulation that can be paused, looked at, changed and copied.

    Without changes it decides what :func:`simulate` decides, wherever it is paused. A change holds from the instant
    after the pause on.

    Parameters
    ----------
    workload, hosts, policy, end, seed, preset, config, group_by, kind, approach, columns, intervals, events, passes
        As of :func:`simulate`. A policy that is an object is copied. Without ``end`` say until when to :meth:`run`.
    **settings
        As of :func:`simulate`.
    """

    @in_python(WHERE)
    def __init__(
        self,
        workload: Source,
        hosts: Source | None = None,
        policy: PolicyChoice | None = None,
        end: Duration | None = None,
        seed: SupportsIndex | None = None,
        *,
        preset: PresetName | None = None,
        config: str | os.PathLike[str] | None = None,
        group_by: GroupBy | None = None,
        kind: Kind | None = None,
        approach: Approach | None = None,
        columns: Columns | None = None,
        intervals: Duration | None = 600.0,
        events: bool = True,
        passes: bool = True,
        **settings: Unpack[Settings],
    ) -> None:
        inputs, grouping, asked = (workload, hosts, columns), (group_by, kind, approach), (intervals, events, passes)
        self._job = job_of(WHERE, inputs, policy, (end, seed), (preset, config), grouping, asked, settings)
        self._happened: HostEvents = no_events(len(self._job.hosts.resources))
        self._decided: list[tuple[float, Config]] = []
        self._changes: tuple[str, ...] = ()
        self._at = -math.inf
        self._run, self._recorder = self._begun()

    def _begun(self) -> tuple[Run, IntervalRecorder]:
        job, recorder = self._job, IntervalRecorder(self._job.workload)
        own = job.own if isclass(job.own) else deepcopy(job.own)
        wanted = wanted_of(job.workload, job.config, job.asked, recorder)
        return Run(job.workload, job.hosts, job.config, own=own, further=self._happened, **wanted), recorder

    def _played_again(self) -> None:
        """The inputs are others from now on: the same past, and another future."""
        self._run, self._recorder = self._begun()
        for at, config in self._decided:
            self._run.until(at)
            self._run.change(config)
        self._run.until(self._at)

    @property
    def now(self) -> float:
        """Seconds of simulated time that have passed."""
        return max(self._at, 0.0)

    @property
    def over(self) -> bool:
        """Whether nothing happens any more."""
        return self._run.over

    @in_python(f"{WHERE}.run")
    def run(self, until: Duration | None = None, *, progress: bool | None = None) -> Self:
        """Goes on.

        Parameters
        ----------
        until : seconds, text or timedelta, optional
            Since the beginning; all that happens at that instant does. None: to the end.
        progress : bool, optional
            As of :func:`simulate`.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        ConfigError
            For a time that is over, and where there is no end.
        """
        at = seconds("until", until)
        at = math.inf if at is None else at
        if at < self.now:
            raise ConfigError(f"until: found {until!r}, expected {self.now:g} seconds or more, which is now")
        with of_run(progress) as tell:
            self._run.until(at, tell)
        self._at = max(self._at, self._run.at if at == math.inf else at)
        return self

    @property
    def state(self) -> State:
        """How it stands: frames of requests, hosts and the queue."""
        return state_of(self._run, self._job.origin.own, self.now)

    # -- changes -----------------------------------------------------------------------------------------------------

    @in_python(f"{WHERE}.add")
    def add(self, requests: Source | Mapping[str, Any]) -> Self:
        """Further requests.

        Parameters
        ----------
        requests : frame, or a mapping for one
            With the columns of a workload; without ``admission``, or where it is null, they come at once.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        ConfigError
            For an admission that is over.
        InputError
            With every broken value, and for an ``id`` that is there already.
        """
        import polars as pl

        given: Any = pl.DataFrame([dict(requests)]) if isinstance(requests, Mapping) else frame_given(requests, "add")
        more = pl.DataFrame(given)
        if "admission" not in more:
            more = more.with_columns(admission=pl.lit(None, pl.Float64))
        more = more.with_columns(pl.col("admission").fill_null(self._next))
        if more["admission"].dtype.is_numeric() and (more["admission"] < self._next).any():
            least = more["admission"].min()
            raise ConfigError(f"add: admission: found {least!r}, expected a time after now, {self.now:g} s, or none")
        opened = workload_frame(more)
        new, own = frame_of(opened.table), opened.own
        if own.texts is not None:
            offset = int(self._job.workload.ids.max()) + 1
            new = new.with_columns(pl.col("id") + offset)
            own = replace(own, ids=new["id"].to_arrow())
        self._with(lambda rows: pl.concat([rows, new], how="diagonal_relaxed").sort("admission", maintain_order=True))
        self._job = replace(self._job, origin=replace(self._job.origin, own=self._job.origin.own.beside(own)))
        return self._note("add", *more["id"].to_list())

    @in_python(f"{WHERE}.end")
    def end(self, request: SupportsIndex | str) -> Self:
        """Ends a request: its instances are removed. One that is still to come does not come.

        Parameters
        ----------
        request : int or str
            Its id.

        Returns
        -------
        Simulation
            Itself.
        """
        return self._with(lambda rows: ended(rows, self._rows(rows, request), self._next))._note("end", request)

    @in_python(f"{WHERE}.resize")
    def resize(self, request: SupportsIndex | str, **amounts: float) -> Self:
        """Changes what each instance of a request demands.

        Parameters
        ----------
        request : int or str
            Its id.
        **amounts : float
            By resource, such as ``cpu=2``; of others it demands what it did.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        ConfigError
            For a resource that the workload has not, for what is no amount, and for a request that is still to come.
        """
        new = amounts_of(amounts, self._job.workload.resources)
        self._with(lambda rows: resized(rows, self._rows(rows, request), self._next, new, request))
        return self._note("resize", request, **amounts)

    @in_python(f"{WHERE}.fail_host")
    def fail_host(self, name: str) -> Self:
        """Takes a host down, with all that runs on it.

        Parameters
        ----------
        name : str
            Of the host.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        ConfigError
            For a host that is down.
        """
        return self._host(name, "fail")

    @in_python(f"{WHERE}.return_host")
    def return_host(self, name: str) -> Self:
        """Brings a host back.

        Parameters
        ----------
        name : str
            Of the host.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        ConfigError
            For a host that is up.
        """
        return self._host(name, "repair")

    @in_python("set")
    def set(self, *, end: Duration | None = None, **settings: Unpack[Settings]) -> Self:
        """Decides by other settings from now on.

        Parameters
        ----------
        end : seconds, text or timedelta, optional
            Another end, now or later.
        **settings
            Such as ``policy_patience=30``.

        Returns
        -------
        Simulation
            Itself.

        Raises
        ------
        ConfigError
            For a setting that holds for a whole run, such as those of classes and start-up, and for an end before now.
        """
        given, network = without_network(settings)
        if end is not None:
            only_once("set", "end", "simulation.end", given)
            given["simulation_end"] = seconds("set: end", end)
        if network is not None:
            raise ConfigError("set: delay_network: found it, expected settings about decisions")
        mapping = sections("set", given)
        config = known_settings.with_sections(self._run.config, mapping, SettingsFile("set", mapping))
        ends = config.simulation.end
        if ends is not None and "simulation_end" in given and ends < self.now:
            raise ConfigError(f"set: end: found {ends:g} seconds, expected {self.now:g} or more, which is now")
        try:
            self._run.change(config)
        except ConfigError as error:
            raise ConfigError(f"set: {', '.join(given)}: {error}") from error
        self._decided.append((self._at, config))
        self._note("set", **given)
        return self

    def _note(self, change: str, *what: object, **more: object) -> Self:
        """For the manifest of what comes of it."""
        words = [*map(str, what), *(f"{name}={one}" for name, one in more.items())]
        self._changes += (f"at {self.now:g} s: {change} {' '.join(words)}",)
        return self

    @property
    def _next(self) -> float:
        """When changes begin to hold: all that happens now has happened."""
        return 0.0 if self._at < 0.0 else self._at + NEXT

    def _rows(self, rows: pl.DataFrame, request: SupportsIndex | str) -> pl.Expr:
        return rows_of(rows, self._job.origin.own.number(plain(request)), request)

    def _with(self, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Self:
        """Goes on with other requests."""
        job = self._job
        try:
            rows = change(frame_of(workload_table(job.workload)))
        except OutputError as error:
            raise ConfigError(
                f"requests made by group_by='job' cannot be changed where a file could not say them: {error}"
            ) from error
        opened = workload_frame(rows)
        workload, _ = align(workload_of(opened, job.config.classes), job.hosts)
        origin = replace(job.origin, tables={**job.origin.tables, "workload": opened.table})
        self._job = replace(job, workload=workload, origin=origin)
        self._played_again()
        return self

    def _host(self, name: str, kind: str) -> Self:
        hosts = self._job.hosts
        if name not in hosts.names:
            raise ConfigError(f"host: found {name!r}, expected {expected_name(str(name), hosts.names)}")
        row, happened = hosts.names.index(name), self._happened
        now = happened.kinds[(happened.hosts == row) & (happened.times >= self._next)]
        up = EVENT_KINDS[now[-1]] == "repair" if len(now) else not self._run.tb["hosts"]["down"][row]
        if up != (kind == "fail"):
            is_, other = ("up", "down") if up else ("down", "up")
            raise ConfigError(f"host: found {name!r}, which is {is_} already, expected one that is {other}")
        amounts = np.full((1, len(hosts.resources)), np.nan)
        place, code = np.array([row]), np.array([EVENT_KINDS.index(kind)], np.int8)
        self._happened = merged(self._happened, HostEvents(np.array([self._next]), place, code, amounts))
        self._played_again()
        return self._note(kind, name)

    # -- futures -----------------------------------------------------------------------------------------------------

    def copy(self) -> Simulation:
        """Another simulation in the same state, which goes on by itself.

        Returns
        -------
        Simulation
        """
        made = object.__new__(Simulation)
        made.__dict__ = {**self.__dict__, "_decided": list(self._decided)}
        made._run, made._recorder = deepcopy((self._run, self._recorder))
        return made

    @in_python(f"{WHERE}.result")
    def result(self) -> Result:
        """What has come of it so far; it can go on after that.

        Returns
        -------
        Result
            As of :func:`simulate`.
        """
        job, (run, recorder) = self._job, deepcopy((self._run, self._recorder))
        done = Finished(job.workload, job.hosts, run.config, run.result(), recorder, job.asked, job.grouping)
        if self.over:
            warn_of_unserved(done)
        return Result(Made(replace(done, own=job.origin.own), job.origin, (f"slacktide.{WHERE}", *self._changes)))

    def __repr__(self) -> str:
        return f"Simulation({self._run.config.policy.name}: {self.now:g} s{', over' if self.over else ''})"
