"""``st.simulate``: what the command line does, said in Python; its results, policies of one's own, interrupts."""

from __future__ import annotations

import json
import re
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import slacktide as st
from slacktide.cli import main
from slacktide.cli import options as by_cli
from slacktide.errors import ConfigError, OutputError, PluginError
from slacktide.inputs import grouping
from slacktide.model import APPROACHES
from slacktide.policy import Bind, Plan, View
from support.example_policy import FILE, FirstFit

END = 900


def test_a_run_is_that_of_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = [str(folder / name) for name in ("workload.parquet", "hosts.parquet")]
    words = ["--end", str(END), "--seed", "7", "--set", "policy.patience=30", "--set", "qos.startup=always"]
    asked = ["--passes", "--events", "--intervals", "300", "--out", str(tmp_path / "by-command")]
    assert main(["simulate", *inputs, *words, *asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    workload, hosts = inputs
    result = st.simulate(workload, hosts, end="15m", seed=7, intervals="5m", policy_patience=30, qos_startup="always")
    result.save(tmp_path / "by-api")
    for name in ("requests", "events", "passes", "intervals", "progress"):
        theirs, ours = (pl.read_parquet(tmp_path / by / f"{name}.parquet") for by in ("by-command", "by-api"))
        assert ours.drop("decision_seconds", strict=False).equals(theirs.drop("decision_seconds", strict=False)), name
    manifests = [json.loads((tmp_path / by / "manifest.json").read_text()) for by in ("by-command", "by-api")]
    assert manifests[1]["command"] == ["slacktide.simulate"]
    assert {**manifests[0], "command": None} == {**manifests[1], "command": None}
    for row in result.classes.iter_rows(named=True):
        mine = said["classes"][row["class"]]
        assert row["fulfilment"] == mine["fulfilment"]["always"]
        assert row["availability_p05"] == mine["availability"]["always"]["p05"]
        assert [row[name] for name in ("slo", "requests", "preemptions", "deficit_mean", "wasted_startup")] == [
            mine[name] for name in ("slo", "requests", "preemptions", "deficit_mean", "wasted_startup")
        ]
        assert row["never_served"] == said["never_served"].get(row["class"], 0)


def test_tables_are_those_that_are_saved(cell: st.Generated, tmp_path: Path) -> None:
    result = st.simulate(cell, end=END)
    folder = result.save(tmp_path / "saved")
    for name in ("requests", "events", "passes"):
        kept = pl.read_parquet(folder / f"{name}.parquet")
        assert kept.schema == getattr(result, name).schema, name
        assert kept.equals(getattr(result, name)), name
    for name in ("workload", "hosts"):
        assert pl.read_parquet(cell.save(tmp_path / "cell") / f"{name}.parquet").schema == getattr(cell, name).schema
    assert result.requests.schema["class"] == pl.String
    inputs = json.loads((folder / "manifest.json").read_text())["inputs"]
    assert sorted(inputs) == ["hosts in memory", "workload in memory"]
    with pytest.raises(ConfigError, match="every request of this run is one instance"):
        result.instances  # noqa: B018
    assert not hasattr(result, "instances")
    assert hasattr(result, "requests")


def test_a_manifest_repeats_the_run(cell: st.Generated, tmp_path: Path) -> None:
    first = st.simulate(cell, policy="priority", end=END, seed=5, policy_score="balanced")
    again = st.simulate(cell, config=first.save(tmp_path / "first") / "manifest.json")
    assert again.requests.equals(first.requests)
    assert again.settings == first.settings
    grouped = st.simulate(cell, end=END, group_by="job", approach="aggregated")
    again = st.simulate(cell, config=grouped.save(tmp_path / "grouped") / "manifest.json")
    assert again.requests.equals(grouped.requests)
    assert again.instances.height > again.requests.height


def test_what_was_not_kept_is_not_there(cell: st.Generated) -> None:
    result = st.simulate(cell, end=60, events=False, passes=False, intervals=None)
    with pytest.raises(ConfigError, match="events=True"):
        result.events  # noqa: B018
    with pytest.raises(ConfigError, match="passes=True"):
        result.passes  # noqa: B018


def test_what_it_is_shows_who_never_had_a_host(cell: st.Generated) -> None:
    shown = repr(st.simulate(cell, end=60))
    assert "promises kept: gold" in shown
    few = cell.hosts.head(3)
    assert re.search(r"[\d,]+ instances never had a host", repr(st.simulate(cell, few, end=600)))


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"patience": 3}, "SECTION_KEY, such as policy_patience (did you mean 'policy_patience'?)"),
        ({"polcy": "priority"}, "simulate: polcy: unknown, expected workload, hosts, policy, end, seed, preset, "),
        ({"polcy": "priority"}, "(did you mean 'policy'?)"),
        ({"until": 60}, "simulate: until: unknown, expected workload, hosts, policy, end, seed, preset, "),
        ({"group_by": "jobs"}, "group_by: found 'jobs', expected one of job, none"),
        ({"policy_patienc": 3}, "did you mean 'policy_patience'"),
        ({"qoss_startup": "always"}, "(did you mean 'qos_startup'?)"),
        (
            {"policy_patience": -3},
            "simulate: policy.patience: found -3, expected a number of seconds or a duration such as 10m",
        ),
        ({"qos_startup": "sometimes"}, "simulate: qos.startup: found 'sometimes'"),
        ({"classes": [{"name": "gold"}]}, "simulate: classes"),
        ({"end": "1 hour"}, "end: found '1 hour', expected seconds, or numbers with units"),
        ({"intervals": 0}, "intervals: found 0"),
        ({"seed": -1}, "simulation.seed: found -1"),
        ({"preset": "published-ones"}, "preset: found 'published-ones'"),
        ({"kind": "batch"}, "kind='batch' is about requests made from rows: it needs group_by='job'"),
        ({"end": None}, 'because some requests never complete: add end="1h"'),
        ({"progress": True, "workload": 3}, "workload: found int, expected a path, a frame"),
        ({"hosts": [1, 2]}, "hosts: found list, expected a path, a frame"),
        ({"config": {"policy": {}}}, "config: found dict, expected a path; settings are keywords"),
    ],
)
def test_a_mistake_is_named_with_what_would_be_right(asked: dict[str, Any], told: str, cell: st.Generated) -> None:
    with pytest.raises(ConfigError) as error:
        st.simulate(**{"workload": cell, "end": 60, "hosts": cell.hosts, **asked})
    assert told in str(error.value)


