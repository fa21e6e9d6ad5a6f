"""``slacktide.plan``: how many hosts a workload needs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, Unpack

from slacktide.api.configuring import (
    Duration,
    PolicyChoice,
    at_once,
    by_name,
    configured,
    in_python,
    listed,
    only_once,
    plain,
    policy_by_name,
    seconds,
    switch,
    whole_number,
    without_network,
)
from slacktide.api.drawing import frame_of
from slacktide.api.progress import Watching
from slacktide.api.sources import (
    Columns,
    Origin,
    Source,
    classes_of,
    grid_origin,
    hosts_given,
    mapped_workload,
    network_file,
)
from slacktide.api.typed_settings import Settings
from slacktide.config import Config
from slacktide.errors import ConfigError
from slacktide.experiment import curve as curves
from slacktide.experiment import planning, store
from slacktide.experiment.goals import Goal, goal_of
from slacktide.experiment.grid import PolicyEntry
from slacktide.experiment.local import executor
from slacktide.experiment.prepare import mapped

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


class CapacityPlan:
    """What :func:`plan` found."""

    def __init__(self, rows: Any, about: Mapping[str, Any]) -> None:
        self._rows, self._about = rows, about

    @property
    def hosts(self) -> dict[str, int | None]:
        """By policy the smallest number of hosts, in the mix that was given, from which on every number that was tested
        meets the goal; None where the most that were tested do not."""
        return {name: one["hosts"] for name, one in self._about["policies"].items()}

    @property
    def curve(self) -> pl.DataFrame:
        """A row per policy, size and class, as in plan.parquet (docs/experiments.md)."""
        return frame_of(self._rows)

    def plot(self, *, width: float | None = None) -> Figure:
        """Fulfilment and penalties against the number of hosts.

        Parameters
        ----------
        width : float, optional
            In mm.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from slacktide.api.drawing import shown

        curves.check_drawing()
        rows = self._rows.to_pylist()
        drawing: Figure = shown(lambda sheet: curves.drawn(rows, self._about, sheet), width)
        return drawing

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.curve._repr_html_()}"

    def __repr__(self) -> str:
        goal = Goal(self._about["goal"]["targets"] or {}, self._about["goal"]["penalty"])
        said = ", ".join(
            f"{name} {one['hosts']}" if one["hosts"] is not None else f"{name} more than {one['most']}"
            for name, one in self._about["policies"].items()
        )
        return f"CapacityPlan({goal}: hosts {said})"


def _with_network(one: PolicyEntry, file: str) -> PolicyEntry:
    return replace(one, config=replace(one.config, delay=replace(one.config.delay, network=file)))


@in_python("plan")
def plan(
    workload: Source,
    hosts: Source | None = None,
    policies: Sequence[PolicyChoice] = ("recommended",),
    *,
    target: Mapping[str, float | str] | None = None,
    penalty: float | None = None,
    end: Duration | None = None,
    seed: SupportsIndex = 0,
    seeds: SupportsIndex = 1,
    within: SupportsIndex = 1,
    most: SupportsIndex | None = None,
    curve: bool = True,
    folder: str | os.PathLike[str] | None = None,
    jobs: SupportsIndex | None = None,
    cluster: str | None = None,
    progress: bool | None = None,
    config: str | os.PathLike[str] | None = None,
    columns: Columns | None = None,
    **settings: Unpack[Settings],
) -> CapacityPlan:
    """The smallest number of hosts, in the mix of ``hosts``, on which a workload meets a goal, as ``slacktide plan``.

    Parameters
    ----------
    workload, hosts, end, config, columns, **settings
        As of :func:`simulate`.
    policies : sequence
        Names of policies (also ``file.py:Class``) and of presets, or classes that stand in a file.
    target : mapping, optional
        Share of a class that is to reach its SLO, 0.9 or "90%"; 1 for those left out.
    penalty : float, optional
        Instead: penalties of at most so many cpu-seconds.
    seed, seeds : int
        Each of so many has to meet the goal; they are made from ``seed``.
    within : int
        The answer may be too large by fewer than so many hosts.
    most : int, optional
        Test no more hosts than these (eight times ``hosts`` if none is given).
    curve : bool
        Also test sizes around the answer, for :meth:`CapacityPlan.plot`.
    folder : path, optional
        Runs are kept there and not done again, beside the files of ``slacktide plan --out``; None: kept nowhere.
    jobs, cluster, progress
        As of :meth:`Experiment.run`.

    Returns
    -------
    CapacityPlan

    Raises
    ------
    ConfigError
        For a goal that no number of hosts achieves.
    InputError
        With every broken value.
    """
    listed("plan", policies)
    seeds, within = whole_number("plan: seeds", seeds), whole_number("plan: within", within)
    most = None if most is None else whole_number("plan: most", most)
    import pyarrow as pa

    wanted = at_once("plan", jobs)
    if target is not None and not isinstance(target, Mapping):
        raise ConfigError(f"plan: target: found {target!r}, expected shares by class, such as {{'gold': 0.9}}")
    only_once("plan", "policies", "policy.name", settings)
    curve = switch("plan: curve", curve)
    given, network = without_network(settings)
    named = {"simulation.end": seconds("end", end), "simulation.seed": seed}

    def load(preset: str, policy: str | None) -> Config:
        return configured("plan", preset, config, given, {**named, "policy.name": policy})

    chosen = by_name("plan", policies)
    found = planning.policies_of({name: policy_by_name(one) for name, one in chosen.items()}, load, "plan: ")
    if not found:
        raise ConfigError("plan: policies: found none, expected at least one")
    classes = next(iter(found.values())).config.classes
    mix = hosts_given(workload, hosts)
    goal = goal_of(plain(target or {}), plain(penalty), classes_of(workload, classes))
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder)
        opened = stack.enter_context(store.opened(place))
        if network is not None:
            file = network_file(network, opened.inputs)
            found = {name: _with_network(one, file) for name, one in found.items()}
        if columns is None:
            requests = grid_origin(workload, opened.inputs, "workload", classes)
        else:
            own = mapped_workload(workload, classes, Origin(), columns)
            requests, found = mapped(*own, found, opened.inputs)
        asked = planning.grid_of(requests, grid_origin(mix, opened.inputs, "hosts", classes), found, seeds, None)
        hands = stack.enter_context(executor(opened, wanted, cluster))
        watching = stack.enter_context(Watching(progress))
        together = max(1, hands.jobs // (seeds * len(found)))
        question = planning.Question(asked, goal, ["slacktide.plan"], together, within, most, curve)
        answer = planning.plan(question, opened, hands, watching)
        if folder is not None:
            curves.check_drawing()
            curves.write(answer, opened)
    return CapacityPlan(pa.table(planning.rows(answer)), planning.summary(answer))
