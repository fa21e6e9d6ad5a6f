"""What ``slacktide inspect`` found, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slacktide.cli.text import count, paragraph, seconds, share, table

SHOWN = 10


def text(found: Mapping[str, Any]) -> str:
    """All parts that were found, with a blank line between them."""
    parts = []
    if "workload" in found:
        parts.append(_workload(found["workload"]))
    if "hosts" in found:
        parts.append(_hosts(found["hosts"]))
    if "demand_over_time" in found:
        parts.append(_demand(found["demand_over_time"], found["hosts"]["resources"]))
        parts.append(_never(found["unsatisfiable"]))
    return "\n\n".join(parts)


def _workload(about: Mapping[str, Any]) -> str:
    if not about["requests"]:
        return "No requests"
    head = ("class", "promised", "requests", "standing", "constrained", "anti-affine", "median duration", "mean cpu")
    rows = [
        (
            name,
            f"{one['slo']:g}",
            count(one["requests"]),
            count(one["standing"]),
            share(one["constrained"]),
            share(one["anti_affinity"]),
            seconds(one["duration"]["p50"]) if one["duration"] else "-",
            f"{one['demand']['cpu']['mean']:.4g}" if one["demand"].get("cpu") else "-",
        )
        for name, one in about["classes"].items()
    ]
    return "\n".join(
        [
            paragraph(
                f"{count(about['requests'])} requests of {count(about['jobs'])} jobs, admitted from "
                f"{seconds(about['first'])} to {seconds(about['last'])} at {count(about['instants'])} instants, "
                f"{count(about['standing'])} of them at the first"
            ),
            paragraph(
                f"{count(about['distinct_demands'])} different demands, {count(about['terms'])} different terms of "
                f"constraints; {share(about['never_complete'])} of the requests never complete"
            ),
            "",
            table(head, rows),
        ]
    )


def _hosts(about: Mapping[str, Any]) -> str:
    names = about["resources"]
    lines = [
        f"{count(about['hosts'])} hosts with "
        + ", ".join(f"{name} {about['capacity'][name]:.6g}" for name in names)
        + f" in all, {count(len(about['attributes']))} attributes"
    ]
    rows = [(*(f"{amount:.6g}" for amount in one["capacity"]), count(one["hosts"])) for one in about["shapes"][:SHOWN]]
    lines += ["", table((*names, "hosts"), rows, left=0)] if rows else []
    hidden = len(about["shapes"]) - SHOWN
    return "\n".join([*lines, *([f"... and {count(hidden)} more shapes"] if hidden > 0 else [])])


def _demand(columns: Mapping[str, list[float]], resources: list[str]) -> str:
    """Demand as a share of capacity, if all that is admitted ran at once."""
    rows = []
    for index, (start, end) in enumerate(zip(columns["start"], columns["end"], strict=True)):
        shares = []
        for name in resources:
            capacity = columns[f"{name}:capacity"][index]
            demand = columns[f"{name}:all"][index]
            shares.append(f"{demand / capacity:.1%}" if capacity else "-")
        rows.append((seconds(start), seconds(end), *shares))
    return "Demand over capacity, if everything ran from its admission on\n\n" + table(
        ("from", "to", *resources), rows, left=0
    )


def _never(about: Mapping[str, Any]) -> str:
    terms, large = about["terms"], about["too_large"]
    if not terms and not large["requests"]:
        return "Every request fits on some host."
    lines = []
    if terms:
        carried = sum(one["requests"] for one in terms)
        lines.append(f"No host satisfies the constraints of {count(carried)} requests:")
        lines += [f"  {one['term']}: {count(one['requests'])}" for one in terms[:SHOWN]]
        lines += [f"  ... and {count(len(terms) - SHOWN)} more terms"] if len(terms) > SHOWN else []
    if large["requests"]:
        ids = ", ".join(map(str, large["first_ids"]))
        more = ", ..." if large["requests"] > len(large["first_ids"]) else ""
        lines.append(f"Larger than every host they may use: {count(large['requests'])} requests (ids {ids}{more})")
    return "\n".join(lines)
