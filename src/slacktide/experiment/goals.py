"""What a host set is asked to achieve, and whether a run achieved it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from slacktide.errors import ConfigError, remedy
from slacktide.experiment.run import configured
from slacktide.inputs.columns.cells import expected_name
from slacktide.inputs.statistics import homeless
from slacktide.metrics.penalties import ALL, penalties
from slacktide.model import Hosts, ServiceClass, Workload, arrow
from slacktide.model.durations import parse_share
from slacktide.results.experiment import Run

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Goal:
    """Of each class a share of requests that reach their SLO, or (``budget``) a sum of penalties, cpu-seconds."""

    targets: Mapping[str, float]
    budget: float | None = None

    def met_by(self, scores: Sequence[Score]) -> bool:
        """Whether all runs (one for each seed) achieve it. A class without requests achieves its target."""
        if self.budget is not None:
            return all(one.penalty <= self.budget + ROUNDING for one in scores)
        return all(
            np.isnan(share) or share >= self.targets.get(name, 0.0) - ROUNDING
            for one in scores
            for name, share in one.fulfilment.items()
        )

    def __str__(self) -> str:
        if self.budget is not None:
            return f"penalties of at most {self.budget:g} cpu-seconds"
        return "fulfilment of at least " + ", ".join(f"{share:g} in {name}" for name, share in self.targets.items())


def goal_of(targets: Mapping[str, object], penalty: float | None, classes: Sequence[ServiceClass]) -> Goal:
    """The goal of a plan: ``targets``, shares by class, 1 for those left out; or instead a sum of penalties.

    Raises :class:`ConfigError` for both at once, an unknown class, and a number out of range.
    """
    names = [one.name for one in classes]
    if penalty is not None:
        if not 0.0 <= penalty < math.inf:
            raise ConfigError(f"penalty: found {penalty}, expected cpu-seconds, 0 or more")
        if targets:
            raise ConfigError("target and penalty are two goals: give one of them")
        return Goal({}, penalty)
    found = dict.fromkeys(names, 1.0)
    for name, said in targets.items():
        if name not in found:
            form = remedy("CLASS=SHARE", "{CLASS: SHARE}")
            raise ConfigError(f"target: found {name!r}, expected {form} with CLASS {expected_name(name, names)}")
        share = -1.0
        with suppress(ValueError):
            share = parse_share(said)  # type: ignore[arg-type]
        with suppress(ValueError, TypeError):
            share = float(said)  # type: ignore[arg-type]  # programs write 1e-05
        if not 0.0 <= share <= 1.0:
            raise ConfigError(f"target {name}: found {said!r}, expected a share from 0 to 1, such as 0.9 or 90%")
        found[name] = share
    return Goal(found)


@dataclass(frozen=True, slots=True)
class Score:
    """What a run achieved: of each class the share of requests that reached the SLO (NaN: it had none), penalties."""

    fulfilment: Mapping[str, float]
    penalty: float


def score(run: Run) -> Score:
    """Fulfilment and penalties (``metrics.penalties``, length ``due``) of a finished run, in the accounting of its
    decisions. Raises :class:`InputError` where its tables cannot be read."""
    about = run.manifest()
    config = configured(about["configuration"])
    requests = run.requests()
    names = np.asarray(requests["class"].cast("string").to_pylist(), dtype=object)
    met = arrow.as_numpy(requests["slo_met"])
    shares = {
        one.name: float(met[names == one.name].mean()) if (names == one.name).any() else float("nan")
        for one in config.classes
    }
    table = penalties(requests, config.classes, config.qos.startup, float(about["totals"]["end"]))
    owed = dict(zip(table["class"].to_pylist(), table["penalty"].to_pylist(), strict=True))
    return Score(shares, float(owed[ALL]))


def check_attainable(goal: Goal, workload: Workload, hosts: Hosts, end: float | None) -> None:
    """Raises :class:`ConfigError` where a target cannot be met by any number of such hosts.

    That is so where too many requests of a class, admitted before ``end``, fit none of them. Workloads whose requests
    have several instances are not looked at, as some approaches forgive a missing one; nor are budgets.
    """
    if goal.budget is not None or workload.requests is not None:
        return
    fits = np.ones(len(workload), np.bool_)
    fits[np.concatenate(homeless(workload, hosts))] = False
    admitted = np.ones(len(workload), np.bool_) if end is None else workload.admission < end
    for code, one in enumerate(workload.classes):
        mine = (workload.service_class == code) & admitted
        count, lost = int(mine.sum()), int((mine & ~fits).sum())
        if count == 0 or 1 - lost / count >= goal.targets.get(one.name, 0.0) - ROUNDING:
            continue
        row = int(np.flatnonzero(mine & ~fits)[0])
        asked = ", ".join(
            f"{name} {amount:g}" for name, amount in zip(workload.resources, workload.demand[row], strict=True)
        )
        raise ConfigError(
            f"target {one.name}={goal.targets[one.name]:g}: {lost} of {count} requests of this class fit none of the "
            f"hosts, however many there are; the first is request {workload.ids[row]} (asks for {asked}, and "
            f"constraints, if it has any). At most {1 - lost / count:.6g} can be reached"
        )
