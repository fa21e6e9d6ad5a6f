"""One run is told in many places: what stands in two of them is the same number.

Places: the console, ``--json``, the manifest, the tables of results, the report with the tables of its figures, the
page of the dashboard, ``inspect``, and Python's ``Result``. Each number is taken from the place that has most detail,
summed up here by itself, and looked up wherever else it stands.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest

import slacktide as st
from slacktide import settings
from slacktide.cli import main
from slacktide.dashboard.simulation import AT_RISK, KEPT, MISSED, Simulation
from slacktide.dashboard.view import View
from slacktide.inputs import write_hosts, write_workload
from slacktide.metrics.penalties import ALL, penalties
from slacktide.reporting import export, write
from slacktide.reporting.assemble import assemble
from support.clusters import Cluster, cluster
from support.pasts import with_past
from support.runs import settings_of

pytestmark = pytest.mark.filterwarnings("ignore::slacktide.errors.ResultWarning")  # some are meant to wait for ever

INTERVAL = 7.0
CHANGED: dict[str, Callable[[Cluster], Cluster]] = {
    "windowed": Cluster.windowed,
    "limited": Cluster.limited,
    "past": lambda one: with_past(one, one.seed),
}
RUNS: tuple[tuple[int, str], ...] = (
    (17, "amounts"),
    (18, "windowed"),
    (27, "neighbours"),
    (35, "resizes"),
    (6, "several"),
    (13, "several graces"),
    (54, "several"),
    (52, "several windowed"),
    (53, "past"),
    (60, "limited"),
    (62, "spells"),
)
"""Of requests of several instances those that files can say."""
Rows = list[dict[str, Any]]


class Told(NamedTuple):
    """All that is said of one run."""

    console: str
    printed: dict[str, Any]
    bare: dict[str, Any]
    manifest: dict[str, Any]
    requests: Rows
    instances: Rows
    events: Rows
    intervals: Rows
    progress: Rows
    passes: Rows
    windows: Rows
    inspected: dict[str, Any]
    page: str
    figures: dict[str, Rows]
    shown: View
    marks: int
    result: st.Result
    owed: dict[str, float]

    @property
    def accounting(self) -> str:
        return str(self.printed["accounting"])

    def of(self, name: str) -> Rows:
        """The requests of a class."""
        return [row for row in self.requests if row["class"] == name]


def printed_by(*words: str) -> str:
    """What a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*words]) == 0
    return out.getvalue()


def told(one: Cluster, folder: Path) -> Told:
    """Runs it, and reads what is said of it, but for drawings: they are of the tables that are compared."""
    one = replace(one, config=replace(one.config, classes=one.workload.classes))
    config = settings_of(one, folder)
    write_workload(one.workload, folder / "w.parquet")
    write_hosts(one.hosts, folder / "h.parquet")
    (folder / "settings.json").write_text(json.dumps(settings.to_mapping(config)))
    files = [str(folder / "w.parquet"), str(folder / "h.parquet"), "--config", str(folder / "settings.json")]
    out, page = folder / "out", folder / "page.html"
    everything = ["--events", "--passes", "--intervals", f"{INTERVAL:g}", "--out", str(out)]
    printed = json.loads(printed_by("simulate", *files, *everything, "--json"))
    write(out, page)
    report = assemble(out)
    names = ("requests", "events", "intervals", "progress", "passes")
    tables = {name: pq.read_table(out / f"{name}.parquet") for name in names}
    rows = {name: table.to_pylist() for name, table in tables.items()}
    instances = pq.read_table(out / "instances.parquet").to_pylist() if (out / "instances.parquet").exists() else []
    shown = Simulation(out)
    owed = penalties(tables["requests"], one.workload.classes, config.qos.startup, float(printed["end"])).to_pylist()
    return Told(
        console=re.sub(r"\s+", " ", printed_by("simulate", *files, *everything)),
        bare=json.loads(printed_by("simulate", *files, "--json")),
        printed=printed,
        manifest=json.loads((out / "manifest.json").read_text()),
        **rows,
        windows=pq.read_table(out / "windows.parquet").to_pylist() if (out / "windows.parquet").exists() else [],
        inspected=json.loads(printed_by("inspect", *files[:2], *files[2:], "--json"))["workload"],
        instances=instances or rows["requests"],
        page=page.read_text(encoding="utf-8"),
        figures={one.key: one.table.to_pylist() for one in (report.answer, *report.figures)},
        shown=shown.at(math.inf),
        marks=sum(shown.head.marks),
        result=st.simulate(
            folder / "w.parquet", folder / "h.parquet", config=folder / "settings.json", intervals=INTERVAL,
            progress=False,
        ),
        owed={row["class"]: row["penalty"] for row in owed if row["class"] != ALL},
    )  # fmt: skip


