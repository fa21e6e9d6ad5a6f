"""What a report needs of runs and of pairs of them: counts in bins, so that 25 million requests become few rows.

All numbers are those of :mod:`slacktide.metrics`; here they are put together over workloads and seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.metrics.columns import class_codes, named, numbers
from slacktide.metrics.confidence import bootstrap
from slacktide.metrics.contention import FAIRNESS, by_level, contention_levels
from slacktide.metrics.distributions import availability_ecdf, deficit_ecdf, slo_fulfilment
from slacktide.metrics.paired import COLUMNS as PAIRED
from slacktide.metrics.paired import heat_map
from slacktide.metrics.use import COUNTED, work
from slacktide.qos.availability import SLO_TOLERANCE
from slacktide.reporting.figure import Rows, Scene
from slacktide.reporting.gather import INTERVALS, PROGRESS, REQUESTS, Member, check_numbers, table_of, told

CELL = 0.05
"""Width of a cell of a heat map; the last in each direction contains 1."""
STEPS = 100
"""Steps of the curves of availability."""
DEFICIT_BIN = 0.0125
SERIES_POINTS = 240
"""A line over time has at most this many points."""
MINUTE = 60.0

Key = tuple[Any, ...]


class Availabilities:
    """Counts of availabilities of all runs, by host set, class and policy."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._at_least: dict[Key, NDArray[np.float64]] = defaultdict(lambda: np.zeros(STEPS + 1))
        self._deficit: dict[Key, NDArray[np.float64]] = defaultdict(lambda: np.zeros(round(1 / DEFICIT_BIN)))
        self._sums: dict[Key, NDArray[np.float64]] = defaultdict(lambda: np.zeros(3))  # requests, missed, deficits

    def add(self, member: Member, table: Any) -> None:
        """The requests of a run; ``table`` has their classes and availabilities."""
        # Below a step, so that what reaches it counts as at least that.
        steps = [step / STEPS - SLO_TOLERANCE for step in range(STEPS + 1)]
        edges = [DEFICIT_BIN * place for place in range(1, round(1 / DEFICIT_BIN) + 1)]
        below = _by_class(availability_ecdf(table, member.classes, member.accounting, steps))
        deficit = _by_class(deficit_ecdf(table, member.classes, member.accounting, edges))
        for row in slo_fulfilment(table, member.classes, member.accounting).to_pylist():
            if row["requests"]:
                key = (member.run.hosts, row["class"], member.run.policy)
                missed = row["requests"] - row["fulfilled"]
                self._at_least[key] += row["requests"] * (1.0 - below[row["class"]])
                self._sums[key] += (row["requests"], missed, missed * (row["deficit_mean"] or 0.0))
                if missed:
                    self._deficit[key] += missed * np.diff(deficit[row["class"]], prepend=0.0)

    def curves(self) -> Rows:
        """hosts, class, policy, availability, share: of requests with at least this availability."""
        rows = []
        for key, counts in self._at_least.items():
            shares = (counts / self._sums[key][0]).round(12)
            for step, share in enumerate(shares.tolist()):
                # Between equal neighbours a step says nothing new.
                if 0 < step < STEPS and shares[step - 1] == share == shares[step + 1]:
                    continue
                rows.append({**_names(key), "availability": step / STEPS, "share": share})
        return rows

    def deficits(self) -> tuple[Rows, Rows]:
        """Bins (hosts, class, policy, deficit, size, requests) and sums (hosts, class, policy, missed, share, mean)."""
        bins, sums = [], []
        for key, (requests, missed, total) in self._sums.items():
            counts = self._deficit[key].round().astype(np.int64)
            bins += [
                {**_names(key), "deficit": place * DEFICIT_BIN, "size": DEFICIT_BIN, "requests": int(counts[place])}
                for place in np.flatnonzero(counts).tolist()
            ]
            mean = float(total / missed) if missed else 0.0
            sums.append({**_names(key), "missed": int(missed), "share": float(missed / requests), "mean": mean})
        return bins, sums


def _names(key: Key) -> dict[str, Any]:
    return dict(zip(("hosts", "class", "policy"), key, strict=True))


def _by_class(table: Any) -> dict[str, NDArray[np.float64]]:
    """The shares of each class, in order of levels."""
    names, shares = table["class"].to_pylist(), numbers(table, "share")
    found: dict[str, list[float]] = defaultdict(list)
    for name, share in zip(names, shares.tolist(), strict=True):
        found[name].append(share)
    return {name: np.array(values) for name, values in found.items()}