def test_a_preset_in_the_place_of_a_policy_and_a_mistyped_policy_are_told(cell: st.Generated) -> None:
    with pytest.raises(ConfigError, match=r"is a preset, not a policy.*preset='published'"):
        st.simulate(cell, end=60, policy="published")
    with pytest.raises(ConfigError, match="did you mean 'priority'"):
        st.simulate(cell, end=60, policy="prioritty")


def test_numbers_of_numpy_and_lengths_of_time_are_taken(cell: st.Generated) -> None:
    plain = st.simulate(cell, end=60, seed=3, policy_patience=30, qos_margin=2.5)
    theirs: dict[str, Any] = {
        "seed": np.int64(3),
        "policy_patience": np.arange(30, 60)[0],
        "qos_margin": np.float64(2.5),
    }
    ends: list[Any] = [np.int64(60), np.float32(60), timedelta(minutes=1), pd.Timedelta("1min"), np.timedelta64(1, "m")]
    for end in ends:
        found = st.simulate(cell, end=end, **theirs)
        assert found.settings == plain.settings
        assert found.requests.equals(plain.requests)


def test_classes_of_what_was_generated_go_with_its_frames() -> None:
    made = st.generate("validation-3")
    by_frames = st.simulate(made.workload, made.hosts, end=600, classes=made.classes)
    assert by_frames.requests.equals(st.simulate(made, end=600).requests)


def test_only_what_was_generated_brings_its_hosts(cell: st.Generated) -> None:
    with pytest.raises(ConfigError, match="hosts: found none"):
        st.simulate(cell.workload, end=60)
    with pytest.raises(ConfigError, match="did you mean 'cell'"):
        st.generate("cel")
    with pytest.raises(ConfigError, match="unknown parameter 'host'"):
        st.generate("cell", host=3)


def test_a_policy_of_ones_own_is_a_class_an_object_or_a_name(cell: st.Generated) -> None:
    by_class = st.simulate(cell, policy=FirstFit, end=END)
    assert by_class.policy == "own_policy.FirstFit"
    by_name = st.simulate(cell, policy=f"{FILE}:FirstFit", end=END)
    for other in (st.simulate(cell, policy=FirstFit(), end=END), by_name):
        assert other.requests.equals(by_class.requests)
    assert not st.simulate(cell, end=END).requests.equals(by_class.requests)


class Undecided:
    pass


class Wrong:
    def decide(self, view: View, now: float) -> Plan:  # noqa: ARG002
        return Plan((Bind(int(view.waiting[0]), 10**6),))


def test_a_policy_that_breaks_its_contract_is_named(cell: st.Generated) -> None:
    with pytest.raises(PluginError, match=r"Wrong.*1000000"):
        st.simulate(cell, policy=Wrong, end=END)
    with pytest.raises(PluginError, match="Undecided: found Undecided, expected Pieces, or something with decide"):
        st.simulate(cell, policy=Undecided, end=END)  # type: ignore[arg-type]
    assert st.simulate(cell, end=60).totals["placements"] > 0


