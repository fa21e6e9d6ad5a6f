"""``slacktide.compare``: what is different between two results, or two policies, and whether that may be chance."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from slacktide.api.configuring import in_python
from slacktide.api.drawing import onto
from slacktide.api.result import Result
from slacktide.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES = ("fulfilment", "availability", "preemptions", "wasted_startup")
ALL = "all"
DRAWS = 1999
"""Samples of the bootstrap, and changes of sign of the test where there are too many for each."""
EXACT, SMALL = 10, 1000
"""Up to so many pairs all changes of sign are looked at; from so many on the mean is as good as normal."""


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    frame : polars.DataFrame
        A row per class, and ``all``, and measure: a, b (means over pairs), difference (b less a), low, high (between
        them lies the difference with ``confidence``), p (how often chance alone makes it as large), pairs.
    confidence : float
        Of the intervals.
    """

    frame: pl.DataFrame
    confidence: float

    def plot(self, measure: str = "fulfilment", *, width: float | None = None, ax: Axes | None = None) -> Figure:
        """Draws the differences of a measure with their intervals.

        Parameters
        ----------
        measure : str
            "fulfilment", "availability", "preemptions" or "wasted_startup".
        width : float, optional
            In mm.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None: a figure of its own.

        Returns
        -------
        matplotlib.figure.Figure
            That of ``ax``, where it is given.
        """
        import polars as pl

        rows = self.frame.filter(pl.col("measure") == measure).rows(named=True)
        if not rows:
            raise ConfigError(f"plot: found {measure!r}, expected {', '.join(MEASURES)}")

        def draw(axes: Any) -> None:
            for place, one in enumerate(reversed(rows)):
                sides = [[one["difference"] - one["low"]], [one["high"] - one["difference"]]]
                axes.errorbar([one["difference"]], [place], xerr=sides, fmt="o", color="C0", capsize=3)
            axes.axvline(0.0, color="0.4", linewidth=1.0)
            axes.set_yticks(range(len(rows)), [one["class"] for one in reversed(rows)])
            axes.set_xlabel(f"{measure}: b less a, {self.confidence:.0%} interval")

        found: Figure = onto(draw, width, ax, height=0.6 + 0.3 * len(rows))
        return found

    def _repr_html_(self) -> str:
        return str(self.frame._repr_html_())

    def __repr__(self) -> str:
        return f"Comparison({self.frame})"


@in_python("compare")
def compare(
    a: Result | Sequence[Result], b: Result | Sequence[Result], *, confidence: float = 0.95, seed: int = 0
) -> Comparison:
    """Compares two results request by request, or several run by run.

    Parameters
    ----------
    a, b : Result, or as many of each
        Two results of one workload are compared by the ``id`` of requests. Several, such as those of different seeds,
        are compared in pairs, in their order. For two policies of an experiment: :meth:`Experiment.compare`.
    confidence : float
        Of the intervals, which are those of the bootstrap over pairs.
    seed : int
        Of the samples that are drawn.

    Returns
    -------
    Comparison
        ``p`` is that of the paired test of signs.

    Raises
    ------
    ConfigError
        Where there is nothing to pair.
    """
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"compare: confidence: found {confidence!r}, expected a number between 0 and 1")
    one = isinstance(a, Result) and isinstance(b, Result)
    pairs = _of_requests(a, b) if one else _of_runs(a, b)  # type: ignore[arg-type]
    return _compared(pairs, confidence, seed)


def _of_requests(a: Result, b: Result) -> pl.DataFrame:
    """Class, and each measure of both as ``NAME`` and ``NAME_b``, a row for each request."""
    import polars as pl

    accounting = a.settings["qos"]["startup"]
    measures = {"slo_met": "fulfilment", f"availability_{accounting}": "availability"}
    frames = [
        one.requests.select("id", "class", *measures, "preemptions", "wasted_startup").rename(measures)
        for one in (a, b)
    ]
    found = frames[0].join(frames[1].drop("class"), on="id", suffix="_b")
    if found.is_empty():
        raise ConfigError("compare: found no request of the same id in both, expected results of one workload")
    order = {name: place for place, name in enumerate(a.classes["class"])}
    ordered: pl.DataFrame = found.sort(pl.col("class").replace_strict(order), maintain_order=True)
    return ordered


