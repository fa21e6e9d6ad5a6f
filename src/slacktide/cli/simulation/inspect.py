"""``slacktide inspect``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slacktide.cli.options import COLUMNS, FILE, KEEP, checked, echo_json, read
from slacktide.cli.text import paragraph, table
from slacktide.for_people import count, counted, duration, share

if TYPE_CHECKING:
    from slacktide.model import Hosts, Workload

SHOWN = 10


@click.command()
@click.argument("files", nargs=-1, required=True, type=FILE)
@click.option("--config", "config_file", type=FILE, help="A settings file, for its classes.")
@COLUMNS
@KEEP
@click.option("--bins", default=12, show_default=True, type=click.IntRange(1, 10_000), help="Spans of time shown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def inspect(
    files: tuple[Path, ...],
    config_file: Path | None,
    columns: str | None,
    keep: Path | None,
    bins: int,
    as_json: bool,
) -> None:
    """Describes a workload, hosts, or how demand and capacity compare.

    Of both together it also tells requests that can never run.

    \b
      slacktide inspect workload.parquet
      slacktide inspect hosts.parquet
      slacktide inspect workload.parquet hosts.parquet --bins 24
      slacktide inspect export.csv --columns guess --keep-columns export.yaml
    """
    from slacktide import settings
    from slacktide.inputs import align, read_hosts, read_workload

    if len(files) > 2:
        raise click.UsageError("expected a workload, a host file, or one of each")
    checked(columns, keep)
    host_files = [one for one in files if _holds_hosts(one)] if columns is None else list(files[1:])
    workload_files = [one for one in files if one not in host_files]
    if len(files) == 2 and len(host_files) != 1:
        raise click.UsageError("expected one workload and one host file, found two of a kind")
    classes = settings.load(config_file).classes
    if columns is not None:
        workload: Workload | None = read(files[0], columns, keep, classes).workload
    else:
        workload = read_workload(workload_files[0], classes=classes) if workload_files else None
    hosts = read_hosts(host_files[0]) if host_files else None
    if workload is not None and hosts is not None:
        workload, hosts = align(workload, hosts, workload_file=str(workload_files[0]), hosts_file=str(host_files[0]))
    found = _findings(workload, hosts, bins)
    if as_json:
        echo_json(found)
    else:
        click.echo(text(found))
        if kinds := found.get("workload", {}).get("kinds"):
            click.echo("\n" + _kinds_text(found["workload"]["instances"], kinds))
        if counts := found.get("workload", {}).get("neighbours"):
            click.echo("\n" + _neighbours_text(counts))


def _holds_hosts(path: Path) -> bool:
    """Whether a file looks like hosts; a file that cannot be told apart is left to the reader of workloads."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            return _of_hosts(pq.read_schema(path).names)
        with path.open(encoding="utf-8", errors="replace") as file:
            start = file.read(4096)
    except (OSError, ValueError):  # the reader tells what is wrong; pyarrow's errors are of these kinds
        return False
    if suffix == ".csv":
        return _of_hosts([name.strip() for name in start.partition("\n")[0].split(",")])
    return re.search(r"^\s*\{[^,{]*,\s*\"", start, re.MULTILINE) is not None


def _of_hosts(names: list[str]) -> bool:
    """Whether columns are those of hosts; a table that has none of them is a workload with others of its own."""
    return "admission" not in names and any(name in names for name in ("name", "cpu", "memory"))


def _kinds_text(instances: int, kinds: list[dict[str, Any]]) -> str:
    """Requests of several instances, by kind and approach."""
    head = ("kind", "approach", "requests", "instances", "median", "p90", "largest", "scale events")
    rows = [
        (
            one["kind"],
            one["approach"],
            count(one["requests"]),
            count(one["instances"]),
            *(f"{one['size'][quantile]:,.4g}" for quantile in ("p50", "p90", "max")),
            count(one["scale_events"]),
        )
        for one in kinds
    ]
    return f"{counted(instances, 'instance')}; of one request: median, p90, largest\n\n{table(head, rows, left=2)}"


def _neighbours_text(counts: dict[str, int]) -> str:
    """Instances that have to do with their neighbours, and those with budgets."""
    asking = ", ".join(f"{name} {count(counts[name])}" for name in ("marks", "near", "away", "spread", "preferences"))
    return (
        f"instances with {asking}; {count(counts['placements'])} distinct placements\n"
        f"instances in budgets {count(counts['in_budgets'])}; {count(counts['budgets'])} budgets"
    )


