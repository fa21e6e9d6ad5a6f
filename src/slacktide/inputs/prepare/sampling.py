"""A sample of users with all their requests, group by group.

Works on files, row group by row group, as a run has no use for users. Needs Polars and scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

from slacktide.errors import ConfigError, fail
from slacktide.inputs.problems import check_readable

FEATURES = ("requests", "cpu_variance", "memory_variance", "duration_variance")
"""Of each user; variances are those of the population, 0 for a single request."""
AMOUNTS = ("cpu", "memory", "duration")


@dataclass(frozen=True, slots=True)
class Sample:
    """What was drawn.

    users     a row per user, by name: ``user``, ``group`` (0 is that of the most users), ``FEATURES``, ``drawn``
    requests  how many requests were drawn: those of the drawn users, and the drawn ones of no known user
    nameless  how many requests have no known user, and how many of them were drawn
    """

    users: pl.DataFrame
    requests: int
    nameless: tuple[int, int]

    def groups(self) -> pl.DataFrame:
        """A row per group: users, drawn users, requests, requests of drawn users, means of the features."""
        taken = pl.col("requests").filter(pl.col("drawn")).sum()
        return (
            self.users.group_by("group")
            .agg(
                pl.len().alias("users"),
                pl.col("drawn").sum().alias("drawn"),
                pl.col("requests").sum().alias("all_requests"),
                taken.alias("drawn_requests"),
                *(pl.col(name).mean().alias(f"mean_{name}") for name in FEATURES),
            )
            .sort("group")
        )


def sample(source: Path, target: Path, *, share: float = 0.1, groups: int = 6, seed: int = 0) -> Sample:
    """Writes all requests of a drawn ``share`` of each group's users to the Parquet file ``target``.

    ``source`` is a workload (.parquet or .csv) with the column ``user``. Users are put into ``groups`` by k-means on
    the number of their requests and the variances of CPU, memory and duration of these (endless ones left out), each
    standardised to mean 0 and variance 1; of each group the share is drawn, rounded, at least one user. Nobody
    knows which requests without a user belong together: of them the share is drawn one by one. Rows keep ids and
    order. Raises :class:`ConfigError` for settings that cannot be, :class:`InputError` for a file without
    users.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"share: found {share:g}, expected a number above 0 and at most 1")
    if groups < 1:
        raise ConfigError(f"groups: found {groups}, expected a whole number from 1")
    rows = _rows(source)
    every = _features(rows, source)
    users = every.filter(pl.col("user").is_not_null())
    nameless = int(every.filter(pl.col("user").is_null())["requests"].sum())
    if users.height and users.height < groups:
        raise ConfigError(f"groups: found {groups}, expected at most the number of users, {users.height}")
    features = users.select(FEATURES).to_numpy().astype(np.float64)
    group = _grouped(features, groups, seed) if users.height else np.zeros(0, np.int64)
    drawn = _drawn(group, share, seed)
    of_nobody = np.flatnonzero(_drawn(np.zeros(nameless, np.int64), share, seed))
    found = users.with_columns(pl.Series("group", group, pl.Int64), pl.Series("drawn", drawn))
    chosen = found.filter("drawn")
    unknown = pl.col("user").is_null()
    taken = unknown & (unknown.cast(pl.Int64).cum_sum() - 1).is_in(of_nobody.tolist())
    rows.filter(taken | pl.col("user").is_in(chosen["user"].to_list()).fill_null(value=False)).sink_parquet(
        target, compression="zstd"
    )
    requests = int(chosen["requests"].sum()) + len(of_nobody)
    return Sample(found.select("user", "group", *FEATURES, "drawn"), requests, (nameless, len(of_nobody)))


def _rows(source: Path) -> pl.LazyFrame:
    check_readable(source)
    suffix = source.suffix.lower()
    try:
        if suffix == ".parquet":
            rows = pl.scan_parquet(source)
        elif suffix == ".csv":
            rows = pl.scan_csv(source, schema_overrides={"user": pl.String}, infer_schema_length=None)
        else:
            raise fail(source, "a name ending in .csv, .parquet", value=source.suffix or source.name)
        names = rows.collect_schema().names()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise fail(source, "a workload (docs/formats.md)", value=str(error).split("\n")[0]) from error
    for name in ("user", "cpu", "memory", "duration"):
        if name not in names:
            raise fail(source, f"this column; here: {', '.join(names)}", column=name)
    return rows


def _features(rows: pl.LazyFrame, source: Path) -> pl.DataFrame:
    """A row per user, by name, with ``FEATURES``; one without a name is all requests of no known user."""
    numbers = rows.with_columns(pl.col(AMOUNTS).cast(pl.Float64, strict=False))
    duration = pl.col("duration")
    try:
        _check_amounts(rows, source)
        users = (
            numbers.group_by("user")
            .agg(
                pl.len().cast(pl.Int64).alias("requests"),
                pl.col("cpu").var(ddof=0).fill_null(0.0).alias("cpu_variance"),
                pl.col("memory").var(ddof=0).fill_null(0.0).alias("memory_variance"),
                duration.filter(duration.is_finite()).var(ddof=0).fill_null(0.0).alias("duration_variance"),
            )
            .sort("user")
            .collect(engine="streaming")
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise fail(source, "a workload (docs/formats.md)", value=str(error).split("\n")[0]) from error
    if not users.height:
        raise fail(source, "at least one request", value="no rows")
    return users


def _check_amounts(rows: pl.LazyFrame, source: Path) -> None:
    """Refuses the first CPU or memory that is no finite number, and the first duration that is none at all."""
    number = {name: pl.col(name).cast(pl.Float64, strict=False) for name in AMOUNTS}
    wrong = {name: ~number[name].is_finite().fill_null(value=False) for name in ("cpu", "memory")}
    wrong["duration"] = pl.col("duration").is_not_null() & (number["duration"].is_null() | number["duration"].is_nan())
    counted = rows.select(AMOUNTS).with_row_index("row")
    found = counted.filter(pl.any_horizontal(*wrong.values())).head(1).collect(engine="streaming")
    if not found.height:
        return
    name = next(name for name in AMOUNTS if found.select(wrong[name]).item())
    shown = found[name].item()
    header = 1 if source.suffix.lower() == ".csv" else 0
    expected = "a number, or nothing: endless" if name == "duration" else "a number"
    value = "nothing" if shown is None else str(shown)
    raise fail(source, expected, line=found["row"].item() + 1 + header, column=name, value=value)


def _grouped(features: NDArray[np.float64], groups: int, seed: int) -> NDArray[np.int64]:
    """The group of each user, numbered by falling size, then by first user."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    standard = StandardScaler().fit_transform(features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer kinds of users than groups: the rest stays empty
        labels = KMeans(n_clusters=groups, n_init=10, random_state=seed).fit_predict(standard)
    found, first, place, count = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    number = np.empty(len(found), np.int64)
    number[np.lexsort((first, -count))] = np.arange(len(found))
    return np.asarray(number[place.reshape(-1)])


def _drawn(group: NDArray[np.int64], share: float, seed: int) -> NDArray[np.bool_]:
    rng = np.random.default_rng(seed)
    drawn = np.zeros(len(group), np.bool_)
    for number in range(int(group.max(initial=-1)) + 1):
        members = np.flatnonzero(group == number)
        drawn[rng.permutation(members)[: max(round(len(members) * share), 1)]] = True
    return drawn
