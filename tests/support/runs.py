"""Runs of the core and of the twin on the same cluster, in one form that can be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from reference.metric import ACCOUNTINGS
from reference.outcome import Outcome
from reference.simulator import simulate
from slacktide.inputs.columns.affinity_text import format_counted
from slacktide.inputs.columns.occasions import format_amounts
from slacktide.sim import EVENT_KINDS, RunResult, run
from slacktide.state import cluster as state_of_cluster
from support.clusters import Cluster, HostEvent
from support.compiled_policy import CompiledPolicy

Decision = tuple[int, float, int, int, tuple[int, ...]]
"""Pass, time (s), row, host row, rows of the victims in order."""

RESIZED = ("resized", "moved", "deferred")

TO_THE_TWIN = {"fail": "down", "drain": "drain", "repair": "up"}

COLUMNS = (
    "running",
    "pending",
    "startup_first",
    "startup_restarts",
    "wasted_startup",
    "discarded",
    "preemptions",
    "starts",
)


def settings_of(cluster: Cluster, folder: Path) -> Any:
    """The cluster's settings, with its delays and host events in files of ``folder``."""
    config = cluster.config
    for name, values in (("hot.csv", cluster.hot), ("cold.csv", cluster.cold)):
        (folder / name).write_text("seconds\n" + "".join(f"{value!r}\n" for value in values))
    startup = replace(config.startup, hot=str(folder / "hot.csv"), cold=str(folder / "cold.csv"))
    failures = config.failures
    if cluster.events:
        lines = [
            f"{event[0]!r},{cluster.hosts.names[event[1]]},{event[2]},{told_by(event)}\n" for event in cluster.events
        ]
        (folder / "events.csv").write_text("time,host,event,amounts,marks\n" + "".join(lines))
        failures = replace(failures, file=str(folder / "events.csv"))
    return replace(config, startup=startup, failures=failures)


def told_by(event: HostEvent) -> str:
    """The amounts that a host event tells, and the marks, as a file says them."""
    if len(event) < 4:
        return ","
    if event[2] == "marks":
        return "," + format_counted(tuple((mark, int(count)) for mark, count in event[3].items()))
    return format_amounts(tuple(event[3].items())) + ","


def core(cluster: Cluster, folder: Path, **asked: Any) -> RunResult:
    """The compiled simulator's run, decisions and passes recorded."""
    wanted: dict[str, Any] = {"decisions": True, "passes": True} | asked
    if cluster.engine == "stepwise":
        wanted["own"] = CompiledPolicy()
    with patch.multiple(state_of_cluster, NAIVE=cluster.naive, LARGE_REQUEST=cluster.large):
        return run(cluster.workload, cluster.hosts, settings_of(cluster, folder), **wanted)


def told_to_the_twin(cluster: Cluster) -> Any:
    """Events of hosts, by the names that the twin has for them."""
    return [(time, row, TO_THE_TWIN.get(kind, kind), *told) for time, row, kind, *told in cluster.events]


def twin(cluster: Cluster) -> Outcome:
    """The twin's run."""
    events = told_to_the_twin(cluster)
    return simulate(cluster.workload, cluster.hosts, cluster.config, cluster.hot, cluster.cold, events)


def decisions_of(result: RunResult) -> list[Decision]:
    """The decision log as plain tuples."""
    assert result.decisions is not None
    log = result.decisions
    victims = log["victims"].tolist()
    names = ("pass", "time", "row", "host", "first", "count")
    rows = zip(*(log[name].tolist() for name in names), strict=True)
    return [(p, t, row, h, tuple(victims[first : first + count])) for p, t, row, h, first, count in rows]


def everything(result: RunResult) -> list[Any]:
    """Decisions, passes and the books of a run, per request and per instance."""
    books = [result.requests, result.instances or {}]
    columns = [[np.nan_to_num(table[name], nan=-1.0).tolist() for name in sorted(table)] for table in books]
    return [decisions_of(result), passes_of(result), *columns]


