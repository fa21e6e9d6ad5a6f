"""``slacktide.simulate``."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex, Unpack

from slacktide.api.configuring import (
    Duration,
    PolicyChoice,
    configured,
    in_python,
    only_once,
    seconds,
    switch,
    with_policy,
    without_network,
)
from slacktide.api.progress import of_run
from slacktide.api.result import Made, Result
from slacktide.api.sources import Columns, Origin, Source, classes_of, inputs_of, warn_of_other_inputs
from slacktide.api.typed_settings import Settings
from slacktide.config import Config, PresetName
from slacktide.errors import ConfigError, ResultWarning
from slacktide.experiment.run_folder import Asked, Finished, finished, totals, unserved_of
from slacktide.inputs.grouping import Approach, GroupBy, Kind, grouping_of
from slacktide.model import Hosts, Workload
from slacktide.model.window import EPOCH
from slacktide.sim.observing import SHORTEST

LOG = logging.getLogger("slacktide")


@in_python("simulate")
def simulate(
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
    progress: bool | None = None,
    **settings: Unpack[Settings],
) -> Result:
    """Simulates a workload on hosts under a policy, as ``slacktide simulate`` does, with the same decisions.

    Parameters
    ----------
    workload, hosts : path, frame or Generated
        A frame is one of polars (also lazy), pandas or Arrow; what :func:`generate` returned brings its hosts.
    policy : str, class, object or Pieces, optional
        A name ("qos-driven" if none is given), a class with ``decide``, or an object of one.
    end : seconds, text or timedelta, optional
        Stop then; None: when all requests have completed.
    seed : int, optional
        Of everything that is drawn (0 if none is given).
    preset : str, optional
        Settings to start from: "recommended" (the default), "published" or "published-tuned".
    config : path, optional
        A settings file, or a manifest.json of results; what is said beside it comes on top.
    group_by, kind, approach : str, optional
        "job": rows of one job are one request, of this kind, measured so.
    columns : mapping, text or path, optional
        The workload has columns of its own: a mapping such as ``{"id": "pod_uid", "cpu": "cpu_req:m"}``, a text or a
        file as of ``--columns``, or "guess"; its first instant is ``simulation.epoch``.
    intervals : seconds, text or timedelta, optional
        Between two points of figures over time; None: there are none.
    events, passes : bool
        Whether the tables of these names are kept; without passes a run takes less time.
    progress : bool, optional
        Show it; None: in notebooks only, where tqdm is installed.
    **settings
        Every other setting by section and key: ``policy_patience=30`` for ``policy.patience``; ``classes``, a list as
        in a settings file; ``delay_network`` a path, or ``generated.network``; ``policy_score`` and ``policy_cost``
        also as functions.

    Returns
    -------
    Result

    Raises
    ------
    ConfigError
        For settings and arguments.
    InputError
        With every broken value of workload and hosts.
    PluginError
        For a policy of your own that breaks its contract.

    Warns
    -----
    ResultWarning
        Of instances that never had a host.
    """
    inputs, grouping, asked = (workload, hosts, columns), (group_by, kind, approach), (intervals, events, passes)
    job = job_of("simulate", inputs, policy, (end, seed), (preset, config), grouping, asked, settings)
    with of_run(progress) as tell:
        done = finished(
            job.workload, job.hosts, job.config, job.asked, grouping=job.grouping, own=job.own, progress=tell
        )
    warn_of_unserved(done)
    return Result(Made(replace(done, own=job.origin.own), job.origin))


def warn_of_unserved(done: Finished) -> None:
    """Warns of who never had a host: their requests are in no mean of start-ups, and may have kept their promises."""
    LOG.info("%s: %d placements until %g s", done.config.policy.name, done.result.placements, done.result.end)
    never = unserved_of(done.workload, done.hosts, done.config, done.result)
    if not never:
        return
    total, large = sum(one.instances for one in never), sum(one.too_large for one in never)
    of = totals(done.result)["instances"]
    whose = ", ".join(f"{one.service} {one.instances:,}" for one in never)
    fits = f"; {large:,} of them fit on no host, even an empty one: compare demand and constraints" if large else ""
    warnings.warn(f"{total:,} of {of:,} were never served ({whose}){fits}", ResultWarning, stacklevel=4)


@dataclass(frozen=True, slots=True)
class Job:
    """A simulation before it begins; ``own`` is a policy that is not given by name."""

    workload: Workload
    hosts: Hosts
    config: Config
    asked: Asked
    grouping: dict[str, str] | None
    own: object
    origin: Origin


def job_of(
    where: str,
    inputs: tuple[Source, Source | None, Columns | None],
    policy: PolicyChoice | None,
    until: tuple[Duration | None, SupportsIndex | None],
    base: tuple[PresetName | None, str | os.PathLike[str] | None],
    grouped: tuple[GroupBy | None, Kind | None, Approach | None],
    asked: tuple[Duration | None, bool, bool],
    settings: Mapping[str, Any],
) -> Job:
    """What :func:`simulate` and :class:`Simulation` are given, ``where`` being one of the two, read and checked."""
    (workload, hosts, columns), (preset, config), intervals = inputs, base, asked[0]
    named = {"simulation.end": seconds("end", until[0]), "simulation.seed": until[1]}
    events, passes = (
        switch(f"{where}: {name}", one) for name, one in zip(("events", "passes"), asked[1:], strict=True)
    )
    if policy is not None:
        only_once(where, "policy", "policy.name", settings)
    step = seconds("intervals", intervals)
    if step is not None and step < SHORTEST:
        raise ConfigError(f"intervals: found {intervals!r}, expected {SHORTEST:g} seconds or more, or None")
    settings, network = without_network(settings)
    chosen, own = with_policy(configured(where, preset, config, settings, named), policy)
    chosen = replace(chosen, classes=classes_of(workload, chosen.classes))
    grouping, origin = grouping_of(*grouped, config), Origin()
    requests, machines, epoch = inputs_of(workload, hosts, chosen.classes, grouping, origin, columns)
    warn_of_other_inputs(config, origin)
    if network is not None:
        machines = replace(machines, network=network)
    origin.network = machines.network
    if epoch and chosen.simulation.epoch == EPOCH:
        chosen = replace(chosen, simulation=replace(chosen.simulation, epoch=epoch))
    LOG.info("%s: %d instances on %d hosts, policy %s", where, len(requests), len(machines), chosen.policy.name)
    return Job(requests, machines, chosen, Asked(passes, events, step), grouping, own, origin)
