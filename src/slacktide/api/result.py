"""What :func:`slacktide.simulate` returns, and figures that compare several of them."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slacktide import settings
from slacktide.api.configuring import folder_at
from slacktide.api.drawing import figure_of, frame_of
from slacktide.api.sources import Origin
from slacktide.errors import AbsentError, ConfigError
from slacktide.experiment import run_folder
from slacktide.experiment.run_folder import Finished
from slacktide.for_people import share
from slacktide.results import tables
from slacktide.results.experiment import Experiment, Run
from slacktide.sim import EVENT_KINDS

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Result:
    """A finished run. Its tables are polars frames, made when they are asked for; docs/results.md has their columns."""

    def __init__(self, done: Finished, origin: Origin) -> None:
        self._done, self._origin = done, origin

    @cached_property
    def requests(self) -> pl.DataFrame:
        """A row per request, as in requests.parquet."""
        return frame_of(tables.request_rows(*self._rows(self._done.result.requests)).table())

    @cached_property
    def instances(self) -> pl.DataFrame:
        """A row per instance, as in instances.parquet; where each request is one instance :attr:`requests` has all.

        Raises :class:`AbsentError` there, so that ``hasattr(result, "instances")`` is False.
        """
        found = self._done.result.instances
        if found is None:
            raise AbsentError("instances: every request of this run is one instance: 'requests' has them")
        return frame_of(tables.instance_rows(*self._rows(found)).table())

    @cached_property
    def classes(self) -> pl.DataFrame:
        """A row per service class, in the order of the settings.

        class, slo; requests; availability_mean, availability_min, availability_p05 (in the accounting of decisions, NaN
        where there are no requests); fulfilment, the share that got its promise; deficit_mean of the others;
        preemptions; wasted_startup (s); never_served, instances that never had a host.
        """
        import pyarrow as pa

        done, rows = self._done, []
        unserved = run_folder.unserved_of(done.workload, done.hosts, done.config, done.result)
        never = {one.service: one.instances for one in unserved}
        for one in run_folder.per_class_of(done.workload, done.config, done.result):
            got = one.availability[done.config.qos.startup]
            rows.append(
                {
                    "class": one.name,
                    "slo": one.slo,
                    "requests": one.requests,
                    **{f"availability_{key}": value for key, value in asdict(got).items()},
                    "fulfilment": one.fulfilment[done.config.qos.startup],
                    "deficit_mean": one.deficit_mean,
                    "preemptions": one.preemptions,
                    "wasted_startup": one.wasted_startup,
                    "never_served": never.get(one.name, 0),
                }
            )
        return frame_of(pa.Table.from_pylist(rows))

    @cached_property
    def events(self) -> pl.DataFrame:
        """A row per event, as in events.parquet. Raises :class:`AbsentError` where ``events=False`` was asked for."""
        done = self._done
        if done.result.events is None or not done.asked.events:
            raise AbsentError("events: none were kept; simulate with events=True")
        return frame_of(tables.event_rows(done.workload, done.hosts, done.result.events, EVENT_KINDS).table())

    @cached_property
    def passes(self) -> pl.DataFrame:
        """A row per scheduling pass, as in passes.parquet. Raises :class:`AbsentError` as :attr:`events`."""
        if self._done.result.passes is None:
            raise AbsentError("passes: none were kept; simulate with passes=True")
        return frame_of(tables.rows_of(self._done.result.passes).table())

    @property
    def totals(self) -> dict[str, Any]:
        """Counts of the run (placements, preemptions, operations, ...) and its ``end`` in seconds, as in a manifest."""
        return run_folder.totals(self._done.result)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the run, by section, as in a manifest."""
        return settings.to_mapping(self._done.config)

    @property
    def policy(self) -> str:
        """The policy's name; of a class of your own its module and name."""
        return self._done.config.policy.name

    def plot(self, figure: str = "availability", *, width: float | None = None) -> Figure:
        """A figure of the report (docs/report.md); ``slacktide.plot`` compares several results.

        ``figure`` is "availability", "demand", "deficits", "penalties", "queue", "operations", "preemptions", ...;
        ``width`` in mm (85 and 180 are those of columns and pages). Raises :class:`ConfigError` for another name.
        """
        return plot({re.split("[.:]", self.policy)[-1]: self}, figure, width=width)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the folder that ``slacktide simulate --out`` writes, and returns its path.

        It is there whole or not at all. ``config="FOLDER/manifest.json"`` repeats the run on the same inputs, where
        the policy was given by name. Raises :class:`OutputError`, also for a folder that holds anything but earlier
        results.
        """
        return self._saved(folder_at("save", folder), self._done)

    def _saved(self, folder: Path, done: Finished) -> Path:
        origin = self._origin
        run_folder.write(folder, done, files=origin.files, command=["slacktide.simulate"], in_memory=origin.digests())
        return folder

    def _rows(self, columns: Any) -> tuple[Any, Any, Any]:
        return self._done.workload, columns, self._done.config.qos.startup

    def __repr__(self) -> str:
        done, totals = self._done, self.totals
        kept = ", ".join(f"{one['class']} {share(100.0 * one['fulfilment'], 2)}%" for one in self._kept())
        never = sum(one["never_served"] for one in self.classes.iter_rows(named=True))
        warning = f"; {never:,} {'instance' if never == 1 else 'instances'} never had a host" if never else ""
        return (
            f"Result({self.policy}, seed {done.config.simulation.seed}: {totals['requests']:,} requests on "
            f"{len(done.hosts):,} hosts until {totals['end']:g} s, {totals['preemptions']:,} preemptions; "
            f"promises kept: {kept}{warning})"
        )

    def _kept(self) -> list[dict[str, Any]]:
        return [one for one in self.classes.iter_rows(named=True) if one["requests"]]


def plot(results: Mapping[str, Result], figure: str = "availability", *, width: float | None = None) -> Figure:
    """A figure of the report about some results, by the names that they shall have in it.

    They are taken for runs of one workload on one host set. ``figure`` and ``width`` as for :meth:`Result.plot`.
    """
    given: object = results
    named = isinstance(given, Mapping) and all(isinstance(name, str) for name in given)
    if not named or not all(isinstance(one, Result) for one in results.values()):
        raise ConfigError(
            f"plot: found {type(results).__name__}, expected results by the names that they shall have: "
            "st.plot({'ours': result, 'theirs': other})"
        )
    if not results:
        raise ConfigError("plot: found no results, expected at least one")
    with tempfile.TemporaryDirectory(prefix="slacktide-") as root:
        runs = []
        for number, (name, one) in enumerate(results.items()):
            done = replace(one._done, asked=replace(one._done.asked, events=False))  # which no figure shows
            folder = one._saved(Path(root) / str(number), done)
            seed = int(one.settings["simulation"]["seed"])
            runs.append(Run(str(number), "workload", "hosts", name, seed, folder, None))
        found: Figure = figure_of(Experiment(Path(root), {}, runs, [], {}), figure, width)
        return found
