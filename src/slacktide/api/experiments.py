"""``slacktide.Experiment``: many runs at once; ``slacktide.report``: the page about them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, Unpack

from slacktide.api.comparing import Comparison, compare
from slacktide.api.configuring import (
    Duration,
    PolicyChoice,
    at_once,
    configured,
    folder_at,
    in_python,
    only_once,
    plain,
    seconds,
    sections,
    without_network,
)
from slacktide.api.drawing import frame_of
from slacktide.api.grid_words import (
    WHERE,
    Drawn,
    HostsEntry,
    PolicyEntry,
    by_their_names,
    excluded,
    host_sets,
    origin_words,
    policies_by_name,
    seeds_of,
    swept,
)
from slacktide.api.progress import Watching
from slacktide.api.result import Result, Saved
from slacktide.api.sources import grid_origin, network_file
from slacktide.api.typed_settings import Settings
from slacktide.errors import AbsentError, ConfigError, RunsError
from slacktide.experiment import conduct, grid, store
from slacktide.experiment.checked import INTERVALS, Node
from slacktide.experiment.local import executor
from slacktide.results import experiment as folders
from slacktide.settings_file import SettingsFile

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class Experiment:
    """Every combination of workloads, host sets, policies and seeds, in a folder (docs/experiments.md).

    What is done already is not run again: interrupt :meth:`run` whenever you like, and call it again. An experiment
    that is in its folder already is opened by ``Experiment(folder)``.

    Parameters
    ----------
    folder : path
        Of the experiment.
    workloads : as of simulate, function, or mapping, optional
        One, or several by name; a function makes the workload of a seed, so that each seed has another one.
    hosts : as of simulate, or mapping, optional
        One host set, or several by name; None: those that ``generate`` made with the workload.
    policies : sequence or mapping
        Names of policies and presets, or classes that stand in a file; or several by name, each a name, such a class,
        or a mapping with ``policy``, ``preset`` and settings: ``{"policy": "qos-driven", "policy_patience": 30}``.
    seeds : int, or several
        How many, or the very seeds.
    base_seed : int
        What so many seeds are made from.
    end, intervals : seconds, text or timedelta
        As of :func:`simulate`.
    passes : bool
        Whether runs keep a row for each pass, which the figure ``passes`` of a report needs.
    sweep : mapping, optional
        Settings and the values that each policy is run with, in every combination, such as
        ``{"policy_patience": [15, 30]}``; frames have a column for each.
    exclude : sequence of mappings
        Combinations that are left out, such as ``[{"policy": "priority", "hosts": "few"}]``.
    title : str, optional
        Of the report.
    config : path, optional
        A settings file for all policies, without its seed and end.
    **settings
        Of all policies, as of :func:`simulate`, which come on top.
    """

    @in_python(WHERE)
    def __init__(
        self,
        folder: str | os.PathLike[str],
        workloads: Drawn | Mapping[str, Drawn] | None = None,
        hosts: HostsEntry | Mapping[str, HostsEntry] | None = None,
        policies: Sequence[PolicyChoice] | Mapping[str, PolicyEntry] = ("priority", "recommended"),
        *,
        seeds: SupportsIndex | Iterable[SupportsIndex] = 1,
        base_seed: SupportsIndex = 0,
        end: Duration | None = None,
        intervals: Duration = INTERVALS,
        passes: bool = False,
        sweep: Mapping[str, Iterable[Any]] | None = None,
        exclude: Sequence[Mapping[str, Any]] = (),
        title: str | None = None,
        config: str | os.PathLike[str] | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        self.folder = store.check_folder(folder_at(f"{WHERE}: folder", folder))
        self._asked: grid.Grid | dict[str, Any] | None = None
        self._described = False
        if workloads is None:
            if hosts is not None or end is not None or title is not None or exclude or config or settings:
                raise ConfigError(f"{WHERE}: workloads: found none, expected them; {WHERE}(folder) opens what is there")
            folders.read(self.folder)
            return
        only_once(WHERE, "policies", "policy.name", settings)
        said, self._network = without_network(settings)
        self._classes = configured(WHERE, None, config, said, {}).classes
        common = sections(WHERE, said)
        self._asked = {
            "workloads": by_their_names(workloads, "workload"),
            "hosts": host_sets(workloads, hosts),
            "seeds": seeds_of(seeds),
            "base_seed": plain(base_seed),
            "intervals": seconds("intervals", intervals),
            "passes": passes,
            "policies": policies_by_name(policies),
            **({} if end is None else {"end": seconds("end", end)}),
            **({} if title is None else {"title": title}),
            **({"exclude": excluded(exclude)} if exclude else {}),
            **({} if config is None else {"config": os.fspath(config)}),
            **({} if sweep is None else {"sweep": swept(sweep)}),
            **({"settings": common} if common else {}),
        }

    @classmethod
    @in_python("Experiment.from_file")
    def from_file(cls, grid_file: str | os.PathLike[str], folder: str | os.PathLike[str], **variables: object) -> Self:
        """The experiment of a grid file (docs/experiments.md).

        Parameters
        ----------
        grid_file, folder : path
            The file, and where results are kept.
        **variables
            Of the file.

        Returns
        -------
        Experiment
        """
        found = cls.__new__(cls)
        found.folder, found._network, found._described = store.check_folder(Path(folder)), None, False
        found._asked = grid.read(Path(grid_file), {name: str(value) for name, value in variables.items()})
        return found

    @in_python("Experiment.run")
    def run(
        self, *, jobs: SupportsIndex | None = None, cluster: str | None = None, progress: bool | None = None
    ) -> Self:
        """Does the runs that have no results yet. An interrupt ends all processes; what is done stays.

        Parameters
        ----------
        jobs : int, optional
            So many at a time, as joblib counts them: None and -1 are all processors, -2 all but one.
        cluster : str, optional
            The address of a Dask scheduler whose workers do them.
        progress : bool, optional
            As of :func:`simulate`.

        Returns
        -------
        Experiment
            Itself.

        Raises
        ------
        ConfigError, InputError
            Before the first run.
        RunsError
            At the end, where some failed: the others are done.
        """
        wanted = at_once("run", jobs)
        with store.opened(self.folder) as opened:
            asked = self._asked_of(opened)
            runs = conduct.listed(asked)
            conduct.describe(opened, asked, runs, ["slacktide.Experiment"], None)
            self._described = True
            with executor(opened, wanted, cluster) as hands, Watching(progress) as watching:
                failures = conduct.conduct(asked, runs, opened, hands, watching)
        if failures:
            point, outcome = failures[0]
            others = ", the others are done" if len(failures) < len(runs) else ""
            raise RunsError(
                f"{len(failures)} of {len(runs)} runs failed{others}. The first: {point.workload} / "
                f"{point.hosts} / {point.policy} / seed {point.seed}: {outcome.error}"
            )
        return self

    def _asked_of(self, opened: store.Store) -> grid.Grid:
        if self._asked is None:
            raise ConfigError(f"{self.folder}: only what was asked for can be run: give workloads and policies")
        if isinstance(self._asked, grid.Grid):
            return self._asked
        made = self._drawn()
        given = {axis: self._asked[axis] for axis in ("workloads", "hosts")}
        given["workloads"] = {**given["workloads"], **{name: next(iter(ones.values())) for name, ones in made.items()}}
        if given["hosts"] is None:
            given["hosts"] = host_sets(given["workloads"], None)

        def origin(one: Any, what: str) -> Any:
            return (
                one if isinstance(one, Mapping) else origin_words(grid_origin(one, opened.inputs, what, self._classes))
            )

        words = {
            axis: {name: origin(one, what) for name, one in given[axis].items()}
            for axis, what in (("workloads", "workload"), ("hosts", "hosts"))
        }
        top = {**self._asked, **words}
        if self._network is not None:
            common = top.get("settings", {})
            delay = {**common.get("delay", {}), "network": network_file(self._network, opened.inputs)}
            top["settings"] = {**common, "delay": delay}
        found = grid.of(Node(SettingsFile(WHERE, top), (), top))
        entries = dict(found.workloads)
        for name, ones in made.items():
            origins = {seed: grid_origin(one, opened.inputs, "workload", self._classes) for seed, one in ones.items()}
            entries[name] = replace(entries[name], drawn=origins)
        return replace(found, workloads=entries)

    def _drawn(self) -> dict[str, dict[int, Any]]:
        """Workloads that are functions of the seed, by name and seed."""
        asked: Any = self._asked
        seeds = asked["seeds"]
        found = {}
        for name, one in asked["workloads"].items():
            if callable(one):
                numbers = range(0 if isinstance(seeds, list) else seeds)
                derived = [grid.derived_seed(int(asked["base_seed"]), name, number) for number in numbers]
                found[name] = {seed: one(seed) for seed in derived or seeds}
        return found

    @property
    def runs(self) -> pl.DataFrame:
        """A row per run: workload, hosts, policy, seed, done (whether it has results), error (null: none), key."""
        import pyarrow as pa

        names = ("workload", "hosts", "policy", "seed", "error", "key")
        found = self._read()
        rows = [{**{name: getattr(one, name) for name in names}, "done": one.folder is not None} for one in found.runs]
        kinds = {name: pa.string() for name in names} | {"seed": pa.int64(), "done": pa.bool_()}
        # errors are text, also where there are none
        return _with_swept(frame_of(pa.Table.from_pylist(rows, pa.schema(kinds))), found)

    @property
    def classes(self) -> pl.DataFrame:
        """A row per finished run and service class: workload, hosts, policy, seed, class, requests, fulfilment (the
        share that got its promise; NaN where there are no requests), availability_min, penalty (cpu-seconds),
        preemptions, wasted_startup (s), and of the whole run operations and passes."""
        from slacktide.reporting.gather import members
        from slacktide.reporting.scores import read_run

        self._done()
        found = self._read()
        rows = _frame(_named_as_files(row, one.run.seed) for one in members(found) for row in read_run(one))
        return _with_swept(rows, found)

    @property
    def requests(self) -> pl.DataFrame:
        """requests.parquet of all finished runs, each row with workload, hosts, policy and seed of its run."""
        import polars as pl

        frames = []
        for one in self._done():
            place = [pl.lit(getattr(one, name)).alias(name) for name in ("workload", "hosts", "policy")]
            place.append(pl.lit(one.seed, pl.Int64).alias("seed"))
            frames.append(frame_of(one.requests()).select(*place, pl.all()))
        return _with_swept(pl.concat(frames, how="diagonal"), self._read())

    def compare(self, a: str, b: str, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
        """Compares two policies, by the runs of equal workload, hosts and seed.

        Parameters
        ----------
        a, b : str
            Policies as :attr:`runs` calls them.
        confidence, seed
            As of :func:`slacktide.compare`.

        Returns
        -------
        Comparison
        """
        done = self._done()
        by_place: list[dict[tuple[str, str, int], Path]] = []
        for name in (a, b):
            found = {(one.workload, one.hosts, one.seed): one.folder for one in done if one.policy == name}
            if not found:
                known = ", ".join(dict.fromkeys(repr(one.policy) for one in done))
                raise ConfigError(f"compare: found {name!r}, expected a policy with finished runs: {known}")
            by_place.append({place: folder for place, folder in found.items() if folder is not None})
        both = [place for place in by_place[0] if place in by_place[1]]
        mine, theirs = ([Result(Saved(one[place])) for place in both] for one in by_place)
        return compare(mine, theirs, confidence=confidence, seed=seed)

    def plot(self, figure: str = "availability", *, width: float | None = None) -> Figure:
        """A figure of the report about all finished runs.

        Parameters
        ----------
        figure, width
            As of :meth:`Result.plot`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from slacktide.api.drawing import figure_of

        self._done()
        found: Figure = figure_of(self._read(), figure, width)
        return found

    def report(self, out: str | os.PathLike[str], *, export: str | os.PathLike[str] | None = None) -> Path:
        """Writes the HTML page about it.

        Parameters
        ----------
        out, export : path
            As of :func:`slacktide.report`.

        Returns
        -------
        pathlib.Path
        """
        return report(self, out, export=export)

    def _read(self) -> folders.Experiment:
        if self._asked is None or self._described:
            return folders.read(self.folder)
        if not (self.folder / folders.ABOUT).is_file():
            raise AbsentError(f"{self.folder}: not begun; call run()")
        raise AbsentError(
            f"{self.folder}: holds an experiment, which need not be this one; call run(), which does nothing twice. "
            f"{WHERE}(folder) opens what is there"
        )

    def _done(self) -> list[folders.Run]:
        """Its finished runs. Raises :class:`AbsentError` where there are none."""
        found = self._read().done
        if not found:
            raise AbsentError(f"{self.folder}: no run is finished; call run()")
        return list(found)

    def __fspath__(self) -> str:
        return str(self.folder)

    def _repr_html_(self) -> str:
        shown = self.classes._repr_html_() if self._described and self._read().done else ""
        return f"<p>{escape(repr(self))}</p>{shown}"

    def __repr__(self) -> str:
        if (self._asked is not None and not self._described) or not (self.folder / folders.ABOUT).is_file():
            return f"Experiment({str(self.folder)!r}: not begun)"
        found = folders.read(self.folder)
        return f"Experiment({str(self.folder)!r}: {len(found.done)} of {len(found.runs)} runs are done)"


