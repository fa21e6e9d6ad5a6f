"""A recorded session as the input of a simulation: for what would have been with other hosts or other settings.

docs/record.md says what is kept and what is not.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide import settings
from slacktide.config import Config
from slacktide.engine.journal.record import FORMAT, SECTIONS, Session
from slacktide.engine.journal.replay import Report, retrace
from slacktide.engine.journal.retrace import SHORTEST, Demand, SessionHistory
from slacktide.engine.journal.rows import Row, amounts_in_units, events_text, hosts_of, rows_of
from slacktide.engine.journal.workload_text import Terms
from slacktide.errors import InputError, OutputError, Problem
from slacktide.inputs.columns.instances import RequestColumns, Scale, expand
from slacktide.inputs.formats.network_file import network_text
from slacktide.inputs.write import write_hosts, write_workload
from slacktide.model import (
    ALWAYS_READY,
    NEVER_RESIZED,
    NO_NEIGHBOURS,
    NOTHING_LOST,
    Access,
    Budget,
    Past,
    Placement,
    Resizing,
    ServiceClass,
    Term,
    Unreadiness,
    Workload,
)
from slacktide.model.durations import write_duration
from slacktide.model.network import NO_ACCESS
from slacktide.model.request_events import lost_in
from slacktide.model.service_class import OWN
from slacktide.state.spec import Spec

LEFT_OUT = (
    "This workload was made of a record. It leaves out: restarts of pods, failed bindings, nominations by others, "
    "preemptionPolicy Never, pod groups, which instances a rollout ends, that a pod whose victims take their time "
    "goes elsewhere where room comes up and is not preempted meanwhile, how much work pods of Jobs had left that did "
    "not complete (they never do), and where pods ran when it began."
)
"""Said where one is made."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was written. By class, as recorded: ``delivered``, the share of its instances' time in the record in which
    they ran; ``availability``, the mean of theirs since their admission."""

    session: int
    seconds: float
    rows: int
    instances: int
    hosts: int
    resizes: int
    delays: int
    delivered: dict[str, float]
    availability: dict[str, float]


def as_workload(session: Session, out: Path | str) -> Made:
    """Write ``workload.parquet``, ``hosts.parquet``, delays, host events and ``settings.json`` into ``out``.

    Raises :class:`InputError` for a record that cannot be read or has no pass, :class:`OutputError`.
    """
    history = SessionHistory(session.config)
    for _ in retrace(history.carry_out, session, Report()):
        pass
    place = str(session.parts[0]) if session.parts else "record"
    if not np.isfinite(history.begin):
        raise InputError([Problem(place, 0, "", "no pass", "one")])
    history.finish()
    return write_history(history, session.config, Path(out), place, session=session.number)


def write_history(
    history: SessionHistory, config: Config, out: Path, place: str, *, session: int = 1, end: float | None = None
) -> Made:
    """Write what became of instances and hosts under ``config`` as files for a simulation of ``end`` seconds (None: as
    long as the history is); ``place`` is where it is from.

    Raises :class:`InputError` where no instance lived, and :class:`OutputError`.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error}") from error
    terms = Terms(history.hosts)
    rows = rows_of(history)
    if not rows:
        raise InputError([Problem(place, 0, "", "no instance that lived", "at least one")])
    workload = _workload(rows, history, terms)
    write_workload(workload, out / "workload.parquet")
    write_hosts(hosts_of(history, workload.resources, terms), out / "hosts.parquet")
    network = _write_network(history, out)
    delays = _write_delays(history, out)
    events: dict[str, str] = {}
    if text := events_text(history, workload):
        _write(out / "events.csv", text)
        events["file"] = str((out / "events.csv").resolve())
    _write_times(out / "triggers.csv", (at - history.begin for at in history.passed_at))
    times: dict[str, Any] = {"end": max(SHORTEST, history.now - history.begin if end is None else end)}
    times |= _write_graces(history, out) | _write_returns(history, out)
    written = {"startup": delays, "failures": events, "delay": network, "simulation": times}
    _write_settings(config, workload, history, out, written)
    return Made(
        session=session,
        seconds=history.now - history.begin,
        rows=rows[-1].request,
        instances=len(workload),
        hosts=len(history.hosts),
        resizes=0 if workload.resize is None else sum(len(workload.resizings[n]) for n in workload.resize.tolist()),
        delays=len(history.hot) + len(history.cold),
        delivered=_delivered(history),
        availability=_availability(history),
    )


