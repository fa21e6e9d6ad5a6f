"""Numbers per run and class, and what follows from them: the table of outcomes, penalties, increments, preemptions.

All of them by :mod:`slacktide.metrics`; here they are put into the grid's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest
from typing import Any

import numpy as np

from slacktide.metrics.columns import achieved, codes
from slacktide.metrics.confidence import bootstrap
from slacktide.metrics.distributions import slo_fulfilment
from slacktide.metrics.penalties import ALL, penalties, penalty_increment
from slacktide.metrics.penalties import COLUMNS as OWED
from slacktide.metrics.use import WASTE, waste
from slacktide.model import Label
from slacktide.qos.availability import fulfilled
from slacktide.reporting.figure import Rows, Scene, where
from slacktide.reporting.gather import CALLED, REQUESTS, Member, table_of, told
from slacktide.reporting.verdict import share_kept

NEEDED = tuple(dict.fromkeys(("class", *OWED, *WASTE)))
"""Columns of requests.parquet that every run must have, beside its availability."""


def of_run(member: Member, table: Any) -> Rows:
    """A row per class: workload, hosts, policy, replicate, class, requests, kept, lowest (availability), penalty
    (cpu-seconds), preemptions, wasted_startup (s); operations and passes of the whole run.
    """
    totals = member.manifest["totals"]
    owed = {row["class"]: row for row in penalties(table, member.classes, member.accounting, member.end).to_pylist()}
    used = {row["class"]: row for row in waste(table, member.classes).to_pylist()}
    rows = []
    for row in slo_fulfilment(table, member.classes, member.accounting).to_pylist():
        name = row["class"]
        numbers = {
            "requests": row["requests"],
            "kept": row["fulfilled"],
            "lowest": row["min"],
            "penalty": owed[name]["penalty"],
            "preemptions": used[name]["preemptions"],
            "wasted_startup": used[name]["wasted_startup"],
            "operations": int(totals["operations"]),
            "passes": int(totals["passes"]),
        }
        rows.append({**member.names, "class": name, **numbers})
    return rows


def read_run(member: Member) -> Rows:
    """:func:`of_run` of a finished run's file. Raises :class:`InputError`."""
    table = table_of(member, REQUESTS, [*NEEDED, *member.judged])
    with told(member, REQUESTS):
        return of_run(member, table)


def outcome(scores: Rows, scene: Scene, host_sets: Sequence[str] | None = None) -> Rows:
    """A row for each host set and policy: runs, share kept of each class, and means over runs of the rest."""
    rows = []
    for hosts in scene.hosts if host_sets is None else host_sets:
        for policy in scene.policies:
            mine = where(scores, hosts=hosts, policy=policy)
            runs = {(row["workload"], row["replicate"]): row for row in mine}
            if not runs:
                continue
            row: dict[str, Any] = {"host set": hosts, "policy": policy, "runs": len(runs)}
            for name in scene.classes:
                share = share_kept(where(mine, **{"class": name}))
                row[f"{name} kept, %"] = None if share is None else 100.0 * share
            row["penalty, cpu-seconds"] = sum(one["penalty"] for one in mine) / len(runs)
            row["preemptions"] = sum(one["preemptions"] for one in mine) / len(runs)
            row["operations"] = sum(one["operations"] for one in runs.values()) / len(runs)
            row["wasted start-up, s"] = sum(one["wasted_startup"] for one in mine) / len(runs)
            rows.append(row)
    return rows


def per_run(scores: Rows, column: str, scene: Scene) -> Rows:
    """hosts, policy, value (mean over runs), low, high (95 % interval; None where there is one run), runs."""
    rows: Rows = []
    for hosts in scene.hosts:
        for policy in scene.policies:
            sums: dict[tuple[str, int], float] = {}
            for row in where(scores, hosts=hosts, policy=policy):
                place = (row["workload"], row["replicate"])
                sums[place] = sums.get(place, 0.0) + row[column]
            if not sums:  # no run of these two has finished
                continue
            observed = [
                {"workload": workload, "seed": seed, "hosts": hosts, "policy": policy, column: value}
                for (workload, seed), value in sums.items()
            ]
            rows += [
                {**names(row, "hosts", "policy"), **interval(row), "runs": row["runs"]}
                for row in bootstrap(table(observed), ("hosts", "policy"), (column,)).to_pylist()
            ]
    return rows