def _of_runs(a: Sequence[Result], b: Sequence[Result]) -> pl.DataFrame:
    """The same with a row for each pair of runs and class, and ``all``."""
    import polars as pl

    given = (a, b)
    if not all(_are_results(one) for one in given):
        raise ConfigError("compare: expected two results, or two lists of them")
    if len(a) != len(b):
        raise ConfigError(f"compare: found {len(a)} and {len(b)} results, expected as many of each, in pairs")
    mean = [(pl.col(name) * pl.col("requests")).sum() / pl.col("requests").sum() for name in MEASURES[:2]]
    frames = []
    for results in given:
        parts = []
        for number, one in enumerate(results):
            rows = one.classes.rename({"availability_mean": "availability"}).filter(pl.col("requests") > 0)
            whole = rows.select(pl.lit(ALL).alias("class"), *mean, pl.col("preemptions", "wasted_startup").sum())
            both = pl.concat([rows.select(whole.columns), whole], how="vertical_relaxed")
            parts.append(both.with_columns(pair=pl.lit(number)))
        frames.append(pl.concat(parts))
    found: pl.DataFrame = frames[0].join(frames[1], on=("pair", "class"), suffix="_b", maintain_order="left")
    return found


def _are_results(given: object) -> bool:
    return isinstance(given, Sequence) and len(given) > 0 and all(isinstance(one, Result) for one in given)


def _compared(pairs: pl.DataFrame, confidence: float, seed: int) -> Comparison:
    import polars as pl

    classes = [*(one for one in pairs["class"].unique(maintain_order=True) if one != ALL), ALL]
    by_run = "pair" in pairs.columns
    rows = []
    for name in classes:
        mine = pairs if name == ALL and not by_run else pairs.filter(pl.col("class") == name)
        numbers = mine.select(*MEASURES, *(f"{one}_b" for one in MEASURES)).to_numpy().astype(np.float64)
        differences = numbers[:, len(MEASURES) :] - numbers[:, : len(MEASURES)]
        random = np.random.default_rng(seed)
        low, high = np.quantile(_means(differences, random), [0.5 - confidence / 2, 0.5 + confidence / 2], axis=0)
        for place, measure in enumerate(MEASURES):
            means = [float(numbers[:, place + side].mean()) for side in (0, len(MEASURES))]
            one = {"class": name, "measure": measure, "a": means[0], "b": means[1]}
            one |= {"difference": float(differences[:, place].mean())}
            one |= {"low": float(low[place]), "high": float(high[place])}
            rows.append({**one, "p": chance(differences[:, place], random), "pairs": len(differences)})
    return Comparison(pl.DataFrame(rows), confidence)


def _means(differences: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    """Of so many samples with replacement the means, shape (samples, measures)."""
    count = len(differences)
    return np.array([differences[random.integers(count, size=count)].mean(axis=0) for _ in range(DRAWS)])


def chance(differences: NDArray[np.float64], random: np.random.Generator) -> float:
    """How often a mean as far from 0 comes about where each difference has either sign as easily; shape (n,)."""
    count, mean = len(differences), abs(float(differences.mean()))
    if mean == 0.0:
        return 1.0
    if count > SMALL:
        spread = float(np.sqrt((differences**2).mean() / count))
        return math.erfc(mean / spread / math.sqrt(2.0))
    if count <= EXACT:
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=count)))
        return float((abs(signs @ differences) / count >= mean * (1.0 - 1e-12)).mean())
    signs = random.choice([-1.0, 1.0], (DRAWS, count))
    return float((1 + (abs(signs @ differences) / count >= mean * (1.0 - 1e-12)).sum()) / (DRAWS + 1))