def _delivered(history: SessionHistory) -> dict[str, float]:
    ran: dict[str, float] = {}
    lived: dict[str, float] = {}
    for life in history.instances:
        name = life.controller.service.name
        if seconds := life.lived(history.begin, history.now):
            ran[name] = ran.get(name, 0.0) + life.received
            lived[name] = lived.get(name, 0.0) + seconds
    return {name: ran[name] / lived[name] for name in sorted(lived)}


def _availability(history: SessionHistory) -> dict[str, float]:
    shares: dict[str, list[float]] = {}
    for life in history.instances:
        lived = min(life.end, history.now) - life.admission
        if lived > 0.0:
            before = max(0.0, history.begin - life.admission)
            ran = before - lost_in(life.lost) + life.received
            shares.setdefault(life.controller.service.name, []).append(ran / lived)
    return {name: sum(shares[name]) / len(shares[name]) for name in sorted(shares)}


def _workload(rows: list[Row], history: SessionHistory, terms: Terms) -> Workload:
    specs = [row.life.spec for row in rows if row.life.spec is not None]
    resources = _resources(history)
    asked = [_asked(row, history.begin) for row in rows]
    demand = np.array([amounts_in_units(dict(first), resources) for first, _ in asked])
    service_of = _classes(rows)
    classes = {told: number for number, told in enumerate(service_of)}
    keys: dict[str, int] = {}
    jobs = [keys.setdefault(row.life.controller.key, len(keys) + 1) for row in rows]
    placements: dict[Placement, int] = {NO_NEIGHBOURS: 0}
    placement = [placements.setdefault(terms.placement(spec.placement), len(placements)) for spec in specs]
    budgets = {name: number for number, name in enumerate(history.most_left)}
    known = {Term(): 0}
    term = [known.setdefault(terms.term(spec.term), len(known)) for spec in specs]
    columns = _request_columns(rows)
    losses: dict[Past, int] = {NOTHING_LOST: 0}
    lost = [losses.setdefault(row.lost, len(losses)) for row in rows]
    ids = np.arange(1, len(rows) + 1)
    found = expand(columns, ids, np.array([row.admission for row in rows]))

    def each(values: Iterable[Any], dtype: Any) -> Any:
        return np.array(list(values), dtype)

    return Workload(
        ids=ids,
        admission=found.admission,
        duration=each((row.duration for row in rows), np.float64),
        demand=demand,
        service_class=each((classes[_told_apart_by(row)] for row in rows), np.int16),
        job=each(jobs, np.int64),
        anti_affinity=np.zeros(len(rows), np.bool_),
        term=each(term, np.int32),
        resources=resources,
        classes=tuple(service_of.values()),
        terms=tuple(known),
        request=found.request,
        requests=found.requests,
        placement=each(placement, np.int32) if len(placements) > 1 else None,
        placements=tuple(placements),
        budget=each((budgets.get(row.life.budget, -1) for row in rows), np.int32) if budgets else None,
        budgets=tuple(Budget(name, max_unavailable=history.most_left[name]) for name in budgets),
        **_spells([row.spells for row in rows]),
        grace=_graces(specs, history),
        lost=each(lost, np.int32) if any(row.admission < 0.0 for row in rows) else None,
        losses=tuple(losses),
        **_accesses(specs, demand, resources),
        **_resizes([_resizing(*one, history.begin) for one in asked]),
    )