class Pairs:
    """Counts of pairs of availabilities, by other policy, host set and class."""

    def __init__(self) -> None:
        self._cells: dict[Key, int] = defaultdict(int)

    def add(self, reference: Member, other: Member) -> None:
        """Two runs of the same requests; those that only one of them has are left out."""
        names = [*PAIRED, "slo_met"]
        mine = table_of(reference, REQUESTS, [*names, *reference.judged])
        theirs = table_of(other, REQUESTS, [*names, *other.judged])
        if other.accounting != reference.accounting:
            # Each in the accounting of its own decisions, under one name.
            place = theirs.column_names.index(other.availability)
            theirs = theirs.set_column(place, named(reference.accounting), theirs[other.availability])
        for quadrant, (kept, kept_too) in QUADRANTS.items():
            x, y = (one.filter(_are(one["slo_met"], met)) for one, met in ((mine, kept), (theirs, kept_too)))
            for row in heat_map(x, y, reference.classes, reference.accounting, CELL).to_pylist():
                key = (other.run.policy, reference.run.hosts, row["class"], row["x_low"], row["y_low"], quadrant)
                self._cells[key] += row["requests"]

    def cells(self, policy: str) -> Rows:
        """hosts, class, x, y (lower edges of cells), size, quadrant, requests; most requests first within a map."""
        rows = [
            {"hosts": hosts, "class": name, "x": x, "y": y, "size": CELL, "quadrant": quadrant, "requests": count}
            for (other, hosts, name, x, y, quadrant), count in self._cells.items()
            if other == policy
        ]
        return sorted(rows, key=lambda row: -int(row["requests"]))


QUADRANTS = {
    "both": (True, True),
    "only other": (False, True),
    "only reference": (True, False),
    "neither": (False, False),
}


def _are(met: Any, wanted: bool) -> Any:
    import pyarrow.compute as pc

    return met if wanted else pc.invert(met)


def shares(cells: Rows) -> Rows:
    """hosts, class, quadrant, requests, share, of cells of a heat map; all four quadrants of each map."""
    total: dict[Key, dict[str, int]] = {}
    for row in cells:
        total.setdefault((row["hosts"], row["class"]), dict.fromkeys(QUADRANTS, 0))[row["quadrant"]] += row["requests"]
    return [
        {"hosts": hosts, "class": name, "quadrant": quadrant, "requests": count, "share": count / sum(counts.values())}
        for (hosts, name), counts in total.items()
        for quadrant, count in counts.items()
    ]


def demand(table: Any, member: Member, resources: Sequence[str]) -> Rows:
    """Demand of a run's requests over time on hosts without end (Q figures 1, 2): each is active from its admission
    for its duration, of a batch request with a parallelism so many instances at once, the others behind them.
    workload, resource, time (s), class, demand; at full minutes, or at 240 instants of longer runs.
    """
    table, part = _in_waves(table)
    admission, duration = numbers(table, "admission"), numbers(table, "duration")
    start = max(float(admission.min()), 0.0) if len(admission) else 0.0  # who was there before is there from then on
    step = MINUTE * max(1, int(np.ceil((member.end - start) / MINUTE / SERIES_POINTS)))
    times = np.arange(np.ceil(start / step) * step, member.end + SLO_TOLERANCE, step)
    times = times if len(times) else np.array([member.end])
    gone = np.where(np.isnan(duration), np.inf, admission + duration)
    codes, rows = class_codes(table, member.classes), []
    for resource in resources:
        amount = numbers(table, f"demand_{resource}") * part
        for code, one in enumerate(member.classes):
            mine = codes == code
            level = _up_to(admission[mine], amount[mine], times) - _up_to(gone[mine], amount[mine], times)
            for time, value in zip(times.tolist(), level.tolist(), strict=True):
                names = {"workload": member.run.workload, "resource": resource, "time": time, "class": one.name}
                rows.append({**names, "demand": max(round(value, 9), 0.0)})
    return rows


def _in_waves(table: Any) -> tuple[Any, NDArray[np.float64]]:
    """The rows as they are active on hosts without end, and the part of a row's demand that is.

    Of n instances of which p are at work at once, p/n are active for n // p durations, and the n % p that are left for
    one more.
    """
    import pyarrow as pa

    if "parallelism" not in table.column_names or table["parallelism"].null_count == len(table):
        return table, np.ones(len(table))
    many = numbers(table, "instances")
    once = np.fmin(np.nan_to_num(numbers(table, "parallelism"), nan=np.inf), many)
    full, rest = np.divmod(many, np.maximum(once, 1.0))
    admission, duration = numbers(table, "admission"), numbers(table, "duration")
    columns = table.drop_columns(["admission", "duration"])
    waves = columns.append_column("admission", pa.array(admission)).append_column("duration", pa.array(duration * full))
    left = columns.append_column("admission", pa.array(admission + duration * full)).append_column(
        "duration", pa.array(duration)
    )
    last = (rest > 0) & np.isfinite(duration)
    return pa.concat_tables([waves, left.filter(pa.array(last))]), np.concatenate([once / many, (rest / many)[last]])


