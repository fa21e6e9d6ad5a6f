"""A recorded session as the input of a simulation: for what would have been with other hosts or other settings.

docs/record.md says what is kept and what is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slacktide import settings
from slacktide.config import Config
from slacktide.errors import InputError, OutputError, Problem
from slacktide.inputs.network_file import network_text
from slacktide.inputs.requests import BATCH, SERVICE, RequestColumns, Scale, ScaleTable, expand
from slacktide.inputs.write import write_hosts, write_workload
from slacktide.live.in_words import Terms
from slacktide.live.lives import SHORTEST, Demand, Life, Retracing
from slacktide.live.record import FORMAT, SECTIONS, Session
from slacktide.live.replay import Report, retrace
from slacktide.model import (
    NEVER_RESIZED,
    NO_NEIGHBOURS,
    Access,
    Budget,
    Hosts,
    Placement,
    Resizing,
    ServiceClass,
    Term,
    Workload,
)
from slacktide.model.network import NO_ACCESS
from slacktide.model.workload import AGGREGATED, INDEPENDENT
from slacktide.state.spec import Spec

UNITS = {"cpu": 1000.0}
"""Whole amounts per unit of a file: cores; all else (bytes, counts) stays as it is."""
TOGETHER = 1.0
"""Seconds within which changes of a request's number of instances count as one."""
LONGEST = 1e10
"""Seconds since 1970; who goes on lives until then."""


@dataclass(frozen=True, slots=True)
class Made:
    """What was written; ``delivered``, as recorded: the share of a class's instances' lives in which they ran."""

    session: int
    seconds: float
    rows: int
    instances: int
    hosts: int
    resizes: int
    delays: int
    delivered: dict[str, float]


@dataclass(slots=True)
class Row:
    """A row of the workload, times from the beginning of the record."""

    life: Life
    admission: float
    duration: float
    kind: int
    approach: int
    instances: int = 1
    scale: Scale = ()