def _graces(specs: list[Spec], history: SessionHistory) -> NDArray[np.float64] | None:
    """How long instances go on once they are preempted: the mean of victims with the same grace period, or that itself
    where none was preempted; None where all go at once."""
    took = {grace: float(np.mean(seconds)) for grace, seconds in history.graces.items()}
    found = np.array([took.get(spec.grace, spec.grace) for spec in specs])
    return found if found.any() else None


def _asked(row: Row, begin: float) -> tuple[Demand, list[tuple[float, Demand]]]:
    """What it asks for when it comes, or at ``begin`` if that was later; and what afterwards, from when on."""
    first, later = row.asked[0][1], list[tuple[float, Demand]]()
    soon = max(begin, row.asked[0][0]) + SHORTEST
    for at, demand in row.asked[1:]:
        if at < soon:
            first = demand
        elif later and at < later[-1][0] + SHORTEST:
            later[-1] = later[-1][0], demand
        else:
            later.append((at, demand))
    return first, later


def _resizing(first: Demand, later: list[tuple[float, Demand]], begin: float) -> Resizing:
    """What was asked for after the first, in the file's units: of resources of which it was not as much as before."""
    found = []
    before = dict(first)
    for at, demand in later:
        now = dict(demand)
        changed = sorted(name for name in {*before, *now} if before.get(name, 0) != now.get(name, 0))
        if changed:
            found.append(
                (round(at - begin, 6), tuple(zip(changed, amounts_in_units(now, tuple(changed)), strict=True)))
            )
        before = now
    return tuple(found)


def _resizes(resizings: list[Resizing]) -> dict[str, Any]:
    known: dict[Resizing, int] = {NEVER_RESIZED: 0}
    numbers = [known.setdefault(one, len(known)) for one in resizings]
    return {"resize": np.array(numbers, np.int32), "resizings": tuple(known)} if len(known) > 1 else {}


def _spells(spells: list[Unreadiness]) -> dict[str, Any]:
    known: dict[Unreadiness, int] = {ALWAYS_READY: 0}
    numbers = [known.setdefault(one, len(known)) for one in spells]
    return {"unready": np.array(numbers, np.int32), "spells": tuple(known)} if len(known) > 1 else {}


def _accesses(specs: list[Spec], demand: NDArray[np.float64], resources: tuple[str, ...]) -> dict[str, Any]:
    """Limits and what instances have to do with users, where anybody said so."""
    found: dict[str, Any] = {}
    if any(spec.limit for spec in specs):
        limit = np.array([amounts_in_units(dict(spec.limit), resources) for spec in specs])
        found["limit"] = np.maximum(limit, demand)
    accesses: dict[Access, int] = {}
    numbers = [accesses.setdefault(spec.access, len(accesses)) for spec in specs]
    if set(accesses) - {NO_ACCESS}:
        found |= {"access": np.array(numbers, np.int32), "accesses": tuple(accesses)}
    return found


def _request_columns(rows: list[Row]) -> RequestColumns:
    scales: dict[Scale, int] = {(): 0}
    columns = RequestColumns.empty_cells(len(rows))
    columns.member = np.array([row.request for row in rows], np.int64)
    for number, row in enumerate(rows):
        columns.kind[number], columns.approach[number] = row.kind, row.approach
        columns.parallelism[number] = len(rows)
        columns.scale[number] = scales.setdefault(row.scale, len(scales))
    columns.scales = tuple(scales)
    return columns


def _told_apart_by(row: Row) -> tuple[str, float | None]:
    service = row.life.controller.service
    return service.name, service.alpha


def _classes(rows: list[Row]) -> dict[tuple[str, float | None], ServiceClass]:
    """Of one name there may be some of which more is held back for a start: that is in their names, then."""
    found = {_told_apart_by(row): row.life.controller.service for row in rows}
    several = Counter(name for name, _ in found)
    return {
        (name, alpha): service
        if several[name] == 1 or alpha is None
        else replace(service, name=f"{name}{OWN}alpha={write_duration(alpha)}")
        for (name, alpha), service in found.items()
    }


