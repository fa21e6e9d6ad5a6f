"""What is decided in fixed cases, as hashes; ``python tests/decision_hashes.py`` prints them as they are now.

``decision_hashes.json`` has those that were recorded before; ``test_decision_hashes.py`` compares. A change that is
meant to decide otherwise records them anew, and says so:

    python tests/decision_hashes.py >build/new.json && mv build/new.json tests/decision_hashes.json

The cases are the validation runs as this project generates them, random clusters of every kind, a recorded live
session, and the published first hour of a trace. Where the latter's files are missing, its recorded hashes stay.

The live session, in ``recorded``, was written by ``slacktide run --record`` against the lab: services of the three
approaches with users, jobs, a disruption budget, resizes, nodes that were closed, failed and used by another scheduler.
In the middle of it the scheduler was killed; the second part is that of its successor.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference.erlang import DATA
from slacktide.config import Config, preset
from slacktide.engine.core.engine import Engine
from slacktide.engine.journal.record import sessions
from slacktide.engine.journal.replay import Report, carry_out, replay, retrace
from slacktide.inputs.generators.registry import generated
from slacktide.sim import RunResult, run

# All that is taken from the project, so that a module that moves is named anew in one place.
from support import published
from support.clusters import Cluster, cluster
from support.edges import edge
from support.runs import core

EXPECTED = Path(__file__).with_name("decision_hashes.json")
RECORD = Path(__file__).with_name("recorded")
DIGITS = 16
"""Hexadecimal, of a SHA-256: enough to see a change, short enough for a table."""
MEASURED = frozenset({"decision_seconds"})
"""Columns that tell how fast it was, not what was decided."""
COUNTS = ("pass_count", "placements", "preemptions", "resizes", "moves", "deferrals", "operations", "end")

Found = dict[str, Any]
"""Of a case: a hash for each table, and counts, which show that the case is about something."""
Case = Callable[[Path], Found]
"""Works it out, with files in an empty folder of its own."""


# -- hashes ------------------------------------------------------------------------------------------------------------


def hash_of(columns: Mapping[str, NDArray[Any]]) -> str:
    """Of a table's columns: their names, types and bytes, in the order of their names."""
    found = hashlib.sha256()
    for name in sorted(columns.keys() - MEASURED):
        column = np.ascontiguousarray(columns[name])
        if column.dtype.kind == "f":  # one NaN for all, whatever their bits are
            column = np.where(np.isnan(column), np.nan, column)
        column = column.astype(column.dtype.newbyteorder("<"), copy=False)
        found.update(f"{name} {column.dtype.kind}{column.dtype.itemsize} {column.shape}\n".encode())
        found.update(column.tobytes())
    return found.hexdigest()[:DIGITS]


def of_run(result: RunResult) -> Found:
    """The whole log of decisions, passes, events and books of a run.

    What was received in outages is only there where promises are over windows and requests are measured together.
    """
    events = {k: v for k, v in (result.events or {}).items() if k != "received" or v.any()}
    tables = {
        "decisions": result.decisions,
        "passes": result.passes,
        "events": events if result.events is not None else None,
        "requests": result.requests,
        "instances": result.instances,
    }
    hashes = {name: hash_of(columns) for name, columns in tables.items() if columns is not None}
    return {**hashes, "counts": [getattr(result, name) for name in COUNTS]}


def of_outcomes(outcomes: list[Any]) -> Found:
    """Passes of a live engine: whom they bind where, with which slack to the bit, and at whose expense."""
    lines = []
    for one in outcomes:
        told = [(v.uid, v.host, v.metric.hex(), [(w.uid, w.metric.hex()) for w in v.victims]) for v in one.decisions]
        lines.append(json.dumps([one.number, one.waiting, one.operations, told]))
    made = [decision for one in outcomes for decision in one.decisions]
    counts = [len(outcomes), len(made), sum(len(one.victims) for one in made)]
    return {"outcomes": hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGITS], "counts": counts}


# -- the validation runs -----------------------------------------------------------------------------------------------

SETTINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "priority": ("recommended", {"name": "priority"}),
    "published": ("published", {}),
    "recommended": ("recommended", {}),
    "hybrid": ("recommended", {"name": "hybrid"}),
    "victims-by-metric": ("published", {"victim_order": "metric", "queue_order": "metric"}),
}
"""Preset, and what ``policy`` has beside it."""


def validation(number: int, chosen: str, parameters: dict[str, Any], _folder: Path) -> Found:
    """Half an hour of a generated run; start-up delays are drawn in a way that is the same on every machine."""
    workload, hosts = generated(f"validation-{number}", parameters)
    base, policy = SETTINGS[chosen]
    config: Config = preset(base)
    config = replace(
        config,
        policy=replace(config.policy, **policy),
        qos=replace(config.qos, startup="always" if number == 3 else "restart"),
        startup=replace(config.startup, hot="uniform:0.5,4.5", cold="uniform:2,9"),
        simulation=replace(config.simulation, end=1800.0, seed=number),
    )
    return of_run(run(workload, hosts, config, decisions=True, passes=True, events=True, turns=True))