def table(rows: Sequence[dict[str, Any]]) -> Any:
    """Rows as a pyarrow table."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows))


def names(row: dict[str, Any], *columns: str) -> dict[str, Any]:
    """Some columns of a row."""
    return {name: row[name] for name in columns}


def interval(row: dict[str, Any]) -> dict[str, Any]:
    """The mean and its interval as a figure wants them."""
    return {"value": row["mean"], "low": row["low"], "high": row["high"]}


def increments(scores: Rows, scene: Scene) -> Rows:
    """hosts, policy, reference and other (penalties of compared runs, cpu-seconds), value, text, pairs (of runs).

    ``value``: by how many per cent the reference's penalties exceed the policy's (Q figure 8).
    """
    rows: Rows = []
    for hosts in scene.hosts:
        theirs = where(scores, hosts=hosts, policy=scene.reference)
        for policy in scene.others:
            mine = where(scores, hosts=hosts, policy=policy)
            places = {(row["workload"], row["replicate"]) for row in mine}
            places &= {(row["workload"], row["replicate"]) for row in theirs}
            if not places:
                continue
            reference, other = (_owed(some, places) for some in (theirs, mine))
            grown = 100.0 * penalty_increment(reference, other)["increment"].to_pylist()[0]
            sums = {"reference": _sum(reference), "other": _sum(other)}
            row = {"hosts": hosts, "policy": policy, **sums, "pairs": len(places)}
            if grown == float("inf"):
                rows.append({**row, "value": None, "text": "∞"})
            else:
                rows.append({**row, "value": grown, "text": None if sums["other"] else "none owed"})
    return rows


def _sum(owed: Any) -> float:
    return float(owed["penalty"].to_pylist()[0])


def _owed(rows: Rows, places: set[tuple[str, int]]) -> Any:
    """Penalties of some runs together, as ``metrics.penalties`` has them."""
    total = sum(row["penalty"] for row in rows if (row["workload"], row["replicate"]) in places)
    return table([{"class": ALL, "penalty": float(total)}])


SHOWN = 20
PLACES = {"workload": "workload", "hosts": "host set", "policy": "policy", "replicate": "seed"}


class Least:
    """The requests that missed their promise by most, of all runs."""

    def __init__(self) -> None:
        self._found: Rows = []

    def add(self, member: Member, table: Any) -> None:
        """Those of a run, from its table of requests with ids and what the file says of names."""
        got = achieved(table, member.accounting)
        slo = np.array([one.slo for one in member.classes])[codes(table, [one.name for one in member.classes])]
        missing = np.where(fulfilled(got, slo), 0.0, slo - got)
        worst = np.argsort(-missing, kind="stable")[:SHOWN]
        rows = [row for row in worst.tolist() if missing[row] > 0.0]
        for row, one in zip(rows, table.take(np.array(rows, np.int64)).to_pylist(), strict=True):
            called = Label(*(one.get(name) or "" for name in CALLED))
            numbers = {"class": one["class"], "promised": float(slo[row]), "got": float(got[row])}
            place = {PLACES[name]: value for name, value in member.names.items()}
            place["seed"] = str(member.run.seed)
            self._found.append({**place, "request": str(one["id"]), "name": str(called), **numbers})
        self._found = nlargest(SHOWN, self._found, key=lambda one: one["promised"] - one["got"])

    def rows(self) -> Rows:
        """The worst first; of where they ran only what differs is said, and names where there are any."""
        said = [name for name in PLACES.values() if len({one[name] for one in self._found}) > 1]
        told = ("request", "name", "class", "promised", "got")
        said += [name for name in told if any(one[name] != "" for one in self._found)]
        return [{name: one[name] for name in said} for one in self._found]