def _named_as_files(row: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """A row of the report's numbers, by the names and keys of all other tables."""
    shown = {"replicate": ("seed", seed), "lowest": ("availability_min", row["lowest"])}
    shown["kept"] = "fulfilment", row["kept"] / row["requests"] if row["requests"] else float("nan")
    return dict(shown.get(name, (name, value)) for name, value in row.items())


def _with_swept(rows: pl.DataFrame, found: folders.Experiment) -> pl.DataFrame:
    """With a column behind the others for each setting that is swept, called as its keyword."""
    import polars as pl

    policies = found.grid.get("policies", {})
    swept = [{"policy": name, **one["swept"]} for name, one in policies.items() if one.get("swept")]
    if not swept:
        return rows
    columns = {name: name.replace(".", "_", 1) for name in swept[0]}
    return rows.join(pl.DataFrame(swept).rename(columns), on="policy", how="left", maintain_order="left")


def _frame(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    import pyarrow as pa

    return frame_of(pa.Table.from_pylist([dict(one) for one in rows]))


@in_python("report")
def report(
    experiment: str | os.PathLike[str], out: str | os.PathLike[str], *, export: str | os.PathLike[str] | None = None
) -> Path:
    """The page about an experiment, as ``slacktide report`` makes it.

    Parameters
    ----------
    experiment : Experiment or path
        It, or its folder.
    out : path
        The file.
    export : path, optional
        A folder for every figure as SVG, PNG and CSV.

    Returns
    -------
    pathlib.Path
        Of the page.

    Raises
    ------
    InputError
        Where there is nothing to tell of.
    OutputError
        Where it cannot be written.
    """
    from slacktide import reporting

    if isinstance(experiment, Experiment):
        experiment._read()
    reporting.write(Path(experiment), Path(out), None if export is None else Path(export))
    return Path(out)