def validation_cases() -> Iterator[tuple[str, Case]]:
    """Runs 1 to 3; of the last each way in which the availability of a service is measured."""
    for chosen in ("priority", "published", "recommended"):
        for number in (1, 2):
            yield f"validation-{number} {chosen}", partial(validation, number, chosen, {})
        for approach in ("independent", "concurrent", "aggregated"):
            yield f"validation-3 {approach} {chosen}", partial(validation, 3, chosen, {"approach": approach})


# -- random clusters ---------------------------------------------------------------------------------------------------

SEVERAL, NEIGHBOURS, RESIZES = {"several": True}, {"neighbours": True}, {"resizes": True}
KINDS: dict[str, tuple[Callable[..., Cluster], dict[str, bool], range]] = {
    "rows": (cluster, {}, range(40)),
    "requests": (cluster, SEVERAL, range(100, 140)),
    "neighbours": (cluster, NEIGHBOURS, range(200, 220)),
    "requests with neighbours": (cluster, SEVERAL | NEIGHBOURS, range(300, 320)),
    "resizes": (cluster, RESIZES, range(400, 420)),
    "requests with resizes": (cluster, SEVERAL | RESIZES, range(500, 520)),
    "edge": (edge, {}, range(600, 620)),
    "requests at the edge": (edge, SEVERAL, range(700, 710)),
    "all at the edge": (edge, SEVERAL | NEIGHBOURS | RESIZES, range(800, 810)),
}
"""How 200 clusters are drawn, and from which seeds."""


def random_cluster(draw: Callable[..., Cluster], options: dict[str, bool], seed: int, folder: Path) -> Found:
    """The compiled simulator's run of it. Gangs are counted, as nothing else tells of them."""
    one = draw(seed, **options)
    found = of_run(core(one, folder, events=True, turns=True))
    kinds = one.workload.requests
    gangs = one.config.policy.gang and kinds is not None and bool((kinds.approach == 1).any())
    return {**found, "gangs": True} if gangs else found


def cluster_cases() -> Iterator[tuple[str, Case]]:
    for name, (draw, options, seeds) in KINDS.items():
        for seed in seeds:
            yield f"{name} {seed}", partial(random_cluster, draw, options, seed)


# -- a live session ----------------------------------------------------------------------------------------------------


def session(number: int, _folder: Path) -> Found:
    """What an engine decides that is told what a live scheduler was told."""
    one = sessions(RECORD)[number]
    report = Report()
    retraced = retrace(partial(carry_out, Engine(one.config)), one, report)
    outcomes = [made for _, made in retraced if made is not None]
    found = of_outcomes(outcomes)
    return {**found, "counts": [report.operations, report.refused, *found["counts"]]}


def session_cases() -> Iterator[tuple[str, Case]]:
    for number in range(len(sessions(RECORD))):
        yield f"live session {number + 1}", partial(session, number)


def differences() -> list[str]:
    """Where the sessions are decided otherwise than their record says."""
    return [str(one) for one in replay(RECORD).differences]


# -- the published hour ------------------------------------------------------------------------------------------------


def hour(file: str, chosen: str, _folder: Path) -> Found:
    """The published first hour of the trace on its 620 hosts, with the published start-up times."""
    workload, hosts = published.inputs("one-hour", f"workload-{file}-contention.erl", "hosts-620.erl")
    base, policy = SETTINGS[chosen]
    config = published.settings(base, **policy)
    return of_run(run(workload, hosts, config, decisions=True, passes=True, events=True, turns=True))


def hour_cases() -> Iterator[tuple[str, Case]]:
    for file in ("lower", "higher"):
        for chosen in SETTINGS:
            yield f"one-hour {file} {chosen}", partial(hour, file, chosen)


# -- all of it ---------------------------------------------------------------------------------------------------------


def expected() -> dict[str, Found]:
    """The recorded hashes, by case."""
    found: dict[str, Found] = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    return found


def as_text(found: Mapping[str, Found]) -> str:
    """A line for each case, so that a comparison of two files names those that changed."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found.items()) + "\n}\n"


def main() -> None:
    """Print the present hashes of every case."""
    found: dict[str, Found] = {}
    cases = [*validation_cases(), *cluster_cases(), *session_cases()]
    if (DATA / "one-hour").is_dir():
        cases += hour_cases()
    else:
        sys.stderr.write(f"the published hour is not at {DATA}: its hashes are the recorded ones\n")
        found = {name: one for name, one in expected().items() if name.startswith("one-hour ")}
    for name, case in cases:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = case(Path(folder))
    sys.stdout.write(as_text(dict(sorted(found.items()))))


if __name__ == "__main__":
    main()
