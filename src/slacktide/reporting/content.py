"""The words and tables of a page around its figures: what was compared, what is missing, how to cite and reproduce."""

from __future__ import annotations

import hashlib
import itertools
import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from slacktide import __version__
from slacktide.for_people import counted
from slacktide.model import ServiceClass
from slacktide.reporting import export, page, scores
from slacktide.reporting.assemble import SHOWN_PAIRS, Report
from slacktide.reporting.figure import Figure, Rows, where
from slacktide.results.experiment import ABOUT, GRID, MANIFEST

CONTENTS = {
    "verdict": "Verdict",
    "compared": "What was compared",
    "figures": "Figures",
    "reproduce": "Cite and reproduce",
}
BRIEF = 320
"""Characters; longer descriptions of figures are folded in."""
NOT_OF_A_POLICY = ("simulation.seed", "simulation.end", "version", "kube.")
"""Settings that differ between runs for other reasons than the policy."""
OF_QOS = (
    "policy.preempt_when",
    "policy.patience",
    "policy.queue_order",
    "policy.victim_order",
    "policy.victims",
    "policy.overhead_scope",
    "policy.overhead_limit",
    "policy.added_overhead",
)
UNUSED = {"priority": (*OF_QOS, "policy.queue_limit"), "qos-driven": ("policy.queue_limit", "policy.equals")}
"""Settings of which the policy of this name takes no notice, whatever they say."""
UNUSED_TEXT = "not used"
FEW_WORKLOADS = 5
"""Up to here intervals over workloads are wide for want of workloads."""


def content(report: Report, files: dict[str, bytes] | None = None) -> dict[str, Any]:
    """Everything that ``page.html.j2`` names, but styles and script. The figures as files are added to ``files``."""
    scene = report.scene
    title = report.experiment.grid.get("title") or _title(report)
    contents = [{"key": key, "text": text} for key, text in CONTENTS.items()]
    return {
        "title": title,
        "subtitle": _subtitle(report),
        "version": __version__,
        "contents": contents,
        "verdict": report.verdict,
        "problems": _problems(report),
        "outcome": page.table(
            "outcome", "Outcome by host set and policy; shares of promises kept, the rest means of a run",
            scores.table(scores.outcome(report.scores, scene)),
        ),
        "windows": _windows(report.windows),
        "least": _least(report.least),
        "compared": _compared(report),
        "remarks": _remarks(report),
        "answer": _figure(report.answer, files),
        "figures": [_figure(one, files) for one in report.figures],
        "cite": _cite(report),
    }  # fmt: skip


def identity(report: Report) -> str:
    """The experiment's hash: SHA-256 over the sorted keys of its runs, each of which covers all that determines it."""
    keys = "\n".join(sorted(run.key for run in report.experiment.runs))
    return hashlib.sha256(keys.encode("utf-8", "surrogatepass")).hexdigest()


def _title(report: Report) -> str:
    scene = report.scene
    if len(scene.policies) == 1:
        return f"{scene.policies[0]}: promised and delivered"
    return f"Comparison of {len(scene.policies)} policies"


def _subtitle(report: Report) -> str:
    scene, runs = report.scene, report.experiment.runs
    sizes = (
        (len(scene.workloads), "workload", "workloads"),
        (len(scene.hosts), "host set", "host sets"),
        (len(scene.policies), "policy", "policies"),
        (max(one.replicate for one in report.found) + 1, "seed", "seeds"),
    )
    parts = [f"{count} {one if count == 1 else many}" for count, one, many in sizes]
    return f"{' x '.join(parts)}: {len(report.found)} of {len(runs)} runs finished. Experiment {identity(report)[:12]}."


def _problems(report: Report) -> dict[str, Any] | None:
    bad = [run for run in report.experiment.runs if run.folder is None]
    if not bad:
        return None
    failed = sum(run.error is not None for run in bad)
    rows = [
        {
            "workload": run.workload,
            "host set": run.hosts,
            "policy": run.policy,
            "seed": str(run.seed),
            "what is known": run.error or "not run yet",
        }
        for run in bad
    ]
    summary = f"{len(bad)} of {len(report.experiment.runs)} runs have no results: {failed} failed, {len(bad) - failed} "
    return {
        "summary": summary + "were not run yet. Everything here is about the others.",
        "table": page.table("missing-runs", "Runs without results", scores.table(rows)),
    }