def test_figures_are_those_of_the_report(cell: st.Generated, tmp_path: Path) -> None:
    ours, theirs = (st.simulate(cell, policy=name, end=END) for name in ("qos-driven", "priority"))
    drawn = st.plot({"ours": ours, "theirs": theirs}, width=85)
    assert drawn.get_size_inches()[0] == pytest.approx(85 / 25.4)
    texts = [one.get_text() for one in drawn.legends[0].get_texts()]
    assert texts[:2] == ["ours", "theirs"]
    drawn.savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert ours.plot("queue") is not None
    with pytest.raises(ConfigError, match="did you mean 'queue'"):
        ours.plot("queu")
    with pytest.raises(ConfigError, match="at least one"):
        st.plot({})
    with pytest.raises(ConfigError, match="plot: found 5, expected the name of a figure"):
        ours.plot(5)  # type: ignore[arg-type]
    for wrong in (ours, [ours, theirs], {"ours": 3}, {1: ours}):
        with pytest.raises(ConfigError, match="expected results by the names"):
            st.plot(wrong)  # type: ignore[arg-type]
    for width in (0, -85.0, "85", float("nan")):
        with pytest.raises(ConfigError, match="width: found"):
            ours.plot("queue", width=width)  # type: ignore[arg-type]


def test_where_nothing_happens_a_figure_shows_that() -> None:
    idle = st.simulate(st.generate("cell", hosts=20, requests=300), end=60)
    assert idle.classes["availability_min"].min() == 1.0
    drawn = idle.plot()
    assert [one.get_title("left") for one in drawn.axes] == ["gold, hosts", "silver, hosts", "bronze, hosts"]
    for figure in ("deficits", "penalties", "preemptions", "preemptions-over-time", "queue"):
        assert idle.plot(figure).axes, figure
    with pytest.raises(ConfigError, match=r"fairness: there is nothing to draw: .*priority.* to see: answer"):
        idle.plot("fairness")
    with pytest.raises(ConfigError, match="in Python intervals=600"):
        st.simulate(st.generate("cell", hosts=20, requests=300), end=60, intervals=None).plot("queue")


def test_results_take_no_place_of_anything_else(cell: st.Generated, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match=r"thesis\.tex"):
        st.simulate(cell, end=60).save(tmp_path)


def test_nothing_is_said(cell: st.Generated, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    st.simulate(cell, end=60).save(tmp_path / "run")
    st.Experiment(tmp_path / "experiment", cell, policies=["priority"], end=60).run(jobs=1)
    st.plan(cell, end=60, within=10, most=40, curve=False, target={"gold": 0.1, "silver": 0.1, "bronze": 0.1}, jobs=1)
    assert capfd.readouterr() == ("", "")


def test_progress_is_shown_where_it_is_asked_for(
    cell: st.Generated, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slacktide.api.progress.PATIENCE", 0.0)
    st.simulate(cell, end=END, progress=True)
    assert "requests" in capfd.readouterr().err


class Interrupting:
    """Serves as :class:`FirstFit`, until the user has seen enough."""

    def __init__(self) -> None:
        self._serves, self._passes = FirstFit(), 0

    def decide(self, view: View, now: float) -> Plan:
        self._passes += 1
        if self._passes == 5:
            signal.raise_signal(signal.SIGINT)
        plan: Plan = self._serves.decide(view, now)
        return plan


def test_after_an_interrupt_the_next_call_works(cell: st.Generated) -> None:
    before = st.simulate(cell, end=END)
    with pytest.raises(KeyboardInterrupt):
        st.simulate(cell, policy=Interrupting, end=END)
    assert st.simulate(cell, end=END).requests.equals(before.requests)


def test_compiled_passes_are_interrupted_too() -> None:
    large = st.generate("light", hosts=200, requests=2_000_000)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            st.simulate(large, passes=False, events=False)
    finally:
        timer.cancel()


def test_an_interrupted_save_leaves_earlier_results(
    cell: st.Generated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (st.simulate(cell, end=end) for end in (END, 2 * END))
    folder = first.save(tmp_path / "run")
    kept = {one.name: one.read_bytes() for one in folder.iterdir()}

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("slacktide.results.tables.rows_of", stop)
        with pytest.raises(KeyboardInterrupt):
            second.save(folder)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == kept
    assert [one.name for one in tmp_path.iterdir()] == ["run"]
    second.save(folder)
    assert (folder / "requests.parquet").read_bytes() != kept["requests.parquet"]


def test_the_words_of_grouping_are_those_of_the_command_line() -> None:
    """Which has them by itself: to import these would slow down its help."""
    assert (by_cli.GROUPS, by_cli.KINDS, by_cli.APPROACHES) == (grouping.GROUPS, grouping.KINDS, APPROACHES)