def same_events(one: Cluster, folder: Path) -> None:
    """Raises AssertionError where events depend on what is left out, or what is looked at depends on them."""
    bare, found, plain = core(one, folder), core(one, folder, events=True), core(one.naively(), folder, events=True)
    assert found.events is not None
    assert plain.events is not None
    assert {name: column.tobytes() for name, column in found.events.items()} == {
        name: column.tobytes() for name, column in plain.events.items()
    }
    assert everything(found) == everything(plain) == everything(bare)
    assert (found.operations, found.bound_checks) == (bare.operations, bare.bound_checks)


def passes_of(result: RunResult) -> list[tuple[float, int, int, int]]:
    """Per pass time, queue length at its beginning, placed, preempted."""
    assert result.passes is not None
    names = ("time", "queue", "placed", "preempted")
    return list(zip(*(result.passes[name].tolist() for name in names), strict=True))


@dataclass(frozen=True)
class Difference:
    """Where two runs part: what is compared, at which place, and what stands there."""

    what: str
    place: int
    core: Any
    twin: Any

    def __str__(self) -> str:
        return f"{self.what}[{self.place}]: core {self.core}, twin {self.twin}"


def first_difference(what: str, left: list[Any], right: list[Any]) -> Difference | None:
    """The first place where two lists differ."""
    if left == right:
        return None
    for place, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return Difference(what, place, a, b)
    place = min(len(left), len(right))
    return Difference(what, place, left[place : place + 1] or "nothing", right[place : place + 1] or "nothing")


def resizes_of(result: RunResult) -> list[tuple[float, int, str, int]]:
    """The resizes among the recorded events: time, row, what came of it, host row or -1."""
    assert result.events is not None
    rows = zip(*(result.events[name].tolist() for name in ("time", "row", "kind", "host")), strict=True)
    return [(t, row, EVENT_KINDS[kind], h) for t, row, kind, h in rows if EVENT_KINDS[kind] in RESIZED]


def compare(result: RunResult, outcome: Outcome) -> Difference | None:
    """The first difference between a run of the core and one of the twin: decisions, passes, and every ledger."""
    found = first_difference("decisions", decisions_of(result), outcome.decisions)
    found = found or first_difference("passes", passes_of(result), outcome.passes)
    told = Counter(what for _, _, what, _ in outcome.resizes)
    counts = [result.resizes, result.moves, result.deferrals]
    found = found or first_difference("resize counts", counts, [told["resized"], told["moved"], told["deferred"]])
    if result.events is not None:
        found = found or first_difference("resizes", resizes_of(result), outcome.resizes)
    admitted = [row for row, r in enumerate(outcome.requests) if r.admitted]
    theirs = [outcome.requests[row] for row in admitted]
    rows = result.requests if result.instances is None else result.instances
    found = found or first_difference("rows", rows["row"].tolist(), admitted)
    found = found or first_difference("completed", without_nan(rows["completed"]), [r.completed for r in theirs])
    for name in COLUMNS:
        found = found or first_difference(name, rows[name].tolist(), [getattr(r, name) for r in theirs])
    if result.instances is not None:
        found = found or first_difference("admission", rows["admission"].tolist(), [r.admission for r in theirs])
        found = found or first_difference("removed", without_nan(rows["removed"]), [r.removed for r in theirs])
        found = found or compare_requests(result, outcome)
    return found


def agreed(clusters: Iterable[Cluster], what: str, folder: Path) -> int:
    """On all of these clusters, which are made from seeds 0, 1 and so on, core and twin agree; on how many somebody was
    preempted. ``what`` says how they are made."""
    preempting = 0
    for seed, one in enumerate(clusters):
        result = core(one, folder)
        difference = compare(result, twin(one))
        assert difference is None, f"cluster({seed}, {what}): {difference}"
        preempting += result.preemptions > 0
    return preempting


def compare_requests(result: RunResult, outcome: Outcome) -> Difference | None:
    """The first difference between the availabilities of requests, in the three accountings."""
    found = None
    for name in ACCOUNTINGS:
        mine = result.requests[f"availability_{name}"].tolist()
        theirs = [outcome.request_availability(request, name) for request in result.requests["row"].tolist()]
        found = found or first_difference(f"availability_{name}", mine, theirs)
    return found


def without_nan(values: Any) -> list[float | None]:
    """Instants, or None where there is none."""
    return [None if np.isnan(value) else value for value in values.tolist()]
