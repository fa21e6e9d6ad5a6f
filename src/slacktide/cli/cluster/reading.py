"""What is read of a cluster for people: objects, events and ledgers, and how these are told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from slacktide.kube.client.http import Connection

Json = dict[str, Any]
SHOWN_EVENTS = 10


async def got(connection: Connection, path: str, **query: str) -> Any:
    """An object, or a list; None where there is none of that name, or no such kind."""
    from slacktide.kube.client.http import NOT_FOUND, ApiError

    try:
        return json.loads(await connection.get(path, query=query or None))
    except ApiError as error:
        if error.status == NOT_FOUND:
            return None
        raise


async def every(connection: Connection, path: str, **query: str) -> list[Json]:
    """The items of a list, however long it is; none where there is no such kind."""
    from slacktide.kube.client.http import NOT_FOUND, ApiError

    try:
        return list(json.loads(await connection.get_list(path, query or None))["items"])
    except ApiError as error:
        if error.status == NOT_FOUND:
            return []
        raise


async def events_about(connection: Connection, namespace: str, kind: str, name: str) -> list[Json]:
    """Events about an object, the latest last. Those of what is of the whole cluster are in the namespace default."""
    selector = f"involvedObject.kind={kind},involvedObject.name={name}"
    found = await every(connection, f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector)
    return sorted(found, key=lambda one: one.get("lastTimestamp") or "")


def of_events(events: Sequence[Mapping[str, Any]], shown: int = SHOWN_EVENTS) -> list[str]:
    """A line for each of the latest."""
    return [
        f"{(one.get('lastTimestamp') or '')[11:19]}  {one['reason']}: {one['message']}"
        + (f" ({one['count']} times)" if one.get("count", 1) > 1 else "")
        for one in events[-shown:]
    ]


def of_ledger(ledger: Mapping[str, Any]) -> str:
    """How a promise stands, of an Availability's status."""
    from slacktide.for_people import share
    from slacktide.kube.observe.dashboard import waiting_text
    from slacktide.model.durations import write_duration

    target, slack = ledger["target"], round(ledger.get("slackSeconds", 0.0))
    left = f", which breaks {write_duration(slack)} after all pods stop" if ledger.get("breaksAt") and slack > 0 else ""
    return (
        f"{target['kind']} {target['name']}, class {ledger['class']}: promised {share(ledger['promised'])}{left}, "
        f"delivered {share(ledger['delivered'])}, {ledger['state']}; {ledger['running']} running, "
        f"{waiting_text(ledger)} (as of {ledger['at'][11:19]})"
    )


def of_losses(ledger: Mapping[str, Any]) -> str:
    """Who took how much of it."""
    from slacktide.model.durations import write_duration

    lost = ledger.get("lostSeconds", {})
    by = ", ".join(
        f"{write_duration(round(seconds))} by the {cause}" for cause, seconds in lost.items() if seconds >= 1
    )
    return f"lost {by}" if by else "lost nothing"