def _windows(came_to: Rows) -> page.Table | None:
    """What promises over windows came to; None where there are none."""
    if not came_to:
        return None
    rows = [
        {
            "host set": row["hosts"],
            "class": row["class"],
            "policy": row["policy"],
            "promise": row["promise"],
            "over": row["over"],
            "worst window": row["worst"],
            "windows kept, %": 100.0 * row["kept"],
            "longest outage, s": row["longest"],
        }
        for row in came_to
    ]
    caption = "Promises over windows: the worst window, the share of windows kept, the longest outage in one piece"
    return page.table("promised-windows", caption, scores.table(rows))


def _least(rows: Rows) -> page.Table | None:
    """Requests that missed their promise by most; None where all kept it."""
    caption = "Requests that got least of what they were promised (requests.parquet of a run has all)"
    return page.table("least", caption, scores.table(rows)) if rows else None


def _compared(report: Report) -> list[page.Table]:
    scene = report.scene
    workloads: Rows = []
    for workload in scene.workloads:
        mine = where(report.requests, workload=workload)
        counts = {name: sum(row["requests"] for row in where(mine, **{"class": name})) for name in scene.classes}
        end = next((one.end for one in report.found if one.run.workload == workload), None)
        requests = sum(counts.values()) if mine else None
        workloads.append({"workload": workload, "requests": requests, **counts, "end of the runs, s": end})
    hosts: Rows = []
    for workload in scene.workloads:
        for one in scene.hosts:
            found = where(report.capacities, workload=workload, hosts=one)
            if found:
                amounts = {f"{row['resource']} capacity": row["capacity"] for row in found}
                hosts.append({"host set": one, "workload": workload, **amounts})
    known = {one.name: one for member in report.found for one in member.classes}
    classes = [
        {
            "class": name,
            "promise": scene.slos[name],
            "over": _over(known[name]),
            "safety margin, s": known[name].margin,
            "penalty bonus below an availability": _tiers(known[name]),
        }
        for name in scene.classes
    ]
    return [
        page.table("workloads", "Workloads: requests of each class", scores.table(workloads)),
        page.table("hosts", "Host sets: capacity, in the hosts' unit", scores.table(hosts)),
        page.table("classes", "Service classes, most important first", scores.table(classes)),
        page.table("policies", "Policies: the settings in which they differ", scores.table(settings(report))),
    ]


def _over(one: ServiceClass) -> str:
    return "lifetime" if one.window is None else one.window.name


def _tiers(one: ServiceClass) -> str:
    """``0.89991: 10 %, 0.891: 30 %``: boundaries as availabilities of this class."""
    return (
        ", ".join(f"{tier.boundary * one.slo:.5g}:\u00a0{100.0 * tier.bonus:g}\u00a0%" for tier in one.tiers) or "none"
    )


def settings(report: Report) -> Rows:
    """A row per setting in which policies differ, a column per policy; with one policy its own section."""
    listed = {one.run.policy: _flat(one.manifest["configuration"]) for one in reversed(report.found)}
    policies = [name for name in report.scene.policies if name in listed]
    names = list(dict.fromkeys(key for name in policies for key in listed[name]))
    differ = [key for key in names if len({listed[name].get(key) for name in policies}) > 1]
    shown = differ if len(policies) > 1 else [key for key in names if key.startswith("policy.")]
    kept = [key for key in shown if not key.startswith(NOT_OF_A_POLICY)]
    kept = kept or ["policy.name"]
    told = {key: {name: _used(listed[name], key) for name in policies} for key in kept}
    told = {key: row for key, row in told.items() if set(row.values()) != {UNUSED_TEXT}} or {kept[0]: told[kept[0]]}
    return [{"setting": key, **row} for key, row in told.items()]


def _used(values: Mapping[str, str], key: str) -> str:
    """What a policy's settings say, unless it takes no notice of this one; of one's own, nobody knows."""
    name, said = values["policy.name"], values.get(key, "")
    if not {".", ":"}.isdisjoint(name) and key.startswith("policy.") and key != "policy.name":  # file.py:Class
        return f"{said} (if the policy uses it)"
    return UNUSED_TEXT if key in UNUSED.get(name, ()) else said


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, str]:
    found = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found.update(_flat(value, f"{before}{key}."))
        else:
            found[f"{before}{key}"] = _text(value)
    return found


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g}" if isinstance(value, float) else json.dumps(value)


