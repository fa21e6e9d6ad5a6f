"""Runs a workload: kernels do the work, this module feeds them and empties their buffers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide.config import Config
from slacktide.errors import ConfigError, PluginError, remedy
from slacktide.kernels.drive import event_loop, instance_ledger, scheduling_pass
from slacktide.kernels.feasible import host_slots
from slacktide.kernels.tables import buffer_capacity, log_records, schema
from slacktide.kernels.tables.arrays import ARRAYS, Tables
from slacktide.kernels.tables.window_records import LIFETIME, ROLLING
from slacktide.model import INDEPENDENT, Hosts, Workload
from slacktide.model.host_events import HostEvents, merged
from slacktide.model.resting import PART, let_go, room_beside
from slacktide.policy.loader import Loaded
from slacktide.qos.availability import TIMES
from slacktide.qos.per_request import per_request
from slacktide.qos.windows import worst_window
from slacktide.sim import failures, startup
from slacktide.sim.observing import Watch
from slacktide.sim.result import Columns, RunResult
from slacktide.sim.startup import triggers
from slacktide.state import cluster
from slacktide.state.growing_arrays import RECORDERS, grow, lengthen
from slacktide.state.layout import parts
from slacktide.state.request_tables import first_rows, ledgers

Progress = Callable[[float, int, int], None]

BUDGET = 2000  # passes between two looks at the outside world (Ctrl-C, progress)


@dataclass
class Recorder:
    """What kernels recorded, taken out of their buffers."""

    parts: dict[str, list[NDArray[Any]]] = field(default_factory=lambda: {name: [] for name in RECORDERS})
    seconds: list[float] = field(default_factory=list)
    victims: int = 0

    def drain(self, tb: Tables) -> None:
        """Take over what the buffers hold and empty them."""
        for name in RECORDERS:
            count = int(tb.control[name])
            part = tb[name][:count].copy()
            if name == "decisions":
                part["first"] += self.victims
            if count:
                self.parts[name].append(part)
            tb.control[name] = 0
        self.victims = sum(len(part) for part in self.parts["victims"])

    def table(self, name: str) -> NDArray[Any]:
        parts = self.parts[name]
        return np.concatenate(parts) if parts else np.zeros(0, ARRAYS[name].dtype)


def columns(records: NDArray[Any], *names: str) -> Columns:
    """Fields of records as columns; views, so that 25 million rows need no second copy."""
    return {name: records[name] for name in names}


def check_end(workload: Workload, config: Config) -> None:
    """Raises :class:`ConfigError` where nothing says when a run ends whose requests never complete."""
    if config.simulation.end is None and len(workload) and math.isinf(float(workload.duration.max())):
        raise ConfigError(
            "simulation.end: found none, expected when to stop, because some requests never complete: add "
            + remedy("--end 3600", 'end="1h"')
        )


def prepare(
    workload: Workload, hosts: Hosts, config: Config, own: Loaded, record: int, further: HostEvents | None = None
) -> Tables:
    """Tables at the beginning of a run, every host in the index; ``further`` happens to hosts, too."""
    happenings = failures.host_events(config, hosts)
    if further is not None:
        happenings = merged(happenings, further)
    failures.check_amounts(config, workload, hosts, happenings)
    tb = cluster.build(
        workload,
        hosts,
        config,
        hot=startup.delays(config.startup.hot, "startup.hot"),
        cold=startup.delays(config.startup.cold, "startup.cold"),
        shares=startup.delays(config.simulation.grace, "simulation.grace"),
        returns=startup.batch_returns(config.simulation.batch_recreation),
        happenings=happenings,
        triggers=triggers(config.scheduler.triggers),
        own=own.code,
        record=record,
    )
    let_go(workload.service_class, workload.term, workload.job)  # kinds are of their first rows
    host_slots.fill(tb.state)
    return tb


def drive(
    tb: Tables,
    step: Callable[[], int],
    recorder: Recorder,
    report: Callable[[], None],
    watch: Watch | None = None,
    until: float = math.inf,
) -> bool:
    """Let kernels run until the end, or all that happens at ``until`` seconds has, serving what they ask for; whether
    it was the end.

    Where rows rest in files, those that are over take no memory soon: all are let go whenever ``PART`` more have come,
    and the active ones are looked at again anyway.
    """
    seen = 0
    while True:
        tb.rules["observe"] = until if watch is None else min(watch.next, until)
        code = step()
        if tb.control["broken"]:
            raise PluginError(
                f"policy.score or policy.cost: your own function raised an exception or gave no finite number "
                f"before {float(tb.control['now']):g} s"
            )
        if code == buffer_capacity.OVER:
            return True
        if code == buffer_capacity.LOOK:
            if watch is None or watch.next > until:
                return False
            watch.look()
        grow(tb, code, recorder.drain)
        if int(tb.control["arrived"]) >= seen + PART:
            seen = int(tb.control["arrived"])
            let_go(*(tb[name] for name in ARRAYS))
        report()


def timed_step(tb: Tables, recorder: Recorder) -> int:
    """One pass with its decision time, or what must be done first."""
    if tb.control["phase"] == 0:
        code = event_loop.advance(tb.state)
        if code != buffer_capacity.PASS_DUE:
            return code
        recorder.seconds.append(0.0)
    begun = time.perf_counter()
    code = scheduling_pass.run_pass(tb.state)
    recorder.seconds[-1] += time.perf_counter() - begun
    return code


def instances_of(records: NDArray[Any], rows: Columns, admission: NDArray[np.float64]) -> Columns:
    """Columns per instance: all that were admitted, which leaves out rows of batch requests never released."""
    admitted = records["state"] != schema.FUTURE
    rows = dict(rows)
    rows["removed"] = np.where(records["state"] == schema.REMOVED, records["since"], np.nan)
    rows["admission"] = admission
    if admitted.all():
        return rows
    return {name: values[admitted] for name, values in rows.items()}


def together(tb: Tables, workload: Workload) -> NDArray[np.float64]:
    """Seconds that count for concurrent requests, (requests, accountings): restart, always, never."""
    chosen, _ = ledgers(workload)
    seconds = np.zeros((0 if workload.requests is None else len(workload.requests), 3))
    for column, name in enumerate(("restart", "always", "never")):
        seconds[chosen, column] = tb["requests"][f"together_{name}"]
    return seconds


def worst_windows(tb: Tables, workload: Workload, rows: Columns) -> NDArray[np.float64]:
    """Of each row that was admitted the availability of its worst window, as :func:`.worst_window`."""
    accounting = next(name for name, code in cluster.ACCOUNTINGS.items() if code == tb.rules["accounting"])
    worst = room_beside(rows["running"])(len(rows["row"]), np.float64)
    for part in parts(len(worst)):
        had = {name: rows[name][part] for name in TIMES}
        short, of = tb["accounts"]["short"][: len(worst)][part], workload.service_class[: len(worst)][part]
        worst[part] = worst_window(had, short, of, workload.classes, accounting)
        let_go(worst, tb["accounts"], tb["instances"], workload.service_class)
    return worst


def worst_of_requests(tb: Tables, workload: Workload, instances: Columns, final: float) -> NDArray[np.float64]:
    """Of each request whose own ledger decides the availability of its worst window, (requests,); NaN of all others.

    As for an instance, a life shorter than its rolling window is its only window; by the clock.
    """
    if workload.requests is None or workload.request is None:
        return np.zeros(0)
    chosen, _ = ledgers(workload)
    stretches, records = tb["stretches"], tb["requests"]
    theirs = tb["classes"][records["cls"]]
    together = (records["approach"] != INDEPENDENT) & (records["batch"] == 0)
    decided = (theirs["windowed"] != LIFETIME) & together & (stretches["open"] != 0)
    last, begun = np.full(len(workload.requests), -np.inf), stretches["begun"]
    ended = np.where(np.isnan(instances["completed"]), instances["removed"], instances["completed"])
    np.maximum.at(last, workload.request[instances["row"]], np.where(np.isnan(ended), final, ended))
    lived, lost = last[chosen] - begun, (final - begun) - stretches["received"]  # nothing was lost after its end
    whole_life = np.divide(lost, lived, out=np.zeros(len(chosen)), where=lived > 0.0)
    only = (theirs["windowed"] == ROLLING) & (lived < theirs["length"])
    worst = np.full(len(workload.requests), np.nan)
    short = np.where(only, whole_life, tb["request_accounts"]["short"])
    worst[chosen[decided]] = 1.0 - short[decided]
    return worst


def forget_shared(tb: Tables, instances: Columns) -> None:
    """Instances of requests whose own ledger decides have no worst window."""
    if len(tb["requests"]):
        owner = tb["owner"][instances["row"]]
        shared = (owner >= 0) & (tb["requests"]["approach"] != INDEPENDENT)[owner]
        instances["worst_window"] = np.where(shared, np.nan, instances["worst_window"])


def close_part(tb: Tables, recorder: Recorder, final: float, begin: int, pending: Any, wasted: Any) -> None:
    """``instance_ledger.close``; outages that the end of the run ends are recorded as well."""
    if tb.rules["record"] & schema.RECORD_OUTAGES:
        recorder.drain(tb)
        lengthen(tb, "events", len(pending) + 2 * len(tb["request_accounts"]))
    instance_ledger.close(tb.state, final, begin, pending, wasted)


def events_of(recorder: Recorder, workload: Workload) -> Columns:
    """What happened. An outage of a request that has a ledger is that of its first row, and of no instance alone."""
    table = recorder.table("events")
    found = columns(table, "time", "kind", "row", "host", "by", "qos", "received")
    of_request = table["by"] == log_records.OF_REQUEST
    if of_request.any() and workload.request is not None:
        chosen, _ = ledgers(workload)
        first = first_rows(workload)[chosen]
        found["row"] = np.where(of_request, first[np.where(of_request, table["row"], 0)], table["row"])
        found["by"] = np.where(of_request, schema.NOBODY, table["by"])
    return found


def result_of(tb: Tables, workload: Workload, recorder: Recorder, final: float) -> RunResult:
    """The columns of a finished run."""
    control, record = tb.control, int(tb.rules["record"])
    count = int(control["arrived"])
    records = tb["instances"][:count]
    room = room_beside(records)
    row, pending, wasted, completed = room(count, np.int64), *(room(count, np.float64) for _ in range(3))
    for part in parts(count) if count else (slice(0, 0),):
        close_part(tb, recorder, final, part.start, pending[part], wasted[part])
        done = records["state"][part] == schema.DONE
        row[part], completed[part] = np.arange(part.start, part.stop), np.where(done, records["since"][part], np.nan)
        let_go(row, pending, wasted, completed, records, tb["admission"])
    admission = tb["admission"][:count] if workload.requests is not None else np.zeros(0)
    for name in ("admission", "duration"):
        tb.put(name, np.zeros(0))  # on the grid of times these may be copies; nobody needs them any more
    times = ("running", "startup_first", "startup_restarts", "discarded")
    rows = columns(records, *times, "preemptions", "starts", "hosts_used")
    rows |= {"row": row, "pending": pending, "wasted_startup": wasted, "completed": completed}
    if len(tb["accounts"]):
        rows["worst_window"] = worst_windows(tb, workload, rows)
    requests, instances = rows, None
    if workload.requests is not None:
        instances = instances_of(records, rows, admission)
        windows = worst_of_requests(tb, workload, instances, final) if len(tb["accounts"]) else None
        requests = per_request(workload, instances, together(tb, workload), windows)
        if windows is not None:
            forget_shared(tb, instances)
    per_pass = per_event = per_decision = None
    recorder.drain(tb)
    if record & schema.RECORD_PASSES:
        per_pass = columns(recorder.table("passes"), "time", "queue", "placed", "preempted", "operations")
        per_pass["decision_seconds"] = np.array(recorder.seconds)
    if record & (schema.RECORD_EVENTS | schema.RECORD_OUTAGES):
        per_event = events_of(recorder, workload)
    if record & schema.RECORD_DECISIONS:
        log = recorder.table("decisions")
        per_decision = {"pass": log["batch"], **columns(log, "time", "row", "host", "metric", "first")}
        per_decision |= {"count": log["victims"], "victims": recorder.table("victims")}
    return RunResult(
        requests=requests,
        instances=instances,
        passes=per_pass,
        events=per_event,
        decisions=per_decision,
        operations=int(control["operations"]),
        bound_checks=int(control["bounds"]),
        pass_count=int(control["batch"]),
        preemptions=int(control["preemptions"]),
        placements=int(control["placements"]),
        resizes=int(control["resizes"]),
        moves=int(control["moves"]),
        deferrals=int(control["deferrals"]),
        end=final,
        compile_seconds=0.0,
    )