def as_workload(session: Session, out: Path | str) -> Made:
    """Write ``workload.parquet``, ``hosts.parquet``, delays, host events and ``settings.json`` into ``out``.

    Raises :class:`InputError` for a record that cannot be read or has no pass, :class:`OutputError`.
    """
    engine = Retracing(session.config)
    for _ in retrace(engine, session, Report()):
        pass
    if not np.isfinite(engine.begin):
        raise InputError([Problem(str(session.parts[0]) if session.parts else "record", 0, "", "no pass", "one")])
    engine.finish()
    out = Path(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{out}: cannot be written: {error}") from error
    terms = Terms(engine.host_lives)
    rows = _rows(engine)
    if not rows:
        raise InputError([Problem(str(session.parts[0]), 0, "", "no instance that lived", "at least one")])
    workload = _workload(rows, engine, terms)
    write_workload(workload, out / "workload.parquet")
    write_hosts(_hosts(engine, workload.resources, terms), out / "hosts.parquet")
    network = _write_network(engine, out)
    delays = _write_delays(engine, out)
    events = _write_events(engine, out)
    _write_times(out / "triggers.csv", (at - engine.begin for at in engine.passed_at))
    _write_settings(session.config, workload, engine, out, {"startup": delays, "failures": events, "delay": network})
    return Made(
        session=session.number,
        seconds=engine.now - engine.begin,
        rows=len(rows),
        instances=len(workload),
        hosts=len(engine.host_lives),
        resizes=0 if workload.resize is None else sum(len(workload.resizings[n]) for n in workload.resize.tolist()),
        delays=len(engine.hot) + len(engine.cold),
        delivered=_delivered(engine),
    )


def _delivered(engine: Retracing) -> dict[str, float]:
    ran: dict[str, float] = {}
    lived: dict[str, float] = {}
    for life in engine.lives:
        name = life.controller.service.name
        if seconds := life.lived(engine.begin, engine.now):
            ran[name] = ran.get(name, 0.0) + life.received
            lived[name] = lived.get(name, 0.0) + seconds
    return {name: ran[name] / lived[name] for name in sorted(lived)}


# -- rows --------------------------------------------------------------------------------------------------------------


def _rows(engine: Retracing) -> list[Row]:
    """What to simulate, in order of admission."""
    rows: list[Row] = []
    together: dict[str, list[Life]] = {}
    for life in engine.lives:
        controller = life.controller
        if life.end <= engine.begin + SHORTEST or life.end <= life.admission + SHORTEST or life.spec is None:
            continue
        if controller.batch or controller.approach == INDEPENDENT:
            rows.append(_row_of_one(life, engine.begin))
        else:
            together.setdefault(f"{controller.key}/{controller.q}/{id(controller)}", []).append(life)
    rows += [_row_of_many(lives, engine.begin) for lives in together.values()]
    return sorted(rows, key=lambda row: row.admission)


def _row_of_one(life: Life, begin: float) -> Row:
    """An instance alone: it completes when it has run as long again, or goes when it went."""
    admission = max(0.0, life.admission - begin)
    if life.completed:
        kind, approach = (BATCH, AGGREGATED) if life.controller.batch else (SERVICE, INDEPENDENT)
        return Row(life, admission, max(SHORTEST, life.received), kind, approach)
    if life.controller.batch and not np.isfinite(life.end):
        return Row(life, admission, np.inf, BATCH, AGGREGATED)
    scale = () if not np.isfinite(life.end) else ((life.end - begin, 0),)
    return Row(life, admission, np.inf, SERVICE, INDEPENDENT, scale=scale)


def _row_of_many(lives: list[Life], begin: float) -> Row:
    """Instances measured together: their number at first, and when it changed. All are like most of them were."""
    seconds: dict[Spec | None, float] = {}
    for life in lives:
        seconds[life.spec] = seconds.get(life.spec, 0.0) + life.lived(-np.inf, LONGEST)
    most = max(seconds.values())
    alike = (life for life in lives if seconds[life.spec] == most)
    typical = max(alike, key=lambda life: life.lived(-np.inf, LONGEST))  # it shows most of their resizes
    changes = [(max(0.0, life.admission - begin), 1) for life in lives]
    changes += [(life.end - begin, -1) for life in lives if np.isfinite(life.end)]
    scale: list[tuple[float, int]] = []
    count = 0
    for at, by in sorted(changes):
        count += by
        if scale and at <= scale[-1][0] + TOGETHER:
            scale[-1] = scale[-1][0], count
        elif not scale or count != scale[-1][1]:
            scale.append((at, count))
    (admission, instances), *later = scale
    kept = [one for before, one in zip(scale, later, strict=False) if one[1] != before[1]]
    approach = lives[0].controller.approach
    return Row(typical, admission, np.inf, SERVICE, approach, max(1, instances), tuple(kept))


def _workload(rows: list[Row], engine: Retracing, terms: Terms) -> Workload:
    specs = [row.life.spec for row in rows if row.life.spec is not None]
    resources = _resources(engine)
    asked = [row.life.asked(engine.begin) for row in rows]
    demand = np.array([_amounts(dict(first), resources) for first, _ in asked])
    service_of = _classes(rows)
    classes = {name: number for number, name in enumerate(service_of)}
    keys: dict[str, int] = {}
    jobs = [keys.setdefault(row.life.controller.key, len(keys) + 1) for row in rows]
    placements: dict[Placement, int] = {NO_NEIGHBOURS: 0}
    placement = [placements.setdefault(terms.placement(spec.placement), len(placements)) for spec in specs]
    budgets = {name: number for number, name in enumerate(engine.most_left)}
    known = {Term(): 0}
    term = [known.setdefault(terms.term(spec.term), len(known)) for spec in specs]
    columns = _request_columns(rows)
    ids = np.arange(1, len(rows) + 1)
    found = expand(columns, ids, np.array([row.admission for row in rows]))
    order = np.argsort(found.admission, kind="stable")
    of = found.request[order]

    def each(values: Iterable[Any], dtype: Any) -> Any:
        return np.array(list(values), dtype)[of]

    return Workload(
        ids=ids[of],
        admission=found.admission[order],
        duration=each((row.duration for row in rows), np.float64),
        demand=demand[of],
        service_class=each((classes[row.life.controller.service.name] for row in rows), np.int16),
        job=each(jobs, np.int64),
        anti_affinity=np.zeros(len(of), np.bool_),
        term=each(term, np.int32),
        resources=resources,
        classes=tuple(service_of.values()),
        terms=tuple(known),
        request=of,
        requests=found.requests,
        placement=each(placement, np.int32) if len(placements) > 1 else None,
        placements=tuple(placements),
        budget=each((budgets.get(row.life.budget, -1) for row in rows), np.int32) if budgets else None,
        budgets=tuple(Budget(name, max_unavailable=engine.most_left[name]) for name in budgets),
        **_accesses(specs, demand, resources, of),
        **_resizes([_resizing(*one, engine.begin) for one in asked], of),
    )


def _resizing(first: Demand, later: list[tuple[float, Demand]], begin: float) -> Resizing:
    """What was asked for after the first, in the file's units: of resources of which it was not as much as before."""
    found = []
    before = dict(first)
    for at, demand in later:
        now = dict(demand)
        changed = sorted(name for name in {*before, *now} if before.get(name, 0) != now.get(name, 0))
        if changed:
            found.append((round(at - begin, 6), tuple(zip(changed, _amounts(now, tuple(changed)), strict=True))))
        before = now
    return tuple(found)


def _resizes(resizings: list[Resizing], of: NDArray[np.int32]) -> dict[str, Any]:
    known: dict[Resizing, int] = {NEVER_RESIZED: 0}
    numbers = [known.setdefault(one, len(known)) for one in resizings]
    return {"resize": np.array(numbers, np.int32)[of], "resizings": tuple(known)} if len(known) > 1 else {}


def _accesses(
    specs: list[Spec], demand: NDArray[np.float64], resources: tuple[str, ...], of: NDArray[np.int32]
) -> dict[str, Any]:
    """Limits and what instances have to do with users, where anybody said so."""
    found: dict[str, Any] = {}
    if any(spec.limit for spec in specs):
        limit = np.array([_amounts(dict(spec.limit), resources) for spec in specs])
        found["limit"] = np.maximum(limit, demand)[of]
    accesses: dict[Access, int] = {}
    numbers = [accesses.setdefault(spec.access, len(accesses)) for spec in specs]
    if set(accesses) - {NO_ACCESS}:
        found |= {"access": np.array(numbers, np.int32)[of], "accesses": tuple(accesses)}
    return found


def _request_columns(rows: list[Row]) -> RequestColumns:
    table = ScaleTable()
    columns = RequestColumns.empty_cells(len(rows))
    for number, row in enumerate(rows):
        columns.kind[number], columns.approach[number] = row.kind, row.approach
        (columns.completions if row.kind == BATCH else columns.instances)[number] = row.instances
        columns.scale[number] = table.number(row.scale)
    columns.scales = table.scales
    return columns


def _classes(rows: list[Row]) -> dict[str, ServiceClass]:
    return {row.life.controller.service.name: row.life.controller.service for row in rows}


def _resources(engine: Retracing) -> tuple[str, ...]:
    """CPU and memory, then what pods ask for or hosts have."""
    named = {name for life in engine.lives for _, demand in life.demands for name, _ in demand}
    named |= {name for host in engine.host_lives.values() for name in host.amounts}
    return ("cpu", "memory", *sorted(named - {"cpu", "memory"}))


def _amounts(named: dict[str, int], resources: tuple[str, ...]) -> list[float]:
    return [named.get(name, 0) / UNITS.get(name, 1.0) for name in resources]


# -- hosts, delays, settings -------------------------------------------------------------------------------------------


def _hosts(engine: Retracing, resources: tuple[str, ...], terms: Terms) -> Hosts:
    lives = engine.host_lives
    left = [
        {name: max(0, amount - life.taken.get(name, 0)) for name, amount in life.amounts.items()}
        for life in lives.values()
    ]
    return Hosts(
        ids=np.arange(1, len(lives) + 1),
        names=tuple(lives),
        capacity=np.array([_amounts(one, resources) for one in left]),
        attributes=tuple(terms.attributes[name] for name in lives),
        resources=resources,
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error}") from error


def _write_times(path: Path, seconds: Iterable[float]) -> None:
    _write(path, "seconds\n" + "".join(f"{one!r}\n" for one in seconds))


def _write_network(engine: Retracing, out: Path) -> dict[str, Any]:
    """Settings of section ``delay``: the network as it was told last, and memory in the file's unit.

    Names that were no host or place are places in the file, as far from all others as the farthest.
    """
    whereabouts = engine.tables.whereabouts
    if not whereabouts.asked:
        return {}
    said = whereabouts.network(engine.host_lives)
    hosts = list(engine.host_lives)
    places = list(whereabouts.places or hosts)
    rtt = said.rtt if whereabouts.places else np.zeros((len(hosts), len(hosts)))
    accesses = [life.spec.access for life in engine.lives if life.spec is not None]
    names = dict.fromkeys(name for one in accesses for name in (*(u for u, _ in one.logins), one.preferred) if name)
    others = [name for name in names if name not in {*places, *hosts}]
    rtt = np.pad(rtt, (0, len(others)), constant_values=float(rtt.max(initial=0.0)))
    _write(out / "network.yaml", network_text(replace(said, places=(*places, *others), rtt=rtt)))
    worth = whereabouts.delay.memory_per_cpu / whereabouts.units.memory
    return {"memory_per_cpu": worth, "network": str((out / "network.yaml").resolve())}


def _write_delays(engine: Retracing, out: Path) -> dict[str, str]:
    """Settings of section ``startup``; where one kind was not measured, the other's delays are taken."""
    found = {"hot": engine.hot or engine.cold, "cold": engine.cold or engine.hot}
    names: dict[str, str] = {}
    for name, delays in found.items():
        if delays:
            _write_times(out / f"{name}.csv", delays)
            names[name] = str((out / f"{name}.csv").resolve())
    return names


def _write_events(engine: Retracing, out: Path) -> dict[str, str]:
    """Settings of section ``failures``: hosts fail when nothing ran on them any more and nothing could."""
    lines = []
    for name, life in engine.host_lives.items():
        for since, until in life.closed:
            if until > since:
                lines.append((max(0.0, since - engine.begin), name, "fail"))
                if np.isfinite(until):
                    lines.append((until - engine.begin, name, "repair"))
    if not lines:
        return {}
    text = "".join(f"{at!r},{json.dumps(name)},{kind}\n" for at, name, kind in sorted(lines))
    _write(out / "events.csv", "time,host,event\n" + text)
    return {"file": str((out / "events.csv").resolve())}


def _write_settings(
    config: Config, workload: Workload, engine: Retracing, out: Path, written: dict[str, dict[str, Any]]
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
            end=max(SHORTEST, engine.now - engine.begin),
            recreation=float(np.median(engine.recreations)) if engine.recreations else 0.0,
        ),
        classes=workload.classes,
    )
    mapping = settings.to_mapping(simulated)
    content = {"format": FORMAT, settings.MANIFEST_KEY: {section: mapping[section] for section in SECTIONS}}
    _write(out / "settings.json", json.dumps(content, indent=1) + "\n")