def _remarks(report: Report) -> list[str]:
    scene, found = report.scene, report.found
    seeds = max(one.replicate for one in found) + 1
    remarks = [
        f"Others are compared with {scene.reference}."
        if len(scene.policies) > 1
        else "One policy only: no pairs, no increments.",
        "Availability and fulfilment are in the accounting of start-up time that decisions used: "
        + ", ".join(sorted({one.manifest["configuration"]["qos"]["startup"] for one in found}))
        + ".",
    ]
    if any(one.accounting == "always" for one in found if one.policy == "priority"):
        remarks.append(
            "In the accounting always every start-up counts as waiting, so that nearly every interval has high "
            "contention: contention classes say little here."
        )
    if 1 < len(scene.workloads) <= FEW_WORKLOADS and seeds > 1:
        remarks.append(
            f"Confidence intervals are over workloads and seeds. With {len(scene.workloads)} workloads they show above "
            "all how workloads differ; whether policies do is better seen request by request, in pairs."
        )
    if len({one.classes for one in found}) > 1:
        remarks.append(
            "Runs differ in their service classes (see the settings): a run's promises kept and penalties are by its "
            "own classes, lines at a promise and the table above by those of one of them."
        )
    if len(scene.others) > SHOWN_PAIRS:
        remarks.append(f"Of {len(scene.others)} policies {SHOWN_PAIRS} are paired with the reference.")
    if seeds == 1:
        remarks.append(
            "One seed: intervals, where there are some, stand for differences between workloads alone."
            if len(scene.workloads) > 1
            else "One seed and one workload: there are no confidence intervals."
        )
    return remarks


def _figure(one: Figure, files: dict[str, bytes] | None) -> dict[str, Any]:
    from markupsafe import Markup

    wide, slim, part = export.draw(one, files)
    return {
        "key": one.key,
        "title": one.title,
        "short": one.title.split(": ")[0],
        "description": one.description,
        "brief": len(one.description) <= BRIEF,
        "reading": one.reading,
        "notes": one.notes,
        "wide": Markup(wide),
        "slim": Markup(slim),
        "part": part,
        "csv": export.table(one),
        "table": page.table(f"{one.key}-data", f"Data: {one.title}", one.table, one.units),
    }


def _cite(report: Report) -> dict[str, Any]:
    experiment, name = report.experiment, identity(report)
    date = created(report)
    rows = [
        {"what": "experiment", "value": name},
        {"what": "date", "value": date},
        *({"what": f"version of {key}", "value": str(value)} for key, value in experiment.versions.items()),
        {"what": "report made by", "value": f"slacktide {__version__}"},
        {"what": "seeds", "value": _seeds(report)},
    ]
    runs = [
        {
            "workload": run.workload,
            "host set": run.hosts,
            "policy": run.policy,
            "seed": str(run.seed),
            "key": run.key,
        }
        for run in experiment.runs
    ]
    given = experiment.command[1:] if experiment.command[:1] == ["slacktide"] else experiment.command
    made = shlex.join(["slacktide", *given])
    folder = next((after for before, after in itertools.pairwise(given) if before == "--out"), "DIR")
    return {
        "text": (
            f"Cite as: slacktide {experiment.versions.get('slacktide', __version__)}, experiment {name[:12]}, {date}, "
            f"{counted(len(report.found), 'run')}. The hash covers workloads, hosts, settings, seeds and the version "
            "of the simulator; equal runs give equal results to the bit."
        ),
        "table": page.table("citation", "What identifies this experiment", scores.table(rows)),
        "commands": f"{made}\n{shlex.join(['slacktide', 'report', folder, '--out', 'report.html'])}",
        "grid": _grid(report),
        "runs": page.table("runs", "Runs and their keys", scores.table(runs), limit=1000),
    }


def _seeds(report: Report) -> str:
    seeds = list(dict.fromkeys(run.seed for run in report.experiment.runs))
    return ", ".join(map(str, seeds[:20])) + (f" and {len(seeds) - 20} more" if len(seeds) > 20 else "")


def created(report: Report) -> str:
    """The day on which the experiment was begun (UTC): what experiment.json says, else the file's own date."""
    said, folder = report.experiment.created, report.experiment.folder
    path = next(one for one in (folder / ABOUT, folder / MANIFEST) if one.is_file())
    return said[:10] if said else datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d")


def _grid(report: Report) -> str | None:
    """The grid as it was given, or as it was resolved; None: one run by itself has none."""
    if not report.experiment.grid:
        return None
    path = report.experiment.folder / GRID
    if path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    return json.dumps(report.experiment.grid, indent=2, ensure_ascii=False)
