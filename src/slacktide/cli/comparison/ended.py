"""What an experiment came to: the table with which ``experiment run`` ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from slacktide.cli.options import echo_json
from slacktide.cli.text import count, paint, share, table


def tell(folder: Path, *, as_json: bool) -> None:
    """A row for each host set and policy of the finished runs of ``folder``, from their manifests; of none, nothing."""
    rows, classes = outcome(folder)
    if as_json:
        echo_json(rows)
        return
    if not rows:
        return
    head = ["hosts", "policy", "runs", *(f"{name} kept" for name in classes), "preempted", "operations"]
    cells = [
        [
            one["hosts"],
            one["policy"],
            str(one["runs"]),
            *(_kept(one["kept"].get(name)) for name in classes),
            count(one["preemptions"]),
            count(one["operations"]),
        ]
        for one in rows
    ]
    click.echo("Promises kept (of all requests of a class); the rest are means of a run:\n")
    click.echo(f"{table(head, cells, left=2)}\n")


def _kept(value: float | None) -> str:
    if value is None:
        return "-"
    return paint(f"{share(100.0 * value, 2)} %", "good" if value >= 1.0 else "bad")


def outcome(folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Rows (hosts, policy, runs, kept by class, preemptions, operations) and the classes, most important first.

    Raises :class:`InputError` for a folder that is no experiment.
    """
    from slacktide.metrics.columns import codes
    from slacktide.model import arrow
    from slacktide.results import experiment as folders

    sums: dict[tuple[str, str], dict[str, Any]] = {}
    classes: dict[str, None] = {}
    for run in folders.read(folder).done:
        manifest = run.manifest()
        one = sums.setdefault((run.hosts, run.policy), {"runs": 0, "preemptions": 0, "operations": 0, "classes": {}})
        one["runs"] += 1
        for name in ("preemptions", "operations"):
            one[name] += manifest["totals"][name]
        names = [entry["name"] for entry in manifest["configuration"]["classes"]]
        classes |= dict.fromkeys(names)
        requests = run.requests()
        code, met = codes(requests, names), arrow.as_numpy(requests["slo_met"])
        for number, name in enumerate(names):
            mine = met[code == number]
            if len(mine):
                tally = one["classes"].setdefault(name, [0, 0])
                tally[0] += int(mine.sum())
                tally[1] += len(mine)
    rows = [
        {
            "hosts": hosts,
            "policy": policy,
            "runs": one["runs"],
            "kept": {name: kept / all_ for name, (kept, all_) in one["classes"].items()},
            "preemptions": one["preemptions"] / one["runs"],
            "operations": one["operations"] / one["runs"],
        }
        for (hosts, policy), one in sums.items()
    ]
    return rows, [name for name in classes if any(name in row["kept"] for row in rows)]
