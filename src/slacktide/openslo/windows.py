"""Windows of OpenSLO as those of a ServiceClass, and the other way. What a window may be, :class:`.Window` says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from slacktide.conversion import Node
from slacktide.errors import ConfigError
from slacktide.inputs.columns.cells import expected_name
from slacktide.kube.resources.objects import WindowSpec
from slacktide.kube.translate.service_classes import window_of
from slacktide.model import Window
from slacktide.model.durations import SECONDS_OF, parse_duration
from slacktide.model.window import PERIODS
from slacktide.settings_file import SettingsFile

SINCE = datetime(2024, 1, 1)
"""A Monday, and the first of a month, a quarter and a year: where a calendar begins in a document that must say so."""
_INSTANT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})$")


def made(window: Mapping[str, Any]) -> Window:
    """The ``window`` of a ServiceClass object. Raises :class:`ConfigError` naming the field for one that cannot be."""
    known = [one.encode_name for one in msgspec.structs.fields(WindowSpec)]
    if unknown := [str(key) for key in window if key not in known]:
        raise ConfigError(f"window: {unknown[0]}: unknown, expected {expected_name(unknown[0], known)}")
    try:
        spec = msgspec.convert(window, WindowSpec)
    except msgspec.ValidationError as error:
        raise ConfigError(f"window: {error}, expected texts") from error
    return window_of(spec)


def of_openslo(node: Node) -> dict[str, Any]:
    """The ``window`` of a ServiceClass object from an item of ``timeWindow``.

    Raises :class:`ConfigError` with file, line and field for what is no window of a class.
    """
    said, duration = node.value, node.child("duration")
    if said.get("isRolling", "calendar" not in said):
        if "calendar" in said:
            node.child("calendar").fail("no calendar where isRolling is true, or isRolling: false")
        if duration.value[-1] in "MQY":
            duration.fail("a fixed length for a rolling window, such as 30d, 90d or 365d; or a calendar")
        return _checked({"rolling": duration.value}, duration)
    if duration.value not in PERIODS:
        months = "; a small m means minutes" if duration.value.endswith("m") else ""
        duration.fail(f"one of {', '.join(PERIODS)} for windows of a calendar{months}; or isRolling: true")
    if "calendar" not in said:
        node.child("isRolling").fail("true, or a calendar with startTime and timeZone beside it")
    found: dict[str, Any] = {"calendar": duration.value}
    calendar = node.child("calendar")
    zone = calendar.child("timeZone")
    if zone.value != "UTC":
        found["timeZone"] = zone.value
    _checked(found, zone)
    start = _start(calendar.child("startTime"))
    if not begins_as_usual(found, start):
        found["start"] = start.isoformat()
    return _checked(found, calendar)


def _checked(window: dict[str, Any], node: Node) -> dict[str, Any]:
    try:
        made(window)
    except ConfigError as error:
        raise ConfigError(f"{node.where}: {error}") from error
    return window


def _start(node: Node) -> datetime:
    found = _INSTANT.match(str(node.value))
    try:
        start = datetime.fromisoformat(f"{found[1]}T{found[2]}") if found else None
    except ValueError:
        start = None
    if start is None:
        node.fail("a date and time without time zone, such as 2024-01-01 00:00:00")
    return start


def begins_as_usual(window: Mapping[str, Any], start: datetime) -> bool:
    """Whether a window of the calendar begins at the local time ``start`` also where no start is given."""
    usual = made({key: value for key, value in window.items() if key != "start"})
    instant = start.replace(tzinfo=ZoneInfo(usual.time_zone)).astimezone(UTC)
    return next(usual.begins(instant)) == instant


def to_openslo(window: Mapping[str, Any]) -> dict[str, Any] | None:
    """The item of ``timeWindow`` for the ``window`` of a ServiceClass object; None where OpenSLO cannot say it.

    Raises :class:`ConfigError` for a window that cannot be.
    """
    checked = made(window)
    if checked.calendar is None:
        text = shorthand(window["rolling"])
        return None if text is None else {"duration": text, "isRolling": True}
    zone = ZoneInfo(checked.time_zone)
    if checked.start is not None:
        start = datetime.fromisoformat(checked.start)
    else:
        since = SINCE.replace(tzinfo=zone).astimezone(UTC)
        start = next(checked.begins(since)).astimezone(zone).replace(tzinfo=None)
    calendar = {"startTime": start.isoformat(" ", "seconds"), "timeZone": checked.time_zone}
    return {"duration": checked.calendar, "isRolling": False, "calendar": calendar}


def shorthand(duration: str | float) -> str | None:
    """A duration as OpenSLO writes it: one whole number with m, h, d or w; None where it is no whole minutes."""
    if isinstance(duration, str) and re.fullmatch(r"[1-9][0-9]*[mhdw]", duration):
        return duration
    seconds = parse_duration(duration)
    for unit in "dhm":
        if seconds and seconds % SECONDS_OF[unit] == 0:
            return f"{int(seconds // SECONDS_OF[unit])}{unit}"
    return None


def plain(window: Mapping[str, Any]) -> dict[str, Any] | None:
    """Which stretches of time a ``window`` means, in the words that the import has for them; None: OpenSLO has none."""
    said = to_openslo(window)
    return None if said is None else again(said)


def again(said: Mapping[str, Any]) -> dict[str, Any]:
    """The ``window`` that the import makes of an item of ``timeWindow``."""
    return of_openslo(Node(SettingsFile("an item of timeWindow", {}), (), said))