@pytest.fixture(
    scope="module",
    params=RUNS,
    ids=lambda one: f"{one[0]} {one[1]}",
)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Told:
    seed, words = request.param
    varied = {name: True for name in words.split() if name not in CHANGED}
    drawn = cluster(seed, requests=25, **varied)
    for name in words.split():
        drawn = CHANGED[name](drawn) if name in CHANGED else drawn
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(export, "draw", lambda *_: ("", "", False))
        return told(drawn, tmp_path_factory.mktemp("run"))


def happened(rows: Rows, *kinds: str) -> int:
    return sum(row["event"] in kinds for row in rows)


def cells(page: str, caption: str) -> list[list[str]]:
    """The rows of a table of the page, as they are read."""
    (found,) = re.findall(rf"<caption[^>]*>\s*{re.escape(caption)}.*?</table>", page, re.DOTALL)
    lines = re.findall(r"<tr[^>]*>(.*?)</tr>", found, re.DOTALL)
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", line, re.DOTALL) for line in lines]
    return [[html.unescape(re.sub(r"<[^>]+>", "", one)).strip() for one in row] for row in rows]


def number(text: str) -> float:
    """As the page writes it: with commas, no more than four digits where it is short."""
    return float(text.replace(",", ""))


def cut(share: float) -> str:
    """As the console writes shares: not rounded up."""
    return f"{math.floor(share * 1e4 + 1e-9) / 1e4:.4f}"


def shortened(value: float) -> float:
    return round(value) if abs(value) >= 1000 else float(f"{value:.4g}")


def test_counts_are_the_same_wherever_they_stand(run: Told) -> None:
    counts = {
        "requests": len(run.requests),
        "instances": len(run.instances),
        "completed": sum(row["completion"] is not None for row in run.requests),
        "passes": len(run.passes),
        "placements": happened(run.events, "placed", "moved"),
        "preemptions": happened(run.events, "preempted"),
        "operations": run.printed["operations"],
    }
    in_passes = sum(row["operations"] for row in run.passes)
    assert in_passes <= counts["operations"]  # what is looked at between passes counts, too
    assert {name: run.printed[name] for name in counts} == counts
    assert {name: run.manifest["totals"][name] for name in counts} == counts
    assert {name: run.result.totals[name] for name in counts} == counts
    assert {name: run.progress[-1][name] for name in ("passes", "placements", "preemptions", "operations")} == {
        name: counts[name] for name in ("passes", "placements", "preemptions", "operations")
    }
    assert sum(row["preempted"] for row in run.passes) == counts["preemptions"]
    assert sum(row["placed"] for row in run.passes) == happened(run.events, "placed")
    assert run.printed["moves"] == happened(run.events, "moved")
    assert sum(row["preemptions"] for row in run.requests) == counts["preemptions"]
    assert sum(one["preemptions"] for one in run.printed["classes"].values()) == counts["preemptions"]
    assert sum(one["requests"] for one in run.printed["classes"].values()) == counts["requests"]
    assert run.marks == counts["preemptions"]
    assert sum(one.preempted for one in run.shown.classes) == counts["preemptions"]
    assert sum(sum(one.counts) for one in run.shown.classes) == counts["requests"]
    assert sum(one.over for one in run.shown.workloads) == counts["completed"]
    said = re.search(r"([\d,]+) completed; ([\d,]+) placements? and ([\d,]+) operations? in ([\d,]+) pass", run.console)
    assert said is not None
    wanted = [counts[name] for name in ("completed", "placements", "operations", "passes")]
    assert [int(one.replace(",", "")) for one in said.groups()] == wanted
    left = [row["queue"] - row["placed"] + row["preempted"] for row in run.passes]
    assert max(left) == max(row["longest_queue"] for row in run.progress)


OF_THE_MACHINE = {"wall_seconds", "cpu_seconds", "compile_seconds", "peak_rss_mb"}


def test_what_is_written_changes_nothing_of_what_happens(run: Told) -> None:
    told_of = run.printed.keys() - OF_THE_MACHINE
    assert {name: run.bare[name] for name in told_of} == {name: run.printed[name] for name in told_of}