def _up_to(when: NDArray[np.float64], amount: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of amounts whose instant has come, at each time."""
    order = np.argsort(when, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amount[order])])
    return np.asarray(sums[np.searchsorted(when[order], times, side="right")])


SHOWN = ("queue", "operations", "preemptions")


def progress(found: list[Member]) -> Rows:
    """workload, hosts, policy, time (s), queue (waiting), operations and preemptions (in the interval), runs.

    Means over replicates; longer runs have neighbouring intervals put together, of which the longest queue is kept.
    """
    sums: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    for member in filter(lambda one: one.over_time, found):
        names = (member.run.workload, member.run.hosts, member.run.policy)
        table = table_of(member, PROGRESS, ("time", "longest_queue", *COUNTED))
        with told(member, PROGRESS):
            if not table.num_rows:
                raise ValueError("no interval")
            check_numbers(table, table.column_names)
            rows = _intervals(work(table).to_pydict())
        for row in rows:
            one = sums[(*names, row[0])]
            for place, value in enumerate(row[1:]):
                one[place] += value
            one[3] += 1
    keys = ("workload", "hosts", "policy", "time")
    return [
        {
            **dict(zip(keys, key, strict=True)),
            **{name: value / one[3] for name, value in zip(SHOWN, one, strict=False)},
            "runs": int(one[3]),
        }
        for key, one in sums.items()
    ]


def _intervals(table: dict[str, list[Any]]) -> list[tuple[float, ...]]:
    """Of one run: time, queue, operations and preemptions of each interval, or of so many of them together."""
    count = len(table["time"])
    each = max(1, -(-count // SERIES_POINTS))
    parts = [slice(start, min(start + each, count)) for start in range(0, count, each)]
    return [
        (
            float(table["time"][part][-1]),
            float(max(table["queue"][part])),
            float(sum(table["operations"][part])),
            float(sum(table["preemptions"][part])),
        )
        for part in parts
    ]


def capacities(found: list[Member], resources: tuple[str, ...]) -> Rows:
    """workload, hosts, resource, capacity: the largest of the first finished run."""
    rows, seen = [], set()
    for member in found:
        names = (member.run.workload, member.run.hosts)
        if names in seen or not member.over_time:
            continue
        seen.add(names)
        table = table_of(member, PROGRESS, [f"capacity_{one}" for one in resources])
        for one in resources:
            most = max(table[f"capacity_{one}"].to_pylist(), default=0.0)
            rows.append({"workload": names[0], "hosts": names[1], "resource": one, "capacity": float(most)})
    return rows


COLUMNS = ("time", "class", *FAIRNESS)


def by_contention(found: list[Member], scene: Scene) -> tuple[Rows, str]:
    """level, class, policy, metric, mean, low, high (95 %), rows (intervals), runs; and why there are none."""
    import pyarrow as pa

    found = [one for one in found if one.over_time]
    if not found:
        return [], "No contention classes: they follow from what happens in intervals, and runs have none."
    reference = {one.place: one for one in found if one.run.policy == scene.reference and one.policy == "priority"}
    if not reference:
        return [], (
            "No contention classes: they follow from what the priority policy can do in an interval, and no run with "
            "policy.name = priority has finished."
        )
    levels = {}
    for place, one in reference.items():
        table = table_of(one, INTERVALS, COLUMNS)
        with told(one, INTERVALS):
            levels[place] = contention_levels(table, one.classes)
    observed: list[Any] = []
    for member in found:
        if member.place in levels:
            table = table_of(member, INTERVALS, COLUMNS)
            with told(member, INTERVALS):
                rows = by_level(table, levels[member.place])
            for name, value in (("workload", member.run.workload), ("policy", member.run.policy)):
                rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
            seeds = pa.array([member.replicate] * rows.num_rows, pa.int64())
            rows = rows.append_column("seed", seeds)
            observed.append(rows.set_column(1, "class", rows["class"].cast(pa.string())))
    means = bootstrap(pa.concat_tables(observed), ("level", "class", "policy"), FAIRNESS)
    return means.to_pylist(), ""
