"""What :func:`slacktide.simulate` returns, and figures that compare several of them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slacktide import settings
from slacktide.api.configuring import folder_at
from slacktide.api.drawing import FIGURES, figure_of, frame_of, onto
from slacktide.api.sources import Origin
from slacktide.errors import AbsentError, ConfigError
from slacktide.experiment import run_folder
from slacktide.experiment.run_folder import Finished
from slacktide.for_people import share
from slacktide.results import replaced_directory
from slacktide.results.experiment import Experiment, Run, read_or_run

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Made:
    """What a result shows of a run that this program made."""

    def __init__(self, done: Finished, origin: Origin, command: Sequence[str] = ("slacktide.simulate",)) -> None:
        self._done, self._origin, self._command = done, origin, command

    def table(self, name: str) -> Any:
        """A table by its name, or None."""
        return run_folder.table_of(self._done, name)

    def about(self) -> dict[str, Any]:
        """What of a manifest needs no look at files."""
        done = self._done
        return {"totals": run_folder.totals(done.result), "configuration": settings.to_mapping(done.config)}

    def folder(self, place: Path, *, whole: bool = True) -> Path:
        """The folder of results, in ``place``; events, which no figure shows, where ``whole``."""
        origin, done = self._origin, self._done
        if not whole:
            done = replace(done, asked=replace(done.asked, events=False))
        run_folder.write(place, done, files=origin.files, command=self._command, in_memory=origin.digests())
        return place


class Saved:
    """The same of a folder of results."""

    def __init__(self, folder: Path) -> None:
        self._run = read_or_run(folder).runs[0]

    def table(self, name: str) -> Any:
        there = self._run.folder is not None and (self._run.folder / f"{name}.parquet").is_file()
        return self._run.table(f"{name}.parquet") if there else None

    def about(self) -> dict[str, Any]:
        return self._run.manifest()

    def folder(self, place: Path, *, whole: bool = True) -> Path:
        there = self._run.folder
        assert there is not None  # noqa: S101  it was read
        if whole and place.resolve() != there.resolve():
            with replaced_directory(place, run_folder.RESULT_FILES) as aside:
                shutil.copytree(there, aside, dirs_exist_ok=True)
        return place if whole else there


class Result:
    """A finished run. Its tables are polars frames, made when they are asked for; docs/results.md has their columns."""

    def __init__(self, source: Made | Saved) -> None:
        self._source = source

    def _table(self, name: str, otherwise: str) -> pl.DataFrame:
        found = self._source.table(name)
        if found is None:
            raise AbsentError(f"{name}: {otherwise}")
        return frame_of(found)

    @cached_property
    def requests(self) -> pl.DataFrame:
        """A row per request, as in requests.parquet."""
        return self._table("requests", "these are files as published")

    @cached_property
    def instances(self) -> pl.DataFrame:
        """A row per instance, as in instances.parquet; where each request is one instance :attr:`requests` has all.

        Raises :class:`AbsentError` there, so that ``hasattr(result, "instances")`` is False.
        """
        return self._table("instances", "every request of this run is one instance: 'requests' has them")

    @cached_property
    def classes(self) -> pl.DataFrame:
        """A row per service class: what it was promised and what it got, as in classes.parquet."""
        return self._table("classes", "an earlier slacktide wrote this: simulate again")

    @cached_property
    def events(self) -> pl.DataFrame:
        """A row per event, as in events.parquet. Raises :class:`AbsentError` where ``events=False`` was asked for."""
        return self._table("events", "none were kept; simulate with events=True")

    @cached_property
    def passes(self) -> pl.DataFrame:
        """A row per scheduling pass, as in passes.parquet. Raises :class:`AbsentError` as :attr:`events`."""
        return self._table("passes", "none were kept; simulate with passes=True")

    @cached_property
    def _about(self) -> dict[str, Any]:
        return self._source.about()

    @property
    def totals(self) -> dict[str, Any]:
        """Counts of the run (placements, preemptions, operations, ...) and its ``end`` in seconds, as in a manifest."""
        return dict(self._about["totals"])

    @property
    def settings(self) -> dict[str, Any]:
        """All settings of the run, by section, as in a manifest."""
        return dict(self._about["configuration"])

    @property
    def policy(self) -> str:
        """The policy's name; of a class of your own its module and name."""
        return str(self.settings["policy"]["name"])

    def plot(
        self,
        figure: str = "availability",
        *,
        width: float | None = None,
        ax: Axes | None = None,
        request: int | str | None = None,
    ) -> Figure:
        """Draws a figure; ``slacktide.plot`` compares several results.

        Parameters
        ----------
        figure : str
            Of the report (docs/report.md): "availability", "demand", "deficits", "penalties", "queue", "operations",
            "preemptions", ...; or of this result alone: "kept", "queue" and "timeline".
        width : float, optional
            In mm (85 and 180 are those of columns and pages).
        ax : matplotlib.axes.Axes, optional
            Where to draw "kept", "queue" or "timeline"; None: a figure of its own.
        request : optional
            The id of the request whose "timeline" it is.

        Returns
        -------
        matplotlib.figure.Figure
            That of ``ax``, where it is given.

        Raises
        ------
        ConfigError
            For another name, and for ``ax`` with a figure of several panels.
        """
        if figure in FIGURES and (ax is not None or figure != "queue"):
            draw: Any = FIGURES[figure]
            more = (request,) if figure == "timeline" else ()
            found: Figure = onto(lambda axes: draw(axes, self, *more), width, ax)
            return found
        if ax is not None:
            raise ConfigError(f"plot: ax: found it with {figure!r}, expected {', '.join(FIGURES)}, which are one panel")
        return _of_report({re.split("[.:]", self.policy)[-1]: self}, figure, width, FIGURES)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the folder that ``slacktide simulate --out`` writes; it is there whole or not at all.

        ``config="FOLDER/manifest.json"`` repeats the run on the same inputs, where the policy was given by name.

        Parameters
        ----------
        folder : path

        Returns
        -------
        pathlib.Path

        Raises
        ------
        OutputError
            Also for a folder that holds anything but earlier results.
        """
        return self._source.folder(folder_at("save", folder))

    def __repr__(self) -> str:
        totals = self.totals
        kept = ", ".join(f"{one['class']} {share(100.0 * one['fulfilment'], 2)}%" for one in self._kept())
        never = int(self.classes["never_served"].sum())
        warning = f"; {never:,} {'instance' if never == 1 else 'instances'} never had a host" if never else ""
        return (
            f"Result({self.policy}, seed {self.settings['simulation']['seed']}: {totals['requests']:,} requests until "
            f"{totals['end']:g} s, {totals['preemptions']:,} preemptions; promises kept: {kept}{warning})"
        )

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.classes._repr_html_()}"

    def _kept(self) -> list[dict[str, Any]]:
        return [one for one in self.classes.iter_rows(named=True) if one["requests"]]


def plot(results: Mapping[str, Result], figure: str = "availability", *, width: float | None = None) -> Figure:
    """A figure of the report about some results, which are taken for runs of one workload on one host set.

    Parameters
    ----------
    results : mapping
        By the names that they shall have in it.
    figure, width
        As of :meth:`Result.plot`.

    Returns
    -------
    matplotlib.figure.Figure
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
    return _of_report(results, figure, width)


def _of_report(results: Mapping[str, Result], figure: str, width: float | None, others: Iterable[str] = ()) -> Figure:
    """``others`` are names of figures that are not of the report, and could have been meant."""
    with tempfile.TemporaryDirectory(prefix="slacktide-") as root:
        runs = []
        for number, (name, one) in enumerate(results.items()):
            folder = one._source.folder(Path(root) / str(number), whole=False)
            seed = int(one.settings["simulation"]["seed"])
            runs.append(Run(str(number), "workload", "hosts", name, seed, folder, None))
        found: Figure = figure_of(Experiment(Path(root), {}, runs, [], {}), figure, width, others)
        return found
