"""The rows of a cluster for people (``netprobe show``) and as a network file (``netprobe export``)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from slacktide.errors import ConfigError, InputError, Problem
from slacktide.kube.client.http import Connection
from slacktide.kube.resources.custom_resources import NODE_LATENCY, as_row
from slacktide.kube.resources.objects import NODE
from slacktide.model.latency import Latencies, Row, fresh, latencies

HEAD = ("NODE", "PEERS", "REACHED", "NEAREST", "FARTHEST", "LOST", "ERROR", "AGE", "STATE")


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of a cluster, its nodes, and the place of each of them where a label names it."""

    rows: tuple[Row, ...]
    nodes: tuple[str, ...]
    place_of: Mapping[str, str] | None


async def read_rows(connection: Connection, site_label: str = "") -> Found:
    """All rows and nodes. Raises ``KubeError`` and :class:`InputError` (malformed rows)."""
    listing = NODE_LATENCY.decode_list(await connection.get_list(NODE_LATENCY.path()))
    if listing.malformed:
        raise InputError([Problem(f"nodelatency {one.name}", 0, "", "", one.problem) for one in listing.malformed])
    nodes = NODE.decode_list(await connection.get_list(NODE.path())).items
    names = tuple(sorted(one.metadata.name for one in nodes))
    place_of = None
    if site_label:
        without = [one.metadata.name for one in nodes if not one.metadata.labels.get(site_label)]
        if without:
            raise ConfigError(f"--site-label: {len(without)} nodes have no label {site_label!r}, such as {without[0]}")
        place_of = {one.metadata.name: one.metadata.labels[site_label] for one in nodes}
    rows = tuple(as_row(one) for one in listing.items)
    return Found(tuple(one for one in rows if not place_of or one.node in place_of), names, place_of)


def network_file(found: Latencies, site_label: str = "") -> str:
    """The network file (YAML) of these round-trip times, in milliseconds to the microsecond."""
    document: dict[str, object] = {"site": site_label} if site_label else {}
    document["places"] = list(found.names)
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, default_flow_style=None, width=10**9)
    # Every row on a line of its own, so that people can read it and a change shows as one.
    rows = ("  - [" + ", ".join(f"{1e3 * one:.3f}".rstrip("0").rstrip(".") for one in row) + "]" for row in found.rtt)
    return text + "rtt_ms:\n" + "\n".join(rows) + "\n"


def filled(found: Found, now: float, stale_after: float, pessimism: float, unknown: float) -> Latencies:
    """What the rows give; :func:`slacktide.model.latency.latencies` has the rules.

    Raises :class:`ConfigError` where there is no node.
    """
    if not found.nodes and not found.rows:
        raise ConfigError("the cluster has neither nodes nor rows; expected nodes with 'slacktide netprobe' on them")
    return latencies(
        found.rows, now, stale_after,
        names=found.nodes, place_of=found.place_of, pessimism=pessimism, unknown=unknown,
    )  # fmt: skip


def table_of(found: Found, now: float, stale_after: float) -> list[tuple[str, ...]]:
    """A line of the table for each node, those without a row among them."""
    rows = {row.node: row for row in found.rows}
    return [_line(name, rows.get(name), now, stale_after) for name in sorted({*rows, *found.nodes})]


def _line(name: str, row: Row | None, now: float, stale_after: float) -> tuple[str, ...]:
    if row is None:
        return (name, *["-"] * 7, "none")
    means = [one.mean for one in row.peers.values() if math.isfinite(one.mean)]
    lost = [one.lost for one in row.peers.values()]
    age = max(0.0, now - row.at)
    return (
        name,
        str(len(row.peers)),
        str(len(means)),
        f"{1e3 * min(means):.1f} ms" if means else "-",
        f"{1e3 * max(means):.1f} ms" if means else "-",
        f"{100 * sum(lost) / len(lost):.1f} %" if lost else "-",
        f"{row.error:.3f}",
        f"{age:.0f} s" if math.isfinite(age) else "-",
        "fresh" if fresh(row, now, stale_after) else "stale",
    )