def test_what_each_class_got_is_the_same_wherever_it_stands(run: Told) -> None:
    api = {row["class"]: row for row in run.result.classes.to_dicts()}
    shown = {one.name: one for one in run.shown.classes}
    outcome = cells(run.page, "Outcome by host set and policy")
    head, line = outcome[0], outcome[1]
    tiles = run.figures["answer"][0]
    for name, said in run.printed["classes"].items():
        mine = run.of(name)
        assert said["requests"] == len(mine) == api[name]["requests"]
        if not mine:
            continue
        got = np.array([row[f"availability_{run.accounting}"] for row in mine])
        kept = float(np.mean([row["slo_met"] for row in mine]))
        availability = said["availability"][run.accounting]
        assert availability["mean"] == pytest.approx(got.mean())
        assert availability["min"] == got.min() == api[name]["availability_min"]
        assert said["fulfilment"][run.accounting] == pytest.approx(kept)
        assert api[name]["fulfilment"] == pytest.approx(kept)
        assert api[name]["availability_mean"] == pytest.approx(got.mean())
        column = head.index(f"{name} kept, %")
        assert number(line[column]) == math.floor(kept * 1e4 + 1e-9) / 100  # cut, as on the console
        assert float(tiles[f"{name} kept, %"]) == pytest.approx(100.0 * kept)
        percent = f"{math.floor(kept * 1e4 + 1e-9) / 100:.2f} %"
        cells_of_row = [name, f"{len(mine):,}", f"{said['slo']:g}", cut(got.mean()), cut(got.min()), percent]
        assert f"{' '.join(cells_of_row)} {said['preemptions']:,} " in run.console
        assert said["wasted_startup"] == pytest.approx(sum(one["wasted_startup"] for one in mine))
        assert said["preemptions"] == sum(one["preemptions"] for one in mine)
        assert shown[name].counts[MISSED] == sum(not one["slo_met"] for one in mine)
        assert shown[name].counts[KEPT] + shown[name].counts[AT_RISK] == sum(one["slo_met"] for one in mine)


def test_windows_and_deficits_are_those_of_the_requests(run: Told) -> None:
    for row in run.windows:
        if row["window"] is not None:
            worst = [one["worst_window"] for one in run.of(row["class"]) if one["worst_window"] is not None]
            assert row["worst"] == min(worst, default=None)
    for name in run.printed["classes"]:
        missed = sum(not one["slo_met"] for one in run.of(name))
        assert sum(row["requests"] for row in run.figures["deficits"] if row["class"] == name) == missed


def test_inspect_counts_what_runs(run: Told) -> None:
    """But for requests that are admitted when the run is over."""
    assert run.inspected["requests"] >= run.printed["requests"]
    if run.inspected["last"] <= run.printed["end"]:
        assert run.inspected["requests"] == run.printed["requests"]
        asked = {name: one["requests"] for name, one in run.inspected["classes"].items()}
        assert asked == {name: one["requests"] for name, one in run.printed["classes"].items()}


def test_what_is_owed_is_the_same_wherever_it_stands(run: Told) -> None:
    head, line = cells(run.page, "Outcome by host set and policy")[:2]
    total = sum(run.owed.values())
    assert number(line[head.index("penalty, cpu-seconds")]) == shortened(total)
    assert float(run.figures["penalties"][0]["value"]) == pytest.approx(total)
    assert float(run.figures["answer"][0]["penalty, cpu-seconds"]) == pytest.approx(total)
    assert number(line[head.index("preemptions")]) == shortened(run.printed["preemptions"])
    assert number(line[head.index("operations")]) == shortened(run.printed["operations"])
    wasted = sum(one["wasted_startup"] for one in run.printed["classes"].values())
    assert number(line[head.index("wasted start-up, s")]) == shortened(wasted)
    assert sum(float(row["preemptions"]) for row in run.figures["preemptions-over-time"]) == run.printed["preemptions"]
    assert sum(float(row["operations"]) for row in run.figures["operations"]) == run.printed["operations"]


def test_the_end_of_the_run_is_the_same_wherever_it_stands(run: Told) -> None:
    end = run.printed["end"]
    assert run.manifest["totals"]["end"] == end
    assert run.progress[-1]["time"] == end == run.shown.at
    head, line = cells(run.page, "Workloads: requests of each class")[:2]
    assert number(line[head.index("end of the runs, s")]) == shortened(end)
    assert number(line[head.index("requests")]) == len(run.requests)
    last = {row["class"]: row for row in run.intervals if row["time"] == end}
    for one in run.shown.classes:
        assert (one.running, one.waiting) == (last[one.name]["running"], last[one.name]["waiting"])
    assert sum(row["waiting"] for row in last.values()) == run.progress[-1]["queue"]


def test_who_got_least_is_who_has_the_least_in_the_table(run: Told) -> None:
    slo = {name: one["slo"] for name, one in run.printed["classes"].items()}
    judged = {row["id"]: row for row in run.requests if not row["slo_met"]}
    if not judged:
        assert "Requests that got least" not in run.page
        return
    head, *rows = cells(run.page, "Requests that got least")
    assert len(rows) == min(len(judged), 20)
    for row in rows:
        mine = judged[int(row[head.index("request")])]
        got = mine.get("worst_window")
        got = mine[f"availability_{run.accounting}"] if got is None else got
        assert number(row[head.index("got")]) == shortened(got)
        assert number(row[head.index("promised")]) == shortened(slo[mine["class"]])
        assert row[head.index("class")] == mine["class"]


def test_who_never_had_a_host_is_counted_alike(run: Told) -> None:
    never = [row for row in run.instances if not row["starts"] and row.get("removed") is None]
    assert sum(run.printed["never_served"].values()) == len(never)
    assert sum(run.result.classes["never_served"].to_list()) == len(never)