def _resources(history: SessionHistory) -> tuple[str, ...]:
    """CPU and memory, then what pods ask for or hosts have."""
    named = {name for life in history.instances for _, demand in life.demands for name, _ in demand}
    said = [one for host in history.hosts.values() for one in host.changes]
    named |= {name for one in said for name in (*one.has, *one.taken)}
    return ("cpu", "memory", *sorted(named - {"cpu", "memory"}))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error}") from error


def _write_times(path: Path, seconds: Iterable[float]) -> None:
    _write(path, "seconds\n" + "".join(f"{one!r}\n" for one in seconds))


def _write_network(history: SessionHistory, out: Path) -> dict[str, Any]:
    """Settings of section ``delay``: the network as it was told last, and memory in the file's unit.

    Names that were no host or place are places in the file, as far from all others as the farthest.
    """
    network = history.engine.tables.network
    if not network.used:
        return {}
    said = network.described(history.hosts)
    hosts = list(history.hosts)
    places = list(network.places or hosts)
    rtt = said.rtt if network.places else np.zeros((len(hosts), len(hosts)))
    accesses = [life.spec.access for life in history.instances if life.spec is not None]
    names = dict.fromkeys(name for one in accesses for name in (*(u for u, _ in one.logins), one.preferred) if name)
    others = [name for name in names if name not in {*places, *hosts}]
    rtt = np.pad(rtt, (0, len(others)), constant_values=float(rtt.max(initial=0.0)))
    _write(out / "network.yaml", network_text(replace(said, places=(*places, *others), rtt=rtt)))
    worth = network.delay.memory_per_cpu / network.units.memory
    return {"memory_per_cpu": worth, "network": str((out / "network.yaml").resolve())}


def _write_delays(history: SessionHistory, out: Path) -> dict[str, str]:
    """Settings of section ``startup``; where one kind was not measured, the other's delays are taken."""
    found = {"hot": history.hot or history.cold, "cold": history.cold or history.hot}
    names: dict[str, str] = {}
    for name, delays in found.items():
        if delays:
            _write_times(out / f"{name}.csv", delays)
            names[name] = str((out / f"{name}.csv").resolve())
    return names


def _write_graces(history: SessionHistory, out: Path) -> dict[str, str]:
    """Settings of section ``simulation``: how long victims went on, over the mean of those with their grace period."""
    shares = [one / mean for all_of in history.graces.values() if (mean := float(np.mean(all_of))) for one in all_of]
    if not shares:
        return {}
    _write_times(out / "grace.csv", shares)
    return {"grace": str((out / "grace.csv").resolve())}


def _write_returns(history: SessionHistory, out: Path) -> dict[str, str]:
    """Settings of section ``simulation``: how long after the end of a Job's victim its next pod came."""
    if not history.batch_recreations:
        return {}
    _write_times(out / "batch-recreation.csv", history.batch_recreations)
    return {"batch_recreation": str((out / "batch-recreation.csv").resolve())}


def _write_settings(
    config: Config, workload: Workload, history: SessionHistory, out: Path, written: dict[str, dict[str, Any]]
) -> None:
    """``written``: settings by section that name the files written."""
    simulated = replace(
        config,
        policy=replace(config.policy, victims="next-pass"),
        startup=replace(config.startup, **written["startup"]),
        failures=replace(config.failures, **written["failures"]),
        delay=replace(config.delay, **written["delay"]),
        simulation=replace(
            config.simulation,
            recreation=float(np.median(history.recreations)) if history.recreations else 0.0,
            epoch=datetime.fromtimestamp(history.begin, UTC).isoformat(),
            **written["simulation"],
        ),
        classes=workload.classes,
    )
    mapping = settings.to_mapping(simulated)
    content = {"format": FORMAT, settings.MANIFEST_KEY: {section: mapping[section] for section in SECTIONS}}
    _write(out / "settings.json", json.dumps(content, indent=1) + "\n")
