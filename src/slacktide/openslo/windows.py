"""Windows of OpenSLO as those of a ServiceClass, and the other way."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from slacktide.conversion import Node
from slacktide.model.durations import SECONDS_OF, parse_duration

CALENDARS = ("1d", "1w", "1M", "1Q", "1Y")
MONDAY_FIRST = "2024-01-01 00:00:00"
"""Midnight, a Monday, and the first of a month, a quarter and a year: where windows of every calendar begin."""
_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})$")


def of_openslo(node: Node) -> dict[str, Any]:
    """The ``window`` of a ServiceClass from an item of ``timeWindow``.

    Raises :class:`~slacktide.errors.ConfigError` for what is no window of a class.
    """
    said = node.value
    rolling = said.get("isRolling", "calendar" not in said)
    duration = node.child("duration")
    if rolling:
        if "calendar" in said:
            node.child("calendar").fail("no calendar where isRolling is true, or isRolling: false")
        if duration.value[-1] in "MQY":
            duration.fail("a fixed length for a rolling window, such as 30d, 90d or 365d; or a calendar")
        return {"rolling": duration.value}
    if duration.value not in CALENDARS:
        months = " (a small m means minutes)" if duration.value.endswith("m") else ""
        duration.fail(f"one of {', '.join(CALENDARS)} for a window of a calendar{months}, or isRolling: true")
    if "calendar" not in said:
        node.child("isRolling").fail("true, or a calendar with startTime and timeZone beside it")
    found: dict[str, Any] = {"calendar": duration.value}
    calendar = node.child("calendar")
    zone = calendar.child("timeZone")
    _check_zone(zone)
    if zone.value != "UTC":
        found["timeZone"] = zone.value
    start = _start(calendar.child("startTime"))
    if not begins_as_usual(duration.value, start):
        found["start"] = start.isoformat()
    return found


def _check_zone(zone: Node) -> None:
    try:
        ZoneInfo(zone.value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone.fail("a name of the IANA Time Zone Database, such as Europe/Berlin or UTC")


def _start(node: Node) -> datetime:
    found = _INSTANT.match(str(node.value))
    try:
        if found:
            return datetime.fromisoformat(f"{found[1]}T{found[2]}")
    except ValueError:
        pass
    node.fail("a date and time without time zone, such as 2024-01-01 00:00:00")


def begins_as_usual(calendar: str, start: datetime) -> bool:
    """Whether windows of a calendar that are anchored at ``start`` begin where they do without an anchor."""
    midnight = (start.hour, start.minute, start.second) == (0, 0, 0)
    return midnight and {
        "1d": True,
        "1w": start.weekday() == 0,
        "1M": start.day == 1,
        "1Q": start.day == 1 and start.month in (1, 4, 7, 10),
        "1Y": (start.month, start.day) == (1, 1),
    }[calendar]


def to_openslo(window: dict[str, Any]) -> dict[str, Any] | None:
    """The item of ``timeWindow`` for the ``window`` of a ServiceClass; None where OpenSLO cannot say it.

    Raises ``ValueError`` for a duration that is none.
    """
    if "rolling" in window:
        text = shorthand(window["rolling"])
        return None if text is None else {"duration": text, "isRolling": True}
    start = window.get("start") or MONDAY_FIRST
    calendar = {"startTime": str(start).replace("T", " "), "timeZone": window.get("timeZone", "UTC")}
    return {"duration": window["calendar"], "isRolling": False, "calendar": calendar}


def shorthand(duration: str | float) -> str | None:
    """A duration as OpenSLO writes it: one whole number with m, h, d or w; None where it is no whole minutes."""
    if isinstance(duration, str) and re.fullmatch(r"[1-9][0-9]*[mhdw]", duration):
        return duration
    seconds = parse_duration(duration)
    for unit in "dhm":
        if seconds and seconds % SECONDS_OF[unit] == 0:
            return f"{int(seconds // SECONDS_OF[unit])}{unit}"
    return None
