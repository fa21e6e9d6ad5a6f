"""``st.Simulation``: pauses change nothing, changes hold from then on, copies go on by themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import slacktide as st
from slacktide.errors import ConfigError, InputError
from support.example_policy import FirstFit

END = 600
GENERATED: dict[str, dict[str, Any]] = {
    "cell": {"hosts": 12, "requests": 450},
    "jobs": {"hosts": 6, "requests": 60, "mean": 2.0, "load": 1.2, "classes": "gold,silver,bronze", "life": 200.0},
    "edge": {"nodes": 8, "sites": 4, "requests": 250, "load": 1.1},
    "validation-3": {},
}
POLICIES: tuple[Any, ...] = ("qos-driven", "priority", "hybrid", "least-requested", FirstFit)


def same(mine: st.Result, theirs: st.Result) -> None:
    """To the byte, but for how long decisions took."""
    for name in ("requests", "instances", "events", "classes", "passes"):
        assert hasattr(mine, name) == hasattr(theirs, name), name
        if hasattr(mine, name):
            tables = (getattr(one, name).drop("decision_seconds", strict=False) for one in (mine, theirs))
            assert next(tables).equals(next(tables)), name
    assert mine.totals == theirs.totals


def saved(result: st.Result, folder: Path) -> list[pl.DataFrame]:
    return [pl.read_parquet(result.save(folder) / f"{name}.parquet") for name in ("intervals", "progress")]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("generator", GENERATED)
def test_pauses_change_nothing(generator: str, policy: Any, tmp_path: Path) -> None:
    given = st.generate(generator, **GENERATED[generator])
    if policy is FirstFit and generator == "edge":
        policy = "nas"
    asked: dict[str, Any] = {"policy": policy, "end": END, "seed": 3, "intervals": 100}
    whole = st.simulate(given, **asked)
    stepped = st.Simulation(given, **asked)
    cuts = np.random.default_rng(len(generator)).uniform(0.0, END, 3)
    for at in sorted([0.0, 100.0, *cuts.tolist()]):
        stepped.run(until=at)
        stepped.result()
        stepped.copy().run()
    result = stepped.run().result()
    same(result, whole)
    for mine, theirs in zip(saved(result, tmp_path / "mine"), saved(whole, tmp_path / "theirs"), strict=True):
        assert mine.equals(theirs)


WINDOWS = [
    {"name": name, "slo": slo, "rank": rank, "window": {"rolling": "2m"}}
    for name, slo, rank in (("gold", 0.99, 1), ("silver", 0.9, 2), ("bronze", 0.5, 3))
]
SETTINGS: dict[str, dict[str, Any]] = {
    "no constraints": {"simulation_ignore": "constraints"},
    "failures": {"failures_uptime": "exponential:200", "failures_downtime": "constant:30"},
    "windows": {"classes": WINDOWS},
    "by job": {"group_by": "job", "approach": "aggregated"},
    "graces": {"simulation_recreation": 3.0, "simulation_grace": "constant:1"},
    "published": {"preset": "published"},
}


@pytest.mark.parametrize("asked", SETTINGS)
def test_pauses_change_nothing_whatever_is_set(asked: str, cell: st.Generated) -> None:
    hosts, settings = cell.hosts.head(12), SETTINGS[asked]
    whole = st.simulate(cell, hosts, end=400, intervals=50, **settings)
    stepped = st.Simulation(cell, hosts, end=400, intervals=50, **settings)
    for at in (0, 33.3, 50, 120.123456, 399):
        stepped.run(until=at)
        stepped.copy().fail_host("host-2").run()
    same(stepped.run().result(), whole)


def past(result: st.Result, until: float) -> pl.DataFrame:
    return result.events.filter(pl.col("time") <= until).select("time", "event", "request", "host", "by", "qos")


@pytest.fixture(scope="module")
def paused(cell: st.Generated) -> st.Simulation:
    return st.Simulation(cell, cell.hosts.head(12), end=END).run(until="5m")


def whose(state: str, sim: st.Simulation) -> int:
    return int(sim.state.requests.filter(pl.col("state") == state)["id"][0])


NEW = {"id": 10**6, "duration": 50.0, "cpu": 0.01, "memory": 0.01, "class": "gold"}
CHANGES: dict[str, Callable[[st.Simulation], st.Simulation]] = {
    "add": lambda sim: sim.add(NEW),
    "end": lambda sim: sim.end(whose("running", sim)),
    "resize": lambda sim: sim.resize(whose("running", sim), cpu=0.001),
    "fail_host": lambda sim: sim.fail_host("host-3"),
    "set": lambda sim: sim.set(policy_patience=1000.0),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_leaves_the_past_as_it_was(change: str, paused: st.Simulation) -> None:
    before, plain = past(paused.result(), 300.0), paused.copy().run().result()
    other = paused.copy()
    CHANGES[change](other)
    assert past(other.result(), 300.0).equals(before)
    result = other.run().result()
    assert past(result, 300.0).equals(before)
    assert not past(result, END).equals(past(plain, END)), "the future is another one"
    same(paused.copy().run().result(), plain)


def test_changes_are_what_they_say(paused: st.Simulation, cell: st.Generated) -> None:
    sim = paused.copy()
    running = whose("running", sim)
    on = sim.state.requests.filter(pl.col("id") == running)["host"][0]
    free = float(sim.state.hosts.filter(pl.col("name") == on)["free_cpu"][0])
    sim.add(NEW).end(running).run(until=301)
    state = sim.state
    assert state.requests.filter(pl.col("id") == running)["state"].to_list() == ["removed"]
    assert state.requests.filter(pl.col("id") == NEW["id"])["state"].to_list() in (["running"], ["starting"])
    assert float(state.hosts.filter(pl.col("name") == on)["free_cpu"][0]) != free
    sim.fail_host(on).run(until=302)
    down = sim.state.hosts.filter(pl.col("name") == on)
    assert down.select("up", "instances").rows() == [(False, 0)]
    sim.return_host(on).run(until=303)
    assert sim.state.hosts.filter(pl.col("name") == on)["up"].to_list() == [True]
    for _ in range(2):
        sim.fail_host(on).return_host(on)
    other = whose("running", sim)
    sim.resize(other, cpu=0.0001).run(until=304)
    resized = sim.result().events.filter(pl.col("event") == "resized")
    assert resized["request"].to_list() == [other]
    to_come = int(cell.workload.sort("admission")["id"][-1])
    assert to_come not in sim.state.requests["id"]
    sim.end(to_come).run()
    assert to_come not in sim.state.requests["id"]


def test_a_manifest_lists_the_changes(paused: st.Simulation, tmp_path: Path) -> None:
    sim = paused.copy().fail_host("host-1").set(policy_patience=30).resize(1, cpu=0.1).end(1).add(NEW)
    command = json.loads((sim.result().save(tmp_path / "one") / "manifest.json").read_text())["command"]
    said = ("fail host-1", "set policy_patience=30", "resize 1 cpu=0.1", "end 1", "add 1000000")
    assert command == ["slacktide.Simulation", *(f"at 300 s: {one}" for one in said)]
    assert not paused._changes


def test_a_state_has_who_waits_and_what_is_free(cell: st.Generated) -> None:
    sim = st.Simulation(cell, cell.hosts.head(8), end=END).run(until=200)
    state = sim.state
    assert (state.now, sim.now, sim.over) == (200.0, 200.0, False)
    assert (state.queue["state"] == "waiting").all()
    assert len(state.queue)
    assert state.queue["since"].is_sorted()
    assert state.queue["host"].null_count() == len(state.queue)
    running = state.requests.filter(pl.col("state").is_in(["running", "starting"]))
    assert running["host"].null_count() == 0
    assert running.group_by("host").len().sort("host").rows() == (
        state.hosts.filter(pl.col("instances") > 0).select("name", "instances").sort("name").rows()
    )
    events = sim.result().events
    counts = dict(events.group_by("event").len().rows())
    assert counts["admitted"] == len(state.requests)
    assert "wait" in repr(state)
    assert "qos-driven" in repr(sim)


def test_a_run_without_end_goes_on_as_long_as_is_said(cell: st.Generated) -> None:
    sim = st.Simulation(cell).run(until="1m")
    assert sim.result().totals["end"] == 60.0
    with pytest.raises(ConfigError, match="some requests never complete"):
        sim.run()


def test_another_end_is_set(paused: st.Simulation) -> None:
    for end, seconds in (("5m", 300.0), (timedelta(minutes=6), 360.0), (700, 700.0)):
        result = paused.copy().set(end=end).run().result()
        assert result.totals["end"] == seconds
        assert result.settings["simulation"]["end"] == seconds
    over = paused.copy().run().set(end=700)
    assert over.run().result().events.equals(paused.copy().set(end=700).run().result().events)


def test_requests_of_several_rows_are_changed() -> None:
    given = st.generate("cell", hosts=8, requests=400)
    sim = st.Simulation(given, end=200, group_by="job").run(until=100)
    before = past(sim.result(), 100.0)
    one = int(sim.state.requests.group_by("id").len().sort("len", "id")["id"][-1])
    sim.add(NEW).end(one).add({**NEW, "id": 10**6 + 1})
    assert past(sim.result(), 100.0).equals(before)
    result = sim.run(until=101).resize(10**6, cpu=0.02).run().result()
    theirs = result.instances.filter(pl.col("request") == one)
    assert len(theirs) > 1
    assert theirs["removed"].is_not_null().all()
    assert set(result.requests["id"]) >= {10**6, 10**6 + 1}


def test_what_cannot_be_is_refused(paused: st.Simulation, cell: st.Generated) -> None:
    sim, to_come = paused.copy(), int(cell.workload.sort("admission")["id"][-1])
    refused: tuple[tuple[Callable[[], object], type[Exception], str], ...] = (
        (lambda: sim.run(until=299), ConfigError, "until: found 299, expected 300 seconds or more"),
        (lambda: sim.add({**NEW, "id": 1}), InputError, "id"),
        (lambda: sim.add({**NEW, "admission": 10.0}), ConfigError, "after now, 300 s"),
        (lambda: sim.end(-5), ConfigError, "expected an id of the workload"),
        (lambda: sim.add({"cpu": 1}), InputError, "where columns are called otherwise, 'columns' of simulate"),
        (lambda: sim.resize(1, cpus=1), ConfigError, "^resize: found 'cpus', expected cpu or memory$"),
        (lambda: sim.resize(1), ConfigError, "resize: found no amounts, expected some of cpu or memory"),
        (lambda: sim.resize(1, cpu="x"), ConfigError, "resize: cpu: found 'x', expected an amount"),  # type: ignore[arg-type]
        (lambda: sim.resize(1, memory=-1), ConfigError, "resize: memory: found -1, expected an amount"),
        (lambda: sim.resize(to_come, cpu=1), ConfigError, rf"found the request {to_come}, expected one that has come"),
        (lambda: sim.fail_host("host-333"), ConfigError, "host-333"),
        (lambda: sim.return_host("host-3"), ConfigError, "which is up already, expected one that is down"),
        (lambda: sim.copy().fail_host("host-3").fail_host("host-3"), ConfigError, "'host-3', which is down already"),
        (lambda: sim.copy().fail_host("host-3").run(301).fail_host("host-3"), ConfigError, "which is down already"),
        (lambda: sim.set(classes=WINDOWS), ConfigError, "set: classes: this holds for a whole run"),
        (lambda: sim.set(qos_startup="never"), ConfigError, "set: qos_startup: this holds for a whole run"),
        (lambda: sim.set(simulation_ignore="constraints"), ConfigError, "simulation_ignore: this holds for a whole"),
        (lambda: sim.set(qos_margin=5), ConfigError, "set: qos_margin: this holds for a whole run"),
        (lambda: sim.set(simulation_end=5), ConfigError, "set: end: found 5 seconds, expected 300 or more, which"),
        (lambda: sim.set(end="5s"), ConfigError, "set: end: found 5 seconds, expected 300 or more"),
        (lambda: sim.set(end="5 s", simulation_end=9), ConfigError, "give one of the two"),
        (lambda: sim.set(ends=5), ConfigError, "set: ends: unknown, expected end, or a setting as SECTION_KEY"),  # type: ignore[call-arg]
        (lambda: sim.set(policy_patienc=5), ConfigError, "did you mean 'policy_patience'"),  # type: ignore[call-arg]
    )
    for call, error, said in refused:
        with pytest.raises(error, match=said):
            call()
    same(sim.run().result(), paused.copy().run().result())