def _findings(workload: Workload | None, hosts: Hosts | None, bins: int) -> dict[str, Any]:
    from slacktide.inputs import statistics

    found: dict[str, Any] = {}
    if workload is not None:
        found["workload"] = statistics.describe_workload(workload)
    if hosts is not None:
        found["hosts"] = statistics.describe_hosts(hosts)
    if workload is not None and hosts is not None and len(hosts):
        over_time = statistics.demand_over_time(workload, hosts, bins)
        found["demand_over_time"] = {name: column.tolist() for name, column in over_time.items()}
        never = statistics.unsatisfiable(workload, hosts)
        found["unsatisfiable"] = {
            "terms": [{"term": str(term), "requests": requests} for term, requests in never.terms],
            "too_large": {
                "requests": len(never.too_large),
                "first_ids": never.too_large[:SHOWN].tolist(),
                **({"first_names": list(never.called[:SHOWN])} if any(never.called) else {}),
            },
        }
    return found


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
            duration(one["duration"]["p50"]) if one["duration"] else "-",
            f"{one['demand']['cpu']['mean']:.4g}" if one["demand"].get("cpu") else "-",
        )
        for name, one in about["classes"].items()
    ]
    return "\n".join(
        [
            paragraph(
                f"{counted(about['requests'], 'request')} of {counted(about['jobs'], 'job')}, admitted from "
                f"{duration(about['first'])} to {duration(about['last'])} at {counted(about['instants'], 'instant')}, "
                f"{count(about['standing'])} of them {'before or at 0' if about['first'] < 0.0 else 'at the first'}"
            ),
            *notes(about.get("before"), about.get("in_turn", 0)),
            paragraph(
                f"{counted(about['distinct_demands'], 'different demand')}, "
                f"{counted(about['terms'], 'different term')} of constraints; "
                f"{share(about['never_complete'])} of the requests never complete"
            ),
            "",
            table(head, rows),
        ]
    )


def notes(before: Mapping[str, Any] | None, in_turn: int) -> list[str]:
    """What a workload means that its file does not show: ``statistics.past_of`` and ``statistics.in_turn``."""
    found = [] if before is None else [_before(**before)]
    if in_turn:
        run = "batch request runs its" if in_turn == 1 else "batch requests run their"
        found.append(
            paragraph(
                f"{count(in_turn)} {run} instances one after the other: parallelism is 1, also where nothing is said, "
                "as in a Job of Kubernetes"
            )
        )
    return found


def _before(requests: int, oldest: float, lost: float) -> str:
    """That requests were there before the run, and what counts for them."""
    were = "request was" if requests == 1 else "requests were"
    how = f"lost {duration(lost)} by then; all else since their admission" if lost else "all time since their admission"
    return paragraph(
        f"{count(requests)} {were} there before the run, for up to {duration(oldest)} (admissions below 0): {how} "
        "counts as running"
    )


def _hosts(about: Mapping[str, Any]) -> str:
    names = about["resources"]
    lines = [
        f"{counted(about['hosts'], 'host')} with "
        + ", ".join(f"{name} {about['capacity'][name]:.6g}" for name in names)
        + f" in all, {counted(len(about['attributes']), 'attribute')}"
    ]
    rows = [(*(f"{amount:.6g}" for amount in one["capacity"]), count(one["hosts"])) for one in about["shapes"][:SHOWN]]
    lines += ["", table((*names, "hosts"), rows, left=0)] if rows else []
    hidden = len(about["shapes"]) - SHOWN
    return "\n".join([*lines, *([f"... and {counted(hidden, 'more shape')}"] if hidden > 0 else [])])


def _demand(columns: Mapping[str, list[float]], resources: list[str]) -> str:
    """Demand as a share of capacity, if nobody waited."""
    rows = []
    for index, (start, end) in enumerate(zip(columns["start"], columns["end"], strict=True)):
        shares = []
        for name in resources:
            capacity = columns[f"{name}:capacity"][index]
            demands = (columns[f"{name}:{part}"][index] for part in ("all", "most"))
            shares += [f"{demand / capacity:.1%}" if capacity else "-" for demand in demands]
        rows.append((duration(start), duration(end), *shares))
    head = [part for name in resources for part in (name, "at most")]
    return "Demand over capacity, if nobody waited: mean, and at most\n\n" + table(("from", "to", *head), rows, left=0)


def _never(about: Mapping[str, Any]) -> str:
    terms, large = about["terms"], about["too_large"]
    if not terms and not large["requests"]:
        return "Every request fits on some host."
    lines = []
    if terms:
        carried = sum(one["requests"] for one in terms)
        lines.append(f"No host satisfies the constraints of {counted(carried, 'request')}:")
        lines += [f"  {one['term']}: {count(one['requests'])}" for one in terms[:SHOWN]]
        lines += [f"  ... and {counted(len(terms) - SHOWN, 'more term')}"] if len(terms) > SHOWN else []
    if large["requests"]:
        names = large.get("first_names", [""] * len(large["first_ids"]))
        ids = ", ".join(f"{number} {name}".strip() for number, name in zip(large["first_ids"], names, strict=True))
        more = ", ..." if large["requests"] > len(large["first_ids"]) else ""
        lines.append(f"Larger than every host they may use: {counted(large['requests'], 'request')} (ids {ids}{more})")
    return "\n".join(lines)
