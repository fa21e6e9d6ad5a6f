"""Whether a simulation comes out as what was measured: availabilities of two samples, class by class.

Means are compared as Farias's thesis does (7.2), by a t test: Student's where Levene's test around the medians (Brown
and Forsythe, 1974) does not tell the variances apart, else Welch's (1947). A t test assumes means that are normally
distributed, which Shapiro and Wilk's test (1965) of each sample makes doubtful where availabilities pile up at 1. So
the rank test of Mann and Whitney (1947), which assumes nothing of the kind, stands beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Accounting
from slacktide.engine.core.engine import Engine
from slacktide.engine.core.operations import Run
from slacktide.engine.journal.record import sessions
from slacktide.engine.journal.replay import Report, carry_out, retrace
from slacktide.engine.ledger.slo_status import slo_status
from slacktide.errors import InputError, Problem
from slacktide.results import published_files

LEVEL = 0.05
"""Of every test."""
LARGEST = 5_000
"""Shapiro and Wilk's test is of no use for more: then the mean is normal enough (central limit)."""
RESULTS = "requests.parquet"


@dataclass(frozen=True, slots=True)
class Sample:
    """What became of requests: ``availability`` of each, by class, classes in their order; and all preemptions."""

    availability: Mapping[str, NDArray[np.float64]]
    preemptions: int


@dataclass(frozen=True, slots=True)
class Tested:
    """Two samples of a class.

    difference  of the means, simulated less measured, with its interval at 1 - LEVEL
    t_test      ``student`` or ``welch``; empty where a sample has fewer than two values, or no value differs
    normal      whether neither sample is shown not to be normal
    t, ranks    what the tests say of equal means, and of equal distributions (p values); None: no test
    """

    counts: tuple[int, int]
    means: tuple[float, float]
    deviations: tuple[float, float]
    least: tuple[float, float]
    difference: float
    interval: tuple[float, float] | None
    t_test: str
    normal: bool
    t: float | None
    ranks: float | None

    @property
    def differ(self) -> bool:
        """Whether the test whose assumptions hold tells the samples apart; without a test, whether means differ."""
        p = self.t if self.normal else self.ranks
        return bool(self.difference) if p is None else p < LEVEL


def read(path: Path, accounting: Accounting = "always", at: float | None = None) -> Sample:
    """The sample in a folder of ``simulate --out``, or in a record of ``run --record`` (its last session, at its end or
    ``at``, seconds since 1970).

    Raises :class:`InputError` for a folder that has neither.
    """
    if (path / RESULTS).is_file():
        return _simulated(path / RESULTS, accounting)
    if published_files.folder_has_them(path):
        expected = "results of ours: 'slacktide trace results FOLDER WORKLOAD HOSTS --out DIR' makes them of such files"
        raise InputError([Problem(str(path), 0, "", published_files.ALLOCATION, expected)])
    if not any(path.glob("session-*.json")):
        expected = f"a folder with {RESULTS} (of 'slacktide simulate --out'), or a record (of 'slacktide run --record')"
        raise InputError([Problem(str(path), 0, "", "", expected)])
    return _recorded(path, accounting, at)


def _simulated(path: Path, accounting: Accounting) -> Sample:
    import polars as pl

    name = f"availability_{accounting}"
    try:
        rows = pl.read_parquet(path, columns=["class", name, "preemptions"])
    except (pl.exceptions.PolarsError, OSError) as error:
        expected = f"what 'slacktide simulate --out' writes, with columns class, {name} and preemptions"
        raise InputError([Problem(str(path), 0, "", f"{type(error).__name__}: {error}", expected)]) from error
    found = {str(cls): part[name].to_numpy() for (cls,), part in rows.group_by("class", maintain_order=True)}
    return Sample(found, int(rows["preemptions"].sum()))


def _recorded(path: Path, accounting: Accounting, at: float | None) -> Sample:
    session = sessions(path)[-1]
    engine = Engine(session.config)
    last = 0.0
    for entry, _ in retrace(partial(carry_out, engine), session, Report()):
        if isinstance(entry.operation, Run):
            last = entry.operation.now
    now = max(last, engine.latest) if at is None else at
    found: dict[str, list[float]] = {}
    preemptions = 0
    for key in list(engine.controllers):
        status = slo_status(engine, key, now)
        found.setdefault(status.service, []).append(getattr(status, f"delivered_{accounting}"))
        preemptions += status.preemptions
    return Sample({name: np.array(values) for name, values in found.items()}, preemptions)


def compare(measured: Sample, simulated: Sample) -> dict[str, Tested]:
    """Each class that both samples have, in the order of the first."""
    both = [name for name in measured.availability if name in simulated.availability]
    return {name: two_samples(measured.availability[name], simulated.availability[name]) for name in both}


def two_samples(measured: NDArray[np.float64], simulated: NDArray[np.float64]) -> Tested:
    """Two samples of one class, each of at least one value."""
    from scipy import stats

    pair = (measured, simulated)
    sizes, means = [len(one) for one in pair], [float(one.mean()) for one in pair]
    spreads = [float(one.std(ddof=1)) if len(one) > 1 else 0.0 for one in pair]
    interval, name, t, ranks = None, "", None, None
    if min(sizes) > 1 and max(spreads) > 0.0:
        with np.errstate(invalid="ignore"):  # where all are as far from their medians
            equal = not float(stats.levene(*pair, center="median").pvalue) < LEVEL
        outcome = stats.ttest_ind(simulated, measured, equal_var=equal)
        bounds = outcome.confidence_interval(1.0 - LEVEL)
        name, t = ("student" if equal else "welch"), float(outcome.pvalue)
        interval = float(bounds.low), float(bounds.high)
        ranks = float(stats.mannwhitneyu(simulated, measured).pvalue)
    return Tested(
        counts=(sizes[0], sizes[1]),
        means=(means[0], means[1]),
        deviations=(spreads[0], spreads[1]),
        least=(float(measured.min()), float(simulated.min())),
        difference=means[1] - means[0],
        interval=interval,
        t_test=name,
        normal=all(map(_may_be_normal, pair)),
        t=t,
        ranks=ranks,
    )


def _may_be_normal(values: Sequence[float] | NDArray[np.float64]) -> bool:
    from scipy import stats

    if len(values) > LARGEST:
        return True
    return len(values) >= 3 and bool(np.ptp(values)) and float(stats.shapiro(values).pvalue) >= LEVEL
